"""Every example in a docstring runs and prints what it says."""

import doctest
import importlib
import pkgutil

import pytest

import adfs
from adfs.losses import LOSSES

MODULES = [name for _, name, _ in pkgutil.walk_packages(adfs.__path__, "adfs.")]


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_examples_of_a_module_run(name, monkeypatch):
    monkeypatch.setattr("adfs.losses.LOSSES", dict(LOSSES))  # examples add to it
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.failed == 0


def test_public_classes_have_an_example():
    for name in ("Topology", "Problem", "Parameters", "Schedule", "Delays"):
        assert ">>>" in getattr(adfs, name).__doc__, name

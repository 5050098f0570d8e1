"""Progress without a terminal: plain lines on stderr, now and then."""

import json
import re

import pytest

from adfs.engine import progress


@pytest.fixture
def always(monkeypatch):
    """A line at every evaluation."""
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)


def test_train_speaks_on_stderr_only(adfs, dense, always):
    words = ("train", dense[0], "--evaluate-every", "500", "--tol", "1e-10", "--json")
    outcome = adfs(*words)
    assert json.loads(outcome.out)["status"] == "converged"
    lines = outcome.err.splitlines()
    assert len(lines) > 3
    pattern = (
        r"\d+ s: [\d,]+( of [\d,]+)? events( \(theory\)| \(measured\))?(, \d+ %)?(, .+ events/s)?, "
        r"gap .+ \(tol 1e-10\)(, about \d+ s left)?"
    )
    assert all(re.fullmatch(pattern, line) for line in lines)
    assert any("left" in line for line in lines)
    assert adfs(*words, "--quiet").err == ""


def test_compare_and_reproduce_speak_too(adfs, dense, always):
    words = ("compare", dense[0], "--algorithms", "adfs,msda", "--tol", "1e-4")
    outcome = adfs(*words)
    assert "run 1, adfs, seed 0: " in outcome.err
    assert "run 2, msda, seed 0: " in outcome.err
    assert "run " not in outcome.out
    assert adfs(*words, "--quiet").err == ""
    outcome = adfs("reproduce", "theorem-2", "--quick", "--json")
    assert "theorem-2: 100 % done, about 0 s left\n" in outcome.err
    assert json.loads(outcome.out)["status"] == "finished"

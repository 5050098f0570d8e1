"""`adfs train` on data for which theory expects a very long run: one line before it."""

import numpy as np
import pytest

from adfs.data.generators import two_gaussians
from adfs.engine import forecast
from support.cli import write_libsvm


@pytest.fixture
def identifiers(home, monkeypatch):
    """A file whose second column numbers the samples; runs out of reach end after 3 passes."""
    monkeypatch.setattr(forecast, "MOST_PASSES", 30)
    X, y = two_gaussians(40, 3, seed=0)
    X[:, 1] = 1e7 + np.arange(40)
    write_libsvm(home / "raw.txt", X, y)
    return "raw.txt"


def test_a_long_run_is_announced_in_one_line_and_ends_with_a_way_out(adfs, identifiers):
    outcome = adfs("train", identifiers)
    assert outcome.code == 3
    first, advice, last = outcome.err.splitlines()
    assert "column 2" in advice
    assert first.startswith("warning: Theory promises")
    for word in ("passes", "kappa_s", "column 2 is", "Scale the columns", "newton"):
        assert word in first
    assert "max_iter" in last
    assert "default limit" in last


def test_quiet_is_quiet_about_a_long_run(adfs, identifiers):
    outcome = adfs("train", identifiers, "--quiet")
    assert outcome.code == 3
    assert "promises" not in outcome.err
    assert outcome.out == ""


def test_a_limit_that_was_given_is_not_called_a_default(adfs, identifiers):
    outcome = adfs("train", identifiers, "--max-iter", "10")
    assert outcome.code == 3
    assert "promises" not in outcome.err
    assert "larger --max-iter" in outcome.err
    assert "default" not in outcome.err

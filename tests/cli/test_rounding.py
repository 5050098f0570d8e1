"""What `adfs train` and `adfs compare` call a gap that is not finite, or below rounding."""

import json

import pytest

from adfs.cli import train

ALGORITHMS = ["adfs", "dsba", "esdacd", "katyusha", "lbfgs", "msda", "newton", "tron"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_objective_that_overflows_is_exit_code_3(adfs, home, algorithm):
    (home / "f.svm").write_text("2e154 1:0.1\n1.9e154 1:0.1\n")
    words = ("f.svm", "--loss", "squared", "--algorithm", algorithm, "--nodes", "1")
    outcome = adfs("train", *words)
    assert outcome.code == train.NOT_CONVERGED
    assert "diverged at relative gap not finite" in outcome.err
    record = json.loads(adfs("train", *words, "--json").out)
    assert (record["status"], record["relative_gap"]) == ("diverged", None)


def test_a_gap_below_rounding_is_words_in_text_and_a_number_in_json(adfs, dense):
    words = ("train", dense[0], "--algorithm", "newton", "--tol", "1e-18")
    assert "relative gap to rounding, asked for 1e-18" in adfs(*words).out
    assert 0.0 < json.loads(adfs(*words, "--json").out)["relative_gap"] <= 1e-18


def test_an_optimum_certified_beyond_rounding_is_told_in_words(adfs, dense):
    text = adfs("compare", dense[0], "--algorithms", "newton", "--loss", "squared").out
    assert "certified: relative gap to rounding" in text

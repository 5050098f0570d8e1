"""Advice after a run: columns of very different sizes, targets far from zero."""

import numpy as np
import pytest

from adfs.data.generators import sparse_text


def write_table(path="t.csv", size=1.0, shift=0.0):
    random = np.random.default_rng(0)
    rows = random.normal(size=(60, 3)) * [1.0, size, 1.0]
    with open(path, "w") as file:
        print("age,income,height,kind,value", file=file)
        for row in rows:
            kind = "yes" if row[0] + random.normal() > 0 else "no"
            print(*row, kind, row[0] + shift, sep=",", file=file)
    return path


def advice(outcome):
    return [line for line in outcome.err.splitlines() if line.startswith("advice: ")]


KIND = ("--target", "kind", "--features", "age,income,height", "--max-iter", "1")
VALUE = ("--target", "value", "--features", "age,height", "--loss", "squared", "--max-iter", "1")


def test_a_badly_scaled_column_is_named_with_the_way_out(adfs):
    (line,) = advice(adfs("train", write_table(size=1e4), *KIND))
    assert "'income'" in line
    assert "--standardize" in line


@pytest.mark.parametrize("option", ["--standardize", "--quiet", "--intercept"])
def test_no_advice_about_columns(adfs, option):
    size = 50.0 if option == "--intercept" else 1e4
    assert advice(adfs("train", write_table(size=size), *KIND, option)) == []


def test_rare_words_are_not_badly_scaled(adfs):
    X, y = sparse_text(400, 300, words_per_row=10, seed=0)
    np.savez("text.npz", X=X.toarray(), y=y)
    assert advice(adfs("train", "text.npz", "--max-iter", "1")) == []


def test_targets_far_from_zero_without_an_intercept(adfs):
    (line,) = advice(adfs("train", write_table(shift=100.0), *VALUE))
    assert "--intercept" in line
    assert advice(adfs("train", "t.csv", *VALUE, "--intercept")) == []
    assert advice(adfs("train", write_table(), *VALUE)) == []


def test_a_run_that_is_refused_has_one_line(adfs):
    outcome = adfs("train", write_table(size=1e30), *KIND)
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1

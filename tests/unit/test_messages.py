"""No message is longer than 300 letters, whatever a file contains or is called."""

import numpy as np
import pytest

import adfs
from adfs.errors import AdfsError, DataError, GraphError, ParameterError
from support.commands import here

LONG = "x" * 100_000


@pytest.mark.parametrize("kind", [AdfsError, DataError, GraphError, ParameterError])
def test_a_long_message_keeps_its_rule_and_its_way_out(kind):
    message = str(kind(f"The file must be text, but is {LONG}; choose another file."))
    assert len(message) < 300
    assert message.startswith("The file must be text, but is xxx")
    assert message.endswith("xxx; choose another file.")


def test_a_short_message_stays_as_it_is():
    assert str(DataError("y must be finite; clean the labels.")).count(" ... ") == 0
    assert str(DataError("x" * 250)) == "x" * 250


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("n_labels", [1, 3])
def test_long_labels_do_not_make_a_message_long(loss, n_labels):
    labels = [f"{k % n_labels}{LONG}" for k in range(6)]
    with pytest.raises(DataError, match="two") as caught:
        adfs.Problem([(np.ones((6, 1)), labels)], loss)
    assert len(str(caught.value)) < 300
    assert str(caught.value).endswith("a regression loss such as squared.")


@pytest.mark.parametrize("arguments", [
    ["train", LONG], ["train", "/".join(["long"] * 2000)], ["predict", LONG, "breast-cancer"],
    ["schedule", "show", LONG], ["train", "breast-cancer", "--n-features", "9" * 5000],
    ["train", "breast-cancer", "--config", LONG], ["datasets", "--forget", LONG],
    ["train", "breast-cancer", "--loss", LONG], [LONG],
])  # fmt: skip
def test_long_arguments_do_not_make_a_message_long(arguments, tmp_path, monkeypatch):
    monkeypatch.setenv("ADFS_CACHE", str(tmp_path))
    outcome = here(*arguments)
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    assert len(outcome.err) <= 301


@pytest.mark.parametrize("text", [
    LONG, f"1 {LONG}", f"1 1:{LONG}", f"1 {'9' * 5000}:1", f"{'9' * 100_000} 1:1",
    f"1 1:1 # {LONG}",
])  # fmt: skip
def test_long_words_in_a_file_do_not_make_a_message_long(text, tmp_path):
    (tmp_path / "file.txt").write_text(text + "\n")
    outcome = here("train", tmp_path / "file.txt")
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    assert len(outcome.err) <= 301


@pytest.mark.parametrize("number", ["2147483648", "9223372036854775808", "99999999999999999999"])
@pytest.mark.parametrize("name", ["file.txt", "file.npz"])
def test_more_features_than_there_can_be_are_one_sentence(number, name, tmp_path):
    (tmp_path / "file.txt").write_text("1 1:1\n0 1:2\n")
    np.savez(tmp_path / "file.npz", X=np.eye(2), y=np.arange(2.0))
    outcome = here("train", tmp_path / name, "--n-features", number)
    assert outcome.code == 2
    assert number in outcome.err
    assert "2147483647" in outcome.err
    assert outcome.err.count("\n") == 1

"""Errors are told to every rank and printed by one."""

import errno

import pytest

from adfs.agreement import Alone, agree, attempt
from adfs.cli.main import main
from adfs.errors import (
    AllRanksRaise,
    CheckpointError,
    DataError,
    GraphError,
    ParameterError,
    is_printed_elsewhere,
)
from support.peers import on_ranks


def raising(error):
    def work():
        raise error

    return work


@pytest.mark.parametrize("size", [1, 2, 4])
def test_without_an_error_every_rank_goes_on(size):
    outcomes, _ = on_ranks(size, lambda peers: attempt(peers, lambda: peers.rank**2))
    assert outcomes == [rank**2 for rank in range(size)]


@pytest.mark.parametrize("kind", [DataError, GraphError, ParameterError, CheckpointError])
@pytest.mark.parametrize("failing", [{0}, {2}, {1, 3}, {0, 1, 2, 3}])
def test_the_lowest_failing_rank_speaks_for_all(failing, kind):
    def work(peers):
        fails = peers.rank in failing
        attempt(peers, raising(kind(f"rank {peers.rank} fell")) if fails else lambda: None)

    outcomes, _ = on_ranks(4, work)
    for rank, error in enumerate(outcomes):
        assert type(error) is kind
        assert str(error) == f"rank {min(failing)} fell"
        assert is_printed_elsewhere(error) == (rank != min(failing))


def test_what_comes_first_in_the_data_is_told_first():
    def work(peers):
        error = DataError(f"line {[9, 4, 7][peers.rank]}")
        error.order = [9, 4, 7][peers.rank]
        agree(peers, error)

    outcomes, _ = on_ranks(3, work)
    assert [str(error) for error in outcomes] == ["line 4"] * 3
    assert [is_printed_elsewhere(error) for error in outcomes] == [True, False, True]


@pytest.mark.parametrize(
    "error", [MemoryError("too much"), OSError(errno.EACCES, "Permission denied", "x.txt")]
)
def test_failures_of_the_machine_are_told_too(error):
    outcomes, _ = on_ranks(2, lambda peers: attempt(peers, raising(error) if peers.rank else int))
    for found in outcomes:
        assert isinstance(found, type(error))
        assert str(found) == str(error)
    assert is_printed_elsewhere(outcomes[0])


def test_a_mistake_of_the_program_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        attempt(Alone(), lambda: 1 // 0)


@pytest.mark.parametrize("spoken", [True, False])
@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (DataError("part-3 is empty."), 2, "adfs: part-3 is empty.\n"),
        (OSError(2, "No such file", "x"), 2, "adfs: x cannot be used: No such file; check the"),
        (MemoryError(), 1, "adfs: this needs more memory than there is"),
    ],
)
def test_the_command_is_silent_where_another_rank_speaks(
    error, code, sentence, spoken, monkeypatch, capsys
):
    error.__cause__ = AllRanksRaise(0, not spoken)
    monkeypatch.setattr("adfs.cli.info.run", lambda _: raising(error)())
    assert main(["info"]) == code
    said = capsys.readouterr().err
    assert said.startswith(sentence) if not spoken else said == ""

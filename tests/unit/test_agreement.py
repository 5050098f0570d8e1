"""Values that must be the same on all ranks: how they are worded, compared and refused."""

import threading

import numpy as np
import pytest

import adfs
from adfs.agreement import LEAVING, Alone, as_text, require_same, require_same_software
from adfs.cli.arguments import Parser
from adfs.cli.commands import TRAIN
from adfs.cli.on_ranks import shared_by_ranks
from adfs.errors import ParameterError, is_agreed, is_printed_elsewhere
from support.peers import on_ranks, succeed
from support.ranks import ThreadNetwork


def refusals(size, work):
    """The one text that all ranks raise; only rank 0 is to print it."""
    outcomes, _ = on_ranks(size, work)
    assert {type(error) for error in outcomes} == {ParameterError}
    assert [is_printed_elsewhere(error) for error in outcomes] == [False] + [True] * (size - 1)
    assert all(is_agreed(error) for error in outcomes)
    (text,) = {str(error) for error in outcomes}
    return text


def test_equal_values_are_accepted_whatever_their_type():
    values = [
        {"number": 1, "list": np.float64(0.1), "weights": {0: 1.0, 1: 2.0}, "graph": "ring"},
        {"number": 1.0, "list": 0.1, "weights": {1: 2.0, 0: 1.0}, "graph": "ring"},
    ]
    succeed(2, lambda peers: require_same(peers, values[peers.rank]))
    require_same(Alone(), {"seed": object()})


def test_the_first_name_that_differs_is_told_with_both_values():
    def work(peers):
        late = int(peers.rank > 1)
        require_same(peers, {"same": 1, "--seed": late, "--tol": peers.rank}, "do it.", "Rule")

    text = refusals(3, work)
    assert text == "Rule: --seed is 0 on rank 0 and 1 on rank 2; do it."


def test_a_name_that_a_rank_lacks_is_a_difference():
    text = refusals(2, lambda peers: require_same(peers, {"a": 1} if peers.rank else {}))
    assert "a is not given on rank 0 and 1 on rank 1" in text


def test_a_rank_that_has_ended_is_named():
    def work(peers):
        if peers.rank == 1:
            peers.gather(LEAVING)
        else:
            require_same(peers, {"a": 1})

    outcomes, _ = on_ranks(2, work)
    assert "Rank 1 has ended" in str(outcomes[0])


def test_a_rank_that_is_elsewhere_ends_the_job():
    def work(peers):
        if peers.rank == 1:
            peers.gather(None)
        else:
            require_same(peers, {"a": 1})

    outcomes, _ = on_ranks(2, work)
    assert "rank 1 makes another" in str(outcomes[0])
    assert not hasattr(outcomes[0], "agreed")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (0, 1), (True, 1), (0.1, np.nextafter(0.1, 1)), (2**60, 2**60 + 1), (None, 0),
        (np.zeros(3), np.zeros(4)), (np.zeros(3), np.array([0.0, 0.0, 1e-300])),
        (adfs.Topology.ring(4), adfs.Topology.ring(5)), ("x" * 500, "x" * 499 + "y"),
        (float("inf"), float("nan")),
    ],
)  # fmt: skip
def test_other_values_have_other_words(first, second):
    assert as_text(first) != as_text(second)
    assert max(map(len, map(as_text, (first, second)))) < 120


def test_words_do_not_depend_on_the_process():
    assert as_text(lambda: 0) == as_text(lambda: 0)
    assert as_text(10**20) == as_text(1e20)
    assert as_text(10**400) != as_text(10**400 + 1)


def test_versions_are_compared(monkeypatch):
    succeed(2, require_same_software)

    def work(peers):
        found = {"numpy": "2.0" if peers.rank else "1.0"}
        monkeypatch.setattr("adfs.agreement.versions", lambda: found)
        require_same_software(peers)

    assert "numpy is 1.0 on rank 0 and 2.0 on rank 1; install" in refusals(2, work)


def test_rounding_is_compared_and_the_ranks_are_named(monkeypatch):
    succeed(2, require_same_software)

    this = threading.local()
    monkeypatch.setattr("adfs.agreement.rounding", lambda: f"{this.rank % 2}")

    def work(peers):
        this.rank = peers.rank
        require_same_software(peers)

    assert "ranks 1, 3 differ from rank 0" in refusals(4, work)
    assert "rank 1 differs from rank 0" in refusals(2, work)


def test_a_problem_and_a_run_compare_their_arguments():
    X, y = adfs.generators.two_gaussians(40, 3, seed=0)
    shards = adfs.partition(X, y, 2)

    def make(peers, **options):
        network = ThreadNetwork(peers, adfs.Topology.path(2), np.arange(2))
        return adfs.Problem(shards[peers.rank : peers.rank + 1], network=network, **options)

    text = refusals(2, lambda peers: make(peers, sigma=[1.0, 2.0 + peers.rank]))
    assert text.startswith("sigma is an array of shape (2,)")
    text = refusals(2, lambda peers: adfs.solve(make(peers), seed=peers.rank))
    assert text.startswith("seed is 0 on rank 0 and 1 on rank 1")


def shared(*arguments):
    return shared_by_ranks(Parser(TRAIN, "adfs train").parse_args(arguments))


def test_of_options_that_name_a_file_the_presence_counts():
    files = ("--out", "--trace", "--report", "--timeline", "--checkpoint", "--warm-start",
             "--test", "--config", "--save-config")  # fmt: skip
    here = shared("a.txt", *(word for flag in files for word in (flag, "here")))
    there = shared("b.txt", *(word for flag in files for word in (flag, "there")))
    assert here == there
    assert {here[flag] for flag in files} == {"given"}
    assert {shared("a.txt")[flag] for flag in files} == {"not given"}


def test_every_option_that_is_shown_is_compared_but_help():
    assert set(shared("a.txt")) == set(TRAIN.flags) - {"-h", "--help"} | {"DATA"}


def test_data_are_told_by_their_kind():
    kinds = [shared(name)["DATA"] for name in ("a.txt", "part-{node}.txt", "breast-cancer")]
    assert kinds == ["a file", "a pattern with {node}", "the data set breast-cancer"]


FLAGS = {
    "seed": (["--seed", "0"], ["--seed", "1"], "--seed is 0 on rank 0 and 1 on rank 2"),
    "tol": ([], ["--tol", "1e-3"], "--tol is 0.01 on rank 0 and 0.001 on rank 2"),
    "max-iter": ([], ["--max-iter", "9"], "--max-iter is not given on rank 0 and 9 on rank 2"),
    "sigma": (["--sigma", "0.1"], ["--sigma", "0.2"], "--sigma is 0.1 on rank 0 and 0.2 on rank 2"),
    "algorithm": ([], ["--algorithm", "msda"], "--algorithm is auto on rank 0 and msda on rank 2"),
    "nodes": ([], ["--nodes", "6"], "--nodes is not given on rank 0 and 6 on rank 2"),
    "partition": ([], ["--partition", "contiguous"], "--partition is not given on rank 0 and cont"),
    "intercept": (["--intercept"], [], "--intercept is given on rank 0 and not given on rank 2"),
    "checkpoint": ([], ["--checkpoint", "x"], "--checkpoint is not given on rank 0 and given on"),
    "out": ([], ["--out", "model.npz"], "--out is not given on rank 0 and given on rank 2"),
}


@pytest.mark.parametrize("name", FLAGS)
def test_an_option_that_differs_is_told_with_both_values(name):
    first, other, words = FLAGS[name]
    options = ["--tol", "1e-2"]
    seen = [shared("samples.npz", *options, *each) for each in (first, first, other)]
    text = refusals(3, lambda peers: require_same(peers, seen[peers.rank]))
    assert words in text
    assert "the same" in text


def test_a_file_and_a_pattern_are_not_the_same_data():
    seen = [shared("samples.npz"), shared("part-{node}.npz")]
    text = refusals(2, lambda peers: require_same(peers, seen[peers.rank]))
    assert "DATA is a file on rank 0" in text
    assert "{node} on rank 1" in text

"""Who fits together: steps that all ranks take (threads here), and what one process does alone."""

import multiprocessing
import sys

import numpy as np
import pytest
from sklearn.base import clone

import adfs
from adfs.agreement import Alone, require_same
from adfs.errors import DataError, ParameterError, is_agreed
from adfs.estimators.node_layout import as_one_array, lay_out, on_all, union
from adfs.mpi import communicator
from support.estimators import rows
from support.peers import on_ranks, succeed

ALL = [adfs.LogisticRegression, adfs.LinearSVC, adfs.Ridge, adfs.HuberRegressor, adfs.LinearSVR]


@pytest.mark.parametrize("kind", ALL)
def test_the_engine_is_a_parameter_like_any_other(kind):
    assert kind().get_params()["engine"] == "local"
    assert clone(kind(engine="mpi")).engine == "mpi"
    with pytest.raises(ParameterError, match="engine='gpu' is unknown; choose one of local, mpi"):
        kind(engine="gpu").fit(np.eye(4), [0, 1, 0, 1])


@pytest.fixture
def outside(monkeypatch):
    """A process that has not opened its world."""
    monkeypatch.setattr(communicator, "_worlds", [])


def test_without_mpi4py_the_sentence_names_the_extra(outside, monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ParameterError, match=r"mpi4py, which is not installed; pip install '"):
        adfs.Ridge(engine="mpi").fit(np.eye(3), [1.0, 2.0, 3.0])


def test_a_worker_of_a_pool_is_no_rank(outside, monkeypatch):
    monkeypatch.setattr(multiprocessing.current_process(), "_config", {})
    monkeypatch.setattr(multiprocessing.current_process(), "_name", "LokyProcess-1")
    with pytest.raises(ParameterError, match=r"LokyProcess-1 is a worker.*; use n_jobs=1"):
        adfs.Ridge(engine="mpi").fit(np.eye(3), [1.0, 2.0, 3.0])


def test_a_program_that_has_ended_mpi_is_told_so(outside, monkeypatch):
    class Ended:
        Is_initialized = Is_finalized = staticmethod(lambda: True)

    monkeypatch.setitem(sys.modules, "mpi4py.MPI", Ended)
    with pytest.raises(ParameterError, match=r"has ended MPI .*; fit before it does"):
        communicator.open_world()


def sentences(size, work):
    """What every rank raises, as (type, text, whether all know of it)."""
    outcomes, _ = on_ranks(size, work)
    return {(type(error), str(error), is_agreed(error)) for error in outcomes}


def test_the_error_of_one_rank_is_raised_on_all_with_its_number():
    def work(ranks):
        on_all(ranks, lambda: [][0] if ranks.rank == 1 else None)

    assert sentences(3, work) == {(RuntimeError, "rank 1: list index out of range", True)}


def test_the_error_of_all_ranks_has_no_number():
    def work(ranks):
        on_all(ranks, lambda: int("x"))

    ((kind, text, _),) = sentences(3, work)
    assert kind is ValueError
    assert text.startswith("invalid literal")


def test_an_error_of_one_process_alone_is_itself():
    with pytest.raises(IndexError, match=r"^list index out of range$"):
        on_all(Alone(), lambda: [][0])


def test_parameters_are_compared_by_value():
    states = [np.random.RandomState(seed) for seed in range(2)]
    weights = [{0: 1.0, 1: 2.0}, {1: 2.0, 0: 1.0}]
    graphs = [adfs.Topology.ring(5), adfs.Topology.ring(5)]
    numbers = [1.0, np.float64(1.0)]

    def work(peers):
        k = peers.rank
        values = {"state": states[k], "weight": weights[k], "graph": graphs[k]}
        require_same(peers, values | {"number": numbers[k]}, "do.", "All")

    succeed(2, work)

    def differ(ranks):
        require_same(ranks, {"graph": adfs.Topology.ring(5 + ranks.rank)}, "do.", "All")

    ((kind, text, _),) = sentences(2, differ)
    assert kind is ParameterError
    assert text.startswith("All: graph is ring:5")


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([["b"], ["longer", "a"]], np.array(["a", "b", "longer"])),
        ([[3, 1], [2.5]], np.array([1.0, 2.5, 3.0])),
        ([[], ["a"]], np.array(["a"])),
        ([np.array(["b"], object), ["a"]], np.array(["a", "b"], object)),
    ],
)
def test_labels_of_all_ranks_are_those_of_one_array(parts, expected):
    def work(peers):
        own = np.unique(np.asarray(parts[peers.rank]))
        return union(peers, own, "Labels")[0]

    for found in succeed(2, work):
        assert found.dtype == expected.dtype
        assert found.tolist() == expected.tolist()


def test_labels_that_are_neither_numbers_nor_words_are_refused():
    def work(ranks):
        union(ranks, np.array([(1, 2), None], object)[1:], "Labels")

    assert sentences(2, work) == {
        (DataError, "Labels of type NoneType cannot be sent to other ranks; use numbers or words.",
         True)
    }  # fmt: skip


def test_sums_over_nodes_have_the_bits_of_one_process():
    X, y = rows("breast-cancer")
    nodes = np.random.default_rng(0).integers(0, 6, len(y))
    rank_of = np.array([1, 0, 2, 0, 1, 2])

    def total(peers, own):
        layout = lay_out(len(own), None, "ring", nodes[own], 0, peers)
        return layout.add_up(lambda part: X[own][part].sum(axis=0))

    whole = total(Alone(), np.arange(len(y)))
    np.testing.assert_allclose(whole, X.sum(axis=0), atol=1e-9)
    for found in succeed(
        3, lambda peers: total(peers, np.flatnonzero(rank_of[nodes] == peers.rank))
    ):
        assert found.tobytes() == whole.tobytes()


def test_without_groups_ranks_have_consecutive_nodes_and_deal_their_rows():
    def work(peers):
        return lay_out(10, 5, "ring", None, 0, peers)

    for layout, sizes in zip(succeed(2, work), ([3, 4, 3], [5, 5]), strict=True):
        assert layout.rank_of.tolist() == [0, 0, 0, 1, 1]
        assert sorted(layout.order.tolist()) == list(range(10))
        assert sorted(np.diff(layout.cuts).tolist()) == sorted(sizes)


def test_one_node_a_rank_is_the_default_and_keeps_the_order_of_rows():
    def work(peers):
        return lay_out(10 + peers.rank, None, "ring", None, 0, peers)

    for rank, layout in enumerate(succeed(3, work)):
        assert layout.topology == adfs.Topology.ring(3)
        assert layout.order.tolist() == list(range(10 + rank))


def test_columns_become_those_of_one_array():
    import scipy.sparse as sp

    given = [sp.csr_array(np.eye(2, dtype=np.float32)), np.eye(2)]
    for found in succeed(2, lambda peers: as_one_array(given[peers.rank], None, peers)):
        assert sp.issparse(found)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found.toarray(), np.eye(2))

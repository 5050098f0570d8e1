"""The processes that fit one model together, and which rows are on which node.

Rows are dealt from a seed, or as the caller's ``groups`` say. A fit consists of steps that every
rank takes, each with its own rows. Work that may fail on one rank runs through `on_all`: then all
ranks raise the same error, and none waits for another.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from adfs.agreement import Peers, agree, attempt, require_same
from adfs.checks import choice, whole
from adfs.data.matrices import row_view
from adfs.data.partition import Shard, partition_rows
from adfs.errors import DataError, GraphError, ParameterError
from adfs.graphs.topology import Topology
from adfs.network import ENGINES, Network

DEFAULT_NODES = 4
KINDS = {"i": "numbers", "u": "numbers", "f": "numbers", "b": "numbers", "U": "words", "S": "bytes"}

T = TypeVar("T")
Rows = NDArray[np.int64]


def on_all(ranks: Peers, work: Callable[[], T]) -> T:
    """The result of local work, once it has succeeded on every rank.

    Otherwise all ranks raise the error of the lowest rank that has one, with the rank's number
    before it unless all ranks have the same error.

    Examples
    --------
    >>> on_all(Peers(), lambda: 6 * 7)
    42
    """
    return attempt(ranks, work, (Exception,), name_rank=True)


@contextlib.contextmanager
def fit_group(engine: Any) -> Iterator[Peers]:
    """The processes with which an estimator's ``engine`` fits."""
    if choice("engine", engine, ENGINES) == "local":
        yield Peers()
        return
    from adfs.mpi.communicator import session

    with session() as world:
        yield Peers() if world.size == 1 else world


def union(
    ranks: Peers, own: NDArray[Any], what: str
) -> tuple[NDArray[Any], list[NDArray[np.int64]]]:
    """All different values of all ranks in order, and where each rank's are among them.

    ``own`` are those of this rank, in order. If words are objects on some rank, as Pandas has them,
    the result holds objects.
    """
    plain = on_all(ranks, lambda: as_plain(own, what))
    received = ranks.gather([plain, own.dtype.hasobject])
    parts = [part for part, _ in received]
    on_all(ranks, lambda: _require_one_kind(parts, what))
    every = np.unique(np.concatenate([part for part in parts if len(part)] or parts))
    places = [np.searchsorted(every, part.astype(every.dtype)) for part in parts]
    return every.astype(object) if any(objects for _, objects in received) else every, places


def as_plain(values: NDArray[Any], what: str) -> NDArray[Any]:
    plain = np.array(values.tolist()) if values.dtype.hasobject else values
    if plain.dtype.kind not in KINDS:
        raise DataError(
            f"{what} of type {type(values.tolist()[0]).__name__} cannot be sent to other ranks; "
            "use numbers or words."
        )
    return plain


def _require_one_kind(parts: list[NDArray[Any]], what: str) -> None:
    """Refuse numbers and words together: NumPy would turn the numbers into words."""
    first = next((rank for rank, part in enumerate(parts) if len(part)), 0)
    for rank, part in enumerate(parts):
        mine, theirs = KINDS[parts[first].dtype.kind], KINDS[part.dtype.kind]
        if len(part) and mine != theirs:
            raise DataError(
                f"{what} are {mine} on rank {first} but {theirs} on rank {rank}; use one kind."
            )


def as_one_array(rows: Any, names: Any, ranks: Peers) -> Any:
    """This rank's rows as they would be in one array of all ranks' rows.

    CSR on one rank is CSR on all; float64 on one rank is float64 on all. ``names`` are those of the
    columns, None where they have none.
    """
    named = None if names is None else [str(name) for name in names]
    require_same(
        ranks, {"n_features": rows.shape[1], "feature_names": named},
        "give them in the same order (pad with zeros).", "All ranks need the same columns of X",
    )  # fmt: skip
    received = ranks.gather([issparse(rows), rows.dtype.str])
    if any(sparse for sparse, _ in received) and not issparse(rows):
        rows = csr_matrix(rows)
    return rows.astype(np.result_type(*[dtype for _, dtype in received]), copy=False)


class RowLayout(NamedTuple):
    """A graph, the rows in the order of this process's nodes, and where each node's begin and end.

    ``rank_of`` holds the rank of each node, ``ranks`` are all processes of the fit.
    """

    topology: Topology
    order: Rows
    cuts: NDArray[np.int64]
    rank_of: NDArray[np.int64]
    ranks: Peers

    def shards(self, X: Any, y: NDArray[Any], weights: NDArray[np.float64]) -> list[Shard]:
        """One shard per node, consecutive views of one copy."""
        rows, targets, heavy = X[self.order], y[self.order], weights[self.order]
        if issparse(rows):
            rows = csr_matrix(rows)
            rows.sum_duplicates()
        return [
            Shard(row_view(rows, a, b), targets[a:b], heavy[a:b])
            for a, b in itertools.pairwise(self.cuts)
        ]

    def network(self) -> Network:
        if self.ranks.size == 1:
            return Network(self.topology)
        from adfs.mpi.mpi_network import MpiNetwork

        return MpiNetwork(self.ranks, self.topology, self.rank_of)  # type: ignore[arg-type]

    def add_up(self, of_node: Callable[[Rows], Any]) -> NDArray[np.float64]:
        """Sum over all nodes, in their order, of what ``of_node`` makes of a node's rows."""
        own = np.array(
            [of_node(self.order[a:b]) for a, b in itertools.pairwise(self.cuts)], dtype=np.float64
        )
        vectors = [iter(of_rank) for of_rank in self.ranks.gather(own)]
        total = np.zeros(own.shape[1])
        for rank in self.rank_of.tolist():
            total += next(vectors[rank])
        return total


def lay_out(
    n_samples: int, n_nodes: Any, graph: Any, groups: Any, seed: int, ranks: Peers
) -> RowLayout:
    """The layout that an estimator's ``n_nodes``, ``graph`` and ``groups`` describe.

    Examples
    --------
    >>> layout = lay_out(4, None, "ring", ["b", "a", "b", "c"], 0, Peers())
    >>> layout.topology.name, layout.order.tolist(), layout.cuts.tolist()
    ('ring:3', [1, 0, 2, 3], [0, 1, 3, 4])
    """
    rule, way_out = "All ranks pass groups, or none does", "name the node of every row."
    require_same(ranks, {"groups": groups is not None}, way_out, rule)
    if n_nodes is not None:
        n_nodes = on_all(ranks, lambda: whole("n_nodes", n_nodes, 1, hint="or leave it at None"))
    if groups is None:
        return on_all(ranks, lambda: _dealt(n_samples, n_nodes, graph, seed, ranks))
    return _grouped(n_samples, n_nodes, graph, groups, ranks)


def _dealt(n_samples: int, n_nodes: int | None, graph: Any, seed: int, ranks: Peers) -> RowLayout:
    """Every rank deals its rows evenly to its nodes, which have consecutive numbers."""
    size = ranks.size
    topology = _topology(graph, n_nodes, size if size > 1 else min(DEFAULT_NODES, n_samples))
    if topology.n_nodes < size:
        raise ParameterError(
            f"n_nodes={topology.n_nodes} is less than the {size} ranks, and every rank needs at "
            "least one node; raise n_nodes, or start fewer ranks."
        )
    counts = [len(nodes) for nodes in partition_rows(topology.n_nodes, size, "contiguous")]
    own = counts[ranks.rank]
    if own > n_samples:
        here = "" if size == 1 else f", {own} of them on this rank,"
        raise ParameterError(
            f"n_nodes={topology.n_nodes}{here} must not exceed n_samples={n_samples}, so that each "
            "node has a row; lower n_nodes, or take a smaller graph."
        )
    parts = partition_rows(n_samples, own, "even", seed)
    cuts = np.cumsum([0, *(len(part) for part in parts)])
    rank_of = np.repeat(np.arange(size), counts)
    return RowLayout(topology, np.concatenate(parts), cuts, rank_of, ranks)


def _grouped(
    n_samples: int, n_nodes: int | None, graph: Any, groups: Any, ranks: Peers
) -> RowLayout:
    """One node per name, in the order of all names; a name's rows are on one rank."""
    names, node_of = on_all(ranks, lambda: _named(groups, n_samples))
    rank_of = np.zeros(len(names), np.int64)
    if ranks.size > 1:
        names, places = union(ranks, names, "groups")
        rank_of = on_all(ranks, lambda: _ranks_of(names, places))
        node_of = places[ranks.rank][node_of]
    unequal = ParameterError(
        f"n_nodes={n_nodes} must equal the number of different groups, which is {len(names)}, so "
        "that every node has rows; leave n_nodes at None."
    )
    agree(ranks, None if n_nodes in (None, len(names)) else unequal)
    topology = on_all(ranks, lambda: _topology(graph, len(names), len(names)))
    counts = np.bincount(node_of, minlength=len(names))[rank_of == ranks.rank]
    order = np.argsort(node_of, kind="stable")
    return RowLayout(topology, order, np.cumsum([0, *counts.tolist()]), rank_of, ranks)


def _ranks_of(names: NDArray[Any], places: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    rank_of = np.full(len(names), -1, np.int64)
    for rank, own in enumerate(places):
        twice = own[rank_of[own] >= 0]
        if len(twice):
            raise DataError(
                f"Rows of the group {names[twice[0]]!s} are on the ranks {rank_of[twice[0]]} and "
                f"{rank}, but a node is on one rank; move them together, or use two names."
            )
        rank_of[own] = rank
    return rank_of


def _named(groups: Any, n_samples: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The different groups in order, and the number of each row's among them."""
    given = np.asarray(groups)
    if given.shape != (n_samples,):
        raise DataError(
            f"groups must name one node per row, but has shape {given.shape} for {n_samples} rows; "
            "pass one entry per row."
        )
    if given.dtype.kind == "f" and np.isnan(given).any():
        raise DataError("groups has a NaN, so a row belongs to no node; name a node for each row.")
    try:
        names, node_of = np.unique(given, return_inverse=True)
    except TypeError:
        raise DataError(
            "groups mixes names of different kinds, for example words and None; use one kind."
        ) from None
    return names, node_of.astype(np.int64)


def _topology(graph: Any, n_nodes: int | None, otherwise: int) -> Topology:
    """The graph on ``n_nodes``; without that and without a size of its own, on ``otherwise``."""
    if isinstance(graph, Topology):
        if n_nodes not in (None, graph.n_nodes):
            raise GraphError(
                f"The graph {graph.name} has {graph.n_nodes} nodes but {n_nodes} were asked for; "
                "make the two numbers equal, or leave n_nodes at None."
            )
        return graph
    if not isinstance(graph, str):
        raise ParameterError(
            f"graph={type(graph).__name__} must be a name such as 'grid' or an adfs.Topology; "
            "Topology.from_networkx makes one."
        )
    if n_nodes is None:
        try:
            return Topology.parse(graph)
        except GraphError:  # it has no size, or is not a graph: then the next call raises
            n_nodes = otherwise
    if n_nodes == 1 and graph == "grid":
        return Topology.single()
    return Topology.parse(graph, n_nodes=n_nodes)

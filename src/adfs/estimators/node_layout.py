"""Which rows are on which node: dealt from a seed, or as the caller's ``groups`` say."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from adfs.agreement import agree
from adfs.checks import whole
from adfs.data.matrices import row_view
from adfs.data.partition import Shard, partition_rows
from adfs.errors import DataError, GraphError, ParameterError
from adfs.estimators.fit_group import FitGroup, union
from adfs.graphs.topology import Topology
from adfs.network import Network

DEFAULT_NODES = 4

Rows = NDArray[np.int64]


class RowLayout(NamedTuple):
    """A graph, the rows in the order of this process's nodes, and where each node's begin and end.

    ``rank_of`` holds the rank of each node, ``ranks`` are all processes of the fit.
    """

    topology: Topology
    order: Rows
    cuts: NDArray[np.int64]
    rank_of: NDArray[np.int64]
    ranks: FitGroup

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
        """The network of these nodes."""
        if self.ranks.alone:
            return Network(self.topology)
        from adfs.mpi.mpi_network import MpiNetwork

        return MpiNetwork(self.ranks.peers, self.topology, self.rank_of)  # type: ignore[arg-type]

    def add_up(self, of_node: Callable[[Rows], Any]) -> NDArray[np.float64]:
        """Sum over all nodes of the vector that ``of_node`` makes of a node's rows.

        They are added in the order of the nodes: the same bits whichever ranks have them.
        """
        own = np.array(
            [of_node(self.order[a:b]) for a, b in itertools.pairwise(self.cuts)], dtype=np.float64
        )
        width = own.shape[1]
        received = self.ranks.peers.gather(own.reshape(-1))
        vectors = [iter(part.reshape(-1, width)) for part in received]
        total = np.zeros(width)
        for rank in self.rank_of.tolist():
            total += next(vectors[rank])
        return total


def lay_out(
    n_samples: int, n_nodes: Any, graph: Any, groups: Any, seed: int, ranks: FitGroup
) -> RowLayout:
    """The layout that an estimator's ``n_nodes``, ``graph`` and ``groups`` describe.

    Examples
    --------
    >>> from adfs.agreement import Alone
    >>> layout = lay_out(4, None, "ring", ["b", "a", "b", "c"], 0, FitGroup(Alone()))
    >>> layout.topology.name, layout.order.tolist(), layout.cuts.tolist()
    ('ring:3', [1, 0, 2, 3], [0, 1, 3, 4])
    """
    ranks.require_same(
        "All ranks pass groups, or none does", "name the node of every row.",
        groups=groups is not None,
    )  # fmt: skip
    if n_nodes is not None:
        n_nodes = ranks.each(lambda: whole("n_nodes", n_nodes, 1, hint="or leave it at None"))
    if groups is None:
        return ranks.each(lambda: _dealt(n_samples, n_nodes, graph, seed, ranks))
    return _grouped(n_samples, n_nodes, graph, groups, ranks)


def _dealt(
    n_samples: int, n_nodes: int | None, graph: Any, seed: int, ranks: FitGroup
) -> RowLayout:
    """Every rank deals its rows evenly to its nodes, which have consecutive numbers."""
    size = ranks.peers.size
    topology = _topology(graph, n_nodes, min(DEFAULT_NODES, n_samples) if ranks.alone else size)
    if topology.n_nodes < size:
        raise ParameterError(
            f"n_nodes={topology.n_nodes} is less than the {size} ranks, and every rank needs at "
            "least one node; raise n_nodes, or start fewer ranks."
        )
    counts = [len(nodes) for nodes in partition_rows(topology.n_nodes, size, "contiguous")]
    own = counts[ranks.peers.rank]
    if own > n_samples:
        here = "" if ranks.alone else f", {own} of them on this rank,"
        raise ParameterError(
            f"n_nodes={topology.n_nodes}{here} must not exceed n_samples={n_samples}, so that each "
            "node has a row; lower n_nodes, or take a smaller graph."
        )
    parts = partition_rows(n_samples, own, "even", seed)
    cuts = np.cumsum([0, *(len(part) for part in parts)])
    rank_of = np.repeat(np.arange(size), counts)
    return RowLayout(topology, np.concatenate(parts), cuts, rank_of, ranks)


def _grouped(
    n_samples: int, n_nodes: int | None, graph: Any, groups: Any, ranks: FitGroup
) -> RowLayout:
    """One node per name, in the order of all names; a name's rows are on one rank."""
    names, node_of = ranks.each(lambda: _named(groups, n_samples))
    rank_of = np.zeros(len(names), np.int64)
    if not ranks.alone:
        names, places = union(ranks, names, "groups")
        rank_of = ranks.each(lambda: _ranks_of(names, places))
        node_of = places[ranks.peers.rank][node_of]
    unequal = ParameterError(
        f"n_nodes={n_nodes} must equal the number of different groups, which is {len(names)}, so "
        "that every node has rows; leave n_nodes at None."
    )
    agree(ranks.peers, None if n_nodes in (None, len(names)) else unequal)
    topology = ranks.each(lambda: _topology(graph, len(names), len(names)))
    counts = np.bincount(node_of, minlength=len(names))[rank_of == ranks.peers.rank]
    order = np.argsort(node_of, kind="stable")
    return RowLayout(topology, order, np.cumsum([0, *counts.tolist()]), rank_of, ranks)


def _ranks_of(names: NDArray[Any], places: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The rank of each name."""
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

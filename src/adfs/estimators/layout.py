"""Which rows live on which node: dealt from a seed, or where the caller says they belong."""

import importlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from adfs.errors import DataError, GraphError, ParameterError
from adfs.estimators.company import Company
from adfs.estimators.names import union
from adfs.estimators.options import whole
from adfs.graphs.topology import Topology
from adfs.launch.peers import Peers
from adfs.network import Network
from adfs.problems.partition import Shard, partition_rows, row_view

DEFAULT_NODES = 4

Rows = NDArray[np.int64]


class Layout(NamedTuple):
    """A graph, the rows in the order of this process's nodes, and where each one's begin and end.

    ``rank_of`` says which rank has a node.
    """

    topology: Topology
    order: Rows
    cuts: NDArray[np.int64]
    peers: Peers
    rank_of: NDArray[np.int64]

    def shards(self, X: Any, y: NDArray[Any], weights: NDArray[np.float64]) -> list[Shard]:
        """One shard a node, consecutive views of one copy."""
        rows, targets, heavy = X[self.order], y[self.order], weights[self.order]
        if issparse(rows):
            rows = csr_matrix(rows)
            rows.sum_duplicates()
        return [
            Shard(row_view(rows, a, b), targets[a:b], heavy[a:b])
            for a, b in zip(self.cuts[:-1], self.cuts[1:], strict=True)
        ]

    def network(self) -> Network:
        """The network of these nodes."""
        if self.peers.size == 1:
            return Network(self.topology)
        module = importlib.import_module("adfs.distributed.network")
        network: Network = module.MpiNetwork(self.peers, self.topology, self.rank_of)
        return network

    def add_up(self, of_node: Callable[[Rows], Any]) -> NDArray[np.float64]:
        """Sum of what each node makes of its rows, one vector a node.

        The nodes' are added in their order: the same bits whichever ranks have them.
        """
        pairs = zip(self.cuts[:-1], self.cuts[1:], strict=True)
        own = np.array([of_node(self.order[a:b]) for a, b in pairs], dtype=np.float64)
        width = own.shape[1]
        total, rest = np.zeros(width), {}
        for rank, part in enumerate(self.peers.gather(own.reshape(-1))):
            rest[rank] = iter(part.reshape(-1, width))
        for rank in self.rank_of.tolist():
            total += next(rest[rank])
        return total


def lay_out(
    n_samples: int, n_nodes: Any, graph: Any, groups: Any, seed: int, company: Company
) -> Layout:
    """The layout that an estimator's ``n_nodes``, ``graph`` and ``groups`` describe.

    Examples
    --------
    >>> from adfs.launch.peers import Alone
    >>> layout = lay_out(4, None, "ring", ["b", "a", "b", "c"], 0, Company(Alone()))
    >>> layout.topology.name, layout.order.tolist(), layout.cuts.tolist()
    ('ring:3', [1, 0, 2, 3], [0, 1, 3, 4])
    """
    company.require_same(
        "All ranks pass groups, or none does", "name the node of every row.",
        groups=groups is not None,
    )  # fmt: skip
    if groups is None:
        return company.each(lambda: _dealt(n_samples, n_nodes, graph, seed, company.peers))
    return _grouped(n_samples, n_nodes, graph, groups, company)


def _dealt(n_samples: int, n_nodes: Any, graph: Any, seed: int, peers: Peers) -> Layout:
    """Every rank deals its rows evenly to its nodes, which have consecutive numbers."""
    fewest = min(DEFAULT_NODES, n_samples) if peers.size == 1 else peers.size
    topology = _topology(graph, _checked(n_nodes), fewest)
    if topology.n_nodes < peers.size:
        raise ParameterError(
            f"n_nodes={topology.n_nodes} is less than the {peers.size} ranks, and every rank is a "
            "node or more; raise n_nodes, or start fewer ranks."
        )
    rank_of = np.repeat(np.arange(peers.size), _sizes(topology.n_nodes, peers.size))
    own = int(np.count_nonzero(rank_of == peers.rank))
    if own > n_samples:
        here = "" if peers.size == 1 else f", {own} of them on this rank,"
        raise ParameterError(
            f"n_nodes={topology.n_nodes}{here} must not exceed n_samples={n_samples}, so that each "
            "node has a row; lower n_nodes, or take a smaller graph."
        )
    parts = partition_rows(n_samples, own, "even", seed)
    counts = [len(part) for part in parts]
    return Layout(topology, np.concatenate(parts), np.cumsum([0, *counts]), peers, rank_of)


def _grouped(n_samples: int, n_nodes: Any, graph: Any, groups: Any, company: Company) -> Layout:
    """One node a name, in the order of all names; a name's rows are on one rank."""
    own, node_of = company.each(lambda: _named(groups, n_samples))
    names = own
    rank_of = np.zeros(len(own), np.int64)
    if not company.alone:
        names, places = union(company, own, "groups")
        rank_of = company.each(lambda: _ranks(names, places))
        node_of = places[company.peers.rank][node_of]
    topology = company.each(lambda: _topology_of(graph, n_nodes, len(names)))
    counts = np.bincount(node_of, minlength=len(names))[rank_of == company.peers.rank]
    order = np.argsort(node_of, kind="stable")
    return Layout(topology, order, np.cumsum([0, *counts.tolist()]), company.peers, rank_of)


def _ranks(names: NDArray[Any], places: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The rank of each name."""
    rank_of = np.full(len(names), -1, np.int64)
    for rank, own in enumerate(places):
        twice = own[rank_of[own] >= 0]
        if len(twice):
            raise DataError(
                f"Rows of the group {names[twice[0]]!s} are on the ranks {rank_of[twice[0]]} and "
                f"{rank}, but a node lives on one rank; move them together, or use two names."
            )
        rank_of[own] = rank
    return rank_of


def _checked(n_nodes: Any) -> int | None:
    return None if n_nodes is None else whole("n_nodes", n_nodes, 1, "or None")


def _sizes(n_nodes: int, size: int) -> list[int]:
    """How many nodes each rank has: they differ by at most one."""
    return [len(part) for part in np.array_split(np.arange(n_nodes), size)]


def _named(groups: Any, n_samples: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The different groups in order, and the number of each row's among them."""
    given = np.asarray(groups)
    if given.shape != (n_samples,):
        raise DataError(
            f"groups must name one node a row, but has shape {given.shape} for {n_samples} rows; "
            "pass one entry a row."
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


def _topology_of(graph: Any, n_nodes: Any, n_groups: int) -> Topology:
    """The graph of groups."""
    if _checked(n_nodes) not in (None, n_groups):
        raise ParameterError(
            f"n_nodes={n_nodes} must equal the number of different groups, which is {n_groups}, "
            "so that every node has rows; leave n_nodes at None."
        )
    return _topology(graph, n_groups, n_groups)


def _topology(graph: Any, n_nodes: int | None, otherwise: int) -> Topology:
    """The graph on ``n_nodes``; where it does not say its own size, on ``otherwise`` many."""
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
        except GraphError:  # it names no size, or cannot be read, which the next lines will say
            n_nodes = otherwise
    if n_nodes == 1 and graph == "grid":
        return Topology.single()
    return Topology.parse(graph, n_nodes=n_nodes)

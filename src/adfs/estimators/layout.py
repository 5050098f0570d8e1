"""Which rows live on which node: dealt from a seed, or where the caller says they belong."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from adfs.errors import DataError, GraphError, ParameterError
from adfs.estimators.options import whole
from adfs.graphs.topology import Topology
from adfs.problems.partition import Shard, partition_rows, row_view

DEFAULT_NODES = 4


class Layout(NamedTuple):
    """A graph, the rows in the order of its nodes, and where each node's begin and end."""

    topology: Topology
    order: NDArray[np.int64]
    cuts: NDArray[np.int64]

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


def lay_out(n_samples: int, n_nodes: Any, graph: Any, groups: Any, seed: int) -> Layout:
    """The layout that an estimator's ``n_nodes``, ``graph`` and ``groups`` describe.

    Examples
    --------
    >>> layout = lay_out(4, None, "ring", ["b", "a", "b", "c"], 0)
    >>> layout.topology.name, layout.order.tolist(), layout.cuts.tolist()
    ('ring:3', [1, 0, 2, 3], [0, 1, 3, 4])
    """
    if n_nodes is not None:
        n_nodes = whole("n_nodes", n_nodes, 1, "or None")
    if groups is None:
        topology = _topology(graph, n_nodes, min(DEFAULT_NODES, n_samples))
        if topology.n_nodes > n_samples:
            raise ParameterError(
                f"n_nodes={topology.n_nodes} must not exceed n_samples={n_samples}, so that each "
                "node has a row; lower n_nodes, or take a smaller graph."
            )
        parts = partition_rows(n_samples, topology.n_nodes, "even", seed)
        counts = [len(part) for part in parts]
        return Layout(topology, np.concatenate(parts), np.cumsum([0, *counts]))
    names, node_of = _named(groups, n_samples)
    if n_nodes not in (None, len(names)):
        raise ParameterError(
            f"n_nodes={n_nodes} must equal the number of different groups, which is {len(names)}, "
            "so that every node has rows; leave n_nodes at None."
        )
    topology = _topology(graph, len(names), len(names))
    counts = np.bincount(node_of, minlength=len(names)).tolist()
    return Layout(topology, np.argsort(node_of, kind="stable"), np.cumsum([0, *counts]))


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

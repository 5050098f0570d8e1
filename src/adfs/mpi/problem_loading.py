"""From files to a problem: which rank has which node, its rows, and the network between them.

Without MPI there is no world. `adfs.Problem.from_files` and the command line share this.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adfs import checks
from adfs.agreement import Alone, Peers, attempt, require_same
from adfs.data.files import NODE
from adfs.data.local_rows import load_share
from adfs.errors import DataError, GraphError, ParameterError
from adfs.graphs.topology import Topology
from adfs.losses import Loss
from adfs.mpi.communicator import Communicator, open_world
from adfs.mpi.mpi_network import MpiNetwork
from adfs.mpi.node_mapping import find_shards, map_nodes, place_shards
from adfs.network import ENGINES, Network
from adfs.problem.finite_sum import Problem, check_sigma

DEFAULT_NODES = 4
Numbers = NDArray[np.int64]


def place_nodes(
    peers: Peers,
    source: str,
    choose: Callable[[int | None, int], Topology],
    mapping: str = "contiguous",
) -> tuple[Topology, Numbers]:
    """The graph and the rank of each node; called on all ranks.

    ``choose`` takes the number of files of a ``{node}`` pattern (None for one file) and the default
    number of nodes, which is enough for every rank. A node whose file only some ranks see goes to
    one of these.
    """
    seen = find_shards(peers, source) if NODE in source else None
    n_files = None if seen is None else seen.shape[1]
    topology = attempt(peers, lambda: choose(n_files, max(DEFAULT_NODES, peers.size)))
    require_same(peers, {"topology": topology})

    def place() -> Numbers:
        rank_of = map_nodes(topology, peers.size, mapping)
        return rank_of if seen is None else place_shards(seen, rank_of, source)

    return topology, attempt(peers, place)


def network_of(world: Communicator | None, topology: Topology, rank_of: Numbers) -> Network:
    """The network of these nodes: in one process, or on the ranks of ``world``."""
    return Network(topology) if world is None else MpiNetwork(world, topology, rank_of)


def problem_from_files(
    source: str,
    loss: str | Loss,
    sigma: ArrayLike,
    topology: Topology | None,
    engine: str,
    n_features: int | None,
    how: str,
    seed: int,
    m: int | None,
    n_nodes: int | None,
) -> Problem:
    """See `adfs.Problem.from_files`."""
    checks.choice("engine", engine, ENGINES)
    world = open_world() if engine == "mpi" else None
    peers: Peers = world or Alone()
    # Not the name of the source: hosts may have it in other folders.
    settings = {"n_features": n_features, "how": how, "seed": seed, "m": m, "n_nodes": n_nodes}
    require_same(peers, settings)
    attempt(peers, lambda: _check_partition(source, how, m))
    graph, rank_of = place_nodes(
        peers, source, lambda n_files, least: _graph(source, n_files, least, n_nodes, topology)
    )
    attempt(peers, lambda: check_sigma(sigma, graph.n_nodes))
    data = load_share(peers, source, rank_of, loss, how, seed, m, n_features)
    return Problem(data.shards, loss, sigma, network=network_of(world, graph, rank_of))


def _check_partition(source: str, how: str, m: int | None) -> None:
    if NODE in source and (how != "even" or m is not None):
        raise ParameterError(
            f"how={how!r} and m={m} divide one file among the nodes, but {source} has a file for "
            "each; leave them out."
        )


def _graph(
    source: str, n_files: int | None, least: int, n_nodes: int | None, topology: Topology | None
) -> Topology:
    """The graph that was given, else the most square grid; it has to fit the number of files."""
    if n_nodes is not None and n_files not in (None, n_nodes):
        raise DataError(
            f"n_nodes={n_nodes} must equal the number of files of {source}, which is {n_files}; "
            "leave n_nodes out."
        )
    wanted = n_nodes if n_files is None else n_files
    if topology is None:
        return Topology.parse("grid", n_nodes=least if wanted is None else wanted)
    if wanted not in (None, topology.n_nodes):
        what = "n_nodes is" if n_files is None else f"the number of files of {source} is"
        raise GraphError(
            f"The graph {topology.name} has {topology.n_nodes} nodes but {what} {wanted}; make the "
            "two numbers equal."
        )
    return topology

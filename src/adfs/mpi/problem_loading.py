"""From files to a problem: which rank has which node, its rows, and the network between them.

Without MPI there is no world. `adfs.Problem.from_files` and the command line share this.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adfs import checks
from adfs.agreement import Alone, Peers, attempt, require_same
from adfs.data.files import NODE, load_share, require_all_nodes, shard_nodes
from adfs.errors import DataError, GraphError, ParameterError
from adfs.graphs.topology import Topology
from adfs.losses import Loss
from adfs.mpi.communicator import Communicator, open_world
from adfs.mpi.mpi_network import MpiNetwork
from adfs.network import ENGINES, Network
from adfs.problem.finite_sum import Problem, check_sigma

DEFAULT_NODES = 4
MAPPINGS = ("contiguous", "graph")
Numbers = NDArray[np.int64]
ChooseGraph = Callable[[int | None, int], Topology]


def cut_edges(topology: Topology, rank_of: Numbers) -> int:
    """Number of edges between two ranks."""
    first, second = rank_of[topology.edges].reshape(-1, 2).T
    return int(np.count_nonzero(first != second))


def map_nodes(topology: Topology, size: int, how: str = "contiguous") -> Numbers:
    """The rank of each node: the nodes divided among ``size`` ranks, as evenly as possible.

    ``contiguous`` cuts their numbers in ``size`` pieces; ``graph`` searches for pieces with few
    edges between them, and takes them if they cut fewer.

    Examples
    --------
    >>> ring = Topology.from_edges(6, [(0, 2), (2, 4), (4, 1), (1, 3), (3, 5), (5, 0)])
    >>> [cut_edges(ring, map_nodes(ring, 2, how)) for how in MAPPINGS]
    [4, 2]
    """
    n = topology.n_nodes
    checks.choice("mapping", how, MAPPINGS)
    if not 1 <= size <= n:
        raise ParameterError(
            f"There are {size} ranks for {n} nodes, but every rank needs a node; start at most {n} "
            "ranks, or raise the number of nodes."
        )
    contiguous = np.repeat(np.arange(size), [len(part) for part in np.array_split(range(n), size)])
    if how == "contiguous":
        return contiguous
    by_graph = np.zeros(n, np.int64)
    _bisect(by_graph, topology.laplacian().tocsr(), np.arange(n), 0, size)
    return min(contiguous, by_graph, key=lambda rank_of: cut_edges(topology, rank_of))


def _bisect(rank_of: Numbers, laplacian: Any, nodes: Numbers, first: int, size: int) -> None:
    """Recursive spectral bisection: nodes in the order of the Fiedler vector, cut in two."""
    from scipy.linalg import eigh

    if size == 1:
        rank_of[nodes] = first
        return
    left = size // 2
    # As np.array_split cuts: the first ranks get one node more.
    middle = sum(len(part) for part in np.array_split(nodes, size)[:left])
    dense = laplacian[nodes][:, nodes].toarray()
    # Without the edges that leave the piece.
    np.fill_diagonal(dense, dense.diagonal() - dense.sum(axis=1))
    vectors = eigh(dense, subset_by_index=[1, 1])[1]
    fiedler = np.round(vectors[:, 0] / np.abs(vectors).max(), 9)
    ordered = nodes[np.argsort(fiedler, kind="stable")]  # ties by number
    _bisect(rank_of, laplacian, np.sort(ordered[:middle]), first, left)
    _bisect(rank_of, laplacian, np.sort(ordered[middle:]), first + left, size - left)


def find_shards(peers: Peers, pattern: str) -> NDArray[np.bool_]:
    """Which rank sees which node's file, an array of shape (ranks, nodes).

    Hosts need not share a file system: a file exists if some rank sees it.
    """
    nodes = attempt(peers, lambda: sorted(shard_nodes(pattern)))
    seen_by = [set(map(int, seen)) for seen in peers.gather(nodes)]
    union = set().union(*seen_by)
    attempt(peers, lambda: require_all_nodes(pattern, union))
    return np.array([[node in seen for node in range(len(union))] for seen in seen_by])


def place_shards(seen: NDArray[np.bool_], owner: Sequence[int] | Numbers, pattern: str) -> Numbers:
    """The rank of each node: ``owner`` where all ranks see all files, else one that sees its file.

    The nodes are then spread as evenly as the files allow, by a matching of least cost in which
    the k-th node of a rank costs k: an optimal semi-matching (Harvey, Ladner, Lovasz and Tamir,
    2006), which also has the smallest maximum.

    Examples
    --------
    >>> seen = np.array([[True, True, True], [True, False, False]])
    >>> place_shards(seen, [0, 0, 1], "part-{node}").tolist()
    [1, 0, 0]
    """
    if seen.all():
        return np.asarray(owner, dtype=np.int64)
    size, n_nodes = seen.shape
    most = -(-n_nodes // size)
    while (ranks := _matched(seen, most)) is None:
        most *= 2
    for rank in np.flatnonzero(np.bincount(ranks, minlength=size) == 0):
        raise DataError(
            f"rank {rank} must see a file of {pattern} that no other rank needs, but there is none "
            "on its host; copy some files there, or start fewer ranks."
        )
    return ranks


def _matched(seen: NDArray[np.bool_], most: int) -> Numbers | None:
    """The rank of each node, at most ``most`` nodes per rank; None where that is impossible."""
    from scipy.optimize import linear_sum_assignment

    places = np.arange(seen.shape[0] * most)
    costs = np.where(np.repeat(seen.T, most, axis=1), 1.0 + places % most, np.inf)
    try:
        return np.asarray(linear_sum_assignment(costs)[1] // most, dtype=np.int64)
    except ValueError:  # infeasible
        return None


def place_nodes(
    peers: Peers, source: str, choose: ChooseGraph, mapping: str = "contiguous"
) -> tuple[Topology, Numbers]:
    """The graph and the rank of each node; called on all ranks.

    ``choose`` takes the number of files of a ``{node}`` pattern (None for one file) and the default
    number of nodes. A node whose file only some ranks see goes to one of these.
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
    n_nodes: int | None,
    **reading: Any,
) -> Problem:
    """See `adfs.Problem.from_files`; ``reading`` are its arguments about files."""
    checks.choice("engine", engine, ENGINES)
    world = open_world() if engine == "mpi" else None
    peers: Peers = world or Alone()
    # Not the name of the source: hosts may have it in other folders.
    require_same(peers, {**reading, "n_nodes": n_nodes})
    attempt(peers, lambda: _check_partition(source, reading["how"], reading["m"]))
    graph, rank_of = place_nodes(
        peers, source, lambda n_files, least: _graph(source, n_files, least, n_nodes, topology)
    )
    attempt(peers, lambda: check_sigma(sigma, graph.n_nodes))
    data = load_share(peers, source, rank_of, loss, **reading)
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

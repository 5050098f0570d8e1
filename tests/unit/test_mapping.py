"""Nodes to ranks: everybody has some, evenly, and a mapping by graph never cuts more edges."""

import numpy as np
import pytest

import adfs
from adfs.agreement import Peers
from adfs.errors import ParameterError
from adfs.mpi import problem_loading
from adfs.mpi.problem_loading import MAPPINGS, map_nodes
from adfs.network import Network

GRAPHS = (
    "single", "path:2", "ring:7", "star:9", "grid:4x4", "grid:3x5", "complete:6", "torus:4x4",
    "hypercube:4", "erdos_renyi:24,p=0.2,seed=3", "random_regular:20,k=3,seed=1",
)  # fmt: skip


def cut_edges(topology, rank_of):
    """Edges whose two ends are on different ranks, counted one by one."""
    return sum(rank_of[k] != rank_of[l] for k, l in topology.edges.tolist())


def shuffled(topology, seed):
    """The same graph with its nodes numbered otherwise: where numbers say nothing of neighbours."""
    names = np.random.default_rng(seed).permutation(topology.n_nodes)
    return adfs.Topology.from_edges(topology.n_nodes, names[topology.edges].tolist())


@pytest.mark.parametrize("how", MAPPINGS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_every_rank_has_a_node_and_sizes_differ_by_at_most_one(graph, how):
    topology = adfs.Topology.parse(graph)
    for size in range(1, topology.n_nodes + 1):
        mapping = map_nodes(topology, size, how)
        counts = np.bincount(mapping, minlength=size)
        assert (len(counts), len(mapping)) == (size, topology.n_nodes)
        assert counts.min() >= 1
        assert counts.max() - counts.min() <= 1
        assert problem_loading.cut_edges(topology, mapping) == cut_edges(topology, mapping)


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_contiguous_mapping_deals_neighbouring_numbers(graph):
    topology = adfs.Topology.parse(graph)
    for size in range(1, topology.n_nodes + 1):
        assert (np.diff(map_nodes(topology, size)) >= 0).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("graph", GRAPHS)
def test_by_graph_never_cuts_more_edges_than_contiguous(graph, seed):
    topology = shuffled(adfs.Topology.parse(graph), seed)
    for size in range(1, topology.n_nodes + 1):
        cuts = [cut_edges(topology, map_nodes(topology, size, how)) for how in MAPPINGS]
        assert cuts[MAPPINGS.index("graph")] <= cuts[MAPPINGS.index("contiguous")]


@pytest.mark.parametrize(("graph", "least"), [("ring:16", 2), ("grid:8x4", 4), ("path:30", 1)])
def test_by_graph_finds_the_smallest_cut_in_two_of_a_graph_whose_numbers_hide_it(graph, least):
    for seed in range(3):
        topology = shuffled(adfs.Topology.parse(graph), seed)
        assert cut_edges(topology, map_nodes(topology, 2, "graph")) == least
        assert cut_edges(topology, map_nodes(topology, 2, "contiguous")) > least


def test_a_mapping_is_the_same_on_every_rank():
    topology = shuffled(adfs.Topology.parse("erdos_renyi:24,p=0.2,seed=3"), 0)
    again = shuffled(adfs.Topology.parse("erdos_renyi:24,p=0.2,seed=3"), 0)
    for size in (2, 3, 5):
        one, two = (map_nodes(each, size, "graph") for each in (topology, again))
        assert one.tolist() == two.tolist()


def test_numbers_on_a_rank_are_places_in_its_list_of_nodes():
    rank_of = np.array([1, 0, 1, 2, 0])
    ranks = []
    for rank in range(3):
        peers = Peers()
        peers.rank = rank
        ranks.append(Network(adfs.Topology.ring(5), rank_of, peers))
    assert [network.nodes.tolist() for network in ranks] == [[1, 4], [0, 2], [3]]
    assert ranks[0].here.tolist() == [-1, 0, -1, -1, 1]
    assert ranks[1].here.tolist() == [0, -1, 1, -1, -1]


@pytest.mark.parametrize("how", MAPPINGS)
def test_more_ranks_than_nodes_are_refused(how):
    with pytest.raises(
        ParameterError,
        match=r"There are 5 ranks for 4 nodes, but every rank needs a node; start at most 4 ranks, "
        r"or raise the number of nodes\.",
    ):
        map_nodes(adfs.Topology.grid(2, 2), 5, how)


def test_an_unknown_mapping_is_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match="'random' is unknown; choose one of contiguous, gra"):
        map_nodes(adfs.Topology.grid(2, 2), 2, "random")

"""Sums, neighbours' rows and facts: the same bits however nodes are spread over processes."""

import math

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import adfs
from adfs.algorithms.base import MethodSetting, get_algorithm
from adfs.errors import ParameterError
from adfs.kernels import certificate, gossip
from adfs.network import Ask, Network, Part, connect, leaves, pair_up
from support.peers import succeed
from support.problems import make_case
from support.ranks import ThreadNetwork, make_shards_of, random_mapping, share_of
from support.same_bits import METHODS, Case


def summed(rows, first=0, size=None):
    """The definition: a block of ``2^k`` leaves is the sum of its two halves, as they exist."""
    size = 1 << math.ceil(math.log2(len(rows))) if size is None else size
    if first >= len(rows):
        return None
    if size == 1:
        return rows[first]
    left = summed(rows, first, size // 2)
    right = summed(rows, first + size // 2, size // 2)
    return left if right is None else left + right


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13, 31, 64, 100])
def test_a_sum_is_added_along_the_tree_over_node_numbers(n):
    rows = np.random.default_rng(n).standard_normal((n, 3)) * 10.0 ** np.arange(n)[:, None] % 7
    network = Network(adfs.Topology.path(n) if n > 1 else adfs.Topology.single())
    assert network.sum_rows(rows, 3).tobytes() == summed(rows).tobytes()


@pytest.mark.parametrize("n", [2, 7, 9, 16, 33])
def test_blocks_of_any_ranks_add_up_to_the_same_bits(n):
    rows = np.random.default_rng(n).standard_normal((n, 4))
    for size in range(2, min(n, 6) + 1):
        for seed in range(5):
            mapping = random_mapping(n, size, seed)

            def total(peers, mapping=mapping):
                network = ThreadNetwork(peers, adfs.Topology.complete(n), mapping)
                return network.sum_rows(rows[network.nodes], 4)

            for found in succeed(size, total):
                assert found.tobytes() == summed(rows).tobytes()


@pytest.mark.parametrize("n", [10, 100, 1000])
def test_consecutive_nodes_are_few_blocks(n):
    for first, last in [(0, n // 3), (n // 3, n // 2 + 1), (1, n - 1)]:
        _, blocks = pair_up(leaves(np.arange(first, last)), n)
        assert len(blocks) <= 2 * math.log2(n) + 1


@pytest.mark.parametrize("graph", ["single", "path:2", "grid:3x3", "ring:10"])
def test_compiled_code_adds_in_the_order_of_python(graph):
    problem = make_case(graph, "logistic").problem
    theta = np.random.default_rng(0).standard_normal(problem.n_features)
    parts = []
    for node in range(problem.n_nodes):
        rows, part = problem.node_rows(node), np.zeros(problem.n_features + 1)
        part[-1] = certificate.objective_gradient(
            problem.loss.code, problem.rows, problem.labels, problem.weights,
            rows.start, rows.stop, theta, part,
        )  # fmt: skip
        parts.append(part)
    total = summed(np.array(parts))
    expected = total[:-1] + problem.total_sigma * theta
    assert problem.gradient(theta).tobytes() == expected.tobytes()


def test_numbers_of_all_nodes_are_seen_in_node_order():
    def ask(peers):
        network = ThreadNetwork(peers, adfs.Topology.ring(5), np.array([1, 0, 1, 0, 0]))
        own = network.nodes[:, None].astype(float)
        both = np.hstack([own, np.ones_like(own)])
        parts = [Part(own[:1], both[:1]), Part(own[1:], both[1:])]
        return network.ask(Ask(1, 2, parts))

    for answer in succeed(2, ask):
        assert answer.total.tolist() == [10.0]
        assert answer.values.tolist() == [[float(node), 1.0] for node in range(5)]


@pytest.mark.parametrize("graph", ["grid:3x3", "star:9", "ring:9"])
def test_gossip_has_the_same_bits_on_ranks(graph):
    topology = adfs.Topology.parse(graph)
    rows = np.random.default_rng(1).standard_normal((9, 4))
    weights = gossip.chebyshev_weights(0.5, 8.0, 5)

    def mixed(network, own):
        product, before = np.empty((2, len(own), 4))
        message = np.full((network.n_rows, 4), np.nan)
        gossip.chebyshev(
            network.links, weights, np.ones(len(own)), own, product, before, message
        )  # fmt: skip
        return product

    expected = mixed(Network(topology), rows)
    for size in (2, 3, 4, 9):
        mapping = random_mapping(9, size, seed=size)

        def on_rank(peers, mapping=mapping):
            network = ThreadNetwork(peers, topology, mapping)
            return network.nodes, mixed(network, np.ascontiguousarray(rows[network.nodes]))

        for nodes, found in succeed(size, on_rank):
            assert found.tobytes() == expected[nodes].tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("name", [name for name in METHODS if name != "esdacd"])
def test_methods_in_rounds_have_the_same_bits_on_threads(name, layout):
    case = Case("logistic", layout, "shared", 9, algorithm=name)
    shards, problem = make_shards_of(case)
    n_rounds = 12

    def output(problem):
        method = get_algorithm(name)(problem, case.setting)
        state = method.algorithm.init()
        for first in range(0, n_rounds, 5):
            events = method.source.draw(first, min(n_rounds, first + 5))
            state = method.algorithm.step(state, events)
        return problem.nodes, method.algorithm.output(state)

    _, expected = output(problem)
    for size in (2, 4):
        mapping = random_mapping(9, size, seed=size)

        def on_rank(peers, mapping=mapping):
            network = ThreadNetwork(peers, problem.topology, mapping)
            return output(share_of(network, shards, problem))

        for nodes, found in succeed(size, on_rank):
            assert found.tobytes() == expected[nodes].tobytes()


@pytest.mark.parametrize("name", ["adfs", *METHODS])
def test_where_a_shard_lies_in_memory_and_how_many_threads_there_are_changes_no_bit(name):
    generator = np.random.default_rng(5)
    X, y = generator.standard_normal((120, 7)), np.resize([-1.0, 1.0], 120)
    outputs = []
    for offset, threads in ((0, 1), (1, 2), (3, 2)):
        room = np.empty(X.size + offset)[offset:].reshape(X.shape)
        room[:] = X
        with threadpool_limits(threads, "blas"):
            shards = [(room[k : k + 30], y[k : k + 30]) for k in range(0, 120, 30)]
            problem = adfs.Problem(shards, sigma=0.3)
            method = get_algorithm(name)(problem, MethodSetting())
            state = method.algorithm.step(method.algorithm.init(), method.source.draw(0, 12))
        outputs.append(method.algorithm.output(state).tobytes())
    assert outputs[0] == outputs[1] == outputs[2]


def test_an_unknown_engine_is_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match=r"engine='gpu' is unknown; .*local, mpi"):
        connect("gpu", None, 2)


def test_one_process_has_all_nodes():
    with pytest.raises(ParameterError, match=r"must be all nodes from 0 to 1.*engine='mpi'"):
        adfs.Problem([(np.eye(2), [0, 1])] * 2, nodes=[0, 2])

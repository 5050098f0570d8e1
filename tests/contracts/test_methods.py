"""What every method of `adfs_methods` shows: contract, optimum, and the same bits on ranks."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import adfs
from adfs.algorithms.base import BY_NAME, ONE_MACHINE, MethodSetting, get_algorithm
from adfs.errors import ParameterError
from adfs.graphs.topology import Topology
from adfs.problem.finite_sum import Problem
from adfs.simulated_ranks import ThreadNetwork
from support.peers import succeed

adfs.algorithms()  # fills the registry
NAMES = sorted(BY_NAME)
GRAPHS = ("grid:3x3", "ring:9", "complete:9")


def shards_of(loss, kind, n_nodes=9, d=4):
    """Unequal shards with weights, dense or sparse."""
    random = np.random.default_rng(5)
    truth, shards = random.standard_normal(d), []
    for i in range(n_nodes):
        X = random.standard_normal((3 + i % 4, d)) * (random.random((3 + i % 4, d)) < 0.8)
        noise = X @ truth + random.standard_normal(len(X))
        y = np.where(noise > 0.0, 1.0, -1.0) if loss == "logistic" else noise
        rows = sp.csr_matrix(X) if kind == "csr" else X
        shards.append((rows, y, random.random(len(X)) + 0.5))
    return shards


def problem_of(loss, kind, graph, network=None):
    """The problem of these shards, or of those on the nodes of a rank."""
    shards, sigma = shards_of(loss, kind), np.linspace(0.5, 1.5, 9)
    if network is None:
        return Problem(shards, loss, sigma, Topology.parse(graph))
    return Problem([shards[i] for i in network.nodes], loss, sigma, network=network)


# Without a linear rate a theorem is about a neighbourhood of the optimum, or slower: such methods
# show it in tests/theorems/.
LINEAR = [
    name for name in NAMES
    if get_algorithm(name)(problem_of("squared", "dense", "ring:9"), MethodSetting()).rho > 0.0
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_it_keeps_the_contract(name):
    adfs.check_algorithm(name)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("name", LINEAR)
def test_it_reaches_the_certified_optimum(name, loss, graph):
    for kind in ("dense", "csr"):
        problem = problem_of(loss, kind, graph)
        result = adfs.solve(problem, name, tol=1e-8, max_iter=2_000_000, progress=False)
        assert result.status == "converged"
        assert result.duality_gap <= 1e-8 * max(1.0, abs(result.objective))
        assert np.allclose(result.theta, problem.optimum().theta, rtol=0.0, atol=2e-4)


@pytest.mark.parametrize("name", sorted(set(NAMES) - ONE_MACHINE))
def test_ranks_give_the_bits_of_one_process(name):
    n_rounds, setting = 24, MethodSetting(seed=7)

    def run(problem):
        method = get_algorithm(name)(problem, setting)
        state = method.algorithm.init()
        for first, last in itertools.pairwise([0, 5, n_rounds]):
            state = method.algorithm.step(state, method.source.draw(first, last))
        return method.algorithm.output(state)

    expected = run(problem_of("logistic", "dense", "grid:3x3"))
    for size in (2, 3):
        rank_of = np.random.default_rng(size).permutation(np.arange(9) % size)

        def on_a_rank(peers, rank_of=rank_of):
            network = ThreadNetwork(peers, Topology.grid(3, 3), rank_of)
            return run(problem_of("logistic", "dense", None, network))

        for rank, found in enumerate(succeed(size, on_a_rank)):
            assert found.tobytes() == expected[rank_of == rank].tobytes()


@pytest.mark.parametrize("name", sorted(set(NAMES) & ONE_MACHINE))
def test_a_method_for_one_machine_says_so_on_ranks(name):
    def on_a_rank(peers):
        network = ThreadNetwork(peers, Topology.grid(3, 3), np.arange(9) % 2)
        with pytest.raises(ParameterError, match="is for one machine, without a network"):
            get_algorithm(name)(problem_of("logistic", "dense", None, network), MethodSetting())

    succeed(2, on_a_rank)

"""CHOCO-SGD: its oracle, its compressions, consensus without gradients, and O(1 / t)."""

import numpy as np
import pytest
import scipy.linalg

import adfs
from adfs.errors import ParameterError
from adfs_methods.choco import consensus_slack
from oracles import choco as literal
from support.problems import make_case, stored_as
from support.rounds import decreasing_steps, distances, estimates_of, iterates, slope, weights_of

RULES = ("top", "random", "sign")


def compression_of(method, k, d):
    """As the oracle has it; draws of random-k are the k least numbers of a node's stream."""
    rule, coins = method.algorithm.rule, method.algorithm.nodes.uniforms("choco")
    if rule == "top":
        return lambda t, i, vector: literal.top(k, vector)
    if rule == "sign":
        return lambda t, i, vector: literal.sign(vector)
    return lambda t, i, vector: literal.only(np.argsort(coins.draw(t, d)[i])[:k], vector)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("graph", ["grid:2x3", "star:5"])
@pytest.mark.parametrize("rule", RULES)
def test_it_is_the_literal_recursion(graph, loss, rule):
    case = make_case(graph, loss, seed=4, n_features=5, density=0.6)
    theta = np.random.default_rng(1).standard_normal(5)
    start = np.tile(theta, (case.problem.n_nodes, 1))
    for kind, gamma in (("dense", ""), ("csr", ",gamma=0.3")):
        chosen = f"{rule},k=2,batch=2{gamma}"
        method, found = iterates(stored_as(case, kind), "choco", 60, theta, 3, chosen)
        grads = estimates_of(case, method, 2)
        steps, W = decreasing_steps(method, 60), weights_of(case.problem)
        compress, gamma = compression_of(method, 2, 5), method.algorithm.gamma
        expected = literal.choco(grads, W, start, steps, gamma, compress, 60, H0=start)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
        assert np.abs(found[60] - start).max() > 0.1


def test_all_entries_and_gamma_one_are_d_psgd():
    """``X+ = W (X - a g~)``, with the draws of all methods that sample."""
    case = make_case("grid:2x3", "logistic", seed=4, n_features=5)
    for rule in ("top", "random"):
        method, found = iterates(case.problem, "choco", 60, seed=3, rule=f"{rule},k=5,gamma=1")
        grads, W = estimates_of(case, method), weights_of(case.problem)
        X = np.zeros((6, 5))
        for t, step in enumerate(decreasing_steps(method, 60)):
            np.testing.assert_allclose(found[t], X, rtol=0, atol=1e-10)
            X = W @ (X - step * grads(t, X))


@pytest.mark.parametrize("rule", RULES)
def test_compressions_keep_the_share_that_they_promise(rule):
    problem = make_case("ring:6", "logistic", seed=4, n_features=10).problem
    algorithm = adfs.prepare(problem, "choco", rule=f"{rule},k=3").algorithm
    rows, promised = np.random.default_rng(0).standard_normal((6, 10)), [0.3, 0.1][rule == "sign"]
    losses = []
    for t in range(2000):
        lost = np.sum((rows - algorithm.compressed(rows, t)) ** 2, axis=1)
        losses.append(lost / np.sum(rows**2, axis=1))
        if rule != "random":
            assert np.all(losses[-1] <= 1.0 - promised + 1e-12)
    mean = np.mean(losses, axis=0)
    assert np.all(mean <= 1.0 - promised + (0.02 if rule == "random" else 0.0))


def energy_of(W, gamma, lost, r):
    """The quadratic function of the circle criterion, by a Riccati equation for each mode."""
    values, vectors = np.linalg.eigh(W)
    parts = []
    for value in values[:-1]:
        k = gamma * (1.0 - value)
        A, B = np.array([[1.0 - k, 0.0], [-k, 0.0]]), np.array([[k], [1.0 + k]])
        P = scipy.linalg.solve_discrete_are(A / r, B / r, np.diag([0.0, lost**2]), -np.eye(1))
        assert np.linalg.eigvalsh(P)[0] > -1e-12
        assert (B.T @ P @ B).item() < r**2
        parts.append(P)

    def energy(theta, known):
        x, q = vectors.T @ theta, vectors.T @ (theta - known)
        pairs = zip(parts, x, q, strict=False)
        return np.sum(q[-1] ** 2) + sum(np.sum(P @ [a, b] * [a, b]) for P, a, b in pairs)

    return energy


@pytest.mark.parametrize("graph", ["ring:5", "grid:3x3", "complete:4", "path:6"])
@pytest.mark.parametrize("rule", ["top", "sign"])
def test_without_gradients_an_energy_falls_by_the_rate(graph, rule):
    problem = make_case(graph, "logistic", seed=4, n_features=6).problem
    method = adfs.prepare(problem, "choco", rule=f"{rule},k=2")
    algorithm, n, W = method.algorithm, problem.n_nodes, weights_of(problem)
    lost = np.sqrt(1.0 - (1.0 / 3.0 if rule == "top" else 1.0 / 6.0))
    r, algorithm.step_size = 1.0 - 0.99 * algorithm.slack, 0.0
    energy, state = energy_of(W, algorithm.gamma, lost, r), algorithm.init()
    state.theta = np.random.default_rng(0).standard_normal((n, 6))
    state.known, state.mixed = np.zeros((n, 6)), np.zeros((n, 6))
    mean, found = state.theta.mean(axis=0), []
    for t in range(400):
        found.append(energy(state.theta, state.known))
        state = algorithm.step(state, method.source.draw(t, t + 1))
    seen = np.array(found)
    seen = seen[seen > 1e-20 * seen[0]]
    assert np.all(seen[1:] <= r**2 * (1.0 + 1e-9) * seen[:-1])
    np.testing.assert_allclose(state.theta.mean(axis=0), mean, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kept", [0.02, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("graph", ["ring:9", "grid:3x3", "path:12", "star:5"])
def test_gamma_has_the_largest_rate_of_the_circle_criterion(graph, kept):
    """Against the condition on a grid of the circle and of modes."""
    weights, lost = adfs.Topology.parse(graph).weights("metropolis"), np.sqrt(1.0 - kept)
    gammas = np.geomspace(1e-4, 1.0, 400)
    slacks = consensus_slack(gammas, kept, weights)
    gamma, slack = gammas[np.argmax(slacks)], slacks.max()
    angles, gaps = (
        np.linspace(0.0, np.pi, 2001),
        1.0 - np.linspace(weights.least, weights.second, 41),
    )

    def holds(r):
        z, k = r * np.exp(1j * angles)[:, None], gamma * gaps
        left, right = lost * np.abs((1 + k) * z - 1.0), r * np.abs(z - 1.0 + k)
        return r >= lost and np.all(np.abs(1.0 - k) < r) and np.all(left <= right)

    assert holds(1.0 - 0.999 * slack)
    assert not holds(1.0 - 1.001 * slack)


@pytest.mark.parametrize("rule", ["top,k=2", "random,k=2", "sign"])
def test_squared_distances_fall_as_one_over_t(rule):
    problem = make_case("ring:5", "logistic", seed=2, n_features=4).problem
    squares = 0.0
    for seed in range(4):
        _, points = iterates(problem, "choco", 20_000, seed=seed, rule=rule, every=1000)
        squares = squares + distances(problem, points) ** 2
    times = 1000.0 * np.arange(len(squares))
    found = slope(times[4:], squares[4:])
    assert -1.5 < found < -0.75


def test_bytes_are_those_sent():
    problem = make_case("ring:5", "logistic", seed=2, n_features=20).problem
    sizes = {"top,k=3": 36, "random,k=3": 24, "sign": 11, "top": 24}
    for rule, size in sizes.items():
        method = adfs.prepare(problem, "choco", rule=rule)
        assert method.algorithm.counts(method.source.draw(0, 1)).bytes == 2 * 5 * size


def test_options_are_checked():
    problem = make_case("ring:5", "logistic", seed=2, n_features=4).problem
    for name, given in [
        ("choco", "k=5"), ("choco", "k=0"), ("choco", "gamma=-1"), ("choco", "share=0"),
        ("local-sgd", "local=0"), ("local-sgd", "batch=0"), ("dgd", "step=0"), ("d2", "step=-1"),
        ("d2", "sampled,batch=0.5"), ("dual-averaging", "step=-1"), ("diging", "paper,step=0"),
    ]:  # fmt: skip
        with pytest.raises(ParameterError, match=given.split(",")[-1].split("=")[0]):
            adfs.prepare(problem, name, rule=given)

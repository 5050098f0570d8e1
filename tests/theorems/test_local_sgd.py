"""Local SGD: its oracle, and O(1 / t)."""

import numpy as np
import pytest

import adfs
from oracles import local_sgd as literal
from support.problems import make_case, stored_as
from support.rounds import decreasing_steps, distances, estimates_of, iterates, slope


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize(("graph", "local", "batch"), [("grid:2x3", 4, 1), ("star:5", 1, 2),
                                                      ("single", 3, 1)])  # fmt: skip
def test_it_is_the_literal_method(graph, loss, local, batch):
    case = make_case(graph, loss, seed=4, n_features=5, density=0.6)
    theta = np.random.default_rng(1).standard_normal(5)
    start = np.tile(theta, (case.problem.n_nodes, 1))
    for kind in ("dense", "csr"):
        method, found = iterates(
            stored_as(case, kind), "local-sgd", 40, theta, 3, f"local={local},batch={batch}"
        )
        steps, grads = decreasing_steps(method, 40 * local), estimates_of(case, method, batch)
        expected = literal.local_sgd(grads, start, steps, local)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
        assert np.abs(found[40] - start).max() > 0.1


@pytest.mark.parametrize("local", [1, 10])
def test_squared_distances_fall_as_one_over_t(local):
    problem = make_case("ring:5", "logistic", seed=2, n_features=3).problem
    squares = 0.0
    for seed in range(8):
        _, points = iterates(
            problem, "local-sgd", 8000 // local, None, seed, f"local={local}", every=400 // local
        )
        squares = squares + distances(problem, points) ** 2
    times = 400.0 * np.arange(len(squares))
    found = slope(times[2:], squares[2:])
    assert -1.5 < found < -0.75


def test_messages_are_those_of_one_sum():
    problem = make_case("ring:5", "logistic", seed=2, n_features=3).problem
    method = adfs.prepare(problem, "local-sgd", rule="local=7")
    counts = method.algorithm.counts(method.source.draw(0, 10))
    assert counts.n_grad == 10 * 5 * 7
    assert counts.n_comm == 10 * 2 * 4

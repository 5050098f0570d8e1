"""NS-ADFS as people meet it: least absolute deviations, two models to choose from, a warm start."""

import numpy as np
import pytest
from scipy.optimize import linprog

import adfs
from adfs.algorithms.ns_adfs import NsAdfs
from adfs.engine.evaluation import evaluation_steps
from adfs.problem.certificate import certify
from adfs.schedule.sampling_law import Drawer
from support.problems import all_duals, make_case


def least_absolute_deviations(X, y):
    """Minimiser of ``sum |x . theta - y|`` as a linear program: ``-r <= X theta - y <= r``."""
    n_samples, n_features = X.shape
    cost = np.concatenate([np.zeros(n_features), np.ones(n_samples)])
    eye = np.eye(n_samples)
    rows = np.vstack([np.hstack([X, -eye]), np.hstack([-X, -eye])])
    limits = np.concatenate([y, -y])
    bounds = [(None, None)] * n_features + [(0, None)] * n_samples
    found = linprog(cost, rows, limits, bounds=bounds, method="highs")
    return found.x[:n_features], found.fun


@pytest.mark.parametrize("graph", ["single", "ring:5"])
def test_least_absolute_deviations_are_the_linear_programs(graph):
    # A small enough ridge does not move the vertex at which a linear program has its optimum, so
    # there both problems have the same solution.
    generator = np.random.default_rng(0)
    X = generator.standard_normal((60, 3))
    y = X @ [1.0, -2.0, 0.5] + generator.standard_t(2, 60)
    best, value = least_absolute_deviations(X, y)
    topology = adfs.Topology.parse(graph)
    shards = adfs.partition(X, y, topology.n_nodes)
    sigma = 0.05 / topology.n_nodes
    problem = adfs.Problem(shards, loss="absolute", sigma=sigma, topology=topology)
    result = adfs.solve(problem, tol=1e-9)
    assert result.status == "converged"
    np.testing.assert_allclose(result.theta, best, atol=1e-6)
    assert np.abs(X @ result.theta - y).sum() == pytest.approx(value, rel=1e-6)


def after(problem, passes):
    parameters = adfs.NonSmoothParameters.choose(problem)
    algorithm = NsAdfs(problem, parameters)
    n_events = passes * problem.n_samples
    return algorithm, algorithm.step(algorithm.init(), Drawer(parameters, 0).draw(0, n_events))


@pytest.mark.parametrize("passes", [1, 20, 400, 20_000])
@pytest.mark.parametrize(("graph", "sizes"), [("single", [12]), ("star:3", [5, 2, 7])])
def test_a_reading_is_the_model_that_certifies_better(graph, sizes, passes):
    problem = make_case(graph, "hinge", sizes=sizes).problem
    algorithm, state = after(problem, passes)
    duals = all_duals(algorithm, state)
    models = [algorithm.output(state), algorithm.second_output(state)]
    gaps = [
        certify(problem, problem.sigma @ thetas / problem.total_sigma, duals).duality_gap
        for thetas in models
    ]
    steps = evaluation_steps(problem, models, duals)
    found = problem.network.run(steps)
    assert found.duality_gap == pytest.approx(min(gaps), rel=1e-12)
    np.testing.assert_array_equal(found.thetas, models[int(np.argmin(gaps))])


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_the_second_model_is_the_one_built_from_the_certificates_duals(loss):
    case = make_case("grid:2x2", loss)
    algorithm, state = after(case.problem, 30)
    rows = np.vstack([features for features, *_ in case.shards])
    built = -(all_duals(algorithm, state) @ rows) / case.problem.total_sigma
    mean = case.problem.sigma @ algorithm.second_output(state) / case.problem.total_sigma
    np.testing.assert_allclose(mean, built, atol=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_a_gap_far_below_what_1_over_t2_promises_is_really_reached(loss):
    problem = make_case("grid:2x2", loss, sizes=[12] * 4).problem
    result = adfs.solve(problem, tol=1e-10)
    assert result.status == "converged"
    assert 0.0 <= result.duality_gap <= 1e-10 * max(1.0, result.objective)
    assert result.objective - problem.optimum().objective <= result.duality_gap + 1e-14


def test_auto_takes_it_exactly_where_the_loss_is_not_smooth():
    for loss in ("logistic", "squared", "squared_hinge", "smoothed_hinge", "huber"):
        assert adfs.solve(make_case("path:2", loss).problem, tol=1e-3).algorithm == "adfs"
    for loss in ("hinge", "absolute"):
        assert adfs.solve(make_case("path:2", loss).problem, tol=1e-3).algorithm == "ns-adfs"

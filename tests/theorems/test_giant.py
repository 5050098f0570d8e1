"""GIANT: it is its formula; alike shards contract as published; any partition converges."""

import numpy as np
import pytest

import adfs
from adfs.plugins import Nodes
from adfs.schedule.events import Events
from oracles import augmented, second_order
from oracles import giant as literal
from support.problems import Case, make_case

LOSSES = ["logistic", "squared", "squared_hinge", "smoothed_hinge", "huber"]


def alike(loss="logistic", n_nodes=4, m=60, d=4, seed=0, sigma=0.5):
    """Equal shards of one law, with weights."""
    random = np.random.default_rng(seed)
    truth, shards = random.standard_normal(d), []
    for _ in range(n_nodes):
        X = random.standard_normal((m, d)) * np.linspace(0.3, 2.0, d)
        noise = X @ truth + random.standard_normal(m)
        y = noise if loss in ("squared", "huber") else np.where(noise > 0, 1.0, -1.0)
        shards.append((X, y, random.uniform(0.5, 1.5, m)))
    return case_of(shards, loss, sigma)


def case_of(shards, loss="logistic", sigma=0.5, graph=None):
    topology = adfs.Topology.parse(graph) if graph else None
    shards = [tuple(np.asarray(part) for part in shard) for shard in shards]
    return Case(adfs.Problem(shards, loss, sigma, topology), shards)


def partitions(loss="logistic", sigma=0.05):
    """Sorted labels, a node with nearly all rows, and nodes that each see one feature only."""
    base = alike(loss, m=30)
    X, y, w = (np.concatenate([shard[k] for shard in base.shards]) for k in range(3))
    cuts = [2, 4, 6]
    rare = list(zip(*(np.split(each, cuts) for each in (X, y, w)), strict=True))
    one = [(rows * (np.arange(4) == i), *rest) for i, (rows, *rest) in enumerate(base.shards)]
    kinds = {"sorted": literal.one_class_per_node(base.shards), "rare": rare, "features": one}
    return {name: case_of(shards, loss, sigma) for name, shards in kinds.items()}


def prepared(problem, **setting):
    return adfs.prepare(problem, "giant", **setting)


def rounds(method, n_rounds, theta=None):
    """State after each round, with the kind that it came to be."""
    state = method.algorithm.init(theta)
    for t in range(n_rounds):
        events = method.source.draw(t, t + 1)
        state = method.algorithm.step(state, events)
        yield state, int(method.algorithm.executed(state, events).which[0])


CASES = {
    **{f"grid {loss}": make_case("grid:2x2", loss, seed=4, sizes=[5, 9, 3, 7]) for loss in LOSSES},
    "single": make_case("single", "logistic", seed=2, sizes=[9]),
    "alike": alike(),
    **{name: case for name, case in partitions().items()},
}


@pytest.mark.parametrize("name", CASES)
def test_its_rounds_are_those_of_the_literal_text(name):
    """Points, refusals and what is noticed, as long as F has digits to decide with."""
    case = CASES[name]
    sigma = np.broadcast_to(case.problem.sigma, len(case.shards))
    start = np.full(case.problem.n_features, 3.0)
    least = augmented.objective(
        case.shards, sigma, case.problem.loss.name,
        augmented.minimiser(case.shards, sigma, case.problem.loss.name),
    )  # fmt: skip
    expected = literal.run(case.shards, sigma, case.problem.loss.name, start, 40)
    compared = 0
    found = rounds(prepared(case.problem), 40, start)
    for (state, kind), (theta, trial, noticed) in zip(found, expected, strict=True):
        np.testing.assert_allclose(state.theta, theta, rtol=0, atol=1e-10)
        np.testing.assert_allclose(prepared_trial(state), trial, rtol=0, atol=1e-8)
        assert state.noticed == noticed
        assert (kind == 1) <= noticed
        compared += 1
        if state.value - least < 1e-9 * abs(least):
            break
    assert compared >= (2 if name == "grid squared" else 3)


def prepared_trial(state):
    return state.theta + state.size * state.direction


def test_the_direction_for_equal_shards_is_the_published_one():
    """mean_i (n hess f_i)^-1 gradient."""
    case = alike()
    n, loss, sigma = 4, "logistic", case.problem.sigma
    (state, kind), *_ = rounds(prepared(case.problem), 1)
    zero = np.zeros(4)
    gradient = augmented.gradient(case.shards, sigma, loss, zero)
    own = [second_order.hessian([shard], sigma[:1], loss, zero) for shard in case.shards]
    published = np.mean([np.linalg.solve(n * each, gradient) for each in own], axis=0)
    np.testing.assert_allclose(-state.direction, published, rtol=1e-12)
    assert kind == 0


@pytest.mark.parametrize("m", [40, 200, 1000])
def test_alike_shards_contract_by_how_far_their_hessians_are_from_the_mean(m):
    """Squared loss, where the bound is exact: |e+|_H <= |1 - eig(P H)|_max |e|_H, no step less."""
    case = alike("squared", m=m)
    sigma, best = case.problem.sigma, None
    best = augmented.minimiser(case.shards, sigma, "squared")
    hessian = second_order.hessian(case.shards, sigma, "squared", best)
    inverse = literal.averaged_inverse(case.shards, sigma, "squared", best)
    root = np.linalg.cholesky(hessian)
    factor = np.abs(1 - np.linalg.eigvalsh(root.T @ inverse @ root)).max()
    assert factor < {40: 0.2, 200: 0.05, 1000: 0.01}[m]
    errors = []
    for state, kind in rounds(prepared(case.problem), 6, np.full(4, 5.0)):
        assert (kind, state.noticed) == (0, False)
        errors.append(np.linalg.norm(root.T @ (state.theta - best)))
        if errors[-1] < 1e-6:
            break
    ratios = np.array(errors[1:]) / errors[:-1]
    assert len(ratios) >= 2
    assert np.all(ratios <= factor * (1 + 1e-6))
    assert ratios.max() > 0.1 * factor


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("partition", ["sorted", "rare", "features"])
def test_f_never_rises_and_falls_to_the_optimum_on_any_partition(partition, loss):
    case = partitions(loss)[partition]
    best = case.problem.optimum()
    values = [state.value for state, _ in rounds(prepared(case.problem), 60, np.full(4, 2.0))]
    assert np.all(np.diff(values) <= 1e-12 * np.abs(values[:-1]))
    assert values[-1] - best.objective <= 1e-10 * best.objective


def test_published_directions_alone_would_be_slow_where_shards_differ():
    """Why it has to notice: with fixed steps of 1 they diverge on nodes that see one feature."""
    case = partitions("squared")["features"]
    *_, (state, _) = rounds(prepared(case.problem), 3)
    assert state.noticed
    inverse = literal.averaged_inverse(case.shards, case.problem.sigma, "squared", np.zeros(4))
    hessian = second_order.hessian(case.shards, case.problem.sigma, "squared", np.zeros(4))
    assert np.abs(1 - np.linalg.eigvals(inverse @ hessian)).max() > 2.0


@pytest.mark.parametrize("kind", ["sorted", "rare"])
def test_it_certifies_on_bad_partitions_of_the_data(kind):
    case = partitions()[kind]
    result = adfs.solve(case.problem, "giant", tol=1e-10, max_iter=60, progress=False)
    assert result.status == "converged"


def test_a_round_sums_vectors_only():
    """Two of them, or, where a step was refused, one and the values of shorter steps."""
    problem = make_case("grid:2x2", n_features=12).problem
    method = prepared(problem, tau=5.0)
    n_samples, links = problem.n_samples, 2 * 3
    counts = [
        method.algorithm.counts(Events(0, np.array([kind], np.int32), np.array([-1], np.int32)))
        for kind in (0, 1)
    ]
    assert counts[0] == (0, n_samples, 3 * links, 8 * links * (2 * 12 + 1))
    assert counts[1] == (0, 2 * n_samples, 3 * links, 8 * links * (2 * 12 + 1))
    assert np.all(method.clock.lengths >= 2 * problem.topology.diameter * 5.0)


@pytest.mark.parametrize("loss", LOSSES)
def test_values_along_a_direction_are_those_of_each_node(loss):
    case = make_case("grid:2x2", loss, seed=4)
    nodes, random = Nodes(case.problem, adfs.MethodSetting()), np.random.default_rng(1)
    points, directions = random.standard_normal((2, 4, 4))
    sizes = np.array([1.0, 0.0, 0.25])
    found = nodes.values_along(points, directions, sizes)
    for i, shard in enumerate(case.shards):
        own = [
            augmented.objective(
                [shard], [case.problem.sigma[i]], loss, points[i] + s * directions[i]
            )
            for s in sizes
        ]
        np.testing.assert_allclose(found[i], own, rtol=1e-13)
    assert nodes.asked["gradients"] == 1


def test_more_features_than_a_matrix_per_node_may_have_are_refused():
    X, y = adfs.generators.two_gaussians(8, 2001, seed=0)
    problem = adfs.Problem(adfs.partition(X, y, 2), sigma=1.0)
    with pytest.raises(adfs.ParameterError, match="d=2001 is more than 2000; take lbfgs"):
        adfs.prepare(problem, "giant")

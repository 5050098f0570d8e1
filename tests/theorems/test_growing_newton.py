"""Newton on growing samples: the oracle, what samples are, what is charged, when it is chosen."""

import itertools
import math

import numpy as np
import pytest

import adfs
from adfs.algorithms import growing_newton, newton
from adfs.algorithms.base import MethodSetting, executed
from adfs.algorithms.nested_samples import NestedSamples
from adfs.schedule.delays import Delays
from oracles import growing_newton as literal
from oracles.losses import SMOOTH
from support.problems import REGRESSION, gaussian_problem, make_case, make_shards, stored_as

QUICK = Delays(tau=0.1)  # messages are cheap, so samples pay


def many_rows(loss="logistic", sigma=0.01, factor=1.0, times=1):
    """Three nodes with some hundred rows each, or more, of unequal weight."""
    sizes = [times * size for size in (150, 170, 190)]
    shards = make_shards(3, loss, seed=2, n_features=3, sizes=sizes)
    scale = factor if loss in REGRESSION else 1.0
    shards = [(X, scale * y, w) for X, y, w in shards]
    return make_case("path:3", loss, shards=shards, sigma=np.full(3, sigma))


DEAR = adfs.Costs(hessian=10.0)  # so those of samples pay at all rows


def prepare(problem, rule="tuned", seed=0, costs=DEAR):
    setting = MethodSetting(rule, 0.1, delays=QUICK, seed=seed, costs=costs)
    return newton.prepare(problem, setting)


def named(method, kinds):
    """Sample and Hessian of each evaluation."""
    last = method.algorithm.samples.last
    names = [*itertools.product(range(last + 1), ("own", "kept")), (last, "sampled")]
    return [names[kind] for kind in kinds]


def evaluations(method, n, start=None):
    """Points taken and tried, and the kinds of rounds, one evaluation after another."""
    state = method.algorithm.init(start)
    taken, trials, kinds = [], [], []
    for t in range(n):
        events = method.source.draw(t, t + 1)
        state = method.algorithm.step(state, events)
        taken.append(state.theta)
        trials.append(state.trial)
        kinds += executed(method.algorithm, state, events).which.tolist()
    return np.array(taken), np.array(trials), kinds


# Loss, times the rows, least rows per feature in a sample, and sigma: with little of it, Hessians
# at all rows are not those of samples.
COMPARED = [
    *itertools.product(SMOOTH, (1, 4), (2,), (0.01, 3.0)), ("huber", 40, 20, 0.01),
    ("huber", 40, 20, 3.0),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize(("loss", "times", "least", "sigma"), COMPARED)
def test_it_is_the_literal_method_along_the_whole_run(
    loss, times, least, sigma, kind, monkeypatch
):  # fmt: skip
    monkeypatch.setattr(growing_newton, "LEAST", least)
    case = many_rows(loss, sigma, factor=5.0, times=times)
    method = prepare(stored_as(case, kind))
    samples, shares = method.algorithm.samples, method.parameters.shares
    assert len(shares) >= 3
    offsets = case.problem.offsets
    levels = [
        [samples.rows(node, level) - offsets[node] for node in range(3)]
        for level in range(samples.last)
    ] + [[np.arange(size) for size in case.problem.sizes]]
    *lengths, sampled_time = method.clock.lengths
    expected = literal.growing_newton(
        case.shards, case.problem.sigma, loss, levels, shares, np.reshape(lengths, (-1, 2)),
        sampled_time, n_evaluations=14,
    )  # fmt: skip
    taken, trials, kinds = evaluations(method, 14)
    moves = np.abs(expected[1] - expected[0]).max(axis=1) > 1e-7  # the others are of rounding
    n_moves = 1 + int(np.flatnonzero(moves)[-1])
    assert n_moves >= 4
    assert named(method, kinds)[:n_moves] == expected[2][:n_moves]
    np.testing.assert_allclose(taken, expected[0], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(trials, expected[1], rtol=1e-10, atol=1e-10)


def test_all_kinds_of_hessians_were_in_what_was_compared(monkeypatch):
    kinds = set()
    for loss, times, least, sigma in COMPARED:
        monkeypatch.setattr(growing_newton, "LEAST", least)
        method = prepare(many_rows(loss, sigma, factor=5.0, times=times).problem)
        kinds |= set(named(method, evaluations(method, 14)[2]))
    assert {level for level, _ in kinds} >= {0, 1, 2}
    assert {which for _, which in kinds} == {"own", "kept", "sampled"}


def rare_and_large(seed):
    """Three features that few rows have, a hundred times as large as the others."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((40_000, 8))
    rare = random.random((40_000, 3)) < 2e-3
    X[:, 5:] = np.where(rare, 100.0 * random.standard_normal((40_000, 3)), 0.0)
    z = 0.3 * X[:, :5] @ random.standard_normal(5) + 0.02 * X[:, 5:].sum(axis=1)
    y = np.where(z + random.standard_normal(40_000) > 0.0, 1.0, -1.0)
    return adfs.partition(X, y, 4)


@pytest.mark.parametrize("loss", ["logistic", "smoothed_hinge", "squared_hinge"])
def test_samples_that_mislead_cost_a_few_evaluations_at_most(loss):
    """Plain Newton takes 7; without a way back from a bad sample it were 20 to 30."""
    for seed in (0, 3):
        problem = adfs.Problem(rare_and_large(seed), loss, sigma=1e-4)
        counts = [
            adfs.solve(problem, "newton", tol=1e-9, tau=0.1, parameters=rule, evaluate_every=1)
            for rule in ("tuned", "theory")
        ]
        assert len(counts[0].parameters.shares) == 3
        assert counts[0].idealized_time < 1.5 * counts[1].idealized_time


@pytest.mark.parametrize("loss", SMOOTH)
def test_it_reaches_the_certified_optimum_and_stays_there(loss):
    problem = many_rows(loss, sigma=1e-3, factor=30.0, times=3).problem
    best = problem.optimum()
    for seed in range(3):
        method = prepare(problem, seed=seed)
        assert len(method.parameters.shares) > 1
        taken, _, _ = evaluations(method, 60)
        scale = max(1.0, abs(best.objective))
        late = [problem.objective(theta) - best.objective for theta in taken[50:]]
        assert max(late) <= 1e-12 * scale


def test_samples_are_nested_random_parts_of_every_node():
    problem = many_rows().problem
    samples = NestedSamples(problem, (1 / 16, 1 / 4, 1.0), seed=3)
    for node, size in enumerate(problem.sizes.tolist()):
        own = problem.node_rows(node)
        small, large = (samples.rows(node, level) for level in (0, 1))
        assert (len(small), len(large)) == (math.ceil(size / 16), math.ceil(size / 4))
        assert set(small) < set(large) <= set(range(own.start, own.stop))
        assert len(set(large)) == len(large)
    other = NestedSamples(problem, (1 / 16, 1 / 4, 1.0), seed=4)
    assert set(samples.rows(0, 0)) != set(other.rows(0, 0))


def test_the_mean_over_orders_of_a_sample_is_the_whole():
    """Of objective, gradient and Hessian, within four standard errors."""
    case = many_rows()
    problem, theta = case.problem, np.array([0.3, -0.2, 0.5])
    found = []
    for seed in range(300):
        samples = NestedSamples(problem, (0.1, 1.0), seed)
        objective, gradient, _ = samples.objective_and_gradient(theta, 0)
        hessian = np.zeros((3, 3))
        for node in range(3):
            samples.add_hessian(theta, 0, node, hessian)
        found.append([objective, *gradient, *hessian[np.tril_indices(3)]])
    whole = [problem.objective(theta), *problem.gradient(theta)]
    hessian = literal.second_order.hessian(case.shards, [0.0], "logistic", theta)
    error = np.std(found, axis=0) / np.sqrt(300)
    expected = [*whole, *hessian[np.tril_indices(3)]]
    assert (np.abs(np.mean(found, axis=0) - expected) < 4 * error).all()


def test_a_sample_sees_only_its_rows():
    """Work in proportion to the sample: rows outside it may hold anything."""
    case = many_rows()
    theta = np.array([0.3, -0.2, 0.5])
    samples = NestedSamples(case.problem, (0.1, 1.0), 0)
    before = samples.objective_and_gradient(theta, 0)
    used = np.concatenate([samples.rows(node, 0) for node in range(3)])
    unused = np.setdiff1d(np.arange(case.problem.n_rows), used)
    case.problem.rows.values[unused] = np.nan
    after = samples.objective_and_gradient(theta, 0)
    assert after[0] == before[0]
    np.testing.assert_array_equal(after[1], before[1])


def test_theory_is_plain_newton_and_so_is_tuned_where_nothing_is_to_gain():
    problem = gaussian_problem("grid:3x3", samples=(900, 10))
    tuned, theory = (newton.prepare(problem, MethodSetting(rule)) for rule in ("tuned", "theory"))
    for method in (tuned, theory):
        assert type(method.algorithm) is newton.Newton
        assert method.parameters.shares == (1.0,)
    assert type(prepare(many_rows().problem, "theory").algorithm) is newton.Newton
    a, b = (adfs.solve(problem, "newton", parameters=rule) for rule in ("tuned", "theory"))
    assert a.theta.tobytes() == b.theta.tobytes()
    assert a.idealized_time == b.idealized_time


def test_samples_are_chosen_where_they_take_0_3_of_an_evaluation():
    def shares(overhead):
        return growing_newton.choose_shares(64_000, 10, lambda share: share + overhead)

    assert shares(0.01) == (1 / 64, 1 / 8, 1.0)
    assert shares(2.0) == (1.0,)
    for overhead in np.geomspace(1e-3, 10.0, 30):
        chosen = shares(overhead)
        if len(chosen) > 1:
            time = chosen[0] + overhead + sum(share + overhead for share in chosen[:-1])
            assert time <= 0.3 * (1.0 + overhead)
    assert growing_newton.choose_shares(100, 10, lambda share: share) == (1.0,)


def test_samples_never_take_more_than_0_3_of_an_evaluation():
    for loss in SMOOTH:
        method = prepare(many_rows(loss, sigma=1e-4, factor=100.0, times=3).problem)
        times, last = method.clock.lengths, method.algorithm.samples.last
        kinds = evaluations(method, 40)[2]
        assert sum(times[kind] for kind in kinds if kind // 2 < last) <= 0.3 * times[2 * last]


def test_a_model_to_start_from_is_improved_at_all_rows():
    problem = many_rows(times=3).problem
    method = prepare(problem)
    kinds = evaluations(method, 3, problem.optimum().theta)[2]
    assert min(kinds) >= 2 * method.algorithm.samples.last


def test_a_run_is_charged_for_the_rounds_it_executed():
    problem = many_rows(times=3).problem
    result = adfs.solve(problem, "newton", tol=1e-10, tau=0.1, evaluate_every=1, costs=DEAR)
    method = prepare(problem)
    kinds = evaluations(method, result.iterations)[2]
    assert result.status == "converged"
    assert result.idealized_time == pytest.approx(method.clock.lengths[kinds].sum(), rel=1e-12)
    counts = [method.algorithm.prices[kind] for kind in kinds]
    last = result.trace.last()
    assert last["n_grad"] == sum(each.n_grad for each in counts)
    assert last["bytes"] == sum(each.bytes for each in counts)
    sizes = method.algorithm.samples.sizes.sum(axis=1)
    assert last["n_grad"] == sum(sizes[min(kind // 2, len(sizes) - 1)] for kind in kinds)


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_a_run_stopped_at_any_level_goes_on_to_the_same_bits(tmp_path, at):
    problem = many_rows(sigma=1.0, times=4).problem
    options = {"tol": 1e-11, "tau": 0.1, "evaluate_every": 1, "costs": DEAR}
    whole = adfs.solve(problem, "newton", **options)
    assert whole.iterations > 4
    kept = adfs.Checkpoints(tmp_path / "run")
    adfs.solve(problem, "newton", max_iter=at, checkpoints=kept, **options)
    again = adfs.Checkpoints(tmp_path / "run", resume=True)
    result = adfs.solve(problem, "newton", checkpoints=again, **options)
    assert result.resumed == at
    assert result.theta.tobytes() == whole.theta.tobytes()
    assert result.idealized_time == whole.idealized_time
    assert result.trace.last()["bytes"] == whole.trace.last()["bytes"]


def test_sorted_rows_are_sampled_from_all_of_a_node():
    X, y = adfs.generators.two_gaussians(4000, 4, seed=0)
    order = np.argsort(y, kind="stable")
    problem = adfs.Problem(adfs.partition(X[order], y[order], 2, how="contiguous"), sigma=0.1)
    growing, plain = (
        adfs.solve(problem, "newton", tol=1e-8, tau=0.1, parameters=rule)
        for rule in ("tuned", "theory")
    )
    assert len(growing.parameters.shares) > 1
    assert growing.idealized_time < plain.idealized_time


def test_a_plan_predicts_it_and_takes_no_pilot():
    X, y = adfs.generators.two_gaussians(20_000, 5, seed=0)
    problem = adfs.Problem(adfs.partition(X, y, 4), sigma=0.1)
    one = next(e for e in adfs.plan(problem, tau=1.0).predictions if e.algorithm == "newton")
    assert not one.alike
    assert one.basis == "theory"
    run = adfs.solve(problem, "newton", tau=1.0)
    assert len(run.parameters.shares) > 1
    assert 0.5 < one.idealized_time / run.idealized_time < 2.0

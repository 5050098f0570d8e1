"""`solve`: the statuses, the trace, the corners, and the certificate it ends with."""

import dataclasses
import os
import signal
import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

import adfs
from adfs.algorithms.base import REGISTRY, Counts
from adfs.engine.trace import COLUMNS
from adfs.errors import DataError, ParameterError
from adfs.losses import LOSSES
from support.problems import make_data, make_problem

SMOOTH = [name for name, loss in LOSSES.items() if loss.smooth]


def solve(problem, *arguments, **options):
    """`adfs.solve` with the rule that costs no search, unless the test names another."""
    return adfs.solve(problem, *arguments, **({"parameters": "exact"} | options))


class Stub:
    """An algorithm whose models the test chooses: after t events, ``models(t)`` at every node."""

    models = staticmethod(lambda t: 0.0)
    pause = 0.0

    def __init__(self, problem):
        self.shape = (problem.n_nodes, problem.n_features)

    def init(self, theta=None):
        return 0

    def step(self, state, events):
        time.sleep(self.pause)
        return events.stop

    def output(self, state):
        return np.full(self.shape, self.models(state))

    def duals(self, state, node):
        return None

    def counts(self, events):
        return Counts(n_prox=len(events.which))


@pytest.fixture
def stub(monkeypatch):
    def register(models, **attributes):
        block = attributes.pop("block", 1 << 14)
        made = type("Named", (Stub,), attributes | {"models": staticmethod(models)})

        def prepare(problem, setting):
            # The schedule, the clock and the rate of ADFS, so that only the models are the test's.
            real = REGISTRY["adfs"](problem, setting)
            return dataclasses.replace(real, algorithm=made(problem), block=block, beat=None)

        monkeypatch.setitem(REGISTRY, "stub", prepare)
        return "stub"

    return register


@pytest.mark.parametrize("convert", [np.asarray, np.float32, sp.csr_matrix])
@pytest.mark.parametrize("loss", SMOOTH)
def test_a_small_problem_is_solved_to_a_certified_1e_12(loss, convert):
    problem = make_problem(loss, convert=convert)
    result = solve(problem, tol=1e-12)
    assert result.status == "converged"
    assert result.duality_gap <= 1e-12 * result.objective
    assert result.relative_gap == result.duality_gap / result.objective
    assert result.objective == pytest.approx(problem.objective(result.theta), rel=1e-14)
    best = problem.optimum()
    assert result.objective - best.objective <= result.duality_gap + 1e-13 * best.objective
    np.testing.assert_allclose(result.theta, best.theta, atol=1e-5)


def test_the_model_is_scikit_learns_on_the_same_sum():
    X, y = make_data()
    result = solve(make_problem(sigma=[0.1, 0.2, 0.3, 0.4]), tol=1e-13)
    theirs = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-12, max_iter=1_000).fit(X, y)
    np.testing.assert_allclose(result.theta, theirs.coef_[0], atol=1e-6)


def test_theta_is_the_sigma_weighted_mean_of_the_nodes_models():
    sigma = np.array([0.1, 0.2, 0.3, 3.0])
    result = solve(make_problem(sigma=sigma), tol=1e-3)
    np.testing.assert_allclose(result.theta, sigma @ result.thetas / sigma.sum(), rtol=1e-12)
    spread = np.sqrt(np.mean(np.sum((result.thetas - result.theta) ** 2, axis=1)))
    assert result.trace.last()["consensus_error"] == pytest.approx(spread)


@pytest.mark.parametrize("parameters", ["exact", "tuned"])
def test_the_same_seed_gives_the_same_bits(parameters):
    first, again = (
        solve(make_problem(), tol=1e-9, seed=5, parameters=parameters) for _ in range(2)
    )
    assert np.array_equal(first.thetas, again.thetas)
    for column in set(COLUMNS) - {"wall_time"}:
        assert first.trace[column] == again.trace[column]


def test_another_seed_takes_another_path_to_the_same_optimum():
    problem = make_problem()
    one, other = (solve(problem, tol=1e-12, seed=seed) for seed in (0, 1))
    assert one.trace["objective"][1] != other.trace["objective"][1]
    np.testing.assert_allclose(one.theta, other.theta, atol=1e-5)


def test_the_clock_changes_times_and_no_iterate():
    problem = make_problem()
    parameters = adfs.Parameters.choose(problem, "exact")
    slow = solve(problem, parameters=parameters, tau=50.0, clock="rendezvous", tol=1e-8)
    fast = solve(problem, parameters=parameters, tau=0.1, tol=1e-8)
    assert np.array_equal(slow.thetas, fast.thetas)
    assert slow.idealized_time > fast.idealized_time


def test_idealized_time_is_that_of_the_schedule():
    problem = make_problem()
    parameters = adfs.Parameters.choose(problem, "exact")
    result = solve(problem, parameters=parameters, tau=3.0, seed=7, max_iter=4_321, tol=1e-300)
    schedule = adfs.Schedule.sample(parameters, 4_321, seed=7)
    assert result.idealized_time == schedule.times(tau=3.0).max()
    delays = adfs.Delays(tau=3.0, law="exponential", seed=2)
    random = solve(
        problem, parameters=parameters, delays=delays, seed=7, max_iter=4_321, tol=1e-300
    )
    assert random.idealized_time == schedule.times(delays=delays).max()


def test_the_trace_has_all_columns_and_counts_every_event():
    problem = make_problem()
    problem.optimum()
    result = solve(problem, tol=1e-10)
    trace = {name: np.array(values, float) for name, values in result.trace.to_dict().items()}
    assert list(trace) == list(COLUMNS)
    assert len(result.trace) >= 3
    for increasing in ("iteration", "idealized_time", "wall_time", "n_prox", "n_comm", "bytes"):
        assert trace[increasing][0] == 0
        assert (np.diff(trace[increasing]) > 0).all()
    assert np.array_equal(trace["n_prox"] + trace["n_comm"] / 2, trace["iteration"])
    assert np.array_equal(trace["bytes"], 8 * problem.n_features * trace["n_comm"])
    assert not trace["n_grad"].any()
    assert (trace["suboptimality"] > -1e-14).all()
    assert trace["suboptimality"][-1] < 1e-8 < trace["suboptimality"][0]
    assert (result.iterations, result.wall_time) == (trace["iteration"][-1], trace["wall_time"][-1])


def test_suboptimality_is_the_mean_over_nodes_and_empty_where_the_optimum_is_unknown():
    problem = make_problem("squared")
    unknown = solve(problem, max_iter=4_000, tol=1e-15)
    assert unknown.trace["suboptimality"] == [None] * len(unknown.trace)
    best = problem.optimum().objective
    known = solve(problem, max_iter=4_000, tol=1e-15)
    mean = np.mean([problem.objective(theta) for theta in known.thetas])
    expected = (mean - best) / best
    assert known.trace["suboptimality"][-1] == pytest.approx(expected, rel=1e-6, abs=1e-14)


def test_the_trace_starts_with_the_gap_at_zero():
    problem = make_problem()
    row = {name: values[0] for name, values in solve(problem).trace.to_dict().items()}
    gradient = problem.gradient(np.zeros(4))
    assert row["objective"] == pytest.approx(60 * np.log(2))
    assert row["duality_gap"] <= gradient @ gradient / (2 * problem.total_sigma) * (1 + 1e-12)


def test_evaluations_and_callbacks_are_not_in_wall_time(stub):
    name, pause = stub(models=lambda t: 1.0), 0.05
    result = solve(
        make_problem(), name, max_iter=1_000, evaluate_every=200,
        callback=lambda progress: time.sleep(pause),
    )  # fmt: skip
    assert len(result.trace) == 6
    assert 0 < result.wall_time < 3 * pause
    assert result.setup_time > 0


def test_the_steps_are_in_wall_time(stub):
    name = stub(models=lambda t: 1.0, pause=0.01)
    result = solve(make_problem(), name, max_iter=1_000, evaluate_every=200)
    assert result.wall_time >= 5 * 0.01


def test_the_callback_is_told_of_every_evaluation():
    seen = []
    result = solve(make_problem(), tol=1e-9, callback=seen.append)
    assert [each.iteration for each in seen] == result.trace["iteration"]
    assert [each.reading.objective for each in seen] == result.trace["objective"]
    assert [each.idealized_time for each in seen] == result.trace["idealized_time"]
    assert {each.tol for each in seen} == {1e-9}
    assert np.array_equal(seen[-1].reading.thetas, result.thetas)


def test_evaluations_come_as_often_as_asked():
    result = solve(make_problem(), tol=1e-300, max_iter=1_000, evaluate_every=300)
    assert result.trace["iteration"] == [0, 300, 600, 900, 1_000]
    often, seldom = (
        solve(make_problem(), tol=1e-300, max_iter=1_000, evaluate_every=k) for k in (7, 1_000)
    )
    assert np.array_equal(often.thetas, seldom.thetas)


def test_an_error_in_a_callback_comes_out_and_signals_are_as_before():
    before = signal.getsignal(signal.SIGINT)

    def fail(progress):
        raise RuntimeError("from the callback")

    with pytest.raises(RuntimeError, match="from the callback"):
        solve(make_problem(), callback=fail)
    assert signal.getsignal(signal.SIGINT) is before


def test_max_iter_is_met_exactly():
    for max_iter in (0, 1, 1_999, 2_000, 2_001, 20_000):
        result = solve(make_problem(), max_iter=max_iter, tol=1e-300)
        assert (result.status, result.iterations) == ("max_iter", max_iter)
        assert result.trace["iteration"][-1] == max_iter


def test_without_max_iter_a_tolerance_below_double_precision_still_ends():
    result = solve(make_problem(n_samples=8), tol=1e-300, parameters="exact")
    assert result.status == "max_iter"
    assert result.relative_gap < 1e-20


def test_the_time_limit_stops_a_run_soon_after_it(stub):
    result = solve(make_problem(), stub(models=lambda t: 1.0, pause=0.02), time_limit=0.05)
    assert result.status == "time_limit"
    assert 0.05 <= result.wall_time < 0.5
    assert result.iterations > 0


@pytest.mark.parametrize("when", [0, 1, 3])
def test_ctrl_c_returns_what_exists(when):
    calls = []

    def press(progress):
        calls.append(progress)
        if len(calls) == when + 1:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    result = solve(make_problem(), tol=1e-300, callback=press)
    assert result.status == "interrupted"
    assert result.signal == signal.SIGINT
    assert len(result.trace) == len(calls) == when + 1
    assert np.array_equal(result.theta, calls[-1].reading.theta)
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_in_the_middle_of_the_loop_stops_at_the_end_of_a_block(stub):
    def step(self, state, events):
        if events.stop > 0:
            os.kill(os.getpid(), signal.SIGINT)
        return events.stop

    result = solve(make_problem(), stub(models=lambda t: 1.0, step=step, block=100))
    assert (result.status, result.iterations) == ("interrupted", 100)


def test_a_run_that_converged_when_interrupted_has_converged():
    def press(progress):
        if progress.reading.relative_gap <= 1e-4:
            os.kill(os.getpid(), signal.SIGINT)

    assert solve(make_problem(), tol=1e-4, callback=press).status == "converged"


@pytest.mark.parametrize("loss", SMOOTH)
def test_a_run_that_blows_up_has_diverged_long_before_it_overflows(loss, stub):
    """Its relative gap stays bounded, because the objective grows as fast as the gap."""
    name = stub(models=lambda t: 10.0 ** (t / 2_000))
    result = solve(make_problem(loss), name, max_iter=10**7)
    assert result.status == "diverged"
    assert result.iterations <= 50_000
    assert np.isfinite(result.theta).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200])
def test_a_run_that_is_no_longer_a_number_has_diverged(value, stub):
    name = stub(models=lambda t: value if t > 0 else 0.0)
    result = solve(make_problem(), name, max_iter=10_000)
    assert (result.status, len(result.trace)) == ("diverged", 2)  # at the first look


def test_a_start_that_is_no_number_has_diverged_at_once(stub):
    result = solve(make_problem(), stub(models=lambda t: np.nan))
    assert (result.status, result.iterations) == ("diverged", 0)


def test_a_warm_start_from_the_optimum_is_certified_at_once():
    problem = make_problem()
    result = solve(problem, tol=1e-10, warm_start=problem.optimum().theta)
    assert (result.status, result.iterations) == ("converged", 0)
    with pytest.raises(DataError, match=r"theta has shape \(3,\); this problem has 4 features"):
        solve(problem, warm_start=np.zeros(3))
    with pytest.raises(DataError, match="theta has a NaN or an infinity"):
        solve(problem, warm_start=np.full(4, np.nan))


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize(
    ("n_nodes", "n_samples", "n_features"),
    [(1, 60, 4), (1, 2, 1), (4, 4, 3), (2, 7, 1), (9, 40, 5), (5, 30, 40)],
)
def test_small_shapes_are_solved(loss, n_nodes, n_samples, n_features):
    """One node, one sample a node, one feature, more features than samples."""
    problem = make_problem(loss, n_nodes, n_samples=n_samples, n_features=n_features, seed=3)
    result = solve(problem, tol=1e-10)
    assert result.status == "converged"
    assert result.thetas.shape == (n_nodes, n_features)
    np.testing.assert_allclose(result.objective, problem.optimum().objective, rtol=1e-9)


def test_a_single_sample_at_a_single_node_is_solved():
    problem = adfs.Problem([(np.array([[2.0, 1.0]]), [3.0])], "squared", 0.5)
    result = solve(problem, tol=1e-13)
    np.testing.assert_allclose(result.theta, np.array([2.0, 1.0]) * 3.0 / 5.5, rtol=1e-6)


@pytest.mark.parametrize("parameters", ["paper", "exact", "projector", "tuned"])
@pytest.mark.parametrize("loss", SMOOTH)
def test_unequal_nodes_are_solved_under_every_rule(loss, parameters):
    """Shards of 1 to 30 rows, sigma over two decades, zero rows, weights, a node with no data."""
    rng = np.random.default_rng(8)
    shards = []
    for size in (1, 30, 3, 12, 2):
        X, y = make_data(loss, size, 3, seed=size)
        shards.append([X, y, rng.uniform(0.1, 3.0, size)])
    shards[0][1][:], shards[1][1][0] = 1.0, -1.0
    shards[2][0][:] = 0.0  # every row of this node is zero
    shards[3][0][4] = 0.0
    shards[3][2][5] = 0.0
    shards[1][0][7] *= 1e-4  # so small that eta > L
    problem = adfs.Problem(
        [tuple(shard) for shard in shards], loss, [0.05, 1.0, 0.3, 5.0, 0.5], adfs.Topology.star(5)
    )
    result = solve(problem, tol=1e-10, parameters=parameters)
    assert result.status == "converged"
    best = problem.optimum()
    assert abs(result.objective - best.objective) <= 1e-9 * max(1.0, best.objective)
    assert result.trace.last()["consensus_error"] < 1e-2


def test_every_node_converges_to_the_common_model_not_only_their_mean():
    problem = make_problem(n_nodes=6)
    result = solve(problem, tol=1e-15, parameters="exact")
    for theta in result.thetas:
        np.testing.assert_allclose(theta, problem.optimum().theta, atol=1e-5)


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_a_loss_that_is_not_smooth_is_refused_by_adfs_with_a_sentence(loss):
    with pytest.raises(ParameterError, match=f"'{loss}' .*; choose algorithm ns-adfs, or one of"):
        solve(make_problem(loss), algorithm="adfs")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"algorithm": "sgd"}, "algorithm='sgd' is not known.*; choose auto, best or .*adfs"),
        ({"parameters": "best"}, "parameters='best' is not a rule; choose one of paper, balanced"),
        ({"clock": "wall"}, "clock='wall' is unknown; choose one of nonblocking, rendezvous"),
        ({"tau": -1.0}, "tau=-1 must be >= 0 and finite"),
        ({"tau": np.nan}, "tau=nan must be >= 0 and finite"),
        ({"tol": 0.0}, "tol=0 must be a finite number > 0"),
        ({"max_iter": 2.5}, "max_iter=2.5 must be a whole number"),
        ({"time_limit": 0.0}, "time_limit=0 must be a finite number > 0"),
        ({"evaluate_every": 0}, "evaluate_every=0 must be a whole number >= 1"),
        ({"evaluate_every": 2.5}, "evaluate_every=2.5 must be a whole number >= 1"),
        ({"seed": -1}, "seed=-1 must be a whole number >= 0"),
    ],
)
def test_arguments_out_of_range_are_refused_with_a_sentence(arguments, sentence):
    with pytest.raises(ParameterError, match=sentence):
        solve(make_problem(), **arguments)


def test_parameters_of_another_problem_are_refused():
    other = adfs.Parameters.choose(make_problem(), "exact")
    with pytest.raises(ParameterError, match="were chosen for another problem; choose again"):
        solve(make_problem(), parameters=other)


def test_a_result_says_what_happened():
    text = repr(solve(make_problem(), tol=1e-6))
    assert text.startswith("Result(converged, objective=")
    assert "iterations, idealized time=" in text


def test_a_result_knows_how_its_parameters_came_about():
    problem = make_problem()
    chosen = adfs.Parameters.choose(problem, "projector", tau=3.0)
    given = solve(problem, parameters=chosen, tau=7.0, clock="rendezvous", tol=1e-3)
    assert (given.rule, given.rho) == ("projector", chosen.rho)
    assert (given.tau, given.clock) == (7.0, "rendezvous")
    named = solve(problem, "msda", parameters="theory", tol=1e-3)
    assert (named.rule, named.rho) == ("theory", named.parameters.rho)

"""Plans: predictions beside runs, pilots, sizes, and what `best` does when a prediction fails."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import adfs
from adfs.algorithms.base import MethodSetting
from adfs.engine.interrupts import Interrupts
from adfs.engine.stopping import Stopping
from adfs.graphs.closed_forms import family_facts
from adfs.plan import best, pilot, planning, timing
from adfs.plan.planning import plan_sizes
from adfs.plan.prediction import (
    ALL_REDUCE,
    expected_iterations,
    predict,
    predict_all,
    predict_likely,
)
from adfs.plan.sizes import Sizes
from adfs.run import RunOptions, run
from support.problems import make_problem

SETTING = MethodSetting(delays=adfs.Delays(tau=5.0))


def higgs_like(n_nodes=4, m=100, sigma=0.5, loss="logistic"):
    X, y = adfs.generators.higgs_like(n_nodes * m, seed=1)
    return adfs.Problem(adfs.partition(X, y, n_nodes), loss, sigma)


@pytest.mark.parametrize("n_nodes", [4, 16])
@pytest.mark.parametrize(
    ("name", "factor"),
    [("adfs", 1.1), ("katyusha", 2), ("l-katyusha", 2), ("msda", 2), ("ssda", 2), ("newton", 2),
     ("lbfgs", 2), ("tron", 2)],
)  # fmt: skip
def test_predicted_idealized_time_is_near_that_of_a_run(name, factor, n_nodes):
    problem = higgs_like(n_nodes, sigma=1.0)
    measured = adfs.solve(problem, name, tol=1e-6).idealized_time
    predicted = predict(problem, name, SETTING, 1e-6).idealized_time
    assert 1 / factor <= predicted / measured <= factor


@pytest.mark.parametrize("graph", ["grid:3x3", "complete:9", "ring:9"])
@pytest.mark.parametrize("sigma", [1.0, 0.1])
def test_predictions_of_methods_with_a_rate_are_within_1_5(graph, sigma):
    """On data that no factor was fitted to."""
    X, y = load_breast_cancer(return_X_y=True)
    shards = adfs.partition((X - X.mean(axis=0)) / X.std(axis=0), y, 9)
    problem = adfs.Problem(shards, sigma=sigma, topology=adfs.Topology.parse(graph))
    for name in ("adfs", "katyusha", "l-katyusha", "msda", "ssda"):
        schedule = "stratified" if name == "adfs" else "shared"
        run = adfs.solve(problem, name, tol=1e-6, schedule=schedule, evaluate_every="curve")
        found = predict(problem, name, SETTING._replace(schedule=schedule), 1e-6)
        assert 1 / 1.5 <= found.idealized_time / run.idealized_time <= 1.5, name


def test_expected_runs_have_a_start_before_they_fall_at_their_rate():
    problem = higgs_like()
    for name, start in (("msda", 2.4), ("ssda", 2.4), ("adfs", 2.0 * problem.n_samples)):
        method = adfs.prepare(problem, name, schedule="stratified" if name == "adfs" else "shared")
        first = 2.0 * method.typical(1e-6) - method.typical(1e-12)  # it is linear in log(1 / tol)
        local = 1.0 - method.parameters.p_comm if name == "adfs" else 1.0  # of the events
        assert local * first == pytest.approx(start), name
    alone = adfs.Problem(adfs.partition(np.eye(4), [0, 1, 0, 1], 1))
    assert adfs.prepare(alone, "msda").typical(1e-6) == 1.0


@pytest.mark.parametrize("name", ["adfs", "lbfgs", "newton", "msda", "dsba"])
def test_messages_and_bytes_are_those_of_as_many_iterations(name):
    problem = higgs_like()
    found = predict(problem, name, SETTING, 1e-6)
    run = adfs.solve(problem, name, max_iter=max(2, round(found.iterations)), tol=1e-300)
    last = run.trace.last()
    assert run.iterations == max(2, round(found.iterations))
    for column in ("n_comm", "bytes", "idealized_time"):
        assert getattr(found, column) == pytest.approx(last[column], rel=0.25)


def test_a_plan_repeats_and_names_every_method_once():
    first, second = (adfs.plan(higgs_like()) for _ in range(2))
    assert first == second
    named = [each.algorithm for each in first.predictions] + list(first.refused)
    assert sorted(named) == sorted(adfs.algorithms.NAMES)


def test_methods_for_one_machine_are_planned_on_one_node_only():
    assert "point-saga" in adfs.plan(higgs_like(4)).refused
    assert "point-saga" not in adfs.plan(higgs_like(1)).refused


def test_dual_methods_are_not_planned_on_one_node():
    # A dual gradient there is the minimiser itself, and the paper charges it as one pass.
    plan = adfs.plan(higgs_like(1))
    assert {"msda", "ssda", "esdacd"} <= set(plan.refused)
    assert adfs.solve(higgs_like(1), "best").algorithm == plan.best.algorithm == "newton"
    [sizes] = plan_sizes(1000, 10, 1e3, ["single"], [1])
    assert not {"msda", "ssda", "esdacd"} & {each.algorithm for each in sizes.predictions}


def test_random_delays_and_slow_nodes_take_longer():
    problem = higgs_like()
    slow = adfs.Delays(tau=5.0, speed=(1, 1, 1, 4), law="exponential")
    for name in ("adfs", "newton", "katyusha"):
        usual = predict(problem, name, SETTING, 1e-6)
        delayed = predict(problem, name, SETTING._replace(delays=slow), 1e-6)
        assert delayed.idealized_time > 1.5 * usual.idealized_time


def test_a_plan_predicts_the_draws_that_best_uses():
    problem = higgs_like()
    [found] = adfs.plan(problem, algorithms=["adfs"], pilot=False).predictions
    [drawn] = predict_all(problem, SETTING._replace(schedule="stratified"), 1e-6, ["adfs"])[0]
    assert found.iterations == drawn.iterations
    assert found.idealized_time == drawn.idealized_time


def test_losses_that_are_not_smooth_have_one_method():
    found, refused = predict_all(make_problem("hinge"), SETTING, 1e-3)
    assert [each.algorithm for each in found] == ["ns-adfs"]
    assert "smooth" in refused["newton"]


def test_a_part_has_about_a_share_of_the_objective():
    problem = higgs_like(m=400)
    part = pilot.part_of(problem, 4)
    theta = np.full(problem.n_features, 0.1)
    assert part.n_samples == problem.n_samples // 4
    assert part.objective(theta) == pytest.approx(problem.objective(theta) / 4, rel=0.1)


def test_pilots_cost_at_most_a_twentieth_and_find_the_iterations():
    problem = higgs_like(m=4000, sigma=0.01)
    setting = SETTING._replace(rule="theory", tau=0.1, delays=adfs.Delays(tau=0.1))
    rivals, _ = predict_all(problem, setting, 1e-6, ["lbfgs", "tron"])
    found, spent = pilot.refine(problem, setting, 1e-6, rivals)
    assert 0.0 < spent <= pilot.SHARE * rivals[0].idealized_time
    tried = next(each for each in found if each.basis == "pilot")
    run = adfs.solve(problem, tried.algorithm, tau=0.1, parameters="theory")
    assert tried.iterations == pytest.approx(run.iterations, abs=2, rel=0.5)


def test_no_pilot_where_it_would_cost_too_much():
    problem = higgs_like(m=30)
    rivals, _ = predict_all(problem, SETTING, 1e-6)
    assert pilot.refine(problem, SETTING, 1e-6, rivals) == (rivals, 0.0)


def test_best_has_the_bits_of_the_method_it_takes():
    problem = higgs_like()
    chosen = adfs.solve(problem, "best")
    assert chosen.algorithm == adfs.plan(problem).best.algorithm
    named = adfs.solve(problem, chosen.algorithm, schedule=chosen.schedule)
    assert np.array_equal(chosen.theta, named.theta)
    assert chosen.algorithm in chosen.choice.reason
    assert chosen.choice.idealized_time == chosen.choice.pilot_time + named.idealized_time


@pytest.mark.parametrize(
    ("d", "sigma", "tau", "fastest"),
    [(5, 0.01, 5.0, "newton"), (200, 1.0, 5.0, "lbfgs"), (300, 30.0, 1.0, "msda")],
)
def test_best_sets_up_what_may_win_and_not_what_is_far_behind(d, sigma, tau, fastest):
    X, y = adfs.generators.two_gaussians(4_000, d, seed=0)
    problem = adfs.Problem(adfs.partition(X, y, 4), sigma=sigma)
    setting = SETTING._replace(tau=tau, delays=adfs.Delays(tau=tau))
    likely = {each.algorithm for each in predict_likely(problem, setting, 1e-6)[0]}
    every, _ = predict_all(problem, setting, 1e-6)
    goal = every[0].idealized_time
    assert every[0].algorithm == fastest
    assert likely >= {each.algorithm for each in every if each.idealized_time < 1.25 * goal}
    far = {each.algorithm for each in every if each.idealized_time > 10.0 * goal}
    assert likely & far <= set(ALL_REDUCE)


def run_best(problem, **limits):
    return best.run_best(
        problem, "best", SETTING, Stopping(1e-8, **limits), RunOptions(), Interrupts(())
    )


def test_best_goes_on_with_the_next_method_where_a_prediction_fails(monkeypatch):
    problem = higgs_like()
    plan = planning.plan_with(problem, SETTING, 1e-8)
    wrong = plan.predictions[-1]._replace(idealized_time=5.0)
    misled = dataclasses.replace(plan, predictions=[wrong, *plan.predictions[:-1]])
    monkeypatch.setattr(best, "plan_choice", lambda *_: misled)
    result = run_best(problem)
    assert result.status == "converged"
    assert [name for name, _ in result.choice.tried] == [wrong.algorithm, plan.best.algorithm]
    assert "did not converge as predicted" in result.choice.reason
    assert result.choice.idealized_time > result.idealized_time


def test_limits_of_the_user_hold_for_best():
    problem = higgs_like()
    result = run_best(problem, clock_limit=1.0)
    assert result.status == "time_limit"
    assert len(result.choice.tried) == 1
    assert run_best(problem, max_iter=1).status == "max_iter"


def test_expected_iterations_are_those_of_theory_without_experience():
    class Known:
        typical, needed, rho = None, None, 0.5

    assert expected_iterations(Known, 1e-4) == pytest.approx(math.log(1e4) / 0.5)


def test_the_network_takes_as_long_as_computing_at_the_critical_size():
    [plan] = plan_sizes(10_000_000, 100, 1e4, ["grid"], [16], tau=20.0)
    n = plan.critical["adfs"]
    below, above = 4 ** math.floor(math.log(n, 4)), 4 ** math.ceil(math.log(n, 4))
    ratios = []
    for size in (below, above):
        facts = family_facts("grid", size)
        sizes = Sizes(size, 10_000_000 / size, 20.0, 1e4, 1e4, facts.gamma)
        ratios.append(sizes.network / sizes.work)
    assert ratios[0] < 1.0 <= ratios[1]


def test_a_plan_for_a_million_nodes_needs_no_graph():
    [plan] = plan_sizes(10**9, 50, 1e4, ["hypercube"], [1 << 20])
    assert plan.sizes.gamma == pytest.approx(0.05)
    assert plan.sizes.diameter == 20
    assert plan.best.n_comm > 0


@pytest.mark.parametrize("n_features", [100, 5000])
def test_newton_is_left_out_where_a_matrix_is_too_much(n_features):
    [plan] = plan_sizes(10**6, n_features, 1e4, ["grid"], [16])
    names = [each.algorithm for each in plan.predictions]
    assert ("newton" in names) == (n_features == 100)


def test_curves_pass_through_the_prediction():
    problem = higgs_like(16)
    plan = adfs.plan(problem, pilot=False)
    here = next(point for point in plan.over_nodes if point.n == 16)
    for each in plan.predictions:
        assert here.times[each.algorithm] == pytest.approx(each.idealized_time, rel=1e-9)


def test_the_graph_that_is_there_is_predicted_as_it_is():
    plan = adfs.plan(higgs_like(16), pilot=False)
    [grid] = [point for point in plan.over_graphs if point.graph == "grid"]
    for each in plan.predictions:
        assert grid.times[each.algorithm] == pytest.approx(each.idealized_time)


def test_a_better_connected_graph_is_predicted_to_be_faster_for_gossip():
    plan = adfs.plan(higgs_like(16), tau=50.0, pilot=False)
    times = {point.graph: point.times["adfs"] for point in plan.over_graphs}
    assert times["ring"] > times["grid"] > times["hypercube"] > times["complete"]


def test_seconds_are_those_of_the_busiest_rank_and_of_waiting():
    problem, costs = higgs_like(4), adfs.Costs(seconds=1e-6)
    known = SETTING._replace(costs=costs)
    found = {ranks: predict(problem, "adfs", known, 1e-6, ranks) for ranks in (1, 2, 4)}
    assert found[4].seconds == pytest.approx(1e-6 * found[4].idealized_time)
    assert found[1].seconds == pytest.approx(1e-6 * found[1].work)
    assert found[4].seconds < found[2].seconds < found[1].seconds + 1e-6 * found[1].idealized_time
    assert predict(problem, "adfs", SETTING, 1e-6).seconds is None


def test_a_plan_without_data_has_seconds_where_steps_are_known():
    costs = adfs.Costs(seconds=1e-7)
    [plan] = plan_sizes(10**6, 50, 1e4, ["grid"], [16], costs=costs)
    assert plan.best.seconds == pytest.approx(1e-7 * plan.best.idealized_time)


def test_seconds_of_timed_steps_do_not_change_the_recommendation():
    problem = higgs_like()
    plain, timed = adfs.plan(problem), adfs.plan(problem, time_steps=True)
    assert [each.algorithm for each in timed.predictions] == [
        each.algorithm for each in plain.predictions
    ]
    assert all(each.seconds is None for each in plain.predictions)
    for each, other in zip(timed.predictions, plain.predictions, strict=True):
        assert each.seconds > 0.0
        assert each._replace(seconds=None) == other


def test_steps_of_a_problem_that_is_solved_at_the_start_take_no_seconds():
    solved = adfs.Problem(adfs.partition(np.ones((8, 2)), np.zeros(8), 2), "squared")
    assert {each.seconds for each in adfs.plan(solved, time_steps=True).predictions} == {0.0}


def test_seconds_count_what_is_left_after_the_first_steps():
    X, y = adfs.generators.two_gaussians(40_000, 3, seed=0)  # many rows: nodes' optima are alike
    problem = adfs.Problem(adfs.partition(X, y, 4), sigma=1.0)
    [each] = predict_all(problem, SETTING, 1e-6, ["msda"])[0]
    stopping = Stopping(1e-300, max(1, int(0.05 * each.iterations)))
    start = run(problem, "msda", SETTING, stopping, RunOptions(), Interrupts(()))
    whole = run(problem, "msda", SETTING, Stopping(1e-6), RunOptions(), Interrupts(()))
    share = timing.share_left(each, start, 1e-6)
    assert 0.5 < share * each.iterations / whole.iterations < 2.0
    assert each.iterations > 2.0 * whole.iterations


@pytest.mark.parametrize(("before", "share"), [(-0.6, 0.35), (-2.7, 0.6), (-4.0, 0.6)])
def test_a_gap_that_falls_eight_times_as_fast_halves_what_is_left(before, share):
    """120 iterations are predicted for six decades, so 0.3 decades between evaluations."""
    objective = 5.0
    trace = {
        "iteration": [0, 6, 12],
        "duality_gap": [objective, 10.0**before * objective, 1e-3 * objective],
        "objective": [objective] * 3,
    }
    result = SimpleNamespace(relative_gap=1e-3, iterations=12, trace=trace)
    each = SimpleNamespace(iterations=120.0)
    assert timing.share_left(each, result, 1e-6) == pytest.approx(share)


@pytest.mark.parametrize(("time", "words"), [(104.0, "takes about as"), (150.0, "takes 1.5 times")])
def test_a_recommendation_says_how_far_the_next_method_is(time, words):
    plan = adfs.plan(higgs_like())
    first, second = plan.predictions[:2]
    both = [first._replace(idealized_time=100.0), second._replace(idealized_time=time)]
    assert words in dataclasses.replace(plan, predictions=both).recommendation

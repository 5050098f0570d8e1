"""`compare`: who is run, until when, in what order, and what an interruption leaves."""

import signal
import threading
import time

import numpy as np
import pytest

import adfs
from adfs.algorithms.base import REGISTRY, MethodSetting, get_algorithm
from adfs.errors import ParameterError
from adfs.study.contenders import choose_contenders, left_out
from support.comparisons import (
    TRIAL_SAMPLES,
    bits,
    counted,
    idle,
    interrupt,
)
from support.problems import gaussian_problem

pytestmark = pytest.mark.slow
TWO = ["adfs", "adfs:exact"]


@pytest.fixture(scope="module")
def problem():
    return gaussian_problem()


def test_every_run_reaches_tol_of_an_optimum_that_a_slow_gradient_descent_confirms(problem):
    comparison = adfs.compare(problem, TWO, tol=1e-8, seeds=2)
    assert [(record.label, record.seed) for record in comparison.records] == [
        ("adfs", 0), ("adfs", 1), ("adfs:exact", 0), ("adfs:exact", 1),
    ]  # fmt: skip
    theta = np.zeros(problem.n_features)
    step = 1.0 / (problem.total_sigma + 0.25 * problem.squared_norms.sum())
    for _ in range(3_000):
        theta = theta - step * problem.gradient(theta)
    assert comparison.optimum == pytest.approx(problem.objective(theta), rel=1e-12)
    for record in comparison.records:
        errors = record.trace["suboptimality"]
        assert record.status == "converged"
        assert errors[-1] <= 1e-8 < errors[-2]
        assert "rho" in record.parameters


def test_a_run_is_what_the_runner_gives_with_that_rule_and_seed(problem):
    found = adfs.compare(problem, ["adfs:exact"], tol=1e-6, seed=3, clock_limit=1e9).records[0]
    method = get_algorithm("adfs")(problem, MethodSetting(rule="exact", seed=3))
    state = method.algorithm.init()
    state = method.algorithm.step(state, method.source.draw(0, found.trace["iteration"][-1]))
    thetas = method.algorithm.output(state)
    mean = np.mean([problem.objective(theta) for theta in thetas])
    best = problem.optimum().objective
    expected = (mean - best) / abs(best)
    assert found.trace["suboptimality"][-1] == pytest.approx(expected, rel=1e-6)


def test_small_problems_are_looked_at_about_each_half_decade(problem):
    trace = adfs.compare(problem, ["adfs"], tol=1e-8).records[0].trace
    falls = -np.diff(np.log10(trace["suboptimality"]))
    assert np.median(falls) < 1.0
    assert falls.max() < 2.5


def test_threads_give_the_same_bits(problem):
    alone = adfs.compare(problem, [*TWO, "adfs:paper"], tol=1e-7, seeds=2)
    together = adfs.compare(problem, [*TWO, "adfs:paper"], tol=1e-7, seeds=2, jobs=2)
    assert bits(alone) == bits(together)
    assert str(alone) == str(together)
    note = "wall times are not clean"
    assert note not in str(alone.table(axis="wall_time")) + str(together)
    assert note in str(together.table(axis="wall_time"))


def test_seeds_make_a_difference_and_medians_are_over_them(problem):
    comparison = adfs.compare(problem, ["adfs"], tol=1e-6, seed=5, seeds=3)
    assert [record.seed for record in comparison.records] == [5, 6, 7]
    times = comparison.times_to("adfs", 1e-6)
    assert len(set(times)) == 3
    assert comparison.time_to("adfs", 1e-6) == sorted(times)[1]


def test_without_a_limit_others_get_five_times_what_adfs_needed(problem, monkeypatch):
    idle(monkeypatch)
    comparison = adfs.compare(problem, ["idle", "adfs"], tol=1e-6, seeds=2)
    needed = comparison.times_to("adfs", 1e-6)[0]
    assert comparison.clock_limit == pytest.approx(5 * needed)
    assert comparison.labels == ["idle", "adfs"]  # the order asked for, although adfs ran first
    assert {run.status for run in comparison.runs("idle")} == {"time_limit"}
    for end in (run.trace["idealized_time"] for run in comparison.runs("idle")):
        assert end[-1] >= comparison.clock_limit > end[-2]
    assert comparison.table()[0].cells[0].text.startswith("> ")


def test_a_limit_that_is_given_holds_for_adfs_too(problem):
    comparison = adfs.compare(problem, ["adfs"], tol=1e-8, clock_limit=30.0)
    assert comparison.records[0].status == "time_limit"
    assert comparison.clock_limit == 30.0


def test_without_adfs_there_is_no_limit_but_that_of_theory(problem, monkeypatch):
    counted(monkeypatch)
    comparison = adfs.compare(problem, ["counted"], tol=1e-6)
    assert comparison.clock_limit is None
    assert comparison.records[0].status == "converged"


def test_iterations_and_seconds_are_limits_too(problem, monkeypatch):
    idle(monkeypatch)
    short = adfs.compare(problem, ["idle"], max_iter=50)
    assert (short.records[0].status, short.records[0].trace["iteration"][-1]) == ("max_iter", 50)
    brief = adfs.compare(problem, ["idle"], time_limit=0.05, max_iter=10**12)
    assert brief.records[0].status == "time_limit"


def test_delays_move_the_clock_and_nothing_else(problem):
    slow = adfs.Delays(tau=50.0, speed=[1, 1, 1, 10])
    usual = adfs.compare(problem, ["adfs:exact"], max_iter=300).records[0].trace
    slowed = adfs.compare(problem, ["adfs:exact"], delays=slow, max_iter=300).records[0].trace
    assert slowed["suboptimality"] == usual["suboptimality"]
    assert slowed["idealized_time"][-1] > 2 * usual["idealized_time"][-1]


def test_all_algorithms_that_take_the_loss_are_the_default():
    chosen = [contender.label for contender in choose_contenders(None, "squared")]
    assert chosen[0] == "adfs"
    assert set(chosen) <= set(adfs.algorithms())
    assert "ns-adfs" not in chosen or len(chosen) > 1


def test_too_many_features_for_one_leave_it_out_unless_it_is_named(problem, monkeypatch):
    def narrow(problem, setting):
        if problem.n_features > 2:
            raise ParameterError(f"d={problem.n_features} is more than 2.")
        return get_algorithm("adfs")(problem, setting)

    monkeypatch.setitem(REGISTRY, "narrow", narrow)
    assert "narrow" in [each.label for each in choose_contenders(None, "logistic")]
    chosen = choose_contenders(None, "logistic", 3)
    assert "narrow" not in [each.label for each in chosen]
    assert left_out(chosen, "logistic", 3)["narrow"] == "d=3 is more than 2."
    monkeypatch.setattr("adfs.study.compare.run", nothing_runs)
    with pytest.raises(ParameterError, match="narrow: d=3 is more than 2"):
        adfs.compare(problem, ["adfs:exact", "narrow"])


def nothing_runs(*arguments):
    raise AssertionError("work has started")


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"algorithms": ["adfs", "sgd"]}, "Algorithm 'sgd' is not known.*; choose from .*adfs"),
        ({"algorithms": ["adfs", "../../x"]}, r"Algorithm '../../x' is not known"),
        ({"algorithms": ["adfs:magic"]}, "adfs:magic: parameters='magic' is not a rule.*exact"),
        ({"algorithms": ["adfs:"]}, "parameters='' is not a rule"),
        ({"algorithms": ["adfs", "adfs:tuned"]}, "'adfs' is named twice"),
        ({"algorithms": []}, "algorithms is empty"),
        ({"algorithms": "adfs"}, "must be a list"),
        ({"tol": 0.0}, "tol=0 must be a finite number > 0"),
        ({"tol": 1e-15}, "tol=1e-15 is too small: .* certified to"),
        ({"seeds": 0}, "seeds=0 must be a whole number >= 1"),
        ({"seed": -1}, "seed=-1 must be a whole number >= 0"),
        ({"jobs": 0}, "jobs=0 must be a whole number >= 1"),
        ({"clock_limit": 0.0}, "clock_limit=0 must be a finite number > 0"),
        ({"clock": "sun"}, "clock='sun' is unknown; choose one of nonblocking"),
        ({"tau": -1.0}, "tau=-1 must be >= 0"),
        ({"delays": adfs.Delays(tau=[1.0, 2.0])}, "tau has 2 values for 4 edges"),
        ({"axis": "time"}, "axis='time' is unknown"),
    ],
)
def test_what_is_wrong_is_told_before_any_work(problem, monkeypatch, tmp_path, keywords, sentence):
    monkeypatch.setattr("adfs.study.compare.run", nothing_runs)
    with pytest.raises(ParameterError, match=sentence):
        adfs.compare(problem, **{"algorithms": ["adfs"], "folder": tmp_path / "r", **keywords})
    assert not (tmp_path / "r").exists()


def test_a_loss_that_an_algorithm_does_not_take_is_told_before_any_work():
    problem = gaussian_problem("path:2", "hinge", samples=(20, 2))
    with pytest.raises(ParameterError, match="adfs: Algorithm 'adfs' needs a smooth loss"):
        adfs.compare(problem, ["adfs"])


def test_an_interruption_keeps_what_is_finished(problem, monkeypatch):
    idle(monkeypatch, action=interrupt)
    comparison = adfs.compare(problem, ["adfs", "idle", "adfs:exact"], tol=1e-6)
    assert comparison.interrupted
    assert comparison.signal == signal.SIGINT
    assert [(run.label, run.status) for run in comparison.records] == [
        ("adfs", "converged"), ("idle", "interrupted"),
    ]  # fmt: skip
    assert comparison.time_to("adfs", 1e-6) is not None
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interruption_reaches_runs_in_threads(problem, monkeypatch):
    strikes = iter([interrupt])  # once: a second signal would end the process
    both_run = threading.Event()
    idle(monkeypatch, action=lambda: both_run.wait(20) and next(strikes, int)())
    idle(monkeypatch, name="waits", action=both_run.set)
    started = time.perf_counter()
    comparison = adfs.compare(problem, ["idle", "waits", "adfs:exact"], jobs=2, max_iter=10**12,
                              clock_limit=1e15)  # fmt: skip
    assert time.perf_counter() - started < 20
    assert comparison.interrupted
    assert {run.label: run.status for run in comparison.records}["waits"] == "interrupted"


def test_a_signal_after_the_last_look_interrupts_nothing(problem):
    def strike(progress):
        if progress.reading.suboptimality <= progress.tol:
            interrupt()

    comparison = adfs.compare(problem, ["adfs"], tol=1e-6, callback=strike)
    assert not comparison.interrupted
    assert comparison.records[0].status == "converged"


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_fails_ends_the_others_and_tells_its_own_error(problem, monkeypatch, jobs):
    def broken(problem, setting):
        if problem.n_samples == TRIAL_SAMPLES:
            return get_algorithm("adfs")(problem, setting)
        raise ParameterError("this problem is too odd for me.")

    monkeypatch.setitem(REGISTRY, "broken", broken)
    idle(monkeypatch)
    order = ["broken", "idle"] if jobs == 1 else ["idle", "broken"]
    with pytest.raises(ParameterError, match="too odd for me"):
        adfs.compare(problem, order, jobs=jobs, max_iter=10**12, clock_limit=1e15)


def test_a_callback_is_told_which_run_it_is(problem):
    seen = set()
    adfs.compare(problem, TWO, tol=1e-3, seeds=2,
                 callback=lambda told: seen.add((told.label, told.seed)))  # fmt: skip
    assert seen == {("adfs", 0), ("adfs", 1), ("adfs:exact", 0), ("adfs:exact", 1)}


def test_one_node_alone_compares_too():
    comparison = adfs.compare(gaussian_problem(graph="single"), TWO, tol=1e-6)
    assert [record.status for record in comparison.records] == ["converged"] * 2
    assert comparison.end_of("adfs", "n_comm") == 0


def test_whatever_is_registered_can_be_compared(problem):
    comparison = adfs.compare(problem, tol=1e-3)
    assert set(comparison.labels) <= set(adfs.algorithms())
    assert len(str(comparison).splitlines()) >= 2 + len(comparison.labels)

"""Evaluations for a curve change nothing of a run but its trace."""

import signal

import numpy as np
import pytest

import adfs
from adfs.engine.checkpointer import Checkpoints
from adfs.engine.run_controller import TO_DRAW, DisplayEvaluations
from adfs.errors import ParameterError
from support.problems import gaussian_problem

CASES = [
    ("adfs", "logistic", "shared"), ("adfs", "squared", "poisson"), ("ns-adfs", "hinge", "shared"),
    ("point-saga", "logistic", "shared"), ("newton", "logistic", "shared"),
]  # fmt: skip


def problem(loss="logistic"):
    return gaussian_problem(loss=loss, sigma=0.01, samples=(2_000, 6), condition=4)


def rows(result):
    """The trace as tuples, without what depends on the machine."""
    columns = result.trace.to_dict()
    columns.pop("wall_time")
    return list(zip(*columns.values(), strict=True))


@pytest.mark.parametrize(("algorithm", "loss", "schedule"), CASES)
def test_a_run_with_a_curve_has_the_bits_of_one_without(algorithm, loss, schedule):
    plain, displayed = (
        adfs.solve(problem(loss), algorithm, tol=1e-6, evaluate_every=every, schedule=schedule)
        for every in (None, "curve")
    )
    assert plain.status == displayed.status == "converged"
    np.testing.assert_array_equal(plain.thetas, displayed.thetas)
    assert plain.duality_gap == displayed.duality_gap
    assert set(rows(plain)) <= set(rows(displayed))


def test_there_are_enough_evaluations_for_a_curve_and_not_many_more():
    plain = adfs.solve(problem(), tol=1e-10)
    displayed = adfs.solve(problem(), tol=1e-10, evaluate_every="curve")
    assert len(plain.trace) < 8 <= len(displayed.trace) <= len(plain.trace) + 2 * TO_DRAW


def test_a_gap_that_is_small_enough_between_two_readings_does_not_end_the_run():
    tol = 1e-6
    displayed = adfs.solve(problem(), tol=tol, evaluate_every="curve")
    columns = displayed.trace.to_dict()
    gaps = np.array(columns["duality_gap"]) / np.abs(columns["objective"])
    before = adfs.solve(problem(), tol=gaps[-2] * 1.01, evaluate_every="curve")
    assert gaps[-1] <= tol
    assert before.relative_gap <= gaps[-2] * 1.01


@pytest.mark.slow
@pytest.mark.parametrize(("first", "then"), [("curve", None), (None, "curve"), ("curve", "curve")])
def test_a_resumed_run_may_have_a_curve_before_or_after_only(first, then, tmp_path):
    whole = adfs.solve(problem(), tol=1e-12)
    early = whole.trace.to_dict()["iteration"][1]  # not the end

    def interrupt(progress):
        if progress.iteration >= early / 2:
            signal.raise_signal(signal.SIGINT)

    kept = {"every": 1_000, "folder": tmp_path}
    cut = adfs.solve(
        problem(), tol=1e-12, evaluate_every=first, checkpoints=Checkpoints(**kept),
        callback=interrupt,
    )  # fmt: skip
    resumed = adfs.solve(
        problem(), tol=1e-12, evaluate_every=then, checkpoints=Checkpoints(**kept, resume=True)
    )
    assert cut.status == "interrupted"
    assert resumed.resumed is not None
    np.testing.assert_array_equal(whole.thetas, resumed.thetas)


def test_parts_fill_the_way_to_the_next_reading_and_are_never_shorter_than_promised():
    for position, events, shortest in [(0, 1_000, 7), (50, 3, 7), (990, 10, 1), (10**9, 10**6, 5)]:
        display = DisplayEvaluations(shortest)
        promised = display.least(position, events)
        display.divide(position, events)
        sizes = []
        while display.left:
            assert display.least(position + sum(sizes), 1) == display.rest // display.left
            sizes.append(display.next())
        assert sum(sizes) == events
        assert min(sizes) >= min(promised, events)
        assert len(sizes) <= TO_DRAW


def test_without_them_there_is_one_part():
    display = DisplayEvaluations()
    display.divide(5, 1_000)
    assert (display.next(), display.left, display.least(0, 12)) == (1_000, 0, 12)


@pytest.mark.parametrize("wrong", [0, 1.5, "often"])
def test_an_invalid_interval_is_refused(wrong):
    with pytest.raises(ParameterError, match=f"evaluate_every='?{wrong}'? must be a whole number"):
        adfs.solve(problem(), evaluate_every=wrong)


@pytest.mark.parametrize("schedule", ["shared", "poisson"])
@pytest.mark.parametrize("first", ["curve", None])
def test_a_run_whose_budget_was_raised_has_the_bits_of_one_with_that_budget(
    first, schedule, tmp_path
):
    options = {"tol": 1e-10, "schedule": schedule}
    whole = adfs.solve(problem(), **options)
    kept = {"every": 10**9, "folder": tmp_path}  # kept at the end of the budget only
    small = whole.trace.to_dict()["iteration"][-1] // 3
    adfs.solve(
        problem(), **options, max_iter=small, evaluate_every=first,
        checkpoints=Checkpoints(**kept),
    )  # fmt: skip
    again = Checkpoints(**kept, resume=True)
    resumed = adfs.solve(problem(), **options, checkpoints=again)
    assert resumed.resumed is not None
    np.testing.assert_array_equal(whole.thetas, resumed.thetas)


def test_a_limit_of_the_clock_is_met_where_it_would_be_met_without_a_curve():
    whole = adfs.solve(problem(), tol=1e-10)
    limit = 0.4 * whole.idealized_time
    plain, displayed = (
        adfs.solve(problem(), tol=1e-10, clock_limit=limit, evaluate_every=every)
        for every in (None, "curve")
    )
    assert plain.status == displayed.status == "time_limit"
    np.testing.assert_array_equal(plain.thetas, displayed.thetas)

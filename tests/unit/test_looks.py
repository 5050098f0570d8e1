"""Looks for a curve: whoever watches a run changes nothing but its trace."""

import signal

import numpy as np
import pytest

import adfs
from adfs.errors import ParameterError
from adfs.runtime.checkpointer import Checkpoints
from adfs.runtime.pace import TO_DRAW, Looks

CASES = [
    ("adfs", "logistic", "shared"), ("adfs", "squared", "poisson"), ("ns-adfs", "hinge", "shared"),
    ("point-saga", "logistic", "shared"), ("newton", "logistic", "shared"),
]  # fmt: skip


def problem(loss="logistic"):
    X, y = adfs.generators.two_gaussians(2_000, 6, seed=0, condition=4)
    return adfs.Problem(adfs.partition(X, y, 4), loss=loss, sigma=0.01)


def rows(result):
    """The trace as tuples, without what depends on the machine."""
    columns = result.trace.to_dict()
    columns.pop("wall_time")
    return list(zip(*columns.values(), strict=True))


@pytest.mark.parametrize(("algorithm", "loss", "schedule"), CASES)
def test_a_watched_run_has_the_bits_of_one_that_is_not(algorithm, loss, schedule):
    plain, watched = (
        adfs.solve(problem(loss), algorithm, tol=1e-6, evaluate_every=every, schedule=schedule)
        for every in (None, "curve")
    )
    assert plain.status == watched.status == "converged"
    np.testing.assert_array_equal(plain.thetas, watched.thetas)
    assert plain.duality_gap == watched.duality_gap
    assert set(rows(plain)) <= set(rows(watched))


def test_there_are_enough_looks_for_a_curve_and_not_many_more():
    plain = adfs.solve(problem(), tol=1e-10)
    watched = adfs.solve(problem(), tol=1e-10, evaluate_every="curve")
    assert len(plain.trace) < 8 <= len(watched.trace) <= len(plain.trace) + 2 * TO_DRAW


def test_a_gap_that_is_small_enough_between_two_readings_does_not_end_the_run():
    tol = 1e-6
    watched = adfs.solve(problem(), tol=tol, evaluate_every="curve")
    columns = watched.trace.to_dict()
    gaps = np.array(columns["duality_gap"]) / np.maximum(1.0, np.abs(columns["objective"]))
    before = adfs.solve(problem(), tol=gaps[-2] * 1.01, evaluate_every="curve")
    assert gaps[-1] <= tol
    assert before.relative_gap <= gaps[-2] * 1.01


@pytest.mark.parametrize(("first", "then"), [("curve", None), (None, "curve"), ("curve", "curve")])
def test_a_run_may_be_watched_in_one_life_only(first, then, tmp_path):
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
        looks = Looks(shortest)
        promised = looks.least(position, events)
        looks.divide(position, events)
        sizes = []
        while looks.left:
            assert looks.least(position + sum(sizes), 1) == looks.rest // looks.left
            sizes.append(looks.next())
        assert sum(sizes) == events
        assert min(sizes) >= min(promised, events)
        assert len(sizes) <= TO_DRAW


def test_without_them_there_is_one_part():
    looks = Looks()
    looks.divide(5, 1_000)
    assert (looks.next(), looks.left, looks.least(0, 12)) == (1_000, 0, 12)


@pytest.mark.parametrize("wrong", [0, 1.5, "often"])
def test_an_interval_that_is_none_is_refused(wrong):
    with pytest.raises(ParameterError, match=f"evaluate_every={wrong} must be a whole number"):
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


def test_a_limit_of_the_clock_is_met_where_it_would_be_met_unwatched():
    whole = adfs.solve(problem(), tol=1e-10)
    limit = 0.4 * whole.idealized_time
    plain, watched = (
        adfs.solve(problem(), tol=1e-10, clock_limit=limit, evaluate_every=every)
        for every in (None, "curve")
    )
    assert plain.status == watched.status == "time_limit"
    np.testing.assert_array_equal(plain.thetas, watched.thetas)

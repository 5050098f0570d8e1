"""When a run stops and with which word."""

import math

import pytest

from adfs.engine.stopping import MEASURES, STATUSES, Spent, Stopping
from adfs.errors import ParameterError


def verdict(
    stopping, growth=0.1, relative_gap=1e-3, iteration=10, wall_time=1.0, budget=100, clock=7.0
):
    return stopping.verdict(growth, relative_gap, Spent(iteration, clock, wall_time), budget)


def test_the_words_are_those_of_the_contract():
    assert STATUSES == ("converged", "max_iter", "time_limit", "interrupted", "diverged")


def test_a_run_goes_on_while_no_limit_is_met():
    assert verdict(Stopping(tol=1e-6)) is None
    assert verdict(Stopping(tol=1e-6, time_limit=2.0)) is None


def test_each_limit_has_its_word():
    assert verdict(Stopping(tol=1e-3), relative_gap=1e-3) == "converged"
    assert verdict(Stopping(tol=1e-6), iteration=100) == "max_iter"
    assert verdict(Stopping(tol=1e-6, time_limit=1.0), wall_time=1.0) == "time_limit"
    assert verdict(Stopping(tol=1e-6, clock_limit=7.0), clock=7.0) == "time_limit"
    assert verdict(Stopping(tol=1e-6, clock_limit=7.0), clock=6.9) is None


@pytest.mark.parametrize(
    "readings",
    [
        {"growth": math.nan, "relative_gap": math.nan},
        {"growth": math.inf, "relative_gap": math.inf},
        {"growth": 1e9, "relative_gap": 3.0},
        {"growth": 1e300, "relative_gap": 0.0},  # gap / inf: the objective overflowed first
        {"growth": math.nan, "relative_gap": 1e-9},
        {"growth": 1.0, "relative_gap": math.nan},
    ],
)
def test_a_gap_that_explodes_or_is_no_number_has_diverged(readings):
    assert verdict(Stopping(tol=1e-6), **readings) == "diverged"


def test_convergence_is_named_before_the_limits_that_are_met_with_it():
    stopping = Stopping(tol=1e-3, max_iter=5, time_limit=1.0)
    assert verdict(stopping, relative_gap=1e-4, iteration=5, budget=5) == "converged"
    assert verdict(stopping, relative_gap=1e-2, iteration=5, budget=5) == "max_iter"


def test_the_budget_is_max_iter_where_given():
    assert Stopping(max_iter=7).budget(rho=0.1, first_gap=1.0) == 7
    assert Stopping(max_iter=0).budget(rho=0.1, first_gap=1.0) == 0
    budget = Stopping(max_iter=1e4).budget(rho=0.1, first_gap=1.0)
    assert isinstance(budget, int)
    assert budget == 10_000


def test_the_default_budget_is_beyond_what_the_rate_needs_and_ends():
    """(1 - rho)^t must shrink the first gap to tol, with e^30 to spare for the constant."""
    for rho, first, tol in ((1e-3, 1.0, 1e-8), (0.2, 100.0, 1e-2), (1e-6, 1e-9, 1e-6)):
        budget = Stopping(tol=tol).budget(rho, first)
        assert max(first, tol) * math.exp(-rho * budget) * math.exp(30) <= tol * (1 + 1e-9)
        assert budget < 1e3 / rho


@pytest.mark.parametrize("first", [math.nan, math.inf])
def test_a_start_that_is_no_number_has_no_budget(first):
    assert Stopping().budget(0.1, first) == 0


@pytest.mark.parametrize("tol", [0.0, -1e-6, math.nan, math.inf])
def test_a_tolerance_out_of_range_is_refused(tol):
    with pytest.raises(ParameterError, match=r"must be .* > 0; it is the relative duality gap"):
        Stopping(tol=tol)
    with pytest.raises(ParameterError, match=r"must be .* > 0; it is the relative suboptimality"):
        Stopping(tol=tol, measure="suboptimality")


@pytest.mark.parametrize("max_iter", [-1, 10.5, math.nan, math.inf])
def test_a_number_of_iterations_out_of_range_is_refused(max_iter):
    with pytest.raises(ParameterError, match="must be a whole number >= 0; leave it out"):
        Stopping(max_iter=max_iter)


@pytest.mark.parametrize("time_limit", [0.0, -3.0, math.nan])
def test_a_time_limit_out_of_range_is_refused(time_limit):
    with pytest.raises(ParameterError, match=r"must be .* > 0; leave it out"):
        Stopping(time_limit=time_limit)


def test_limits_out_of_range_cannot_be_built():
    with pytest.raises(ParameterError, match=r"clock_limit=0 must be .* > 0; leave it out"):
        Stopping(clock_limit=0.0)
    with pytest.raises(ParameterError, match=r"measure='error' is unknown; choose one of dual"):
        Stopping(measure="error")
    assert Stopping().measure == MEASURES[0] == "duality_gap"

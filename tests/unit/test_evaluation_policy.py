"""Where evaluations fall: few on the way to a tolerance, evenly in decades for a curve."""

import json
import math

import pytest

from adfs.engine.run_controller import Cautious, EvenCurve, Every, ToTolerance
from adfs.engine.stopping import Spent


def run(policy, rate, until, time_per_event=2.0, most=10_000):
    """Readings (iteration, error) of a run whose error is ``exp(-rate t)``."""
    evaluations, t = [], 0
    while len(evaluations) < most:
        error = math.exp(-rate * t)
        evaluations.append((t, error))
        if until(t, error):
            return evaluations
        t += policy.events(Spent(t, time_per_event * t, 0.0), error)
    raise AssertionError("the policy never reached the end")


def test_fixed_intervals_are_fixed():
    assert [t for t, _ in run(Every(7), 0.01, lambda t, _: t >= 28)] == [0, 7, 14, 21, 28]


@pytest.mark.parametrize("share", [0.9, 1.3, 2.0])
def test_a_tolerance_takes_few_evaluations_and_little_overshoot(share):
    rho, tol = 1e-5, 1e-8
    evaluations = run(ToTolerance(rho, tol, 2_000), share * rho, lambda _, error: error <= tol)
    assert len(evaluations) <= 6
    needed = math.log(1 / tol) / (share * rho)
    assert evaluations[-1][0] <= needed + max(0.3 * needed, 1.0 / rho)


@pytest.mark.parametrize("rate", [0.3, 1e-2, 1e-4])
def test_caution_needs_no_rate_and_overshoots_little(rate):
    evaluations = run(Cautious(1e-8, 5), rate, lambda _, error: error <= 1e-8)
    needed = math.log(1e8) / rate
    assert evaluations[-1][0] <= 1.15 * needed + 5
    assert len(evaluations) <= math.log2(needed / 5) + 4


def test_evaluations_are_never_closer_than_the_shortest_interval():
    evaluations = run(ToTolerance(0.5, 1e-6, 40), 0.5, lambda _, error: error <= 1e-6)
    assert [t for t, _ in evaluations] == [0, 40]


@pytest.mark.parametrize("rate", [1e-3, 1e-4, 1e-5])
def test_a_curve_has_about_two_evaluations_per_decade(rate):
    evaluations = run(EvenCurve(shortest=100), rate, lambda _, error: error <= 1e-9)
    late = [error for _, error in evaluations if error < 1e-2]
    decades = math.log10(late[0] / late[-1])
    assert 1.5 <= (len(late) - 1) / decades <= 2.5
    first = [t for t, _ in evaluations][:4]
    assert first == [0, 100, 300, 700]


def test_a_curve_that_does_not_fall_still_ends_on_its_limit():
    evaluations = run(EvenCurve(100, clock_limit=1e6), 1e-9, lambda t, _: 2.0 * t >= 1e6)
    assert 40 <= len(evaluations) <= 60
    assert 1e6 <= 2.0 * evaluations[-1][0] <= 1e6 + 4.0


def test_an_error_that_rises_or_is_zero_does_not_stop_the_policy():
    policy = EvenCurve(10)
    events = [policy.events(Spent(0, 0.0, 0.0), 1.0), policy.events(Spent(10, 1.0, 0.0), 2.0)]
    assert events == [10, 20]
    assert policy.events(Spent(30, 3.0, 0.0), 0.0) == 40


def _readings():
    position, error = 0, 1.0
    for step in range(12):
        yield Spent(position, float(position), 0.0), error
        position, error = position + 2_000 + 317 * step, error * (0.3 + 0.05 * (step % 4))


@pytest.mark.parametrize(
    "make",
    [lambda: Every(77), lambda: ToTolerance(1e-4, 1e-8, 2_000), lambda: Cautious(1e-8, 500),
     lambda: EvenCurve(500)],
)  # fmt: skip
class TestAPolicy:
    def test_never_evaluates_earlier_than_least(self, make):
        policy = make()
        assert all(policy.events(spent, error) >= policy.least for spent, error in _readings())

    def test_continues_from_its_memory(self, make):
        before, undisturbed = make(), make()
        readings = list(_readings())
        for reading in readings[:6]:
            before.events(*reading)
            undisturbed.events(*reading)
        after = make()
        after.restore(json.loads(json.dumps(before.memory)))
        assert [after.events(*reading) for reading in readings[6:]] == [
            undisturbed.events(*reading) for reading in readings[6:]
        ]

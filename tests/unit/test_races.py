"""Races: a run that is timed again equals a separate one, and the fastest method is known."""

import math

import numpy as np
import pytest

import adfs
from adfs.algorithms.base import REGISTRY, MethodSetting
from adfs.engine.evaluation import objectives
from adfs.schedule.delays import Delays
from adfs.study.paper.claims import UNKNOWN, AtLeast
from adfs.study.paper.races import Race, RacedRuns
from support.problems import gaussian_problem

TOL = 1e-4
METHODS = ("adfs", "newton", "lbfgs", "tron", "katyusha", "l-katyusha", "dsba", "msda")
RANDOM = ("adfs", "katyusha", "l-katyusha", "dsba")
SETTINGS = (
    MethodSetting(tau=1.0, delays=Delays(tau=1.0)),
    MethodSetting(tau=1.0, delays=Delays(tau=1.0, law="exponential", seed=3)),
    MethodSetting(tau=1.0, delays=Delays(tau=1.0), costs=adfs.Costs(gradient=0.3, hessian=2.0)),
)


@pytest.fixture(scope="module")
def problem():
    return gaussian_problem("grid:2x2", sigma=0.1, samples=(80, 3))


def literal_time(problem, name, setting):
    """Event by event, until the mean over nodes of F is within TOL of the optimum."""
    method, best = REGISTRY[name](problem, setting), problem.optimum().objective
    state = method.algorithm.init()
    for t in range(200_000):
        events = method.source.draw(t, t + 1)
        state = method.algorithm.step(state, events)
        method.clock.advance(events)
        error = np.mean(objectives(problem, method.algorithm.output(state))) - best
        if error <= TOL * abs(best):
            return method.clock.time
    raise AssertionError("it did not arrive")


@pytest.mark.parametrize("name", METHODS)
def test_one_run_timed_again_equals_separate_runs(problem, name):
    together = RacedRuns(problem, TOL)
    for setting in SETTINGS:
        alone = RacedRuns(problem, TOL).time(name, setting, math.inf)
        assert together.time(name, setting, math.inf) == alone
        assert alone.exact
        # Between two evaluations the error is taken as log-linear; random methods cross twice.
        literal = literal_time(problem, name, setting)
        assert alone.value == pytest.approx(literal, rel=0.6 if name in RANDOM else 0.1)


def test_a_method_that_does_not_arrive_in_time_took_longer(problem):
    runs, setting = RacedRuns(problem, TOL), SETTINGS[0]
    time = runs.time("dsba", setting, math.inf)
    late = runs.time("dsba", setting, time.value / 2)
    assert not late.exact
    assert time.value / 2 < late.value < time.value
    assert runs.time("dsba", setting, math.inf) == time


def test_a_run_that_needs_far_more_than_theory_says_is_not_known(problem, monkeypatch):
    monkeypatch.setattr("adfs.study.paper.races.MOST_EFOLDS", 0.5)
    assert RacedRuns(problem, TOL).time("adfs", SETTINGS[0], math.inf) == UNKNOWN


def test_the_fastest_rival_is_the_same_whether_losers_are_cut_or_not(problem):
    runs, rivals = RacedRuns(problem, TOL), METHODS[1:]
    mine = runs.time("adfs", SETTINGS[0], math.inf)
    for setting in SETTINGS:
        quick, slow = (runs.race(mine, rivals, setting, to_the_end) for to_the_end in (False, True))
        assert (quick.rival, quick.ratio) == (slow.rival, slow.ratio)
        for name in rivals:
            assert quick.times[name].value <= slow.times[name].value


def test_newton_is_left_out_where_its_matrix_is_too_large():
    problem = gaussian_problem("grid:2x2", sigma=1.0, samples=(20, 2001))
    race = RacedRuns(problem, 0.5).race(AtLeast(1e9), ["newton", "lbfgs"], SETTINGS[0])
    assert list(race.times) == ["adfs", "lbfgs"]


def test_a_ratio_is_that_of_the_fastest_or_a_bound():
    times = {"adfs": AtLeast(10.0), "newton": AtLeast(30.0), "dsba": AtLeast(20.0, exact=False)}
    race = Race(times)
    assert (race.rival, race.ratio) == ("newton", AtLeast(3.0))
    late = Race({**times, "newton": AtLeast(50.0, exact=False)})
    assert (late.rival, late.ratio) == ("", AtLeast(2.0, exact=False))

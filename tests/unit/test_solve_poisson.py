"""`solve` under the Poisson schedule: certified models, what is counted, what is refused."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp

import adfs
from adfs.algorithms.base import SCHEDULES
from adfs.errors import ParameterError
from adfs.model import Model
from adfs.schedule.clock import Clock
from adfs.schedule.delays import Delays
from adfs.schedule.events import Events
from adfs.schedule.poisson import PoissonSource
from support.problems import gaussian_problem, make_case, stored_as

TOL = {"logistic": 1e-9, "squared": 1e-9, "hinge": 1e-5}


def solve(problem, schedule="poisson", **options):
    rule = "exact" if problem.loss.smooth else "tuned"
    return adfs.solve(problem, schedule=schedule, **({"parameters": rule} | options))


make_problem = functools.partial(gaussian_problem, samples=(80, 4))


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("graph", ["single", "grid:2x2", "star:5"])
@pytest.mark.parametrize("loss", TOL)
def test_it_reaches_tol_and_its_certificate_holds(loss, graph, convert):
    problem = make_problem(graph, loss, convert=convert)
    result = solve(problem, tol=TOL[loss])
    best = problem.optimum()
    assert result.status == "converged"
    assert result.schedule == "poisson"
    assert result.relative_gap <= TOL[loss]
    above = result.objective - best.objective
    assert -1e-12 * best.objective <= above <= result.duality_gap + 1e-12 * best.objective


def test_iterations_are_events_not_units_of_time():
    result = solve(make_problem(), max_iter=2000, tol=1e-30, evaluate_every=500)
    trace = result.trace.to_dict()
    assert result.status == "max_iter"
    counted = np.array(trace["n_prox"]) + np.array(trace["n_comm"]) // 2
    assert trace["iteration"] == counted.tolist()
    assert trace["iteration"][0] == 0
    assert len(trace["iteration"]) == 5
    assert result.iterations != 2000
    assert abs(result.iterations - 2000) < 5 * np.sqrt(2000)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_looks_between_change_no_bit(loss):
    problem = make_problem(loss=loss)
    rough, fine = (solve(problem, max_iter=3000, tol=1e-30, evaluate_every=n) for n in (3000, 37))
    assert rough.thetas.tobytes() == fine.thetas.tobytes()
    assert rough.idealized_time == fine.idealized_time
    assert rough.iterations == fine.iterations


def test_both_schedules_take_about_as_many_events():
    problem = make_problem(graph="ring:5")
    counts = {
        schedule: np.mean([solve(problem, schedule, seed=k, tol=1e-8).iterations for k in range(8)])
        for schedule in ("shared", "poisson")
    }
    assert counts["poisson"] == pytest.approx(counts["shared"], rel=0.15)


def test_a_model_to_start_from_is_used():
    problem = make_problem()
    best = problem.optimum().theta
    cold, warm = (solve(problem, tol=1e-8, warm_start=start) for start in (None, best + 1e-7))
    assert warm.status == "converged"
    assert warm.iterations < 0.8 * cold.iterations


def test_a_node_knows_how_long_its_events_take():
    # Random factors are drawn by the tick, which needs no count of the others' events.
    case = make_case("ring:6")
    chosen = adfs.Parameters.choose(case.problem, "exact")
    clock = Clock(chosen.edges, 6, Delays(tau=2.0, law="exponential"))
    everything = PoissonSource(chosen, seed=1).draw(0, 3000)
    mine = PoissonSource(chosen, seed=1, nodes=[2]).draw(0, 3000)
    found = dict(zip(everything.ticks.tolist(), clock.durations(everything), strict=True))
    assert [found[tick] for tick in mine.ticks.tolist()] == clock.durations(mine).tolist()
    assert len(set(clock.durations(mine).tolist())) > 0.99 * len(mine.which)


def test_idealized_time_does_not_depend_on_cuts_nor_on_ticks():
    problem = stored_as(make_case("grid:2x2"), "csr")
    chosen = adfs.Parameters.choose(problem, "exact")
    source = PoissonSource(chosen, seed=1)
    whole = source.draw(0, 30_000)
    bare = Events(0, whole.which, whole.sample)
    for delays in (Delays(tau=2.0), Delays(tau=2.0, law="pareto")):
        clocks = [Clock(chosen.edges, 4, delays) for _ in range(3)]
        clocks[0].advance(whole)
        for first in range(0, 30_000, 1000):
            clocks[1].advance(source.draw(first, first + 1000))
        clocks[2].advance(bare)
        assert clocks[0].finish.tolist() == clocks[1].finish.tolist()
        # Constant durations depend on the order alone; random ones have the same mean.
        assert clocks[2].time == pytest.approx(clocks[0].time, rel=0.0 if delays.law == "constant"
                                               else 0.1)  # fmt: skip


@pytest.mark.parametrize("schedule", ["poisson", "stratified"])
@pytest.mark.parametrize("name", sorted(set(adfs.algorithms.NAMES) - {"adfs", "ns-adfs"}))
def test_other_algorithms_have_only_the_shared_schedule(name, schedule):
    sentence = (
        f"Algorithm '{name}' has no schedule '{schedule}'; choose schedule shared, or one of the "
        "algorithms adfs, ns-adfs"
    )
    with pytest.raises(ParameterError, match=sentence):
        adfs.solve(make_problem(), name, schedule=schedule)


@pytest.mark.parametrize("name", ["auto", "msda"])
def test_an_unknown_schedule_is_refused_with_the_known_ones(name):
    with pytest.raises(ParameterError, match="'round' is unknown; choose one of auto, shared"):
        adfs.solve(make_problem(), name, schedule="round")


def test_a_model_says_how_its_events_were_drawn():
    problem = make_problem()
    for schedule in SCHEDULES:
        result = solve(problem, schedule, tol=1e-3)
        assert Model.from_result(result, problem).meta["schedule"] == schedule

"""The continuized forms: the kernels are their definition, and their theorems hold."""

import itertools

import numpy as np
import pytest

import adfs
from adfs.algorithms.adfs import Adfs
from adfs.algorithms.base import MethodSetting, get_algorithm
from adfs.algorithms.ns_adfs import NsAdfs
from adfs.errors import ParameterError
from adfs.kernels.poisson import TICKS
from adfs.schedule.events import Events
from adfs.schedule.poisson import PoissonSource
from oracles import continuized, losses
from support import non_smooth as non_smooth
from support.non_smooth import node_rows
from support.problems import (
    RULES,
    all_duals,
    augmented_edges,
    bits,
    literal,
    make_case,
    stored_as,
)

UNITS = 1000
POISSON = MethodSetting(rule="paper", schedule="poisson")
GRAPHS = ("single", "grid:2x2", "star:5", "ring:6")
SMOOTH = [
    (graph, loss, RULES[(g + k) % len(RULES)])
    for g, graph in enumerate(GRAPHS)
    for k, loss in enumerate(losses.SMOOTH)
]
NON_SMOOTH = [(graph, loss) for graph in GRAPHS for loss in losses.NON_SMOOTH]


def readings(seed):
    """Units of time at which states are compared: the first ones, then irregular steps."""
    steps = np.random.default_rng(seed).integers(1, 90, 60).cumsum() + 8
    return [*range(9), *(int(t) for t in steps if t < UNITS), UNITS]


def ringing(problem, events):
    """(time, edge of the augmented graph) of each event."""
    return list(zip(events.ticks / TICKS, augmented_edges(problem, events), strict=True))


def assert_equal_paths(algorithms, source, path, rows):
    """The engine's states are the oracle's at all readings, however the time was cut before."""
    states, before, moved = [each.init() for each in algorithms], 0, 0.0
    for now, expected in zip(readings(3), path, strict=True):
        for k, algorithm in enumerate(algorithms):
            states[k] = algorithm.step(states[k], source.draw(before, now))
            for name, mine, theirs in zip(
                "xv", node_rows(algorithm, states[k], rows), expected, strict=True
            ):
                scale = max(1.0, float(np.max(np.abs(theirs))))
                np.testing.assert_allclose(
                    mine, theirs, rtol=0, atol=1e-12 * scale, err_msg=f"{name} at {now}, kind {k}"
                )
        before, moved = now, max(moved, float(np.max(np.abs(expected[0] - expected[1]))))
    assert moved > 0.05  # x and v differ, so that the flow between events is seen


@pytest.mark.parametrize(("graph", "loss", "how"), SMOOTH)
def test_the_kernel_of_algorithm_1_at_ticks_is_continuized_adfs(graph, loss, how):
    case = make_case(graph, loss, seed=len(graph), density=0.6)
    chosen = adfs.Parameters.choose(case.problem, how, tau=3.0)
    oracle = literal(case, chosen)
    source = PoissonSource(chosen, seed=5)
    events = ringing(case.problem, source.draw(0, UNITS))
    path = continuized.strongly_convex(*oracle, events, readings(3))
    lazy = [Adfs(stored_as(case, kind), chosen, "poisson") for kind in ("dense", "csr")]
    assert_equal_paths(lazy, source, path, oracle.rows)


@pytest.mark.parametrize(("graph", "loss"), NON_SMOOTH)
def test_the_kernel_of_algorithm_3_at_ticks_is_continuized_ns_adfs(graph, loss):
    sizes = [7] if graph == "single" else None
    case = make_case(graph, loss, seed=len(graph), density=0.6, sizes=sizes)
    chosen = adfs.NonSmoothParameters.choose(case.problem, "tuned", tau=3.0)
    oracle = non_smooth.literal(case, chosen)
    source = PoissonSource(chosen, seed=5)
    events = ringing(case.problem, source.draw(0, UNITS))
    path = continuized.convex(*oracle, events, readings(3))
    lazy = [NsAdfs(stored_as(case, kind), chosen, "poisson") for kind in ("dense", "csr")]
    assert_equal_paths(lazy, source, path, oracle.rows)


def run(method, bounds):
    """State at the last of the positions ``bounds``, read at all of them."""
    state = method.algorithm.init()
    for first, last in itertools.pairwise(bounds):
        method.algorithm.output(state)
        all_duals(method.algorithm, state)
        state = method.algorithm.step(state, method.source.draw(first, last))
    return state


def everything(state):
    """All that a run will ever read again, as bytes."""
    return bits(state) if hasattr(state, "centres") else non_smooth.bits(state)


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize(("graph", "loss"), [("single", "logistic"), ("grid:3x3", "hinge")])
def test_cutting_time_elsewhere_changes_no_bit(graph, loss, kind):
    problem = stored_as(make_case(graph, loss, density=0.5), kind)
    method = get_algorithm("adfs" if loss == "logistic" else "ns-adfs")(problem, POISSON)
    whole = everything(run(method, [0, UNITS]))
    cuts = np.sort(np.random.default_rng(0).integers(0, UNITS, 60)).tolist()
    for bounds in (range(UNITS + 1), range(0, UNITS + 1, 8), [0, *cuts, UNITS]):
        assert everything(run(method, bounds)) == whole


def test_only_differences_of_time_enter_the_update():
    problem = make_case("grid:2x2").problem
    method = get_algorithm("adfs")(problem, POISSON)
    early = method.source.draw(0, UNITS)
    late = early._replace(ticks=early.ticks + 12345 * TICKS, end=UNITS + 12345)
    outputs = [
        method.algorithm.output(method.algorithm.step(method.algorithm.init(), events))
        for events in (early, late)
    ]
    assert outputs[0].tobytes() == outputs[1].tobytes()


@pytest.mark.parametrize("units", [1, 63, 64, 65, 5000, 1 << 30])
def test_sleep_of_any_length_shrinks_x_minus_v_by_the_exponential(units):
    problem = make_case("path:2").problem
    chosen = adfs.Parameters.choose(problem, "exact", rho=min(1e-3, 0.5 / units))
    algorithm, source = Adfs(problem, chosen, "poisson"), PoissonSource(chosen, seed=0)
    state = algorithm.step(algorithm.init(), source.draw(0, 400))
    before = [np.longdouble(part) for part in (*algorithm.nodes(state), *algorithm.virtual(state))]
    nothing = Events(400, *np.empty((2, 0), np.int32), np.empty(0, np.int64), 400 + units)
    state = algorithm.step(state, nothing)
    after = (*algorithm.nodes(state), *algorithm.virtual(state))
    shrunk = np.exp(-2 * np.longdouble(chosen.rho) * units)
    for k in (0, 2):
        x, v = before[k], before[k + 1]
        scale = 1e-14 * float(np.max(np.abs(v)))
        assert np.max(np.abs(x - v)) > 1e12 * scale
        for found, sign in ((after[k], 1), (after[k + 1], -1)):
            expected = np.float64((x + v + sign * shrunk * (x - v)) / 2)
            np.testing.assert_allclose(found, expected, rtol=0, atol=scale)


def test_events_of_the_other_schedule_are_refused():
    problem = make_case("path:2").problem
    shared, poisson = (
        get_algorithm("adfs")(problem, POISSON._replace(schedule=name))
        for name in ("shared", "poisson")
    )
    for method, other in ((shared, poisson), (poisson, shared)):
        with pytest.raises(ParameterError, match="given events of the other; draw them from"):
            method.algorithm.step(method.algorithm.init(), other.source.draw(0, 9))

"""The clock of pairwise events with work at both ends, against loops written out."""

import itertools

import numpy as np
import pytest

from adfs.errors import ParameterError
from adfs.kernels import clocks
from adfs.schedule.clock import CHUNK, CLOCKS, PairClock
from adfs.schedule.delays import Delays
from adfs.schedule.events import Events
from oracles import clock as literal

pytestmark = pytest.mark.uncompiled
EDGES = np.array([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], dtype=np.int32)
LAWS = ("constant", "exponential", "lognormal", "pareto")


def make_events(which, start=0):
    which = np.asarray(which, dtype=np.int32)
    return Events(start, which, np.full_like(which, -1))


def random_which(seed, n_events, high=5):
    return np.random.default_rng(seed).integers(0, high, n_events)


def draw(delays, t, side, step, most):
    """Factor of an elementary step of event ``t``: the stream has 2 most + 1 numbers an event."""
    shape = delays.shape or 0.0
    codes = {name: k for k, name in enumerate(LAWS)}
    index = t * (2 * most + 1) + side * most + step
    with np.errstate(over="ignore"):
        return clocks.factor(codes[delays.law], shape, delays.keys(), index)


@pytest.mark.parametrize("tau", [0.0, 3.0])
def test_with_equal_work_under_rendezvous_it_is_the_formula_of_the_spec(tau):
    m, which = 7.0, random_which(0, 300)
    clock = PairClock(EDGES, 4, np.full(4, m), Delays(tau=tau), "rendezvous")
    clock.advance(make_events(which))
    times = [0.0] * 4
    for e in which:
        k, l = EDGES[e]
        times[k] = times[l] = max(times[k], times[l]) + m + tau
    assert clock.finish.tolist() == times
    assert clock.time == max(times)


@pytest.mark.parametrize("kind", CLOCKS)
def test_an_event_is_two_parts_of_work_and_an_exchange_for_the_literal_clock(kind):
    work, speed = [3, 0, 5, 2], [1.0, 2.0, 0.5, 4.0]
    tau = [1.5, 0.25, 3.0, 0.0, 2.0]
    which = random_which(1, 400, 9)  # 5 to 8 are local
    clock = PairClock(EDGES, 4, work, Delays(tau=tau, speed=speed), kind)
    clock.advance(make_events(which))
    schedule = []
    for w in which.tolist():
        ends = EDGES[w].tolist() if w < 5 else [w - 5]
        schedule += [("local", node) for node in ends for _ in range(work[node])]
        schedule += [("comm", *ends)] if w < 5 else []
    inverse = [1.0 / number for number in speed]
    expected = getattr(literal, kind)(4, schedule, tau, EDGES.tolist(), inverse)
    np.testing.assert_allclose(clock.finish, expected, rtol=1e-12)
    np.testing.assert_allclose(clock.finish, clock.busy + clock.waiting, rtol=1e-12)


@pytest.mark.parametrize("scope", ["both", "communications", "computations"])
@pytest.mark.parametrize("law", LAWS[1:])
def test_under_a_random_law_every_step_and_every_message_has_its_own_factor(law, scope):
    work, speed, tau = [3, 0, 5, 2], [1.0, 2.0, 0.5, 4.0], 1.5
    delays = Delays(tau=tau, speed=speed, law=law, applies_to=scope, seed=3)
    which = random_which(2, 60, 9)
    clock = PairClock(EDGES, 4, work, delays, "rendezvous")
    clock.advance(make_events(which, start=11))
    times, most = np.zeros(4), max(work)
    for k, w in enumerate(which.tolist()):
        t, ends = 11 + k, EDGES[w].tolist() if w < 5 else [w - 5]
        for side, node in enumerate(ends):
            for step in range(work[node]):
                random = scope != "communications"
                times[node] += speed[node] * (draw(delays, t, side, step, most) if random else 1.0)
        if w < 5:
            length = tau * (draw(delays, t, 2, 0, most) if scope != "computations" else 1.0)
            times[ends] = times[ends].max() + length
    np.testing.assert_allclose(clock.finish, times, rtol=1e-12)


def test_the_mean_work_is_the_nominal_one():
    # 20,000 elementary steps of mean 1: the sum is within five standard deviations.
    delays = Delays(tau=0.0, law="exponential", applies_to="computations")
    clock = PairClock(np.empty((0, 2), int), 1, [100.0], delays)
    clock.advance(make_events(np.zeros(200)))
    assert abs(clock.time - 20_000) < 5 * np.sqrt(20_000)
    assert clock.time != 20_000


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("kind", CLOCKS)
def test_cutting_the_schedule_anywhere_changes_no_bit(kind, law):
    n_events = CHUNK + 300
    which = random_which(4, n_events, 9)
    delays = Delays(tau=2.3, speed=0.7, law=law, seed=5)
    whole, pieces = (PairClock(EDGES, 4, [2.0, 3.5, 0.0, 1.0], delays, kind) for _ in range(2))
    whole.advance(make_events(which))
    cuts = [0, *np.sort(np.random.default_rng(5).integers(0, n_events, 30)).tolist(), n_events]
    for first, last in itertools.pairwise(cuts):
        pieces.advance(make_events(which[first:last], first))
        pieces = pieces.copy()
    for name, values in pieces.arrays()[0].items():
        assert values.tobytes() == whole.arrays()[0][name].tobytes()


def test_nonblocking_hides_an_exchange_behind_the_others_work():
    # Node 0 posts at 1 and node 1 at 10: node 1 has the message long before it needs it.
    clock = PairClock([(0, 1)], 2, [1.0, 10.0], Delays(tau=3.0), "nonblocking")
    clock.advance(make_events([0]))
    assert clock.finish.tolist() == [13.0, 10.0]
    assert clock.waiting.tolist() == [9.0, 0.0]


def test_a_copy_goes_its_own_way():
    clock = PairClock(EDGES, 4, np.ones(4), Delays(tau=1.0))
    other = clock.copy()
    other.advance(make_events([0]))
    assert other.time > clock.time == 0.0


def test_an_event_of_another_graph_is_refused():
    clock = PairClock(EDGES, 4, np.ones(4), Delays())
    with pytest.raises(ParameterError, match="event 7 has which=9, but a graph of 5 edges"):
        clock.advance(make_events([9], 7))


@pytest.mark.parametrize("work", [[1.0, 2.0], [1.0, -1.0, 1.0, 1.0], [1.0, 1.0, np.inf, 1.0]])
def test_work_that_is_not_one_number_a_node_is_refused(work):
    with pytest.raises(ParameterError, match="give one finite number >= 0 for each of 4 nodes"):
        PairClock(EDGES, 4, work, Delays())


def test_it_has_no_one_duration_an_event():
    with pytest.raises(ParameterError, match="three durations, two of work and one of exchange"):
        PairClock(EDGES, 4, np.ones(4), Delays()).durations(make_events([0]))

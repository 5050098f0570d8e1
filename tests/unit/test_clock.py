"""Both clocks against Figure 2, a literal oracle, and nodes simulated as separate programs."""

import numpy as np
import pytest

from adfs.errors import GraphError, ParameterError
from adfs.schedule.clock import CHUNK, CLOCKS, Clock
from adfs.schedule.delays import Delays
from adfs.schedule.events import Events
from oracles import clock as literal

A, B, C, D = range(4)
FIGURE_2_EDGES = np.array([(A, C), (B, D), (A, B), (C, D)], dtype=np.int32)
FIGURE_2_WHICH = [0, 1, 2, 4 + D, 3]
GRID_3X3 = np.array(
    [(3 * i + j, 3 * i + j + 1) for i in range(3) for j in range(2)]
    + [(3 * i + j, 3 * i + j + 3) for i in range(2) for j in range(3)],
    dtype=np.int32,
)


def make_events(which, start=0):
    which = np.asarray(which, dtype=np.int32)
    return Events(start, which, np.zeros_like(which))


def random_which(rng, n_events, n_edges, n_nodes, p_comm=0.4):
    local = n_edges + rng.integers(0, n_nodes, n_events)
    return np.where(rng.random(n_events) < p_comm, rng.integers(0, n_edges, n_events), local)


def run(clock, which):
    clock.advance(make_events(which))
    return clock


def simulate(which, edges, n_nodes, durations, kind):
    """Each node runs its own program and stops where it needs its peer's arrival: no global order.

    Returns finish, busy and waiting times.
    """
    E = len(edges)
    members = [(w - E,) if w >= E else tuple(edges[w]) for w in which]
    programs = [[t for t, group in enumerate(members) if node in group] for node in range(n_nodes)]
    position, now = [0] * n_nodes, [0.0] * n_nodes
    busy, waiting, arrival = [0.0] * n_nodes, [0.0] * n_nodes, {}
    runnable = list(range(n_nodes))
    while runnable:
        node = runnable.pop()
        while position[node] < len(programs[node]):
            t = programs[node][position[node]]
            if len(members[t]) == 1:
                now[node] += durations[t]
                busy[node] += durations[t]
            else:
                peer = sum(members[t]) - node
                arrival.setdefault((t, node), now[node])
                if (t, peer) not in arrival:
                    break
                runnable.append(peer)
                mine, other = arrival[t, node], arrival[t, peer]
                both = max(mine, other)
                alone = max(mine, other + durations[t])
                now[node] = both + durations[t] if kind == "rendezvous" else alone
                waiting[node] += both - mine
                busy[node] += now[node] - both
            position[node] += 1
    return np.array(now), np.array(busy), np.array(waiting)


@pytest.mark.parametrize("tau", [1.5, 3.0, 10.0])
def test_figure_2_nodes_finish_when_the_paper_says(tau):
    clock = run(Clock(FIGURE_2_EDGES, 4, Delays(tau=tau), "rendezvous"), FIGURE_2_WHICH)
    # (A,C) and (B,D) until tau; (A,B) until 2 tau; D alone until tau + 1, then (C,D).
    assert clock.finish.tolist() == [2 * tau, 2 * tau, 2 * tau + 1, 2 * tau + 1]
    assert clock.time == 2 * tau + 1


def test_figure_2_node_c_is_idle_between_tau_and_tau_plus_one():
    clock = run(Clock(FIGURE_2_EDGES, 4, Delays(tau=3.0), "rendezvous"), FIGURE_2_WHICH)
    assert clock.waiting.tolist() == [0.0, 0.0, 1.0, 0.0]
    assert clock.busy.tolist() == [6.0, 6.0, 6.0, 7.0]
    # A and B stop at 6, C waits from 3 to 4, the makespan is 7.
    assert clock.idle_share() == pytest.approx([1 / 7, 1 / 7, 1 / 7, 0.0], abs=1e-15)


def test_figure_2_nonblocking_node_d_leaves_with_the_message_that_c_sent_at_tau():
    clock = run(Clock(FIGURE_2_EDGES, 4, Delays(tau=3.0), "nonblocking"), FIGURE_2_WHICH)
    assert clock.finish.tolist() == [6.0, 6.0, 7.0, 6.0]


def test_nonblocking_exchange_costs_nothing_to_whom_the_message_has_reached():
    # Node 1 does ten updates while node 0's message, sent at time 0, is under way.
    clock = run(Clock([(0, 1)], 2, Delays(tau=3.0), "nonblocking"), [2] * 10 + [0])
    assert clock.finish.tolist() == [13.0, 10.0]
    assert clock.busy.tolist() == [3.0, 10.0]
    assert clock.waiting.tolist() == [10.0, 0.0]


@pytest.mark.parametrize("kind", CLOCKS)
@pytest.mark.parametrize("seed", range(5))
def test_finish_busy_and_waiting_are_those_of_nodes_run_as_separate_programs(kind, seed):
    rng = np.random.default_rng(seed)
    delays = Delays(
        tau=rng.uniform(0.0, 6.0, 12), speed=rng.uniform(0.5, 10.0, 9), law="exponential", seed=seed
    )
    which = random_which(rng, 400, 12, 9)
    clock = Clock(GRID_3X3, 9, delays, kind)
    durations = clock.durations(make_events(which))
    run(clock, which)
    for mine, theirs in zip(
        (clock.finish, clock.busy, clock.waiting),
        simulate(which, GRID_3X3.tolist(), 9, durations, kind),
        strict=True,
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-13, atol=1e-12)
    np.testing.assert_allclose(clock.finish, clock.busy + clock.waiting, rtol=1e-12)


@pytest.mark.parametrize("kind", CLOCKS)
def test_finish_times_are_those_of_the_literal_oracle_bit_for_bit(kind):
    rng = np.random.default_rng(7)
    which = random_which(rng, 2000, 12, 9)
    tau = rng.uniform(0.0, 6.0, 12)
    step = 2.0 ** rng.integers(-2, 4, 9)  # the oracle takes 1 / time, exact for powers of two
    clock = run(Clock(GRID_3X3, 9, Delays(tau=tau, speed=step), kind), which)
    edges = GRID_3X3.tolist()
    schedule = [("local", w - 12) if w >= 12 else ("comm", *edges[w]) for w in which.tolist()]
    oracle = getattr(literal, kind)(9, schedule, tau.tolist(), edges, (1.0 / step).tolist())
    assert clock.finish.tolist() == oracle


@pytest.mark.parametrize("law", ["constant", "exponential", "lognormal", "pareto"])
@pytest.mark.parametrize("kind", CLOCKS)
def test_cutting_the_schedule_anywhere_changes_no_bit(kind, law):
    rng = np.random.default_rng(3)
    n_events = CHUNK + 500
    which = random_which(rng, n_events, 12, 9)
    delays = Delays(tau=2.3, speed=0.7, law=law, seed=5)
    whole = run(Clock(GRID_3X3, 9, delays, kind), which).arrays()[0]
    cuts = np.sort(rng.integers(0, n_events, 40))
    pieces = Clock(GRID_3X3, 9, delays, kind)
    for first, last in zip([0, *cuts], [*cuts, n_events], strict=True):
        pieces.advance(make_events(which[first:last], int(first)))
    for name, values in pieces.arrays()[0].items():
        assert values.tobytes() == whole[name].tobytes()


def test_nonblocking_is_never_later_than_rendezvous():
    rng = np.random.default_rng(11)
    which = random_which(rng, 3000, 12, 9)
    delays = Delays(tau=4.0, law="pareto", seed=2)
    early, late = (run(Clock(GRID_3X3, 9, delays, kind), which).finish for kind in CLOCKS)
    assert (early <= late).all()
    assert (early < late).any()


def test_a_slow_node_delays_those_it_talks_to():
    clock = run(Clock([(0, 1)], 2, Delays(tau=1.0, speed=[10.0, 1.0]), "rendezvous"), [1, 2, 0])
    assert clock.finish.tolist() == [11.0, 11.0]
    assert clock.waiting.tolist() == [0.0, 9.0]


@pytest.mark.parametrize("kind", CLOCKS)
def test_a_single_node_without_edges_only_computes(kind):
    clock = Clock(np.empty((0, 2), dtype=np.int32), 1, Delays(tau=5.0), kind)
    assert clock.time == 0.0
    assert clock.idle_share().tolist() == [0.0]
    run(clock, [0, 0, 0])
    assert clock.time == 3.0


def test_no_events_take_no_time():
    clock = run(Clock(GRID_3X3, 9, Delays()), [])
    assert clock.time == 0.0


def test_a_copy_goes_its_own_way():
    clock = run(Clock(FIGURE_2_EDGES, 4, Delays(tau=3.0)), FIGURE_2_WHICH)
    other = clock.copy()
    run(other, [4])
    assert other.finish[A] == clock.finish[A] + 1.0


def test_a_state_survives_a_file_and_goes_on_bit_for_bit(tmp_path):
    which = random_which(np.random.default_rng(0), 300, 12, 9)
    delays = Delays(tau=1.7, law="lognormal", seed=1)
    whole = run(Clock(GRID_3X3, 9, delays), which)
    first = run(Clock(GRID_3X3, 9, delays), which[:100])
    np.savez(tmp_path / "clock.npz", **first.arrays()[0])
    second = Clock(GRID_3X3, 9, delays)
    with np.load(tmp_path / "clock.npz", allow_pickle=False) as state:
        for name, view in second.arrays()[0].items():
            view[...] = state[name]
    second.advance(make_events(which[100:], 100))
    for name, values in whole.arrays()[0].items():
        assert getattr(second, name).tolist() == values.tolist(), name
    assert whole.waiting.max() > 0.0


def test_an_unknown_clock_is_refused_with_the_choices():
    with pytest.raises(ParameterError, match=r"'lamport' is unknown.* nonblocking, rendezvous"):
        Clock(FIGURE_2_EDGES, 4, Delays(), "lamport")


@pytest.mark.parametrize("edge", [(0, 4), (-1, 2), (1, 1)])
def test_an_edge_that_joins_no_two_nodes_is_refused(edge):
    with pytest.raises(GraphError, match=r"edge 1 is .* two different nodes numbered from 0 to 3"):
        Clock(np.array([(0, 1), edge]), 4, Delays())


def test_edges_that_are_not_pairs_are_refused():
    with pytest.raises(GraphError, match=r"edges have shape \(4,\); pass one row of two nodes"):
        Clock(np.array([0, 1, 1, 2]), 3, Delays())


@pytest.mark.parametrize("wrong", [-1, 8])
def test_an_event_of_another_graph_is_refused_and_moves_nothing(wrong):
    clock = Clock(FIGURE_2_EDGES, 4, Delays())
    with pytest.raises(
        ParameterError, match=f"event 101 has which={wrong}, but a graph of 4 edges"
    ):
        clock.advance(make_events([0, wrong], start=100))
    assert clock.time == 0.0

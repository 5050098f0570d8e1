"""Theorem 2: the time of a schedule is C / n (p_comp + 2 tau p_comm_max) an event, C < 24."""

import numpy as np
import pytest

import adfs
from oracles import clock as literal_clock
from oracles import theory
from support.problems import homogeneous_shards, make_case

CLOCKS = ("nonblocking", "rendezvous")
GRAPHS = ("grid:4x4", "ring:16", "complete:16")


def chosen_for(graph, n_samples=10):
    """Parameters on a homogeneous problem: every node computes with probability p_comp / n."""
    n = adfs.Topology.parse(graph).n_nodes
    shards = homogeneous_shards(n, n_samples, norm=4.0)
    problem = make_case(graph, sigma=1.0, shards=shards).problem
    return adfs.Parameters.choose(problem, "exact")


def constant(chosen, tau, clock, events_per_node=2000):
    """``T(t) / t`` over the theorem's right-hand side without C."""
    n = len(chosen.p_node)
    schedule = adfs.Schedule.sample(chosen, events_per_node * n, seed=1)
    edges = [(int(k), int(l)) for k, l in chosen.edges]
    bound = theory.theorem_2_right_hand_side(n, edges, chosen.p_edge, tau)
    return schedule.times(tau=tau, clock=clock).max() / len(schedule) / bound


@pytest.mark.parametrize("tau", [1.5, 5.0])
@pytest.mark.parametrize("graph", GRAPHS)
def test_the_constant_is_far_below_24_under_both_clocks(graph, tau):
    chosen = chosen_for(graph)
    assert chosen.p_node == pytest.approx(chosen.p_comp / len(chosen.p_node))
    nonblocking, rendezvous = (constant(chosen, tau, clock) for clock in CLOCKS)
    # The busiest node alone needs the theorem's time under rendezvous; posting hides some of it.
    assert 0.95 < rendezvous < 4.0
    assert 0.3 < nonblocking < rendezvous


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("family", ["grid:2x2 grid:10x10", "ring:4 ring:100"])
def test_iterations_a_unit_of_time_grow_linearly_with_the_network(family, clock):
    small, large = (constant(chosen_for(graph), 5.0, clock) for graph in family.split())
    assert large < 2.0 * small  # the constant, n being divided out already


def test_a_star_is_held_up_by_its_hub():
    # p_comm_max counts the busiest node: all communications pass through node 0.
    chosen = chosen_for("star:16")
    edges = [(int(k), int(l)) for k, l in chosen.edges]
    assert theory.p_comm_max(16, edges, chosen.p_edge) == pytest.approx(8 * chosen.p_comm)
    assert constant(chosen, 5.0, "rendezvous") == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("how", ["paper", "tuned"])
def test_finish_times_of_a_drawn_schedule_are_the_literal_clocks(how, clock):
    problem = make_case("grid:3x3").problem
    chosen = adfs.Parameters.choose(problem, how, tau=2.5)
    schedule = adfs.Schedule.sample(chosen, 3000, seed=4)
    edges = chosen.edges.tolist()
    events = [
        ("comm", *edges[w]) if w < len(edges) else ("local", w - len(edges))
        for w in schedule.events().which.tolist()
    ]
    oracle = getattr(literal_clock, clock)(9, events, 2.5)
    assert schedule.times(tau=2.5, clock=clock).tolist() == oracle


def test_events_are_drawn_with_the_probabilities_of_the_parameters():
    chosen = adfs.Parameters.choose(make_case("star:5").problem, "exact")
    n_events = 400_000
    which = adfs.Schedule.sample(chosen, n_events, seed=9).events().which
    p = np.concatenate([chosen.p_edge, chosen.p_node])
    counts = np.bincount(which, minlength=len(p))
    deviation = (counts - n_events * p) / np.sqrt(n_events * p * (1.0 - p))
    assert np.max(np.abs(deviation)) < 4.5


def test_figure_2_nodes_finish_when_the_paper_says():
    a, b, c, d = range(4)
    edges = [(a, c), (b, d), (a, b), (c, d)]
    schedule = adfs.Schedule.from_events(4, edges, [(a, c), (b, d), (a, b), d, (c, d)])
    for tau in (1.25, 3.0, 8.0):  # "We assume tau > 1"
        finish = schedule.times(tau=tau, clock="rendezvous")
        assert finish.tolist() == [2 * tau, 2 * tau, 2 * tau + 1, 2 * tau + 1]
        waited = schedule.clock(tau, "rendezvous").waiting
        assert waited == pytest.approx([0.0, 0.0, 1.0, 0.0])  # C is idle from tau to tau + 1
        # The experiments' clock: C's message had left at tau, so D only finishes its own update.
        finish = schedule.times(tau=tau, clock="nonblocking")
        assert finish == pytest.approx([2 * tau, 2 * tau, 2 * tau + 1, 2 * tau])

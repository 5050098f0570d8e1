"""Synchronous rounds: their kinds, and a round's time is that of its slowest node and edges."""

import numpy as np
import pytest

from adfs.errors import ParameterError
from adfs.schedule.delays import Delays
from adfs.schedule.rounds import CoinRounds, Cost, RoundClock, Rounds, mean_time

PATH = np.array([[0, 1], [1, 2]])
NONE = np.empty((0, 2), np.int64)


def clock_of(costs, edges=PATH, n_nodes=3, **delays):
    return RoundClock([Cost(np.array(work, float), rounds) for work, rounds in costs], edges,
                      n_nodes, Delays(**delays))  # fmt: skip


def test_a_pattern_repeats_from_any_start():
    rounds = Rounds([1, 0, 0])
    whole = rounds.draw(0, 30).which
    assert whole.tolist() == [1, 0, 0] * 10
    for start in range(30):
        events = rounds.draw(start, 30)
        assert (events.start, events.stop) == (start, 30)
        assert events.which.tolist() == whole[start:].tolist()


def test_coins_fall_with_their_probability_and_do_not_depend_on_the_cut():
    coins = CoinRounds(0.3, seed=5, stream="refresh")
    whole = coins.draw(0, 20_000).which
    assert set(whole.tolist()) == {0, 1}
    assert abs(whole.mean() - 0.3) < 4 * np.sqrt(0.21 / 20_000)
    pieces = [coins.draw(first, first + 2_500).which for first in range(0, 20_000, 2_500)]
    np.testing.assert_array_equal(np.concatenate(pieces), whole)
    assert (CoinRounds(0.3, seed=6, stream="refresh").draw(0, 100).which != whole[:100]).any()


@pytest.mark.parametrize("p", [-0.1, 1.5, float("nan")])
def test_a_coin_needs_a_probability(p):
    with pytest.raises(ParameterError, match=r"p=.* must be a probability, between 0 and 1"):
        CoinRounds(p, seed=0, stream="refresh")


def test_a_round_takes_its_slowest_node_and_then_its_slowest_edge_each_time():
    clock = clock_of([([10, 20, 5], 2), ([1, 1, 1], 0)], tau=(3.0, 7.0), speed=(1.0, 1.0, 10.0))
    clock.advance(Rounds([0]).draw(0, 1))
    assert clock.time == max(10, 20, 50) + 2 * 7.0
    clock.advance(Rounds([1]).draw(1, 4))
    assert clock.time == 64.0 + 3 * 10.0
    assert clock.busy.tolist() == [13.0, 23.0, 80.0]


def test_one_node_that_talks_to_nobody_only_works():
    clock = clock_of([([4], 3)], NONE, 1, tau=5.0, law="exponential")
    fixed = clock_of([([4], 3)], NONE, 1, tau=5.0)
    for each in (clock, fixed):
        each.advance(Rounds([0]).draw(0, 4000))
    assert fixed.time == 16_000.0
    assert abs(clock.time / 16_000.0 - 1.0) < 4 / np.sqrt(16_000)


def test_a_random_round_lasts_as_long_as_the_greatest_of_its_draws():
    """The mean of the greatest of n exponentials of mean 1 is 1 + 1/2 + ... + 1/n."""
    n_rounds = 40_000
    work = clock_of([([1, 1, 1], 0)], law="exponential", seed=1)
    work.advance(Rounds([0]).draw(0, n_rounds))
    assert abs(work.time / n_rounds - 11 / 6) < 0.03
    talk = clock_of([([0, 0, 0], 1)], law="exponential", seed=1)
    talk.advance(Rounds([0]).draw(0, n_rounds))
    assert abs(talk.time / n_rounds - 3 / 2) < 0.03


def test_a_batch_of_many_steps_averages_their_delays():
    """The sum of m draws: the slowest of three nodes is late by a share of order 1 / sqrt(m)."""
    late = []
    for m in (1, 100, 10_000):
        clock = clock_of([([m, m, m], 0)], law="exponential")
        clock.advance(Rounds([0]).draw(0, 2_000 if m < 10_000 else 50))
        late.append(clock.time / (m * (2_000 if m < 10_000 else 50)) - 1.0)
    assert late[0] > 0.7
    # E max of three standard normals is 0.846.
    assert abs(late[1] - 0.0846) < 0.02
    assert abs(late[2] - 0.00846) < 0.005


@pytest.mark.parametrize("scope", ["communications", "computations"])
def test_the_law_touches_only_what_it_applies_to(scope):
    clock = clock_of([([2, 2, 2], 1)], tau=3.0, law="exponential", applies_to=scope)
    clock.advance(Rounds([0]).draw(0, 5_000))
    mean = clock.time / 5_000
    if scope == "communications":
        assert abs(mean - (2.0 + 3.0 * 1.5)) < 0.15
        np.testing.assert_array_equal(clock.busy, 10_000.0)
    else:
        assert mean > 5.5
        assert abs(clock.busy.mean() / 10_000 - 1.0) < 0.03


@pytest.mark.parametrize("law", ["constant", "exponential", "lognormal", "pareto"])
def test_cutting_copying_and_restoring_changes_no_time(law):
    costs = [([3, 2.5, 1], 2), ([0.1, 7, 1], 1)]
    whole = clock_of(costs, tau=0.1, speed=0.3, law=law)
    rounds = Rounds([0, 1, 1])
    whole.advance(rounds.draw(0, 100))
    pieces = clock_of(costs, tau=0.1, speed=0.3, law=law)
    for first in range(0, 100, 9):
        pieces = pieces.copy()
        pieces.advance(rounds.draw(first, min(100, first + 9)))
    other = clock_of(costs, tau=0.1, speed=0.3, law=law)
    for name, view in other.arrays()[1].items():
        view[...] = pieces.arrays()[1][name]
    assert whole.time == pieces.time == other.time
    np.testing.assert_array_equal(whole.busy, other.busy)


def test_the_mean_time_of_a_round_is_exact_or_that_of_the_slowest_of_many():
    cost = Cost(np.array([10.0, 20.0, 5.0]), 2)
    assert mean_time(cost, PATH, 3, Delays(tau=(3.0, 7.0), speed=(1.0, 1.0, 10.0))) == 64.0
    ring = np.array([[k, (k + 1) % 24] for k in range(24)])
    slowest = mean_time(Cost(np.zeros(24), 6), ring, 24, Delays(tau=2.0, law="exponential"))
    harmonic = sum(1.0 / k for k in range(1, 25))  # mean of the largest of 24 exponentials
    assert slowest == pytest.approx(6 * 2.0 * harmonic, rel=0.03)

"""Durations: the laws against scipy's, the stream against a literal SplitMix64."""

import math
from dataclasses import FrozenInstanceError, asdict

import numpy as np
import pytest
from scipy import stats

from adfs.errors import ParameterError
from adfs.schedule.clock import Clock
from adfs.schedule.delays import Delays
from adfs.schedule.events import Events

MASK = (1 << 64) - 1


def draw(delays, which, start=0, edges=((0, 1),), n_nodes=2):
    which = np.asarray(which, dtype=np.int32)
    return Clock(edges, n_nodes, delays).durations(Events(start, which, np.zeros_like(which)))


def splitmix64(key, t):
    z = (int(key) + (t + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def unit_mean(law, shape):
    if law == "exponential":
        return stats.expon()
    if law == "lognormal":
        return stats.lognorm(s=shape, scale=math.exp(-(shape**2) / 2))
    return stats.pareto(b=shape, scale=(shape - 1) / shape)


LAWS = [
    ("exponential", None),
    ("lognormal", 0.5),
    ("lognormal", 1.2),
    ("pareto", 2.5),
    ("pareto", 6),
]


@pytest.mark.parametrize(("law", "shape"), LAWS)
def test_a_law_has_mean_one_and_the_distribution_of_its_name(law, shape):
    factors = draw(Delays(tau=1.0, law=law, shape=shape, seed=4), np.zeros(40_000))
    expected = unit_mean(law, shape)
    assert expected.mean() == pytest.approx(1.0)
    assert abs(factors.mean() - 1.0) < 4.0 * expected.std() / math.sqrt(factors.size)
    assert stats.kstest(factors, expected.cdf).pvalue > 1e-3


@pytest.mark.parametrize(("law", "shape"), LAWS)
def test_successive_draws_are_uncorrelated(law, shape):
    factors = draw(Delays(law=law, shape=shape, seed=9), np.zeros(40_000))
    ranks = stats.rankdata(factors)
    for lag in (1, 2, 17):
        assert abs(np.corrcoef(ranks[lag:], ranks[:-lag])[0, 1]) < 4.0 / math.sqrt(factors.size)


def test_draw_number_t_is_the_hash_of_key_and_t():
    delays = Delays(tau=2.0, law="exponential", seed=3)
    start = 10**12
    factors = draw(delays, np.zeros(50), start=start)
    for k, duration in enumerate(factors):
        u = (splitmix64(delays.keys()[0], start + k) >> 11) / 2.0**53
        assert duration == pytest.approx(-2.0 * math.log(1.0 - u), rel=1e-15)


def test_a_lognormal_event_uses_a_second_stream_at_the_same_place():
    delays = Delays(tau=1.0, law="lognormal", shape=0.8, seed=3)
    first, second = delays.keys()
    u, w = ((splitmix64(key, 12) >> 11) / 2.0**53 for key in (first, second))
    normal = math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * w)
    assert draw(delays, [0], start=12)[0] == pytest.approx(math.exp(0.8 * normal - 0.32), rel=1e-14)


@pytest.mark.parametrize(("law", "shape"), LAWS)
def test_no_two_events_share_a_draw_and_seeds_differ(law, shape):
    factors = [draw(Delays(law=law, shape=shape, seed=seed), np.zeros(5000)) for seed in (0, 1)]
    assert np.unique(np.concatenate(factors)).size == 10_000


def test_an_event_s_draw_does_not_depend_on_the_others():
    delays = Delays(law="pareto", seed=1)
    whole = draw(delays, np.zeros(100))
    assert draw(delays, np.zeros(3), start=57).tolist() == whole[57:60].tolist()
    # The kind of the other events does not matter either.
    assert draw(delays, [2, 0, 1], start=57)[1] == whole[58]


def test_durations_are_those_of_the_edge_and_of_the_node():
    delays = Delays(tau=[3.0, 0.0], speed=[1.0, 10.0, 0.5])
    durations = draw(delays, [0, 1, 2, 3, 4], edges=[(0, 1), (1, 2)], n_nodes=3)
    assert durations.tolist() == [3.0, 0.0, 1.0, 10.0, 0.5]


@pytest.mark.parametrize(
    ("applies_to", "fixed"), [("both", []), ("communications", [1, 2]), ("computations", [0])]
)
def test_a_law_multiplies_only_what_it_applies_to(applies_to, fixed):
    delays = Delays(tau=5.0, speed=2.0, law="exponential", applies_to=applies_to)
    nominal = [5.0, 2.0, 2.0]
    durations = draw(delays, [0, 1, 2])
    assert [k for k in range(3) if durations[k] == nominal[k]] == fixed


def test_delays_are_plain_values_compared_by_value():
    delays = Delays(tau=np.array([1, 2]), speed=(3,), law="pareto")
    assert delays == Delays(tau=[1.0, 2.0], speed=[3.0], law="pareto", shape=2.5)
    assert len({delays, Delays(**asdict(delays))}) == 1
    with pytest.raises(FrozenInstanceError, match="tau"):
        delays.tau = 3.0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"tau": -1}, r"tau=-1 must be >= 0 and finite: .* Pass for example tau=5"),
        ({"tau": math.nan}, r"tau=nan must be >= 0"),
        ({"tau": math.inf}, r"tau=inf must be >= 0"),
        ({"tau": [1.0, -0.5]}, r"tau\[1\]=-0.5 must be >= 0"),
        ({"tau": "fast"}, r"tau='fast' must be a number or a flat list of numbers"),
        ({"tau": "5"}, r"tau='5' must be a number"),
        ({"tau": None}, r"tau=None must be a number"),
        ({"tau": [[1.0]]}, r"tau=\[\[1.0\]\] must be a number or a flat list"),
        ({"tau": [[1.0], [1.0, 2.0]]}, r"must be a number or a flat list"),
        ({"speed": 0}, r"speed=0 must be > 0 and finite: it is the time of one local update"),
        ({"speed": [1.0, math.nan]}, r"speed\[1\]=nan must be > 0"),
        ({"law": "uniform"}, r"law='uniform' is unknown; choose one of constant, exponential"),
        ({"applies_to": "nodes"}, r"applies_to='nodes' is unknown; choose one of both, comm"),
        ({"law": "pareto", "shape": 1.0}, r"shape=1.0 does not fit: the Pareto law needs .* > 1"),
        ({"law": "pareto", "shape": math.nan}, r"shape=nan does not fit"),
        ({"law": "lognormal", "shape": 0}, r"shape=0 does not fit: the lognormal law needs"),
        ({"law": "lognormal", "shape": [1.0]}, r"shape=\[1.0\] does not fit"),
        ({"law": "exponential", "shape": 2.0}, r"shape=2.0 means nothing to the exponential law"),
        ({"shape": 2.0}, r"shape=2.0 means nothing to the constant law"),
        ({"seed": -1}, r"seed=-1 must be a whole number >= 0"),
    ],
)
def test_an_impossible_delay_cannot_be_built(arguments, sentence):
    with pytest.raises(ParameterError, match=sentence):
        Delays(**arguments)


def test_one_value_per_edge_or_node_means_as_many_as_there_are():
    with pytest.raises(ParameterError, match="tau has 3 values for 2 edges; pass one number, or"):
        Delays(tau=[1.0, 2.0, 3.0]).nominal(2, 3)
    with pytest.raises(ParameterError, match="speed has 2 values for 3 nodes; pass one number, or"):
        Delays(speed=[1.0, 2.0]).nominal(2, 3)

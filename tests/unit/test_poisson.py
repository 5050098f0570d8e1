"""Poisson clocks: exact processes with random access, of which a node draws its own."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

import adfs
from adfs.errors import ParameterError
from adfs.kernels import poisson
from adfs.kernels.poisson import TICKS
from adfs.schedule.events import Events
from adfs.schedule.poisson import PoissonSource

UNLIKELY = 1e-4  # a true law fails one test in so many; the seeds are fixed


class Law(NamedTuple):
    """A sampling law written down by hand; nodes of ``hidden`` must not be asked."""

    edges: np.ndarray
    p_edge: np.ndarray
    p_node: np.ndarray
    sizes: tuple
    hidden: frozenset = frozenset()

    def importance_of(self, node):
        assert node not in self.hidden, f"node {node} is another one's"
        return 1.0 + np.arange(self.sizes[node]) ** 2.0


def ring(n_nodes, p_comm=0.3, hidden=()):
    """A ring with rates that differ from clock to clock; the last node has no data."""
    edges = np.array([(k, (k + 1) % n_nodes) for k in range(n_nodes)], np.int32)
    p_edge, p_node = 1.0 + np.arange(n_nodes), 2.0 + np.arange(n_nodes) % 3
    p_node[-1] = 0.0
    sizes = (*(3 + node % 4 for node in range(n_nodes - 1)), 0)
    return Law(
        edges, p_comm * p_edge / p_edge.sum(), (1 - p_comm) * p_node / p_node.sum(), sizes,
        frozenset(hidden),
    )  # fmt: skip


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def joined(blocks):
    """Blocks that follow each other, as one."""
    columns = zip(*((block.which, block.sample, block.ticks) for block in blocks), strict=True)
    which, sample, ticks = (np.concatenate(column) for column in columns)
    return Events(blocks[0].start, which, sample, ticks, blocks[-1].end)


LAW = ring(6)
UNITS = 4000
EVENTS = PoissonSource(LAW, seed=3).draw(0, UNITS)


def test_events_say_when_they_happen_and_where_the_block_ends():
    block = PoissonSource(LAW, seed=3).draw(100, 350)
    assert (block.start, block.stop, block.end) == (100, 350, 350)
    assert block.which.dtype == block.sample.dtype == np.int32
    assert block.ticks.dtype == np.int64
    assert block.ticks.min() >= 100 * TICKS
    assert block.ticks.max() < 350 * TICKS
    local = block.which >= 6
    assert np.all((block.sample >= 0) == local)
    assert np.all(block.sample[local] < np.array(LAW.sizes)[block.which[local] - 6])


@pytest.mark.parametrize("size", [1, 2, 3, 64, 1000, 4096])
def test_any_cut_of_time_gives_the_same_events(size):
    source = PoissonSource(LAW, seed=3)
    bounds = [*range(0, UNITS, size), UNITS]
    assert same(joined([source.draw(a, b) for a, b in itertools.pairwise(bounds)]), EVENTS)


def test_random_cuts_drawn_in_any_order_give_the_same_events():
    generator = np.random.default_rng(0)
    source = PoissonSource(LAW, seed=3)
    bounds = [0, *np.sort(generator.integers(0, UNITS, 50)).tolist(), UNITS]
    pieces = list(itertools.pairwise(bounds))
    drawn = {k: source.draw(*pieces[k]) for k in generator.permutation(len(pieces)).tolist()}
    assert same(joined([drawn[k] for k in range(len(pieces))]), EVENTS)


def test_nothing_happens_in_no_time():
    nothing = PoissonSource(LAW, seed=3).draw(7, 7)
    assert (nothing.stop, len(nothing.which), len(nothing.ticks)) == (7, 0, 0)


def test_too_little_room_is_not_seen():
    source = PoissonSource(LAW, seed=3)
    source.rate = 0.0  # what the room is guessed from
    assert same(source.draw(0, UNITS), EVENTS)


def test_events_are_ordered_by_tick_and_then_by_which():
    # Sixty-four events a unit: one in a thousand shares its tick with the next.
    ties = fast_clocks(64).draw(0, 1 << 9)
    keys = list(zip(ties.ticks.tolist(), ties.which.tolist(), strict=True))
    assert keys == sorted(keys)
    assert len(set(ties.ticks.tolist())) < len(keys)


def fast_clocks(n_nodes):
    """One source of many clocks, all together far above one event a unit."""
    nothing = np.zeros(0)
    return PoissonSource(
        Law(np.zeros((0, 2), np.int32), nothing, np.ones(n_nodes), (5,) * n_nodes), seed=0
    )


def test_events_of_one_tick_and_one_clock_stay_in_the_order_drawn():
    source = fast_clocks(1)
    clocks = source._clocks
    ticks = np.array([5, 3, 5, 3, 5, 9], np.int64)
    which, sample = np.zeros((2, 6), np.int32)
    sample[:] = range(6)
    out = np.empty(6, np.int64), np.empty(6, np.int32), np.empty(6, np.int32)
    for shift in (0, 2, 4):
        slots = np.zeros((16 >> shift) + 3, np.int64)
        poisson.put_in_order(0, shift, clocks, ticks, which, sample, slots, *out)
        assert out[0].tolist() == [3, 3, 5, 5, 5, 9]
        assert out[2].tolist() == [1, 3, 0, 2, 4, 5]


@pytest.mark.parametrize("nodes", [[0], [2], [5], [1, 4], [3, 2, 3], range(6), []])
def test_a_nodes_part_is_its_restriction_and_asks_no_other_node(nodes):
    law = ring(6, hidden=set(range(6)) - set(nodes))
    mine = PoissonSource(law, seed=3, nodes=nodes).draw(0, UNITS)
    ours = [
        bool(set(LAW.edges[w].tolist()) & set(nodes)) if w < 6 else w - 6 in nodes
        for w in EVENTS.which
    ]
    expected = Events(
        0, EVENTS.which[ours], EVENTS.sample[ours], EVENTS.ticks[ours], EVENTS.end
    )  # fmt: skip
    assert same(mine, expected)
    assert len(mine.which) > 0 or not len(nodes)


def test_the_rate_of_a_part_is_that_of_its_clocks():
    source = PoissonSource(LAW, seed=3, nodes=[1])
    assert source.rate == pytest.approx(LAW.p_edge[0] + LAW.p_edge[1] + LAW.p_node[1])
    assert PoissonSource(LAW, seed=3).rate == pytest.approx(1.0)


def test_without_samples_the_rest_is_the_same():
    law = ring(6, hidden=range(6))
    bare = PoissonSource(law, seed=3, with_samples=False).draw(0, UNITS)
    assert same(bare._replace(sample=EVENTS.sample), EVENTS)
    assert np.all(bare.sample == -1)


def test_a_node_without_data_never_rings():
    assert 6 + 5 not in EVENTS.which
    assert set(EVENTS.which.tolist()) == set(range(11))


def test_another_seed_is_another_schedule():
    other = PoissonSource(LAW, seed=4).draw(0, UNITS)
    assert not set(other.ticks.tolist()) >= set(EVENTS.ticks[:50].tolist())


@pytest.mark.parametrize("wrong", [-1, 6])
def test_a_node_that_does_not_exist_is_refused(wrong):
    with pytest.raises(ParameterError, match=f"node {wrong} does not exist; choose nodes from 0 t"):
        PoissonSource(LAW, seed=0, nodes=[wrong])


@pytest.mark.parametrize("rate", [-0.1, np.nan, np.inf])
def test_a_rate_that_is_none_is_refused(rate):
    law = Law(np.zeros((0, 2), np.int32), np.zeros(0), np.array([rate]), (4,))
    with pytest.raises(ParameterError, match="must be finite and >= 0"):
        PoissonSource(law, seed=0)


@pytest.mark.parametrize("mean", [1e-9, 0.3, 4.0, 5.5, 7.999])
def test_counts_are_the_quantiles_of_the_poisson_law(mean):
    quantiles = np.concatenate([np.random.default_rng(1).random(2000), 1.0 - 0.5 ** np.arange(52)])
    found = [poisson.poisson_count(u, mean, np.exp(-mean)) for u in quantiles]
    # At u = P(N <= k) exactly, one of k and k + 1: rounding decides.
    low = stats.poisson.ppf(np.maximum(quantiles - 1e-15, 0.0), mean)
    high = stats.poisson.ppf(np.minimum(quantiles + 1e-15, 1 - 1e-16), mean)
    assert np.all((np.maximum(low, 0) <= found) & (found <= np.maximum(high, 0) + 1))
    assert stats.poisson.sf(poisson.MOST, 8.0) < 1e-33


LONG = 200_000
LONG_EVENTS = PoissonSource(LAW, seed=11).draw(0, LONG)


@pytest.mark.parametrize("which", range(11))
def test_gaps_of_a_clock_are_exponential_and_independent(which):
    rate = np.concatenate([LAW.p_edge, LAW.p_node])[which]
    times = LONG_EVENTS.ticks[LONG_EVENTS.which == which] / TICKS
    gaps = np.diff(times, prepend=0.0)
    assert stats.kstest(gaps, "expon", args=(0, 1 / rate)).pvalue > UNLIKELY
    ranks = stats.spearmanr(gaps[:-1], gaps[1:])
    assert ranks.pvalue > UNLIKELY


@pytest.mark.parametrize("length", [1, 7, 64, 1000])
def test_counts_in_any_stretch_are_poisson(length):
    # The variance is the mean, for each clock and for all together.
    stretches = LONG // length
    stretch = np.minimum(LONG_EVENTS.ticks // (length * TICKS), stretches)
    for which in (None, *range(11)):
        chosen = slice(None) if which is None else LONG_EVENTS.which == which
        counts = np.bincount(stretch[chosen], minlength=stretches + 1)[:stretches]
        statistic = np.sum((counts - counts.mean()) ** 2) / counts.mean()
        assert UNLIKELY < stats.chi2.sf(statistic, stretches - 1) < 1 - UNLIKELY


def test_clocks_are_independent():
    stretch = LONG_EVENTS.ticks // (50 * TICKS)
    counts = np.array(
        [np.bincount(stretch[LONG_EVENTS.which == w], minlength=LONG // 50) for w in range(11)]
    )
    correlations = np.corrcoef(counts)[np.triu_indices(11, 1)]
    assert np.max(np.abs(correlations)) < stats.norm.isf(UNLIKELY / 110) / np.sqrt(LONG // 50)


def test_which_clock_rings_next_has_the_probabilities_of_the_law():
    # Together they are one Poisson process with independent marks: the schedule of Algorithm 1.
    p = np.concatenate([LAW.p_edge, LAW.p_node])[:11]
    counts = np.bincount(LONG_EVENTS.which, minlength=11)
    assert stats.chisquare(counts, p * counts.sum()).pvalue > UNLIKELY
    pairs = np.zeros((11, 11))
    np.add.at(pairs, (LONG_EVENTS.which[:-1], LONG_EVENTS.which[1:]), 1)
    assert stats.chi2_contingency(pairs).pvalue > UNLIKELY
    gaps = np.diff(LONG_EVENTS.ticks / TICKS)
    assert stats.kstest(gaps, "expon").pvalue > UNLIKELY


@pytest.mark.parametrize("node", range(5))
def test_samples_follow_their_nodes_importance(node):
    importance = LAW.importance_of(node)
    drawn = LONG_EVENTS.sample[LONG_EVENTS.which == 6 + node]
    counts = np.bincount(drawn, minlength=len(importance))
    assert stats.chisquare(counts, importance / importance.sum() * len(drawn)).pvalue > UNLIKELY
    serial = np.zeros((len(importance),) * 2)
    np.add.at(serial, (drawn[:-1], drawn[1:]), 1)
    assert stats.chi2_contingency(serial).pvalue > UNLIKELY


def test_one_node_alone_has_one_clock_of_rate_1():
    X, y = adfs.generators.two_gaussians(30, 3, seed=0)
    problem = adfs.Problem([(X, y)], topology=adfs.Topology.single())
    events = PoissonSource(adfs.Parameters.choose(problem, "exact"), seed=0).draw(0, 20_000)
    assert np.all(events.which == 0)
    gaps = np.diff(events.ticks / TICKS)
    assert stats.kstest(gaps, "expon").pvalue > UNLIKELY


@pytest.mark.parametrize("rate", [0.5, 0.9999999, 1e-3, 2.0**-33, 1e-12, 3.0])
def test_a_clock_of_any_rate_rings_at_that_rate(rate):
    # Ten thousand events in the mean, however long that takes; far below 1 cells have a limit.
    clocks = 500
    law = Law(np.zeros((0, 2), np.int32), np.zeros(0), np.full(clocks, rate), (2,) * clocks)
    units = int(10_000 / clocks / rate)
    events = PoissonSource(law, seed=1).draw(0, units)
    expected = clocks * rate * units
    assert abs(len(events.which) - expected) < 4 * np.sqrt(expected)
    assert stats.kstest(events.ticks / TICKS / units, "uniform").pvalue > UNLIKELY


def test_every_clock_has_its_own_key():
    law = ring(300)
    source = PoissonSource(law, seed=0)
    assert len(set(source._clocks.key.tolist())) == len(source._clocks.key) == 599

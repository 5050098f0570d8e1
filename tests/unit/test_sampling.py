"""Draws: the streams, the alias tables, and the law of (node, sample) in a schedule."""

import numba
import numpy as np
import pytest
from scipy.stats import chi2

import adfs
from adfs.errors import ParameterError
from adfs.kernels import sampling
from adfs.randomness import stream_key, stream_keys
from adfs.schedule.sampling_law import Drawer, alias_table
from support.problems import drawn_exactly

pytestmark = pytest.mark.uncompiled
MANY = 100_000 if numba.config.DISABLE_JIT else 1_000_000  # draws; uncompiled they take seconds
# Published outputs of SplitMix64 with seed 1234567 (the reference C code's test vector).
SPLITMIX64 = [
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
]

WEIGHTS = {
    "equal": np.ones(7),
    "one cell": np.array([3.0]),
    "two": np.array([1.0, 3.0]),
    "zeros between": np.array([0.0, 2.0, 0.0, 1.0, 0.0, 0.0, 5.0, 0.0]),
    "one of many": np.eye(50)[17],
    "ratio 1e12": np.array([1e-12, 1.0, 1e-6, 1e-12]),
    "one giant": np.concatenate([[1e12], np.ones(99)]),
    "random": np.random.default_rng(0).exponential(size=1000),
    "denormal": np.array([5e-324, 1.0, 1.0]),
    "denormal and zero": np.array([5e-324, 0.0]),
    "huge": np.array([1e300, 2e300, 3e300]),
}


@pytest.fixture(autouse=True)
def hashing_may_wrap_around():
    """NumPy reports it where the kernels run uncompiled."""
    with np.errstate(over="ignore"):
        yield


def uniforms(key, count, start=0):
    return np.array([sampling.uniform(np.uint64(key), t) for t in range(start, start + count)])


def draws(table, count, key=5, start=0):
    out = np.empty(count, np.int32)
    sampling.draw_which(out, start, np.uint64(key), table)
    return out


def is_likely(counts, probabilities):
    """Chi-square test at one in a million; cells of few expected hits are merged."""
    order = np.argsort(probabilities)
    counts, expected = counts[order], counts.sum() * probabilities[order]
    assert np.all(counts[expected == 0] == 0)
    groups = np.concatenate([[0], np.cumsum(expected)[:-1] // 10]).astype(int)
    counts, expected = np.bincount(groups, counts), np.bincount(groups, expected)
    live = expected > 0
    statistic = np.sum((counts[live] - expected[live]) ** 2 / expected[live])
    return statistic <= chi2.ppf(1 - 1e-6, max(1, live.sum() - 1))


def test_the_streams_are_splitmix64():
    expected = [(word >> 11) / 2**53 for word in SPLITMIX64]
    assert uniforms(1234567, 5).tolist() == expected


def test_a_stream_can_be_read_in_any_order():
    forward = uniforms(99, 50).tolist()
    assert [sampling.uniform(np.uint64(99), t) for t in reversed(range(50))] == forward[::-1]


def test_uniforms_are_uniform_in_the_unit_interval():
    many = np.empty(200_000, np.int32)
    sampling.draw_which(many, 0, np.uint64(3), alias_table(np.ones(64)))
    assert is_likely(np.bincount(many, minlength=64), np.full(64, 1 / 64))
    some = uniforms(3, 5_000)
    assert ((some >= 0) & (some < 1)).all()
    assert abs(some.mean() - 0.5) < 5 * np.sqrt(1 / 12 / 5_000)
    assert abs(np.corrcoef(some[:-1], some[1:])[0, 1]) < 5 / np.sqrt(5_000)


def test_the_last_bits_of_weights_do_not_change_which_cells_a_table_joins():
    # Four edges and four nodes of equal probabilities: every cell is filled exactly.
    weights = np.repeat([0.043208325433101595, 0.2067916745668984], 4)
    rounding = np.repeat([2.0**-52, 0.0], 4)
    joined = {
        tuple(alias_table(weights * (1.0 + ulps * rounding)) & sampling.ALIAS_MASK)
        for ulps in range(-8, 9)
    }
    assert len(joined) == 1


@pytest.mark.parametrize("name", WEIGHTS)
def test_an_alias_table_holds_exactly_the_probabilities_of_its_weights(name):
    weights = WEIGHTS[name]
    expected = weights / weights.sum()
    assert np.abs(drawn_exactly(alias_table(weights)) - expected).max() <= 2.0**-31


@pytest.mark.parametrize("name", WEIGHTS)
def test_drawn_frequencies_pass_a_chi_square_test(name):
    weights = WEIGHTS[name]
    counts = np.bincount(draws(alias_table(weights), 200_000), minlength=len(weights))
    assert is_likely(counts, weights / weights.sum())


@pytest.mark.parametrize("name", ["zeros between", "one of many", "denormal and zero"])
def test_a_cell_of_weight_zero_is_never_drawn(name):
    weights = WEIGHTS[name]
    drawn = draws(alias_table(weights), MANY)
    assert (weights[drawn] > 0).all()


def test_a_cell_of_weight_zero_is_not_drawn_by_the_ends_of_the_unit_interval():
    for weights in (WEIGHTS["zeros between"], WEIGHTS["one of many"], np.array([0.0, 1.0, 0.0])):
        table, size = alias_table(weights), len(weights)
        for cell in range(size):
            for u in (cell / size, np.nextafter((cell + 1) / size, 0.0), (cell + 0.5) / size):
                assert weights[sampling.alias_draw(table, 0, size, u)] > 0
        assert weights[sampling.alias_draw(table, 0, size, 1.0 - 2.0**-53)] > 0


def test_a_positive_weight_keeps_a_chance_however_small():
    table = alias_table(np.array([1e-30, 1.0, 1.0]))
    assert drawn_exactly(table)[0] > 0
    assert sampling.alias_draw(table, 0, 3, 0.0) == 0


def test_the_last_uniform_stays_inside_the_table():
    for size in (1, 2, 3, 5, 7, 1000, 1023, 2**20 + 1):
        table = alias_table(np.ones(size))
        assert sampling.alias_draw(table, 0, size, 1.0 - 2.0**-53) == size - 1


def test_a_table_inside_a_longer_one_is_drawn_from_its_start():
    first, second = np.array([1.0, 2.0]), np.array([3.0, 1.0, 0.0, 2.0])
    tables = np.concatenate([alias_table(first), alias_table(second)])
    for u in np.linspace(0, 0.999, 400):
        inside = sampling.alias_draw(tables, 2, 4, u)
        assert inside == sampling.alias_draw(alias_table(second), 0, 4, u)


@pytest.mark.parametrize("bad", [[], [0.0, 0.0], [1.0, -1e-9], [np.nan, 1.0], [np.inf, 1.0]])
def test_weights_that_are_no_weights_are_refused(bad):
    with pytest.raises(ParameterError, match="must be finite, >= 0 and not all zero"):
        alias_table(np.array(bad))


def test_draws_do_not_depend_on_where_blocks_are_cut():
    table = alias_table(WEIGHTS["random"])
    whole = draws(table, 1000, start=40)
    parts = [draws(table, 1, start=40), draws(table, 99, start=41), draws(table, 900, start=140)]
    assert np.array_equal(whole, np.concatenate(parts))


def test_streams_of_different_nodes_names_and_seeds_are_uncorrelated():
    keys = [*stream_keys(0, "samples", 4), stream_key(0, "schedule"), stream_key(1, "schedule")]
    assert len(set(keys)) == len(keys)
    streams = np.array([uniforms(key, 20_000) for key in keys])
    off_diagonal = np.corrcoef(streams) - np.eye(len(keys))
    assert np.abs(off_diagonal).max() < 5 / np.sqrt(20_000)


def test_a_nodes_key_depends_on_its_own_index_alone():
    assert np.array_equal(stream_keys(7, "samples", 3), stream_keys(7, "samples", 9)[:3])


@pytest.mark.parametrize("seed", [-1, 0.5])
def test_a_seed_that_is_no_whole_number_is_refused(seed):
    with pytest.raises(ParameterError, match="must be a whole number >= 0"):
        stream_key(seed, "schedule")


def heterogeneous_problem():
    rng = np.random.default_rng(1)
    sizes, shards = [1, 4, 9, 30], []
    for size in sizes:
        X = rng.normal(size=(size, 3)) * rng.exponential(2.0, size=(size, 1))
        shards.append((X, rng.normal(size=size), rng.uniform(0.5, 2.0, size)))
    shards[2][0][4] = 0.0  # a zero row: outside the augmented graph
    shards[3][2][7] = 0.0  # weight zero: outside too
    return adfs.Problem(shards, "squared", [0.3, 1.0, 2.0, 0.7], adfs.Topology.ring(4))


@pytest.mark.parametrize("how", ["paper", "exact"])
def test_pairs_of_node_and_sample_are_drawn_with_the_probabilities_of_the_parameters(how):
    problem = heterogeneous_problem()
    parameters = adfs.Parameters.choose(problem, how=how)
    smoothness = problem.weights * np.sum(problem.rows.values**2, axis=1)
    node = np.repeat(np.arange(4), np.diff(problem.offsets))
    root = np.where(smoothness > 0, np.sqrt(1 + smoothness / problem.sigma[node]), 0.0)
    p_sample = parameters.p_node[node] * root / np.bincount(node, root)[node]
    expected = np.concatenate([parameters.p_edge, p_sample])
    assert expected.sum() == pytest.approx(1.0)

    events = Drawer(parameters, seed=11).draw(0, MANY * 2 // 5)
    n_edges = len(parameters.edges)
    local = events.which >= n_edges
    assert (events.sample[~local] == -1).all()
    row = problem.offsets[np.where(local, events.which - n_edges, 0)] + events.sample
    cell = np.where(local, n_edges + row, events.which)
    counts = np.bincount(cell, minlength=len(expected))
    assert is_likely(counts, expected)
    assert not counts[n_edges + np.flatnonzero(smoothness == 0)].any()


def test_two_seeds_differ_and_one_seed_repeats():
    parameters = adfs.Parameters.choose(heterogeneous_problem(), how="exact")
    first, again, other = (Drawer(parameters, seed).draw(0, 5_000) for seed in (0, 0, 1))
    assert np.array_equal(first.which, again.which)
    assert np.array_equal(first.sample, again.sample)
    assert np.mean(first.which == other.which) < 0.9


def test_a_sample_comes_from_its_nodes_own_stream_at_the_events_index():
    problem = heterogeneous_problem()
    parameters = adfs.Parameters.choose(problem, how="exact")
    n_edges = len(parameters.edges)
    events = Drawer(parameters, seed=3).draw(70, 570)
    for t, which, sample in zip(range(70, 570), events.which, events.sample, strict=True):
        if which >= n_edges:
            node = which - n_edges
            own = parameters.importance_of(int(node))
            u = sampling.uniform(stream_key(3, f"samples/{node}"), t)
            assert sample == sampling.alias_draw(alias_table(own), 0, len(own), u)


def test_a_nodes_samples_do_not_depend_on_the_other_nodes_data():
    """Doubling node 0's rows leaves the samples that node 3 draws as they were."""
    problem = heterogeneous_problem()
    law = adfs.Parameters.choose(problem, how="exact")

    class Other:
        """The same law but for node 0, which has twice as many samples."""

        edges, p_edge, p_node = law.edges, law.p_edge, law.p_node

        @staticmethod
        def importance_of(node):
            weights = law.importance_of(node)
            return np.tile(weights, 2) if node == 0 else weights

    mine, theirs = Drawer(law, 5).draw(0, 20_000), Drawer(Other(), 5).draw(0, 20_000)
    at_three = mine.which == len(law.edges) + 3
    assert np.array_equal(mine.which, theirs.which)
    assert np.array_equal(mine.sample[at_three], theirs.sample[at_three])


def test_a_node_that_computes_without_samples_is_refused():
    law = adfs.Parameters.choose(heterogeneous_problem(), how="exact")

    class Empty:
        edges, p_edge, p_node = law.edges, law.p_edge, law.p_node

        @staticmethod
        def importance_of(node):
            return np.zeros_like(law.importance_of(node))

    with pytest.raises(ParameterError, match="not all zero"):
        Drawer(Empty(), 0)


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1, 2**32, 2**70 + 5, 2**140])
def test_keys_of_many_streams_are_those_of_numpy(seed):
    wanted = [stream_key(seed, f"samples/{number}") for number in (0, 3, 10**6)]
    assert stream_keys(seed, "samples", np.array([0, 3, 10**6])).tolist() == wanted

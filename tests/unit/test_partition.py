import itertools

import numpy as np
import pytest
from scipy.sparse import coo_matrix, csr_array, csr_matrix

from adfs.data.partition import partition, partition_rows
from adfs.errors import DataError, ParameterError

RANDOM = np.random.default_rng(7)
DENSE = RANDOM.standard_normal((53, 6))
SPARSE = csr_matrix(DENSE * (RANDOM.random(DENSE.shape) < 0.3))
Y = RANDOM.choice([-1.0, 1.0], 53)
WAYS = [
    ("even", None), ("contiguous", None), ("sorted", None), ("draw", 20), ("dirichlet:2", None),
]  # fmt: skip


def dense(X):
    return X if isinstance(X, np.ndarray) else X.toarray()


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("X", [DENSE, SPARSE], ids=["dense", "csr"])
@pytest.mark.parametrize(("how", "m"), WAYS)
def test_each_shard_holds_the_rows_that_partition_rows_names(X, how, m):
    weights = np.arange(53.0)
    shards = partition(X, Y, 7, how, seed=5, m=m, weights=weights)
    rows = partition_rows(53, 7, how, seed=5, m=m, y=Y)
    assert len(shards) == len(rows) == 7
    for shard, part in zip(shards, rows, strict=True):
        np.testing.assert_array_equal(dense(shard.X), dense(X)[part])
        np.testing.assert_array_equal(shard.y, Y[part])
        np.testing.assert_array_equal(shard.weights, weights[part])


@pytest.mark.parametrize("how", ["even", "contiguous", "sorted"])
@pytest.mark.parametrize("n_nodes", [1, 2, 7, 52, 53])
def test_each_row_lands_once_and_sizes_differ_by_at_most_one(how, n_nodes):
    rows = partition_rows(53, n_nodes, how, y=Y)
    sizes = [len(part) for part in rows]
    assert max(sizes) - min(sizes) <= 1
    np.testing.assert_array_equal(np.sort(np.concatenate(rows)), np.arange(53))


def test_even_depends_on_the_seed_alone():
    first, again, other = (partition_rows(1000, 4, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first[0], again[0])
    assert set(first[0]) != set(other[0])
    assert abs(first[0].mean() - 499.5) < 60, "mixed, not the first quarter"
    assert all((np.diff(part) > 0).all() for part in first), "a stream can be filtered"


def test_contiguous_keeps_the_order():
    np.testing.assert_array_equal(np.concatenate(partition_rows(53, 5, "contiguous")), range(53))


def test_draw_repeats_rows_between_nodes_but_never_within_one():
    rows = partition_rows(100, 30, "draw", seed=3, m=40)
    assert all(len(set(part)) == 40 for part in rows)
    counts = np.bincount(np.concatenate(rows), minlength=100)
    assert counts.sum() == 1200
    assert abs(counts - 12).max() < 12, "every row is as likely as any other"
    assert len({tuple(part) for part in rows}) == 30


def test_draw_at_one_node_does_not_depend_on_the_number_of_nodes():
    few, many = (partition_rows(100, n, "draw", seed=3, m=9) for n in (2, 200))
    np.testing.assert_array_equal(few[1], many[1])
    assert len(many) == 200


def test_sorted_gives_each_node_one_label_but_at_the_border():
    shards = partition(DENSE, Y, 6, "sorted")
    assert (np.diff(np.concatenate([shard.y for shard in shards])) >= 0).all()
    assert sum(len(set(shard.y)) == 2 for shard in shards) <= 1
    lows = np.concatenate(partition_rows(53, 6, "sorted", y=Y))[: (Y < 0).sum()]
    np.testing.assert_array_equal(lows, np.flatnonzero(Y < 0))


@pytest.mark.parametrize(("how", "m"), WAYS)
def test_dense_shards_are_consecutive_views_of_one_array(how, m):
    shards = partition(DENSE, Y, 5, how, m=m, weights=np.ones(53))
    for left, right in itertools.pairwise(shards):
        for a, b in zip(left, right, strict=True):
            assert a.flags.c_contiguous
            assert address(a) + a.nbytes == address(b)
    assert all(shard.X.base is not None for shard in shards)


@pytest.mark.parametrize(("how", "m"), WAYS)
def test_csr_shards_are_consecutive_views_of_one_array(how, m):
    shards = [shard.X for shard in partition(SPARSE, Y, 5, how, m=m)]
    for left, right in itertools.pairwise(shards):
        assert address(left.data) + left.data.nbytes == address(right.data)
        assert address(left.indices) + left.indices.nbytes == address(right.indices)
    for X in shards:
        X.check_format(full_check=True)
        assert X.indptr[0] == 0
        assert (X.indices.dtype, X.indptr.dtype) == (np.int32, np.int32)


@pytest.mark.parametrize(("how", "m"), [("even", None), ("draw", 20.0)])
def test_a_whole_float_is_a_number_of_nodes_and_of_rows(how, m):
    expected = partition_rows(53, 7, how, seed=5, m=m and int(m))
    found = partition_rows(53, 7.0, how, seed=5, m=m)
    assert [rows.tolist() for rows in found] == [rows.tolist() for rows in expected]


def test_contiguous_copies_nothing():
    for shard in partition(DENSE, Y, 5, "contiguous"):
        assert np.shares_memory(shard.X, DENSE)
        assert np.shares_memory(shard.y, Y)
    for shard in partition(SPARSE, Y, 5, "contiguous"):
        assert np.shares_memory(shard.X.data, SPARSE.data)


@pytest.mark.parametrize("X", [DENSE, SPARSE], ids=["dense", "csr"])
def test_float32_stays_and_other_numbers_become_float64(X):
    assert partition(X.astype(np.float32), Y, 3)[0].X.dtype == np.float32
    assert partition(X.astype(np.int64), Y, 3)[0].X.dtype == np.float64
    assert partition(X, Y.astype(int), 3)[0].y.dtype == np.float64


@pytest.mark.parametrize("convert", [csr_array, coo_matrix, np.asfortranarray, np.ndarray.tolist])
def test_other_layouts_give_the_same_rows(convert):
    given = DENSE.tolist() if convert is np.ndarray.tolist else convert(DENSE)
    for shard, expected in zip(partition(given, Y, 4), partition(DENSE, Y, 4), strict=True):
        np.testing.assert_array_equal(dense(shard.X), expected.X)
        assert isinstance(shard.X, np.ndarray | csr_matrix)


def test_doubled_csr_entries_add_up_and_the_argument_is_left_alone():
    X = csr_matrix((np.ones(4), np.array([1, 1, 2, 0]), np.array([0, 2, 4])), shape=(2, 3))
    first, second = partition(X, [1, -1], 2, "contiguous")
    assert first.X.toarray().tolist() == [[0, 2, 0]]
    assert second.X.toarray().tolist() == [[1, 0, 1]]
    assert second.X.indices.tolist() == [0, 2]
    assert X.nnz == 4


def test_long_indices_are_shortened():
    X = SPARSE.copy()
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    assert partition(X, Y, 3, "contiguous")[0].X.indices.dtype == np.int32


@pytest.mark.parametrize(
    ("kwargs", "sentence"),
    [
        ({"n_nodes": 0}, r"n_nodes=0 must be a whole number >= 1"),
        ({"n_nodes": 2.5}, r"n_nodes=2.5 must be a whole number >= 1"),
        ({"n_nodes": 54}, r"n_nodes=54 must not exceed 53.*lower it"),
        ({"how": "odd"}, r"how='odd' is unknown; choose one of even, contiguous, draw, sorted"),
        (
            {"how": "dirichlet:"},
            r"how='dirichlet:' must have a number from 0.001 to 1e6",
        ),
        ({"how": "dirichlet:0"}, r"how='dirichlet:0' must have a number from 0.001 to 1e6"),
        ({"how": "dirichlet:nan"}, r"must have a number from 0.001 to 1e6.*as in dirichlet:0.1"),
        ({"how": "dirichlet:1", "m": 5}, r"m=5 is for how='draw' only, not 'dirichlet:1'"),
        ({"how": "draw"}, r"how='draw' needs m=, the number of rows per node"),
        ({"how": "draw", "m": 54}, r"m=54 must be a whole number from 1 to 53"),
        ({"how": "draw", "m": 0}, r"m=0 must be a whole number from 1 to 53"),
        ({"how": "even", "m": 5}, r"m=5 is for how='draw' only, not 'even'; leave it out"),
        ({"seed": -1}, r"seed=-1 must be a whole number >= 0"),
    ],
)
def test_numbers_that_cannot_be_dealt_are_refused(kwargs, sentence):
    with pytest.raises(ParameterError, match=sentence):
        partition(DENSE, Y, **({"n_nodes": 3} | kwargs))


@pytest.mark.parametrize(
    ("X", "y", "weights", "sentence"),
    [
        (DENSE, Y[:-1], None, r"y must be .* one entry per row, 53 in all, but has shape \(52,\)"),
        (
            DENSE,
            Y,
            Y[1:],
            r"weights must be .* one entry per row, 53 in all, but has",
        ),
        (DENSE[:0], Y[:0], None, r"at least one row and one feature, but is empty"),
        (DENSE[0], Y, None, r"X must have two dimensions, rows and features, not shape"),
        (DENSE, Y[:, None], None, r"y must be one-dimensional .*; flatten"),
        (DENSE, Y, ["a"] * 53, r"weights must hold real numbers, not <U1; convert it"),
        (DENSE + 1j, Y, None, r"X must hold real numbers, not complex128"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(X, y, weights, sentence):
    with pytest.raises(DataError, match=sentence):
        partition(X, y, 3, weights=weights)


def test_words_may_be_labels_and_follow_their_rows():
    words = np.where(Y > 0, "spam", "ham")
    for how in ("even", "sorted"):
        plain, named = partition(DENSE, Y, 3, how=how), partition(DENSE, words, 3, how=how)
        for left, right in zip(plain, named, strict=True):
            if how == "even":
                assert (np.where(left.y > 0, "spam", "ham") == right.y).all()
            assert set(right.y) <= {"spam", "ham"}


@pytest.mark.parametrize("concentration", [1e-3, 0.1, 1.0, 1e6])
@pytest.mark.parametrize("n_nodes", [1, 2, 9, 53])
def test_shares_give_each_row_to_one_node_and_a_row_to_each_node(concentration, n_nodes):
    rows = partition_rows(53, n_nodes, f"dirichlet:{concentration:g}", y=Y)
    np.testing.assert_array_equal(np.sort(np.concatenate(rows)), np.arange(53))
    assert all(len(part) > 0 and (np.diff(part) > 0).all() for part in rows)


def test_a_small_concentration_makes_nodes_unlike():
    y = np.repeat(["a", "b"], 5_000)

    def spread(concentration, seed=1):
        rows = partition_rows(10_000, 10, f"dirichlet:{concentration:g}", seed, y=y)
        return np.std([np.mean(y[part] == "a") for part in rows]), np.ptp([*map(len, rows)])

    assert spread(1e6)[0] < 0.005
    assert spread(1e6)[1] < 20
    assert spread(0.1)[0] > 0.3
    assert spread(0.1)[1] > 500
    # The share of a class at a node has Dirichlet's standard deviation: 0.0909 for 1 and 10 nodes.
    shares = [
        np.isin(partition_rows(10_000, 10, "dirichlet:1", seed, y=y)[0], np.arange(5_000)).sum()
        for seed in range(200)
    ]
    assert np.std(np.array(shares) / 5_000) == pytest.approx(0.0905, rel=0.2)
    first, again, other = (partition_rows(10_000, 4, "dirichlet:1", s, y=y)[0] for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert len(first) != len(other) or (first != other).any()


def test_sorted_rows_need_labels():
    with pytest.raises(ParameterError, match="how='sorted' needs the labels, but y is None"):
        partition_rows(10, 2, "sorted")

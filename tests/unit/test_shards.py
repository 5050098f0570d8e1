"""Shards and labels: joined without a copy, checked with a sentence for everything wrong."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

import adfs
from adfs.agreement import Alone
from adfs.data.shards import as_rows, classes_of, encode, join_shards, slice_rows
from adfs.errors import DataError
from adfs.kernels.rows import CsrRows, DenseRows
from adfs.losses import LOSSES

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 6))
S = sp.random(40, 6, 0.4, format="csr", random_state=1)
Y = np.where(RNG.random(40) < 0.5, 1.0, -1.0)


def dense(rows, n_features=6):
    """What the kernels see, as a dense array."""
    if isinstance(rows, DenseRows):
        return np.asarray(rows.values)
    shape = (len(rows.indptr) - 1, n_features)
    return sp.csr_matrix((rows.values, rows.indices, rows.indptr), shape=shape).toarray()


@pytest.mark.parametrize("n_nodes", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("how", ["even", "contiguous", "sorted"])
def test_dense_shards_of_partition_are_joined_without_a_copy(how, dtype, n_nodes):
    shards = adfs.partition(X.astype(dtype), Y, n_nodes, how=how)
    joined = join_shards(shards)
    assert joined.rows.values.dtype == dtype
    assert all(np.shares_memory(shard.X, joined.rows.values) for shard in shards)
    assert np.array_equal(joined.rows.values, np.vstack([shard.X for shard in shards]))


@pytest.mark.parametrize("n_nodes", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_csr_shards_of_partition_are_joined_without_a_copy(dtype, n_nodes):
    shards = adfs.partition(S.astype(dtype), Y, n_nodes)
    joined = join_shards(shards)
    assert joined.rows.values.dtype == dtype
    assert joined.rows.indices.dtype == np.int32
    for shard in shards:
        if shard.X.nnz:
            assert np.shares_memory(shard.X.data, joined.rows.values)
            assert np.shares_memory(shard.X.indices, joined.rows.indices)
    assert np.array_equal(dense(joined.rows), np.vstack([shard.X.toarray() for shard in shards]))


def test_shards_that_are_not_neighbours_are_joined_in_order():
    pieces = [X[30:], X[:10], X[10:30].copy(), X[::2], X[:, ::-1]]
    joined = join_shards([(piece, Y[: len(piece)]) for piece in pieces])
    assert np.array_equal(joined.rows.values, np.vstack(pieces))
    assert joined.offsets.tolist() == [0, 10, 20, 40, 60, 100]
    assert joined.offsets.dtype == np.int64


def test_a_shard_of_one_row_with_an_odd_stride_is_joined_rightly():
    """One row of every fifth is contiguous for NumPy, whatever its stride says."""
    joined = join_shards([(X[::5][:1], [1]), (X[1:3], [0, 1])])
    assert np.array_equal(joined.rows.values, X[:3])
    column = X[:, :1].copy()
    joined = join_shards([(column[::3][:1], [1]), (column[1:4], [0, 1, 1])])
    assert np.array_equal(joined.rows.values, column[:4])


def test_arrays_that_merely_lie_side_by_side_are_copied():
    """Nobody promises that the second one's memory lives as long as the first one's."""
    memory = bytearray(X[:4].tobytes())
    left, right = (np.frombuffer(memory, count=12, offset=k * 96).reshape(2, 6) for k in (0, 1))
    joined = join_shards([(left, [0, 1]), (right, [0, 1])])
    assert np.array_equal(joined.rows.values, X[:4])
    assert not np.shares_memory(joined.rows.values, left)


def test_fortran_order_and_lists_are_understood():
    assert np.array_equal(as_rows(np.asfortranarray(X)).values, X)
    assert as_rows(np.asfortranarray(X)).values.flags.c_contiguous
    assert as_rows([[1, 2], [3, 4]]).values.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("dtype", [np.int8, np.int64, bool, np.float16, np.longdouble, ">f8"])
def test_other_number_types_become_float64(dtype):
    ints = np.array([[1, 0, 1], [0, 1, 1]])
    rows = as_rows(ints.astype(dtype))
    assert rows.values.dtype == np.float64
    assert np.array_equal(rows.values, ints)


@pytest.mark.parametrize("kind", ["csc", "coo", "lil", "bsr", "dok"])
@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array])
def test_every_sparse_format_becomes_csr_with_int32_indices(kind, make):
    rows = as_rows(make(S).asformat(kind))
    assert isinstance(rows, CsrRows)
    assert rows.indices.dtype == np.int32
    assert rows.indptr.dtype == np.int64
    assert np.array_equal(dense(rows), S.toarray())


def test_int64_indices_become_int32_where_they_fit():
    wide = S.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert as_rows(wide).indices.dtype == np.int32
    joined = join_shards([(wide[:20], Y[:20]), (S[20:], Y[20:])])
    assert joined.rows.indices.dtype == np.int32
    assert np.array_equal(dense(joined.rows), S.toarray())


def test_indices_stay_int64_where_they_do_not_fit():
    far = 2**31 + 5
    wide = sp.csr_matrix((np.ones(2), np.array([0, far]), np.array([0, 1, 2])), shape=(2, far + 1))
    rows = as_rows(wide)
    assert rows.indices.dtype == np.int64
    assert rows.indices.tolist() == [0, far]


def test_duplicates_in_csr_are_summed_and_the_callers_matrix_is_left_alone():
    values, indices, indptr = np.array([1.0, 2.0, 4.0, 8.0]), [1, 1, 2, 0], [0, 3, 4]
    twice = sp.csr_matrix((values, indices, indptr), shape=(2, 3))
    assert dense(as_rows(twice), 3).tolist() == [[0.0, 3.0, 4.0], [8.0, 0.0, 0.0]]
    assert len(as_rows(twice).values) == 3
    assert twice.nnz == 4


def test_dense_and_sparse_shards_can_be_mixed():
    joined = join_shards([(S[:5], Y[:5]), (X[:3], Y[:3]), (S[5:9].astype(np.float32), Y[:4])])
    expected = np.vstack([S[:5].toarray(), X[:3], S[5:9].toarray().astype(np.float32)])
    assert isinstance(joined.rows, CsrRows)
    np.testing.assert_allclose(dense(joined.rows), expected, rtol=1e-7)


@pytest.mark.parametrize("matrix", [X, X.astype(np.float32), S, S.astype(np.float32)])
def test_a_slice_of_rows_comes_back_as_it_was_stored_in_float64(matrix):
    part = slice_rows(as_rows(matrix), 6, 7, 19)
    assert sp.issparse(part) == sp.issparse(matrix)
    assert part.dtype == np.float64
    expected = matrix[7:19].toarray() if sp.issparse(matrix) else matrix[7:19]
    assert np.array_equal(part.toarray() if sp.issparse(part) else part, expected)


def test_weights_follow_their_rows_and_are_one_where_not_given():
    joined = join_shards([(X[:2], Y[:2], [0.5, 0.0]), (X[2:4], Y[2:4]), (X[4:5], Y[4:5], None)])
    assert joined.weights.tolist() == [0.5, 0.0, 1.0, 1.0, 1.0]


NAN, INF = X.copy(), S.copy()
NAN[3, 2], INF.data[5] = np.nan, -np.inf

WRONG = [
    ([], "There are no shards; a problem needs at least one node"),
    ([X], "The shard of node 0 must be (X, y) or (X, y, weights), not ndarray."),
    ([(X, Y), (X,)], "The shard of node 1 must be (X, y) or (X, y, weights), not tuple."),
    ([(X, Y[:7])], "one entry per row, 40 in all, but has shape (7,)"),
    ([(X, Y[:, None])], "one entry per row, 40 in all, but has shape (40, 1)"),
    ([(X, Y), (X[:0], Y[:0])], "The shard of node 1: X must have at least one row and one feature"),
    ([(X[0], Y[:6])], "must have two dimensions, rows and features, not shape (6,)"),
    ([(X[:, :0], Y)], "X must have at least one row and one feature"),
    ([(X.astype(complex), Y)], "X must hold real numbers, not complex128; convert it."),
    ([(X.astype(str), Y)], "must hold real numbers, not <U"),
    ([([[1.0, 2.0], [3.0]], Y[:2])], "is not a rectangular array"),
    ([(NAN, Y)], "The shard of node 0: X must be finite, but holds NaN or infinity; remove"),
    ([(S, Y), (INF, Y)], "The shard of node 1: X must be finite"),
    ([(X, np.where(Y > 0, np.inf, 0))], "y must be finite, but holds NaN or infinity"),
    ([(X, np.where(Y > 0, np.nan, 0))], "y must be finite, but holds NaN or infinity"),
    ([(X, Y, np.ones(39))], "weights must be one-dimensional with one entry per row, 40 in all"),
    ([(X, Y, -np.ones(40))], "weights must be >= 0, but one is -1.0; remove"),
    ([(X, Y, np.full(40, np.nan))], "weights must be finite"),
    ([(X, Y, ["heavy"] * 40)], "weights must hold real numbers"),
    ([(X, Y), (X[:, :5], Y)], "The shard of node 1 has 5 features but that of node 0 has 6;"),
]


@pytest.mark.parametrize(("shards", "sentence"), WRONG, ids=[s[-30:] for _, s in WRONG])
def test_wrong_shards_are_refused_with_a_sentence(shards, sentence):
    with pytest.raises(DataError, match=re.escape(sentence)):
        join_shards(shards)


def test_a_single_bad_number_is_found_in_every_block_of_a_large_array():
    large = np.zeros((3, 700_000), np.float32)
    for row in range(3):
        bad = large.copy()
        bad[row, -1] = np.nan
        with pytest.raises(DataError, match="must be finite, but holds NaN or infinity"):
            as_rows(bad)


@pytest.mark.parametrize(
    ("low", "high"),
    [(-1, 1), (0, 1), (1, 2), (2, 1), (-3.5, 7.25), ("ham", "spam"), (False, True), (b"a", b"b")],
)
def test_any_two_values_are_classes_and_the_larger_is_coded_1(low, high):
    targets = np.array([low, high, high, low])
    classes = classes_of(targets, LOSSES["logistic"], Alone())
    labels = encode(targets, LOSSES["logistic"], classes)
    assert sorted([low, high]) == classes.tolist()
    assert labels.tolist() == [1.0 if value == max(low, high) else -1.0 for value in targets]
    assert labels.dtype == np.float64


def test_words_as_objects_are_classes():
    targets = np.array(["no", "yes", "no"], dtype=object)
    classes = classes_of(targets, LOSSES["hinge"], Alone())
    labels = encode(targets, LOSSES["hinge"], classes)
    assert labels.tolist() == [-1.0, 1.0, -1.0]
    assert list(classes) == ["no", "yes"]


def test_a_shard_may_have_one_class_if_another_has_the_other():
    problem = adfs.Problem([(X[:4], np.zeros(4)), (X[4:8], np.ones(4))])
    assert problem.labels.tolist() == [-1.0] * 4 + [1.0] * 4
    assert problem.classes.tolist() == [0.0, 1.0]


BINARY = [name for name, loss in LOSSES.items() if loss.binary]
REAL = [name for name, loss in LOSSES.items() if not loss.binary]


@pytest.mark.parametrize("loss", BINARY)
def test_one_class_over_all_shards_is_refused(loss):
    with pytest.raises(DataError, match=r"All labels are 3 \(one class\); .* needs two classes"):
        adfs.Problem([(X[:4], [3] * 4), (X[4:8], [3] * 4)], loss)


@pytest.mark.parametrize("loss", BINARY)
def test_more_than_two_classes_are_refused(loss):
    with pytest.raises(DataError, match=r"There are 5 different labels \(0, 1, 2, 3, \.\.\.\)"):
        adfs.Problem([(X[:5], [0, 1, 2, 3, 4])], loss)


@pytest.mark.parametrize("loss", BINARY)
def test_labels_of_mixed_kinds_are_refused(loss):
    with pytest.raises(DataError, match="Labels of different kinds are mixed"):
        adfs.Problem([(X[:3], np.array([None, 1, "a"], dtype=object))], loss)


@pytest.mark.parametrize("loss", REAL)
def test_targets_of_a_regression_are_kept_as_numbers(loss):
    problem = adfs.Problem([(X[:3], [3, 1, 2])], loss)
    assert problem.labels.tolist() == [3.0, 1.0, 2.0]
    assert problem.classes is None
    with pytest.raises(DataError, match="needs numbers as targets"):
        adfs.Problem([(X[:2], ["a", "b"])], loss)


@pytest.mark.parametrize("rows", [X, S], ids=["dense", "csr"])
def test_shards_are_a_sequence_and_join_like_a_list_of_them(rows):
    shards = adfs.partition(rows, Y, 7, weights=np.arange(40.0))
    assert len(shards) == len(list(shards)) == 7
    assert len(shards[2:4]) == 2
    np.testing.assert_array_equal(shards[-1].y, list(shards)[6].y)
    with pytest.raises(IndexError):
        shards[7]
    joined, copied = join_shards(shards), join_shards(list(shards))
    np.testing.assert_array_equal(dense(joined.rows), dense(copied.rows))
    for name in ("targets", "weights", "offsets"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(copied, name))


def test_what_is_wrong_in_one_of_many_shards_names_its_node():
    broken = X.copy()
    broken[25] = np.nan
    with pytest.raises(DataError, match="node 6"):
        join_shards(adfs.partition(broken, Y, 10, how="contiguous"))

"""Sparse matrices whose indices point elsewhere are refused before compiled code follows them."""

import numpy as np
import pytest
import scipy.sparse as sp

import adfs
from adfs.apcg.smooth import LeastSquares, Quadratic
from adfs.data.files import save_npz
from adfs.data.matrices import checked_csr
from adfs.data.shards import as_rows
from adfs.errors import DataError
from adfs.model import Model

Y = np.array([1.0, -1.0, 1.0, -1.0])
EYE = sp.csr_matrix(np.eye(4))
MODEL = Model(
    np.ones(4), np.ones((1, 4)),
    {"format": 1, "loss": "logistic", "classes": [0, 1], "intercept": False, "n_features": 4},
)  # fmt: skip
FITTED = adfs.LogisticRegression(n_nodes=1).fit(np.eye(4), Y)

TAKERS = {
    "Problem": lambda X, path: adfs.Problem([(X, Y)], "squared"),
    "Problem, second shard": lambda X, path: adfs.Problem([(EYE, Y), (X, Y)], "squared"),
    "as_rows": lambda X, path: as_rows(X),
    "partition": lambda X, path: adfs.partition(X, Y, 2),
    "partition, no copy": lambda X, path: adfs.partition(X, Y, 2, how="contiguous"),
    "Quadratic": lambda X, path: Quadratic(X),
    "LeastSquares": lambda X, path: LeastSquares(X, Y),
    "fit": lambda X, path: adfs.Ridge(n_nodes=1).fit(X, Y),
    "estimator.predict": lambda X, path: FITTED.predict(X),
    "Model.predict": lambda X, path: MODEL.predict(X),
    "save_npz": lambda X, path: save_npz(path / "x.npz", X, Y),
}


def compressed(make, index, kind=np.int64):
    """Four rows (or columns) of one entry each, the third one at ``index``."""
    indices = np.array([0, 1, index, 3], dtype=kind)
    return make((np.ones(4), indices, np.arange(5, dtype=kind)), shape=(4, 4))


def changed(name, value):
    """A good matrix in which the user has written something else."""
    X = EYE.copy()
    setattr(X, name, np.array(value))
    return X


def bent_coo(name, index):
    X = sp.coo_matrix(np.eye(4))
    getattr(X, name)[2] = index
    return X


def bent_blocks(index):
    return sp.bsr_matrix((np.ones((2, 2, 2)), [0, index], [0, 1, 2]), shape=(4, 4))


WRONG = {
    "index just too large": lambda: compressed(sp.csr_matrix, 4),
    "index 5 of 4": lambda: compressed(sp.csr_matrix, 5),
    "index -3": lambda: compressed(sp.csr_matrix, -3),
    "index 10^8": lambda: compressed(sp.csr_matrix, 10**8),
    "index that int32 would wrap to 1": lambda: compressed(sp.csr_matrix, 2**32 + 1),
    "csr_array": lambda: compressed(sp.csr_array, 10**8),
    "CSC": lambda: compressed(sp.csc_matrix, 10**8),
    "CSC, negative": lambda: compressed(sp.csc_matrix, -(10**8)),
    "COO row": lambda: bent_coo("row", 10**8),
    "COO column": lambda: bent_coo("col", -1),
    "BSR": lambda: bent_blocks(2),
    "indptr that falls": lambda: changed("indptr", [0, 3, 1, 3, 4]),
    "indptr beyond the entries": lambda: changed("indptr", [0, 1, 2, 3, 10**7]),
    "indptr from below": lambda: changed("indptr", [-(10**7), 1, 2, 3, 4]),
    "indptr too short": lambda: changed("indptr", [0, 1, 4]),
    "indptr too long": lambda: changed("indptr", [0, 1, 2, 3, 4, 4]),
    "indices too few": lambda: changed("indices", [0, 1]),
    "values too few": lambda: changed("data", [1.0, 1.0]),
    "indices that are no whole numbers": lambda: changed("indices", [0.0, 1.0, 2.0, 3.0]),
}


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("case", WRONG)
def test_indices_outside_the_matrix_are_refused_everywhere(case, taker, tmp_path):
    with pytest.raises(DataError, match="indices fit its shape") as caught:
        TAKERS[taker](WRONG[case](), tmp_path)
    assert "build it again" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_the_sentence_names_the_shard_and_the_index():
    with pytest.raises(DataError, match=r"shard of node 1: .* index 5 must be >= 0 and < 4"):
        adfs.Problem([(EYE, Y), (compressed(sp.csr_matrix, 5), Y)], "squared")


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_good_matrices_of_every_format_are_taken(kind, taker, tmp_path):
    TAKERS[taker](EYE.asformat(kind), tmp_path)


def test_room_behind_the_last_entry_is_not_taken_for_entries():
    """SciPy allows it; joined with another shard it would shift all that follows."""
    roomy = EYE.copy()
    roomy.data, roomy.indices = np.append(roomy.data, 9.0), np.append(roomy.indices, 10**8)
    rows = adfs.Problem([(roomy, Y), (2.0 * EYE, Y)], "squared").rows
    assert rows.values.tolist() == [1.0] * 4 + [2.0] * 4
    assert rows.indices.tolist() == [0, 1, 2, 3] * 2


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_rows_without_entries_are_taken(kind):
    empty = sp.csr_matrix((np.ones(0), np.ones(0, kind), np.zeros(5, kind)), shape=(4, 4))
    assert as_rows(empty).indptr.tolist() == [0] * 5


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix])
def test_unsigned_indices_are_taken(kind):
    matrix = kind(np.eye(3))
    matrix.indices = matrix.indices.astype(np.uint64)
    matrix.indptr = matrix.indptr.astype(np.uint64)
    assert (checked_csr(matrix, "X").toarray() == np.eye(3)).all()

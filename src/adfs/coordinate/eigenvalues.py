"""Lower bounds on the least eigenvalue of a matrix too large for all its eigenvectors.

What is tried is bounded beforehand, so that setting up a run never costs more than a few seconds:

- Gershgorin's discs, in one reading of the matrix: ``lambda_min >= min_i (2 H_ii - sum_j |H_ij|)``.
- LAPACK for a dense matrix of at most ``LARGEST_DENSE`` rows.
- Factors of a sparse matrix. In a given order all their non-zeros lie between the diagonal and the
  first non-zero of each row, so counting these places bounds memory and work. The order is reverse
  Cuthill-McKee's, which is good for chains, grids and trees; a random graph has no good order.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.coordinate.vectors import Vector
from adfs.errors import DataError
from adfs.randomness import generator

LARGEST_DENSE = 3000  # rows of a dense matrix whose least eigenvalue is computed
LARGEST_WORK = 3e8  # multiplications for which sparse factors are tried
LANCZOS = 10  # restarts of Lanczos' method, of some 20 solutions each
ZERO = 10.0  # eigenvalues below ZERO * N * eps * lambda_max are rounding
DOUBTFUL = 1000.0  # up to DOUBTFUL times that, nobody can tell: then sigma_A = 0 is safe
SHARES = (0.999, 0.99, 0.9, 0.5)  # of the estimated least eigenvalue: the first that is proven


def least_eigenvalue(hessian: Any) -> float:
    """A proven lower bound that is affordable; 0 if no positive one is found."""
    discs = least_by_discs(hessian.diagonal(), np.asarray(abs(hessian).sum(axis=1)).ravel())
    if isinstance(hessian, np.ndarray):
        found = _least_of_dense(hessian) if len(hessian) <= LARGEST_DENSE else 0.0
    else:
        found = _least_of_sparse(hessian)
    return max(discs, found)


def least_by_discs(diagonal: Vector, sums: Vector) -> float:
    """Gershgorin's bound from (at least) the sums of magnitudes of the rows; 0 if it is negative.

    A sum of N numbers is exact to ``N eps`` of it.
    """
    rounding = 2.0 * len(sums) * np.finfo(float).eps
    return max(0.0, float((2.0 * diagonal - (1.0 + rounding) * sums).min()))


def refuse_negative(least: float, zero: float) -> None:
    """Stop if an eigenvalue is negative beyond rounding: f_A would not be convex."""
    if least < -zero:
        raise DataError(
            f"The matrix must be positive semi-definite; its least eigenvalue is {least:.3g}. "
            "f_A is not convex."
        )


def _least_of_dense(hessian: Vector) -> float:
    """The least eigenvalue less its rounding error; 0 if it may be zero."""
    from scipy.linalg import eigvalsh

    least = float(eigvalsh(hessian, subset_by_index=[0, 0])[0])
    rounding = len(hessian) * np.finfo(float).eps * float(np.abs(hessian).sum(axis=1).max())
    refuse_negative(least, ZERO * rounding)
    return least - rounding if least > DOUBTFUL * ZERO * rounding else 0.0


def _least_of_sparse(hessian: Any) -> float:
    """A share of what Lanczos' method finds, proven by factors; 0 if nothing is found."""
    from scipy.sparse import eye_array

    unit = float(hessian.diagonal().max())
    ordered = _in_good_order(hessian) if unit > 0.0 else None
    if ordered is None:
        return 0.0
    lift = 1e-10 * unit
    guess = _estimate(ordered, lift)
    identity = eye_array(hessian.shape[0], format="csc")
    for share in SHARES if guess > 10.0 * lift else ():
        if _positive_factor(ordered - share * guess * identity) is not None:
            return share * guess
    return 0.0


def _estimate(matrix: Any, lift: float) -> float:
    """The least eigenvalue from above and not exact, by Lanczos on ``(H + lift I)^-1``; or 0."""
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    size = matrix.shape[0]
    lifted = _positive_factor(matrix + lift * eye_array(size, format="csc"))
    if lifted is None:
        raise DataError(
            "The matrix must be positive semi-definite; it has an eigenvalue below "
            f"{-lift:.3g}. f_A is not convex."
        )
    inverse = LinearOperator((size, size), matvec=lifted.solve, dtype=np.float64)
    start = generator(0, "coordinate/geometry").standard_normal(size)
    try:
        dominant = eigsh(
            inverse, k=1, which="LA", v0=start, tol=1e-4, maxiter=LANCZOS,
            return_eigenvectors=False,
        )[0]  # fmt: skip
    except ArpackError:
        return 0.0
    return 1.0 / float(dominant) - lift


def worth_ordering(size: int, n_entries: int) -> bool:
    """Whether factors may be affordable: half of the entries lie below the diagonal, in ``size``
    columns of the factor, whose squared lengths are the work; least if all are equal.
    """
    return n_entries <= 2.0 * math.sqrt(size * LARGEST_WORK)


def _in_good_order(hessian: Any) -> Any:
    """The matrix in reverse Cuthill-McKee order (CSC); None if its factors would cost too much."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    if not worth_ordering(hessian.shape[0], hessian.nnz):
        return None
    # SciPy's routine reads 32-bit indices only; there are few entries.
    places = hessian.indices.astype(np.int32), hessian.indptr.astype(np.int32)
    order = reverse_cuthill_mckee(
        csr_array((hessian.data, *places), hessian.shape), symmetric_mode=True
    )
    if float(np.sum(column_lengths(hessian, order) ** 2)) > LARGEST_WORK:
        return None
    return hessian[order][:, order].tocsc()


def column_lengths(hessian: Any, order: NDArray[np.integer]) -> Vector:
    """At most how many non-zeros each column of a triangular factor has in this order.

    Row i of the factor begins at the row's first non-zero ``f_i``; column j holds the rows
    ``i >= j`` with ``f_i <= j``, and all rows before j have ``f_i <= i < j``.
    """
    size = len(order)
    rank = np.empty(size, np.int64)
    rank[order] = np.arange(size)
    first = rank.copy()
    filled = np.flatnonzero(np.diff(hessian.indptr))
    neighbours = np.minimum.reduceat(rank[hessian.indices], hessian.indptr[filled])
    first[filled] = np.minimum(first[filled], neighbours)
    begun = np.cumsum(np.bincount(first, minlength=size))
    return np.asarray(begun - np.arange(size), dtype=np.float64)


def _positive_factor(matrix: Any) -> Any:
    """Sparse factors in the given order if the matrix is positive definite, else None.

    With pivots on the diagonal only, LU is LDL' in another guise: by Sylvester's law its pivots
    have the signs of the eigenvalues.
    """
    from scipy.sparse.linalg import splu

    options = {"SymmetricMode": True}
    try:
        factor = splu(
            matrix.tocsc(), permc_spec="NATURAL", diag_pivot_thresh=0.0, options=options
        )  # fmt: skip
    except (RuntimeError, MemoryError):
        return None
    on_diagonal = np.array_equal(factor.perm_r, factor.perm_c)
    return factor if on_diagonal and (factor.U.diagonal() > 0.0).all() else None

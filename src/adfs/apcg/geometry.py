"""``R_i`` and ``sigma_A`` of a quadratic function, on the safe side.

The natural choice is ``Ker(A) = Ker(H)``: then ``A^+ A`` projects on the range of H,
``R_i = 1 - |Z' e_i|^2`` for an orthonormal basis Z of the kernel, and ``sigma_A`` is the least
positive eigenvalue of H. ``A = I`` is always allowed too: ``R_i = 1`` and ``sigma_A =
lambda_min(H)``, which is 0 if H is singular; 0 is a valid ``sigma_A`` for every convex function.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh
from scipy.sparse import csr_array, eye_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh, splu

from adfs.apcg.array_checks import Vector
from adfs.errors import DataError
from adfs.randomness import generator

LARGEST_DENSE = 3000  # rows of a dense matrix whose least eigenvalue is computed
LARGEST_WORK = 3e8  # multiplications for which sparse factors are tried
LANCZOS = 10  # restarts of Lanczos' method, of some 20 solutions each
ZERO = 10.0  # eigenvalues below ZERO * N * eps * lambda_max are rounding
DOUBTFUL = 1000.0  # up to DOUBTFUL times that, they may be rounding: then sigma_A = 0 is safe
SHARES = (0.999, 0.99, 0.9, 0.5)  # of the estimated least eigenvalue: the first that is proven
DENSE = 1500  # coordinates up to which all eigenvectors are computed


@dataclass(frozen=True, eq=False)
class Geometry:
    """Strong convexity on a subspace: ``R_i`` and ``sigma_A``, and Ker(A) if it is known."""

    R: Vector
    sigma_A: float
    kernel: NDArray[np.float64] | None = None

    @classmethod
    def plain(cls, size: int, sigma_A: float = 0.0) -> "Geometry":
        """``A = I``."""
        return cls(np.ones(size), sigma_A)

    @property
    def full(self) -> bool:
        """Whether A has no kernel."""
        return bool((self.R == 1.0).all())


def geometry_of(hessian: Any) -> Geometry:
    """Geometry of a symmetric matrix, dense or sparse.

    ``Ker(A) = Ker(H)`` by all eigenvectors up to ``DENSE`` coordinates. Larger matrices take
    ``A = I`` and a lower bound of their least eigenvalue, which may be 0.
    """
    size = hessian.shape[0]
    if size > DENSE:
        return Geometry.plain(size, least_eigenvalue(hessian))
    dense = hessian if isinstance(hessian, np.ndarray) else hessian.toarray()
    values, vectors = np.linalg.eigh(dense)
    rounding = size * np.finfo(float).eps * abs(values[-1])
    zero = ZERO * rounding
    refuse_negative(float(values[0]), zero)
    n_zero = int(np.searchsorted(values, zero, side="right"))
    if n_zero == size:
        return Geometry(np.zeros(size), 0.0, np.eye(size))
    if values[n_zero] <= DOUBTFUL * zero:
        return Geometry.plain(size)
    kernel = vectors[:, :n_zero]
    share = 1.0 - np.einsum("ij,ij->i", kernel, kernel)
    # Projectors are 0 or 1 on coordinates that H does not couple: rounding must not hide that.
    share[share > 1.0 - 1e-9], share[share < 1e-9] = 1.0, 0.0
    return Geometry(share, float(values[n_zero]) - rounding, kernel)


def least_eigenvalue(hessian: Any) -> float:
    """A proven lower bound that is affordable; 0 if no positive one is found."""
    discs = least_by_discs(hessian.diagonal(), np.asarray(abs(hessian).sum(axis=1)).ravel())
    if isinstance(hessian, np.ndarray):
        found = _least_of_dense(hessian) if len(hessian) <= LARGEST_DENSE else 0.0
    else:
        found = _least_of_sparse(hessian)
    return max(discs, found)


def least_by_discs(diagonal: Vector, sums: Vector) -> float:
    """Gershgorin's bound from the rows' sums of magnitudes, exact to ``N eps``; 0 if negative."""
    rounding = 2.0 * len(sums) * np.finfo(float).eps
    return max(0.0, float((2.0 * diagonal - (1.0 + rounding) * sums).min()))


def refuse_negative(least: float, zero: float) -> None:
    if least < -zero:
        raise DataError(
            f"The matrix must be positive semi-definite; its least eigenvalue is {least:.3g}. "
            "f_A is not convex."
        )


def _least_of_dense(hessian: Vector) -> float:
    """The least eigenvalue less its rounding error; 0 if it may be zero."""
    least = float(eigvalsh(hessian, subset_by_index=[0, 0])[0])
    rounding = len(hessian) * np.finfo(float).eps * float(np.abs(hessian).sum(axis=1).max())
    refuse_negative(least, ZERO * rounding)
    return least - rounding if least > DOUBTFUL * ZERO * rounding else 0.0


def _least_of_sparse(hessian: Any) -> float:
    """A share of what Lanczos' method finds, proven by factors; 0 if nothing is found."""
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
    """An upper estimate of the least eigenvalue, by Lanczos on ``(H + lift I)^-1``; or 0."""
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
        limits = {"v0": start, "tol": 1e-4, "maxiter": LANCZOS}
        dominant = eigsh(inverse, k=1, which="LA", return_eigenvectors=False, **limits)[0]
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
    if not worth_ordering(hessian.shape[0], hessian.nnz):
        return None
    # SciPy's routine reads 32-bit indices only; there are few entries.
    places = hessian.indices.astype(np.int32), hessian.indptr.astype(np.int32)
    short = csr_array((hessian.data, *places), hessian.shape)
    order = reverse_cuthill_mckee(short, symmetric_mode=True)
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

    With pivots on the diagonal only, LU is the same as LDL': by Sylvester's law its pivots have the
    signs of the eigenvalues.
    """
    given_order = {"permc_spec": "NATURAL", "diag_pivot_thresh": 0.0}
    try:
        factor = splu(matrix.tocsc(), options={"SymmetricMode": True}, **given_order)
    except (RuntimeError, MemoryError):
        return None
    on_diagonal = np.array_equal(factor.perm_r, factor.perm_c)
    return factor if on_diagonal and (factor.U.diagonal() > 0.0).all() else None

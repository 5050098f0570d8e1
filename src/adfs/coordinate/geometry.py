"""``R_i`` and ``sigma_A`` of a quadratic function, on the safe side.

The natural choice is ``Ker(A) = Ker(H)``: then ``A^+ A`` projects on the range of H,
``R_i = 1 - |Z' e_i|^2`` for an orthonormal basis Z of the kernel, and ``sigma_A`` is the least
positive eigenvalue of H. ``A = I`` is always allowed too: ``R_i = 1`` and ``sigma_A =
lambda_min(H)``, which is 0 if H is singular; 0 is a valid ``sigma_A`` for every convex function.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.coordinate.vectors import Vector
from adfs.errors import DataError
from adfs.randomness import generator

Matrix = NDArray[np.float64]

DENSE = 1500  # coordinates up to which all eigenvectors are computed
LARGEST_FACTOR = 20_000_000  # non-zeros of H beyond which no sparse factors are tried
ZERO = 10.0  # eigenvalues below ZERO * N * eps * lambda_max are rounding
DOUBTFUL = 1000.0  # up to DOUBTFUL times that, nobody can tell: then sigma_A = 0 is safe
SHARES = (0.999, 0.99, 0.9, 0.5)  # of the estimated least eigenvalue: the first that is proven


@dataclass(frozen=True, eq=False)
class Geometry:
    """Strong convexity on a subspace: ``R_i`` and ``sigma_A``, and Ker(A) if it is known."""

    R: Vector
    sigma_A: float
    kernel: Matrix | None = None

    @classmethod
    def plain(cls, size: int, sigma_A: float = 0.0) -> "Geometry":
        """``A = I``."""
        return cls(np.ones(size), sigma_A)

    @property
    def full(self) -> bool:
        """Whether A has no kernel."""
        return bool((self.R == 1.0).all())


def geometry_of(hessian: Any) -> Geometry:
    """Geometry of a symmetric matrix, dense or sparse, with ``Ker(A) = Ker(H)`` where it is small.

    All eigenvectors up to ``DENSE`` coordinates. Larger matrices take ``A = I`` and their least
    eigenvalue: dense ones by LAPACK, sparse ones by Lanczos on sparse factors and then proven by
    a factorisation. If that fails, or would cost too much, ``sigma_A = 0``.
    """
    size = hessian.shape[0]
    dense = isinstance(hessian, np.ndarray)
    if size <= DENSE:
        return _by_eigenvectors(hessian if dense else hessian.toarray())
    if dense:
        return Geometry.plain(size, _least_of_dense(hessian))
    if hessian.nnz > LARGEST_FACTOR:
        return Geometry.plain(size)
    return Geometry.plain(size, _least_of_sparse(hessian))


def _by_eigenvectors(hessian: Matrix) -> Geometry:
    values, vectors = np.linalg.eigh(hessian)
    size = len(values)
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
    # Projectors are 0 or 1 on coordinates that H keeps to itself: rounding must not hide that.
    share[share > 1.0 - 1e-9], share[share < 1e-9] = 1.0, 0.0
    return Geometry(share, float(values[n_zero]) - rounding, kernel)


def refuse_negative(least: float, zero: float) -> None:
    """Stop if an eigenvalue is negative beyond rounding: f_A would not be convex."""
    if least < -zero:
        raise DataError(
            f"The matrix must be positive semi-definite; its least eigenvalue is {least:.3g}. "
            "f_A is not convex."
        )


def _least_of_dense(hessian: Matrix) -> float:
    """The least eigenvalue less its rounding error; 0 if it may be zero."""
    from scipy.linalg import eigvalsh

    least = float(eigvalsh(hessian, subset_by_index=[0, 0])[0])
    rounding = len(hessian) * np.finfo(float).eps * float(np.abs(hessian).sum(axis=1).max())
    refuse_negative(least, ZERO * rounding)
    return least - rounding if least > DOUBTFUL * ZERO * rounding else 0.0


def _least_of_sparse(hessian: Any) -> float:
    """A proven lower bound of the least eigenvalue of a sparse matrix; 0 if none is found."""
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    size = hessian.shape[0]
    unit = float(hessian.diagonal().max())
    identity = eye_array(size, format="csc")
    lift = 1e-10 * unit
    lifted = _positive_factor(hessian + lift * identity)
    if lifted is None:
        raise DataError(
            "The matrix must be positive semi-definite; it has an eigenvalue below "
            f"{-lift:.3g}. f_A is not convex."
        )
    inverse = LinearOperator((size, size), matvec=lifted.solve, dtype=np.float64)
    start = generator(0, "coordinate/geometry").standard_normal(size)
    try:
        dominant = eigsh(
            inverse, k=1, which="LA", v0=start, tol=1e-4, return_eigenvectors=False
        )[0]  # fmt: skip
    except ArpackError:
        return 0.0
    guess = 1.0 / float(dominant) - lift  # from above, and not exact: the factors decide
    for share in SHARES if guess > 10.0 * lift else ():
        if _positive_factor(hessian - share * guess * identity) is not None:
            return share * guess
    return 0.0


def _positive_factor(matrix: Any) -> Any:
    """Sparse factors if the matrix is positive definite, else None.

    With pivots on the diagonal only, LU is LDL' in another guise: by Sylvester's law its pivots
    have the signs of the eigenvalues.
    """
    from scipy.sparse.linalg import splu

    options = {"SymmetricMode": True}
    try:
        factor = splu(
            matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options
        )
    except (RuntimeError, MemoryError):
        return None
    on_diagonal = np.array_equal(factor.perm_r, factor.perm_c)
    return factor if on_diagonal and (factor.U.diagonal() > 0.0).all() else None

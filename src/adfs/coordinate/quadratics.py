"""Smooth parts whose iterations are compiled: a quadratic by its matrix, and least squares."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from adfs.coordinate.eigenvalues import LARGEST_DENSE, least_by_discs, worth_ordering
from adfs.coordinate.geometry import DENSE, Geometry, geometry_of
from adfs.coordinate.state import State
from adfs.coordinate.vectors import (
    LEAST,
    Vector,
    in_range,
    norm,
    not_negative,
    numbers,
    one_each,
    refuse_unreal,
)
from adfs.errors import DataError
from adfs.kernels import apcg as kernel
from adfs.kernels.rows import CsrRows, DenseRows

SYMMETRIC = 1e-12  # asymmetry, relative to the largest entry, that counts as rounding
IN_RANGE = 1e-8
LARGEST_PRODUCT = 300_000_000  # multiplications for which K'K is computed from a sparse K


class Quadratic:
    """``f_A(x) = x'Hx / 2 - b'x`` for a symmetric positive semi-definite H.

    Parameters
    ----------
    H : array or sparse matrix, shape (N, N)
        An iteration reads one row.
    b : array, shape (N,), optional
        Zero by default. Where H is singular and no penalty bounds x, b must be in H's range.

    Examples
    --------
    >>> Quadratic([[2.0, 1.0], [1.0, 2.0]], [1.0, 0.0]).value(np.ones(2))
    2.0
    """

    def __init__(self, H: Any, b: ArrayLike | None = None) -> None:
        matrix = _matrix("H", H)
        if matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
            raise DataError(f"H has shape {matrix.shape}; it must be square and not empty.")
        largest = float(abs(matrix).max())
        if float(abs(matrix - matrix.T).max()) > SYMMETRIC * largest:
            raise DataError("H must be symmetric; pass (H + H.T) / 2 for the same function.")
        self.H = matrix
        self.size = matrix.shape[0]
        self.b = np.zeros(self.size) if b is None else in_range("b", numbers("b", b), LEAST)
        if self.b.shape != (self.size,):
            raise DataError(f"b has shape {self.b.shape}; H has {self.size} rows.")
        self.M = np.array(matrix.diagonal(), dtype=np.float64)
        self.majorant = np.asarray(abs(matrix).sum(axis=1)).ravel()
        self._refuse_bad_diagonal()
        self._rows = _rows(matrix)

    def _refuse_bad_diagonal(self) -> None:
        """A cheap sign of a matrix that is not positive semi-definite, for every size."""
        bad = np.flatnonzero((self.M < 0.0) | ((self.M == 0.0) & (self.majorant > 0.0)))
        if len(bad):
            raise DataError(
                f"H must be positive semi-definite; H[{bad[0]}, {bad[0]}]={self.M[bad[0]]:g} in a "
                "row that is not zero says it is not."
            )

    def gradient(self, x: Vector) -> Vector:
        """All coordinates of the gradient."""
        return np.asarray(self.H @ x - self.b)

    def value(self, x: Vector) -> float:
        """``f_A(x)``."""
        return float(x @ (0.5 * (self.H @ x) - self.b))

    def geometry(self) -> Geometry:
        """``R`` and ``sigma_A`` for ``Ker(A) = Ker(H)``, or for ``A = I`` if N is large."""
        return geometry_of(self.H)

    def bounded_on(self, kernel_basis: Any) -> bool:
        """Whether b has no part in the kernel, along which f_A would fall for ever."""
        return norm(kernel_basis.T @ self.b) <= IN_RANGE * norm(self.b)

    def refresh(self, state: State) -> None:
        """Nothing is kept beside the coordinates."""

    def partial(self, i: int, state: State) -> float:
        """``grad_i f_A(y)``."""
        return float(kernel.along(i, self._rows, state.clock, state.pairs) - self.b[i])

    def follow(self, i: int, to_anchor: float, to_offset: float, state: State) -> None:
        """Nothing but coordinate ``i`` changes."""

    def run(self, which: Any, terms: kernel.Separable, state: State) -> None:
        """Compiled iterations."""
        kernel.run_quadratic(
            which, self._rows, self.b, terms, state.rule, state.clock, state.pairs
        )  # fmt: skip


class LeastSquares:
    """``f_A(x) = |Kx - b|^2 / 2 + sum_i ridge_i x_i^2 / 2``.

    Parameters
    ----------
    K : array or sparse matrix, shape (m, N)
        An iteration reads one column, and adds it to a vector of length m.
    b : array, shape (m,)
    ridge : float or array, >= 0
        For all coordinates or one each.

    Examples
    --------
    >>> LeastSquares([[1.0, 0.0], [0.0, 2.0]], [1.0, 2.0]).value(np.zeros(2))
    2.5
    """

    def __init__(self, K: Any, b: ArrayLike, ridge: ArrayLike = 0.0) -> None:
        self.K = _matrix("K", K)
        self.b = in_range("b", numbers("b", b), LEAST)
        n_rows, self.size = self.K.shape
        if not self.size:
            raise DataError("K has no columns; there is no coordinate to optimise.")
        if self.b.shape != (n_rows,):
            raise DataError(f"b has shape {self.b.shape}; K has {n_rows} rows.")
        self.ridge = in_range("ridge", not_negative("ridge", one_each("ridge", ridge, self.size)))
        self.M = np.asarray((self.K**2).sum(axis=0)).ravel() + self.ridge
        size = abs(self.K)
        self.majorant = np.asarray(size.T @ (size @ np.ones(self.size))) + self.ridge
        self._columns = _rows(self.K.T)

    def gradient(self, x: Vector) -> Vector:
        """All coordinates of the gradient."""
        return np.asarray(self.K.T @ (self.K @ x - self.b) + self.ridge * x)

    def value(self, x: Vector) -> float:
        """``f_A(x)``."""
        return 0.5 * float(np.sum((self.K @ x - self.b) ** 2) + self.ridge @ x**2)

    def geometry(self) -> Geometry:
        """``R`` and ``sigma_A`` of ``K'K + diag(ridge)``, or what is known without computing it."""
        from scipy.sparse import diags_array

        if not self._gram_is_worth_it():
            discs = least_by_discs(self.M, self.majorant)
            return Geometry.plain(self.size, max(discs, float(self.ridge.min())))
        gram = self.K.T @ self.K
        if isinstance(gram, np.ndarray):
            return geometry_of(gram + np.diag(self.ridge))
        return geometry_of((gram + diags_array(self.ridge)).tocsr())

    def _gram_is_worth_it(self) -> bool:
        """Whether ``K'K`` is affordable and, where N is large, says more than the ridge does."""
        if self.size > DENSE and (self.ridge.min() > 0.0 or len(self.b) < self.size):
            return False
        if isinstance(self.K, np.ndarray):
            return bool(self.size <= LARGEST_DENSE)
        # A row with k non-zeros adds k^2 products, each to another entry at worst.
        n_products = int(np.sum(np.diff(self.K.indptr).astype(np.int64) ** 2))
        if self.size > DENSE and not worth_ordering(self.size, n_products):
            return False
        return n_products <= LARGEST_PRODUCT

    def bounded_on(self, kernel_basis: Any) -> bool:
        """A sum of squares is bounded below."""
        return True

    def refresh(self, state: State) -> None:
        """``K anchor - b`` and ``K offset``, which iterations keep up to date by additions."""
        if not state.images.size:
            state.images = np.zeros((1, 2 * len(self.b)))
        state.images[0, ::2] = self.K @ state.anchor - self.b
        state.images[0, 1::2] = self.K @ state.offset

    def partial(self, i: int, state: State) -> float:
        """``grad_i f_A(y)``."""
        along = kernel.along(i, self._columns, state.clock, state.images)
        return float(along + self.ridge[i] * state.y[i])

    def follow(self, i: int, to_anchor: float, to_offset: float, state: State) -> None:
        """Move the images."""
        kernel.add_column(i, self._columns, to_anchor, to_offset, state.images)

    def run(self, which: Any, terms: kernel.Separable, state: State) -> None:
        """Compiled iterations."""
        kernel.run_least_squares(
            which, self._columns, self.ridge, terms, state.rule, state.clock, state.pairs,
            state.images,
        )  # fmt: skip


def _matrix(name: str, given: Any) -> Any:
    """A finite float64 matrix of sane size: C-contiguous if dense, canonical CSR if sparse."""
    from scipy.sparse import csr_array, issparse

    if issparse(given):
        refuse_unreal(name, given.dtype)
        matrix = csr_array(given, dtype=np.float64)
        matrix.sum_duplicates()
        values: Vector = matrix.data
    else:
        matrix = values = numbers(name, given)
    if matrix.ndim != 2:
        raise DataError(f"{name} must be a matrix; it has {matrix.ndim} dimensions.")
    if not np.isfinite(values).all():
        raise DataError(f"{name} has entries that are not finite.")
    in_range(name, values, LEAST)
    return matrix


def _rows(matrix: Any) -> DenseRows | CsrRows:
    """The matrix as kernels read it."""
    if isinstance(matrix, np.ndarray):
        return DenseRows(np.ascontiguousarray(matrix))
    rows = matrix.tocsr()
    rows.sort_indices()
    return CsrRows(rows.data, rows.indices, rows.indptr.astype(np.int64))

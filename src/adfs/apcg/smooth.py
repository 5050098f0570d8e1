"""Smooth parts ``f_A``: a quadratic by its matrix, least squares, and functions of a user."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, diags_array, issparse

from adfs.apcg import array_checks as check
from adfs.apcg.array_checks import LEAST, Vector
from adfs.apcg.geometry import (
    DENSE,
    LARGEST_DENSE,
    Geometry,
    geometry_of,
    least_by_discs,
    worth_ordering,
)
from adfs.data.matrices import checked_csr
from adfs.errors import DataError, ParameterError
from adfs.kernels import apcg as kernel
from adfs.kernels.rows import CsrRows, DenseRows

PARTIAL = "gradient(i, y)"
SYMMETRIC = 1e-12  # asymmetry, relative to the largest entry, that counts as rounding
IN_RANGE = 1e-8
LARGEST_PRODUCT = 300_000_000  # multiplications for which K'K is computed from a sparse K


class LazyPoint:
    """The point ``y_t``: ``y[j]`` costs O(1), ``np.asarray(y)`` gives all coordinates."""

    def __init__(self, state: "ApcgState") -> None:
        self._state = state

    def __len__(self) -> int:
        return self._state.size

    def __getitem__(self, j: Any) -> Any:
        state = self._state
        return state.anchor[j] + state.clock[kernel.SCALE] * state.offset[j]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self[:], dtype=dtype)


class ApcgState:
    """What `adfs.kernels.apcg` defines; for least squares also the two images under K."""

    def __init__(self, rule: kernel.Rule, clock: Vector, start: Vector) -> None:
        self.rule, self.clock, self.size = rule, clock, len(start)
        self.pairs: NDArray[np.float64] = np.zeros((1, 2 * len(start)))
        self.anchor, self.offset = self.pairs[0, ::2], self.pairs[0, 1::2]
        self.anchor[:] = start
        self.images: NDArray[np.float64] = np.zeros((1, 0))
        self.y = LazyPoint(self)

    def x(self) -> Vector:
        return np.asarray(self.anchor + self.clock[kernel.SCALE] * self.offset)

    def v(self) -> Vector:
        behind = self.rule.lean * self.clock[kernel.SCALE]
        return np.asarray(self.anchor - behind * self.offset)

    @property
    def parts(self) -> tuple[kernel.Rule, Vector, Vector, Vector]:
        """What the kernels' loops read and write."""
        return self.rule, self.clock, self.pairs, self.images


class Smooth:
    """What APCG needs of ``f_A``; the base of the three kinds of smooth parts.

    Attributes
    ----------
    size : int
        Number of coordinates.
    M : array
        ``f_A`` is ``M_i``-smooth along coordinate i.
    majorant : array
        A diagonal D with ``f_A(x + h) <= f_A(x) + <grad f_A(x), h> + h'Dh / 2``.
    """

    size: int
    M: Vector
    majorant: Vector

    def gradient(self, x: Vector) -> Vector:
        """All coordinates of the gradient."""
        raise NotImplementedError

    def value(self, x: Vector) -> float | None:
        """``f_A(x)``; None if it is not known."""
        raise NotImplementedError

    def geometry(self) -> Geometry | None:
        """``R`` and ``sigma_A``; None if they cannot be computed."""
        return None

    def bounded_on(self, kernel_basis: Any) -> bool:
        """Whether f_A is constant, not decreasing, along these directions of H's kernel."""
        return True

    def refresh(self, state: ApcgState) -> None:
        """Compute again what iterations keep up to date by small additions."""

    def partial(self, i: int, state: ApcgState) -> float:
        """``grad_i f_A(y)``."""
        raise NotImplementedError

    def follow(self, i: int, to_anchor: float, to_offset: float, state: ApcgState) -> None:
        """Update what changes with coordinate ``i`` besides its own two numbers."""


class SmoothFunction(Smooth):
    """A convex function given by its coordinate gradients.

    Parameters
    ----------
    gradient : callable
        ``gradient(i, y)`` returns the i-th partial derivative at y. ``y[j]`` is computed when
        used, in O(1); ``np.asarray(y)`` gives all coordinates.
    M : array
        One positive number per coordinate: the gradient's i-th entry is M_i-Lipschitz in x_i.
    value : callable, optional
        ``value(x)`` returns the function at an array; without it the result has no objective.

    Notes
    -----
    Strong convexity cannot be found by calling: give ``sigma_A`` (and ``R``, if it holds on a
    subspace only) to `apcg`, or the convex form is used.

    Examples
    --------
    >>> f = SmoothFunction(lambda i, y: 2.0 * y[i] - 1.0, M=[2.0, 2.0])
    >>> f.gradient(np.zeros(2)).tolist()
    [-1.0, -1.0]
    """

    def __init__(
        self,
        gradient: Callable[[int, LazyPoint | Vector], float],
        M: ArrayLike,
        value: Callable[[Vector], float] | None = None,
    ) -> None:
        check.require_callable("gradient", gradient, "i, y")
        check.require_callable("value", value, "x", optional=True)
        self.M = check.in_range("M", check.numbers("M", M), LEAST)
        if self.M.ndim != 1 or not self.M.size or self.M.min() <= 0.0:
            raise ParameterError(
                "M must hold one number > 0 for each coordinate: how fast the i-th partial "
                "derivative changes along coordinate i."
            )
        self.size = len(self.M)
        # A convex function with these M_i has a Hessian of trace at most sum M_i.
        self.majorant = np.full(self.size, self.M.sum())
        self._partial, self._value = gradient, value

    def gradient(self, x: Vector) -> Vector:
        return np.array([check.returned(PARTIAL, self._partial(i, x)) for i in range(self.size)])

    def value(self, x: Vector) -> float | None:
        return None if self._value is None else check.returned_value("value(x)", self._value(x), x)

    def partial(self, i: int, state: ApcgState) -> float:
        return check.returned(PARTIAL, self._partial(i, state.y))


class Quadratic(Smooth):
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
        self.H = _matrix("H", H)
        self.size = self.H.shape[0]
        if self.H.shape != (self.size, self.size) or not self.size:
            raise DataError(f"H has shape {self.H.shape}; it must be square and not empty.")
        if float(abs(self.H - self.H.T).max()) > SYMMETRIC * float(abs(self.H).max()):
            raise DataError("H must be symmetric; pass (H + H.T) / 2 for the same function.")
        given = np.zeros(self.size) if b is None else b
        self.b = check.in_range("b", check.numbers("b", given), LEAST)
        if self.b.shape != (self.size,):
            raise DataError(f"b has shape {self.b.shape}; H has {self.size} rows.")
        self.M = np.array(self.H.diagonal(), dtype=np.float64)
        self.majorant = np.asarray(abs(self.H).sum(axis=1)).ravel()
        # A cheap sign of a matrix that is not positive semi-definite, at any size.
        bad = np.flatnonzero((self.M < 0.0) | ((self.M == 0.0) & (self.majorant > 0.0)))
        if len(bad):
            raise DataError(
                f"H must be positive semi-definite, but it has H[{bad[0]}, {bad[0]}]="
                f"{self.M[bad[0]]:g} in a row that is not zero."
            )
        self._rows = _rows(self.H)

    def gradient(self, x: Vector) -> Vector:
        return np.asarray(self.H @ x - self.b)

    def value(self, x: Vector) -> float:
        return float(x @ (0.5 * (self.H @ x) - self.b))

    def geometry(self) -> Geometry | None:
        return geometry_of(self.H)

    def bounded_on(self, kernel_basis: Any) -> bool:
        return check.norm(kernel_basis.T @ self.b) <= IN_RANGE * check.norm(self.b)

    def partial(self, i: int, state: ApcgState) -> float:
        return float(kernel.along(i, self._rows, state.clock, state.pairs) - self.b[i])

    def run(self, which: Any, terms: kernel.Separable, state: ApcgState) -> None:
        """Compiled iterations."""
        kernel.run_quadratic(which, self._rows, self.b, terms, *state.parts)


class LeastSquares(Smooth):
    """``f_A(x) = |Kx - b|^2 / 2 + sum_i ridge_i x_i^2 / 2``.

    Parameters
    ----------
    K : array or sparse matrix, shape (m, N)
        An iteration reads one column, and adds it to a vector of length m.
    b : array, shape (m,)
    ridge : float or array, >= 0
        One for all coordinates or one per coordinate.

    Examples
    --------
    >>> LeastSquares([[1.0, 0.0], [0.0, 2.0]], [1.0, 2.0]).value(np.zeros(2))
    2.5
    """

    def __init__(self, K: Any, b: ArrayLike, ridge: ArrayLike = 0.0) -> None:
        self.K = _matrix("K", K)
        self.b = check.in_range("b", check.numbers("b", b), LEAST)
        n_rows, self.size = self.K.shape
        if not self.size:
            raise DataError("K has no columns; there is no coordinate to optimise.")
        if self.b.shape != (n_rows,):
            raise DataError(f"b has shape {self.b.shape}; K has {n_rows} rows.")
        self.ridge = check.one_each("ridge", check.strengths("ridge", ridge), self.size)
        self.M = np.asarray((self.K**2).sum(axis=0)).ravel() + self.ridge
        size = abs(self.K)
        self.majorant = np.asarray(size.T @ (size @ np.ones(self.size))) + self.ridge
        self._columns = _rows(self.K.T)

    def gradient(self, x: Vector) -> Vector:
        return np.asarray(self.K.T @ (self.K @ x - self.b) + self.ridge * x)

    def value(self, x: Vector) -> float:
        return 0.5 * float(np.sum((self.K @ x - self.b) ** 2) + self.ridge @ x**2)

    def geometry(self) -> Geometry | None:
        """``R`` and ``sigma_A`` of ``K'K + diag(ridge)``, or bounds without computing it."""
        if not self._gram_is_worth_it():
            discs = least_by_discs(self.M, self.majorant)
            return Geometry.plain(self.size, max(discs, float(self.ridge.min())))
        gram = self.K.T @ self.K
        if isinstance(gram, np.ndarray):
            return geometry_of(gram + np.diag(self.ridge))
        return geometry_of((gram + diags_array(self.ridge)).tocsr())

    def _gram_is_worth_it(self) -> bool:
        """Whether ``K'K`` is affordable and, where N is large, gives more than the ridge does."""
        if self.size > DENSE and (self.ridge.min() > 0.0 or len(self.b) < self.size):
            return False
        if isinstance(self.K, np.ndarray):
            return bool(self.size <= LARGEST_DENSE)
        # A row with k non-zeros adds k^2 products, each to another entry at worst.
        n_products = int(np.sum(np.diff(self.K.indptr).astype(np.int64) ** 2))
        if self.size > DENSE and not worth_ordering(self.size, n_products):
            return False
        return n_products <= LARGEST_PRODUCT

    def refresh(self, state: ApcgState) -> None:
        """``K anchor - b`` and ``K offset``, which iterations keep up to date by additions."""
        if not state.images.size:
            state.images = np.zeros((1, 2 * len(self.b)))
        state.images[0, ::2] = self.K @ state.anchor - self.b
        state.images[0, 1::2] = self.K @ state.offset

    def partial(self, i: int, state: ApcgState) -> float:
        along = kernel.along(i, self._columns, state.clock, state.images)
        return float(along + self.ridge[i] * state.y[i])

    def follow(self, i: int, to_anchor: float, to_offset: float, state: ApcgState) -> None:
        kernel.add_column(i, self._columns, to_anchor, to_offset, state.images)

    def run(self, which: Any, terms: kernel.Separable, state: ApcgState) -> None:
        """Compiled iterations."""
        kernel.run_least_squares(which, self._columns, self.ridge, terms, *state.parts)


def _matrix(name: str, given: Any) -> Any:
    """A finite float64 matrix in range: C-contiguous if dense, canonical CSR if sparse."""
    if issparse(given):
        check.require_real(name, given.dtype)
        matrix = csr_array(checked_csr(given, name), dtype=np.float64)
        matrix.sum_duplicates()
        values: Vector = matrix.data
    else:
        matrix = values = check.numbers(name, given)
    if matrix.ndim != 2:
        raise DataError(f"{name} must be a matrix; it has {matrix.ndim} dimensions.")
    if not np.isfinite(values).all():
        raise DataError(f"{name} has entries that are not finite.")
    check.in_range(name, values, LEAST)
    return matrix


def _rows(matrix: Any) -> DenseRows | CsrRows:
    if isinstance(matrix, np.ndarray):
        return DenseRows(np.ascontiguousarray(matrix))
    rows = matrix.tocsr()
    rows.sort_indices()
    return CsrRows(rows.data, rows.indices, rows.indptr.astype(np.int64))

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

from adfs.coordinate.eigenvalues import DOUBTFUL, ZERO, least_eigenvalue, refuse_negative
from adfs.coordinate.vectors import Vector

Matrix = NDArray[np.float64]

DENSE = 1500  # coordinates up to which all eigenvectors are computed


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
    """Geometry of a symmetric matrix, dense or sparse.

    ``Ker(A) = Ker(H)`` by all eigenvectors up to ``DENSE`` coordinates. Larger matrices take
    ``A = I`` and a lower bound of their least eigenvalue (`eigenvalues`), which may be 0.
    """
    size = hessian.shape[0]
    if size > DENSE:
        return Geometry.plain(size, least_eigenvalue(hessian))
    return _by_eigenvectors(hessian if isinstance(hessian, np.ndarray) else hessian.toarray())


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

"""Bounds on the spectrum of a large graph, on the side that Theorem 1 allows.

``lambda_min`` may be too small and resistances too large: then ``sigma_A`` is a lower bound, and
the proof of Theorem 1 holds with ``R'_kl >= R_kl`` in place of ``R_kl`` (docs/deviations.md).

**Eigenvalues** come from ``k`` Lanczos steps with a random start. All eigenvalues of the Laplacian
but the zero lie in [0, c]. If a Ritz value of ``c I - Lap`` were below ``1 - eps`` times its
largest eigenvalue, the Chebyshev polynomial of degree k - 1 on the rest of the spectrum shows that
the start's component along that eigenvector, squared, is below

    (1 / eps - 1) / T^2,    T = T_{k-1}((1 + eps) / (1 - eps)) >= ((1 + r) / (1 - r))^(k-1) / 2,

with ``r = sqrt(eps)``. A random direction in n dimensions has such a component with probability at
most ``sqrt(2 n / (pi eps)) / T``; Kuczynski and Wozniakowski (1992) have a sharper constant. So
the bounds hold but with the probability `CHANCE` over the start, whatever the graph is.

**Resistances** come from these: for ``u = (e_k - e_l) / sqrt(2)``, ``alpha = u^T Lap u`` and
``s^2 = |Lap u|^2 - alpha^2``, one step of Gauss-Radau quadrature with a node at ``a <= lambda_min``
(Golub and Meurant 1994) bounds

    u^T Lap^+ u <= (alpha - a + s^2 / a) / (alpha^2 - alpha a + s^2),

which grows with ``s^2``. Neighbours that k and l share make ``s^2`` smaller and are not looked for.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.errors import GraphError
from adfs.graphs.edges import Edges, degrees, laplacian
from adfs.randomness import generator

Vector = NDArray[np.float64]

CHANCE = 1e-12  # that a bound on an eigenvalue is false
SLACK = 0.05  # of lambda_min, at which steps end: at most 2.5 % of rho
MOST_STEPS = 4_000
FIRST_CHECK, NEXT_CHECK = 20, 1.2  # steps before the first one, and their growth from then on
ROUNDING = 1e-9  # of lambda_max


class Extremes(NamedTuple):
    """Bounds on the smallest positive and the largest eigenvalue, from below and from above."""

    lambda_min: float
    lambda_max: float


def eigenvalue_bounds(n_nodes: int, edges: Edges) -> Extremes:
    """By Lanczos steps, until ``lambda_min`` is known up to `SLACK` or for `MOST_STEPS`."""
    lap, degree = laplacian(n_nodes, edges), degrees(n_nodes, edges)
    ceiling = float(degree[edges].sum(axis=1).max())  # Anderson and Morley
    start = generator(0, "graph/spectrum").standard_normal(n_nodes)
    before, now = np.zeros(n_nodes), _unit(start)
    diagonal: list[float] = []
    beside: list[float] = []
    found, check = Extremes(0.0, ceiling), FIRST_CHECK
    for step in range(1, MOST_STEPS + 1):
        product = np.asarray(lap @ now)
        diagonal.append(float(now @ product))
        product -= diagonal[-1] * now
        if beside:
            product -= beside[-1] * before
        product -= product.mean()  # the zero eigenvalue comes back by rounding
        size = float(np.linalg.norm(product))
        ended = size <= ROUNDING * ceiling  # all of the space that the start spans
        if ended or step in (check, MOST_STEPS):
            check = int(NEXT_CHECK * check)
            low, high = _ritz_ends(diagonal, beside)
            eps = 0.0 if ended else relative_error(n_nodes, step)
            found = _safe(low, high, eps, ceiling)
            if ended or found.lambda_min >= (1.0 - SLACK) * low:
                break
        before, now = now, product / size
        beside.append(size)
    if found.lambda_min <= 0.0:
        raise GraphError(
            f"{MOST_STEPS} Lanczos steps prove no lower bound on the eigengap of this graph of "
            f"{n_nodes} nodes, which is below about {_least_gamma(n_nodes):.1g}; take a family "
            "with a closed form (grid, torus, ring), or add edges between distant nodes."
        )
    return found


def resistance_bounds(n_nodes: int, edges: Edges, lambda_min: float) -> Vector:
    """Upper bounds on the effective resistances of all edges, never above 1."""
    first, second = degrees(n_nodes, edges)[edges].T.astype(np.float64)
    mean = 0.5 * (first + second + 2.0)
    square = 0.5 * ((first + 1.0) ** 2 + (second + 1.0) ** 2 + first + second - 2.0)
    spread = np.maximum(square - mean**2, 0.0)
    low = np.minimum(lambda_min, mean)
    with np.errstate(invalid="ignore"):  # 0 / 0 where u is an eigenvector
        bound = 2.0 * (mean - low + spread / low) / (mean**2 - mean * low + spread)
    return np.asarray(np.fmin(bound, 1.0))


def relative_error(n_nodes: int, steps: int) -> float:
    """``eps`` such that a Ritz value after so many steps is worse with probability `CHANCE`.

    Examples
    --------
    >>> [round(relative_error(10**6, steps), 4) for steps in (100, 400)]
    [0.0336, 0.0023]
    """
    low, high = 1e-16, 1.0 - 1e-9
    for _ in range(200):
        eps = math.sqrt(low * high)
        growth = (steps - 1) * (math.log1p(math.sqrt(eps)) - math.log1p(-math.sqrt(eps)))
        logarithm = 0.5 * math.log(2.0 * n_nodes / (math.pi * eps)) + math.log(2.0) - growth
        low, high = (low, eps) if logarithm <= math.log(CHANCE) else (eps, high)
    return high


def _safe(low: float, high: float, eps: float, ceiling: float) -> Extremes:
    """Bounds on the eigenvalues from the smallest and the largest Ritz value."""
    top = min(ceiling, high / (1.0 - eps)) * (1.0 + ROUNDING)
    return Extremes(top - (top - low) / (1.0 - eps) - ROUNDING * top, top)


def _least_gamma(n_nodes: int) -> float:
    eps = relative_error(n_nodes, MOST_STEPS)
    return eps / (1.0 - eps)


def _ritz_ends(diagonal: list[float], beside: list[float]) -> tuple[float, float]:
    from scipy.linalg import eigvalsh_tridiagonal

    values = eigvalsh_tridiagonal(np.array(diagonal), np.array(beside))
    return float(values[0]), float(values[-1])


def _unit(vector: Vector) -> Vector:
    centred = vector - vector.mean()
    return np.asarray(centred / np.linalg.norm(centred))

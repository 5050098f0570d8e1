"""``F`` and better models, from the textbook formulas in long double, without adfs.

A model is refuted by a better one: whatever finds it, its ``F`` proves the claim wrong, so a search
that fails can only miss something. The search is Newton's method; losses that are not smooth are
rounded off over a width ``mu`` that is made smaller and smaller.
"""

from typing import NamedTuple

import numpy as np

REAL = np.longdouble
EPS, TINY = np.finfo(np.float64).eps, np.finfo(np.float64).smallest_subnormal
IS_WIDE = np.finfo(REAL).maxexp > np.finfo(np.float64).maxexp
WIDTHS = 10.0 ** -np.arange(0, 19, 1.5)
STEPS = 60


class Sum(NamedTuple):
    """``F(theta) = sum_j w_j l(x_j . theta, y_j) + sigma / 2 |theta|^2``, in long double."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    loss: str
    sigma: np.longdouble

    @classmethod
    def of(cls, X, y, weights, loss, sigmas):
        sigma = np.sum(np.asarray(sigmas, dtype=REAL))
        return cls(*(np.asarray(part, dtype=REAL) for part in (X, y, weights)), loss, sigma)

    def __call__(self, theta, mu=0.0):
        """``F``, its losses rounded off over ``mu`` where they have a kink."""
        values, _, _ = curve(self.loss, self.X @ theta, self.y, mu)
        return self.weights @ values + self.sigma / 2 * (theta @ theta)

    def noise(self, theta, ulps=100):
        """How far ``F`` in double precision may be from ``F``: predictions are rounded."""
        values, slopes, _ = curve(self.loss, self.X @ theta, self.y, 0.0)
        rounded = ulps * (EPS * (np.abs(self.X) @ np.abs(theta) + np.abs(self.y)) + TINY)
        bend = 1 if self.loss in ("squared", "squared_hinge", "smoothed_hinge", "huber") else 0
        each = np.abs(slopes) * rounded + bend * rounded**2 + ulps * (EPS * np.abs(values) + TINY)
        return self.weights @ each + ulps * (EPS * self(theta) + TINY * (1 + self.sigma))

    def noise_of_gap(self, theta, gap, ulps=10):
        """How far ``|grad F|^2 / (2 sigma)`` in double precision may be from the same in theory."""
        _, slopes, bends = curve(self.loss, self.X @ theta, self.y, 0.0)
        sizes = np.abs(self.X)
        predictions = bends * (sizes @ np.abs(theta) + np.abs(self.y)) + np.abs(slopes)
        rounded = ulps * EPS * (sizes.T @ (self.weights * predictions) + self.sigma * np.abs(theta))
        size = np.sqrt(rounded @ rounded)
        return size * np.sqrt(2 * gap / self.sigma) + size**2 / (2 * self.sigma)

    def improved(self, theta):
        """A model with a smaller ``F``, or the same."""
        rounded = self.loss in ("hinge", "absolute")
        found = [self._descended(start, self._widths(start) if rounded else [0.0])
                 for start in (theta, np.zeros_like(theta))]  # fmt: skip
        return min([theta, *found], key=self)

    def _widths(self, theta):
        reach = max(REAL(1.0), np.abs(self.X @ theta - self.y).max())
        return [width * reach for width in WIDTHS]

    def _descended(self, theta, widths):
        best = theta
        for mu in widths:
            theta = self._newton(theta, mu)
            best = min((best, theta), key=self)
        return best

    def _newton(self, theta, mu):
        for _ in range(STEPS):
            _, slopes, bends = curve(self.loss, self.X @ theta, self.y, mu)
            gradient = self.X.T @ (self.weights * slopes) + self.sigma * theta
            hessian = (self.X.T * (self.weights * bends)) @ self.X
            hessian[np.diag_indices_from(hessian)] += self.sigma
            step = solve(hessian, gradient)
            new = self._shortened(theta, step, mu)
            if new is None:
                break
            theta = new
        return theta

    def _shortened(self, theta, step, mu):
        """The first of ``theta - step, theta - step / 4, ...`` that is better; None if none is."""
        now = self(theta, mu)
        for halving in range(20):
            new = theta - step * REAL(4.0) ** -halving
            if self(new, mu) < now:
                return new
        return None


def curve(loss, s, y, mu):
    """Value, slope and curvature of a loss at predictions ``s``, one entry per sample."""
    margin, residual = y * s, s - y
    if loss == "logistic":
        e = np.exp(-np.abs(margin))
        p = np.where(margin > 0, e / (1 + e), 1 / (1 + e))
        return np.maximum(0, -margin) + np.log1p(e), -y * p, y * y * p * (1 - p)
    if loss == "squared":
        return residual**2 / 2, residual, np.ones_like(s)
    violation = np.maximum(0, 1 - margin)
    if loss == "squared_hinge":
        return violation**2, -2 * y * violation, 2 * y * y * (violation > 0)
    mu = REAL(1.0) if loss in ("smoothed_hinge", "huber") else REAL(mu)
    if loss in ("huber", "absolute"):
        return rounded_off(residual, mu)
    value, slope, bend = rounded_off(violation, mu)
    return value, -y * slope, y * y * bend * (violation > 0)


def rounded_off(r, mu):
    """``|r|``, but a parabola within ``mu`` of zero."""
    inside = np.abs(r) <= mu
    width = mu if mu > 0 else REAL(1.0)
    value = np.where(inside, r**2 / (2 * width), np.abs(r) - mu / 2)
    return value, np.where(inside, r / width, np.sign(r)), inside / width


def solve(matrix, right):
    """Gaussian elimination with pivots; NumPy's knows no long double."""
    a, x = matrix.copy(), right.copy()
    n = len(x)
    for k in range(n):
        pivot = k + int(np.argmax(np.abs(a[k:, k])))
        a[[k, pivot]], x[[k, pivot]] = a[[pivot, k]], x[[pivot, k]]
        if a[k, k] == 0:
            return right
        ratio = a[k + 1 :, k] / a[k, k]
        a[k + 1 :] -= ratio[:, None] * a[k]
        x[k + 1 :] -= ratio * x[k]
    for k in reversed(range(n)):
        x[k] = (x[k] - a[k, k + 1 :] @ x[k + 1 :]) / a[k, k]
    return x


def refutations(problem, theta, claim, tol):
    """Sentences that say in which way a claim (objective, gap, status) is wrong."""
    theta = np.asarray(theta, dtype=REAL)
    if claim["status"] != "converged" or not IS_WIDE:
        return
    if not np.isfinite(theta).all():
        yield "converged with a model that is not finite"
        return
    with np.errstate(all="ignore"):
        true, noise = problem(theta), problem.noise(theta)
        best = problem(problem.improved(theta))
    objective, gap = REAL(claim["objective"]), REAL(claim["duality_gap"])
    above = true - best
    if not abs(objective - true) <= noise + 1e-9 * abs(true):
        yield f"F is {true:.17g}, but {objective:.17g} was claimed"
    if not gap <= tol * abs(objective) * (1 + 1e-12):
        yield f"converged at gap {gap:.3g}, which is above tol |F| = {tol * abs(objective):.3g}"
    noise += problem.noise_of_gap(theta, gap)
    if not above <= gap * (1 + 1e-9) + noise:
        yield f"F is {above:.3g} above that of another model, but the gap claimed is {gap:.3g}"
    elif not above <= tol * abs(true) * (1 + 1e-9) + noise:
        yield f"F is {above:.3g} above another model's: more than tol |F| = {tol * abs(true):.3g}"

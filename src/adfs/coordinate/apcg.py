"""Generalized APCG (Appendix A, Algorithm 2) as a function for anyone's problem."""

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from adfs.coordinate.choices import choose
from adfs.coordinate.limits import set_limits
from adfs.coordinate.names import Words, penalty_of
from adfs.coordinate.parameters import ApcgParameters
from adfs.coordinate.penalties import Penalty, ProxPenalty, Psi
from adfs.coordinate.plan import Plan
from adfs.coordinate.quadratics import LeastSquares, Quadratic
from adfs.coordinate.run import Callback, Function, Run
from adfs.coordinate.scalars import whole
from adfs.coordinate.smooth import SmoothFunction
from adfs.coordinate.vectors import Vector, in_range, numbers
from adfs.errors import DataError, ParameterError
from adfs.threads import one_blas_thread


@dataclass(frozen=True, eq=False)
class ApcgResult:
    """What `apcg` gives back.

    Attributes
    ----------
    x : array
        One full proximal step after the last ``x_t``: never a larger objective, and exact zeros
        and bounds.
    objective : float or None
        ``F(x)``; None where the function or the penalty was given without its value.
    status : str
        ``converged``, ``max_iter``, ``time_limit``, ``interrupted`` (by the callback) or
        ``diverged``.
    iterations : int
    residual : float
        Norm of a subgradient of F at x.
    error : float
        ``residual / |grad f_A(0)|``, what ``tol`` was compared with.
    gap : float
        Proven bound on ``F(x) - F*``; inf where ``sigma_A`` is 0.
    parameters : ApcgParameters
        Those of the last iterations.
    seed : int
    """

    x: Vector
    objective: float | None
    status: str
    iterations: int
    residual: float
    error: float
    gap: float
    parameters: ApcgParameters
    seed: int

    def __repr__(self) -> str:
        objective = "unknown" if self.objective is None else f"{self.objective:.10g}"
        return (
            f"ApcgResult({self.status}, objective={objective}, error={self.error:.2g}, "
            f"gap<={self.gap:.2g}, {self.iterations} iterations; {self.parameters})"
        )


def apcg(
    f: Function,
    psi: Penalty | ProxPenalty | Words | None = None,
    *,
    p: ArrayLike | str | None = None,
    R: ArrayLike | None = None,
    sigma_A: float | None = None,
    form: str = "auto",
    rho: float | None = None,
    S: float | None = None,
    restart: bool = True,
    x0: ArrayLike | None = None,
    tol: float = 1e-8,
    max_iter: int | None = None,
    time_limit: float | None = None,
    check_every: int | None = None,
    seed: int = 0,
    callback: Callback | None = None,
) -> ApcgResult:
    """Minimise ``f(x) + sum_i psi_i(x_i)`` by accelerated proximal coordinate steps.

    Parameters
    ----------
    f : Quadratic, LeastSquares or SmoothFunction
    psi : Penalty, ProxPenalty, or words, optional
        In words: ``"zero"`` (the default), ``("l1", strength)``, ``("l2", strength)`` or
        ``("box", low, high)``; each number is one for all coordinates or one each.
    p : array or "uniform", optional
        Probabilities of the coordinates; by default those of the best proven rate.
    R, sigma_A : optional
        ``R_i = e_i' A^+ A e_i`` and the strong convexity on Ker(A)^perp; any lower bound of the
        latter is valid. Computed for quadratics; 1 and 0 by default for a `SmoothFunction`.
    form : str
        ``strongly-convex`` (Corollary 1), ``convex`` (Corollary 2), or ``auto``: the first if
        ``sigma_A > 0``, and where its rho is small, after a trial of ``2 / rho`` iterations by
        the second (not if restarts are off, or rho or S is given).
    rho, S : float, optional
        A smaller rate (first form) or a larger S (second form) than the best allowed.
    restart : bool
        Whether the convex form starts again now and then from where it is, which arrives far
        sooner wherever F grows as a square around its minimisers; False is Corollary 2 as it
        stands. The strongly convex form never restarts.
    x0 : array, optional
        Where to start; by default the feasible point nearest to zero.
    tol : float
        Stop when a subgradient at x has norm at most ``tol |grad f(0)|`` (where that is zero,
        tol times the first such norm); 0 never does.
    max_iter : int, optional
        By default well beyond what Corollary 1 needs, or 10,000 passes in the convex form.
    time_limit : float, optional
        Seconds, those of setting up included.
    check_every : int, optional
        Iterations between looks at the error, 10 passes by default; a look costs two gradients.
    seed : int
        The same seed gives the same bits, however often one looks.
    callback : callable, optional
        Called with each `Reading`; returning True ends the run.

    Examples
    --------
    >>> K = [[2.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
    >>> result = apcg(LeastSquares(K, [1.0, 2.0, 3.0]), Penalty(l1=1.0), tol=1e-12)
    >>> result.status, result.x.round(6).tolist(), result.parameters.form
    ('converged', [0.666667, 0.333333], 'strongly-convex')
    """
    started = time.perf_counter()
    _check_types(f, restart, callback)
    seed = whole("seed", seed, 0)
    separable = penalty_of(psi).on(f.size)
    start = _start(separable, x0)
    with one_blas_thread():
        parameters = choose(f, separable.active, p, R, sigma_A, form, rho, S)
        if form == "auto" and restart and rho is None and S is None:
            plan = Plan.with_trial(parameters, own_sampling=p is None)
        else:
            plan = Plan(parameters, restart)
        limits = set_limits(f, plan, tol, max_iter, time_limit, check_every, started)
        run = Run(f, separable, plan, start, seed)
        status, reading = run.go(limits, callback)
    return ApcgResult(
        reading.x, reading.objective, status, reading.iteration, reading.residual, reading.error,
        reading.gap, run.parameters, seed,
    )  # fmt: skip


def _check_types(f: object, restart: object, callback: object) -> None:
    if not isinstance(f, Quadratic | LeastSquares | SmoothFunction):
        raise ParameterError(
            f"f={type(f).__name__} must be a Quadratic, a LeastSquares or a SmoothFunction."
        )
    if not isinstance(restart, bool | np.bool_):
        raise ParameterError(f"restart={restart!r} must be True or False.")
    if callback is not None and not callable(callback):
        raise ParameterError(f"callback={callback!r} must be callable as callback(reading).")


def _start(psi: Psi, x0: ArrayLike | None) -> Vector:
    if x0 is None:
        nearest = psi.feasible(np.zeros(len(psi.active)))
        return in_range("The point of the box nearest to zero", nearest)
    start = in_range("x0", numbers("x0", x0))
    if start.shape != psi.active.shape:
        raise DataError(f"x0 has shape {start.shape}; there are {len(psi.active)} coordinates.")
    value = psi.value(start)
    if value is not None and not value < math.inf:
        raise DataError("x0 is outside the box: the theorem needs a start where psi is finite.")
    return start

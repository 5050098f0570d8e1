"""Generalized APCG (Appendix A, Algorithm 2) as a function for anyone's problem.

An evaluation takes one step ``x+ = prox_{psi / D}(x_t - grad f_A(x_t) / D)`` with a diagonal D
above the Hessian. It does not increase F, gives exact zeros and bounds, and comes with a
subgradient of F at ``x+``:

    xi = grad f_A(x+) - grad f_A(x_t) + D (x_t - x+).

(By the definition of the prox, ``D (x_t - x+) - grad f_A(x_t)`` is a subgradient of psi at ``x+``.)
If f_A is ``sigma_A``-strongly convex on Ker(A)^perp and Assumption 1 holds, xi lies in that
subspace, and minimising ``F(x+) + <xi, h> + sigma_A |h|^2 / 2`` over h in it proves
``F(x+) - F* <= |xi|^2 / (2 sigma_A)``.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adfs.apcg.apcg_parameters import ApcgParameters, CoordinateSampler, best_sampling, choose
from adfs.apcg.array_checks import Vector, in_range, norm, numbers, require_callable
from adfs.apcg.penalties import AnyPenalty, Penalty, PenaltyName, penalty_of
from adfs.apcg.smooth import ApcgState, LeastSquares, Quadratic, Smooth
from adfs.checks import finite, flag, whole
from adfs.engine.stopping import Spent, Stopping
from adfs.errors import DataError, ParameterError
from adfs.kernels import apcg as kernel
from adfs.threads import one_blas_thread

CONVEX_PASSES = 10_000  # default limit where no linear rate gives one
UNIT = 8.0  # times 1 / p_R: then 12 / (t p_R)^2, the corollary's factor of F(x_0) - F*, is 0.19
TRIAL = 2.0  # times 1 / rho: how long Corollary 2 is tried
TRIAL_UNITS = 8  # shortest stretches for which there must be time, or nothing is tried
BLOCK = 1 << 16  # iterations in one compiled call
REFRESH = 32  # passes after which sums kept by additions are computed again
TINY = math.ulp(0.0)  # used for a tol of 0


@dataclass(frozen=True, eq=False)
class CertifiedPoint:
    """An evaluation of a run.

    Attributes
    ----------
    iteration : int
    x : array
        The point ``x+``, one full proximal step after ``x_t``.
    residual : float
        ``|xi|``, the norm of a subgradient of F at x.
    error : float
        ``residual / |grad f_A(0)|``: what ``tol`` is compared with.
    gap : float
        Proven bound on ``F(x) - F*``; inf where ``sigma_A`` is 0.
    objective : float or None
    x_t, v_t : arrays
        The iterates of Algorithm 2.
    """

    iteration: int
    x: Vector
    residual: float
    error: float
    gap: float
    objective: float | None
    x_t: Vector
    v_t: Vector


Callback: TypeAlias = Callable[[CertifiedPoint], Any]


@dataclass(frozen=True, eq=False)
class ApcgPlan:
    """Parameters of a run and, if there is one, of the trial before."""

    parameters: ApcgParameters
    restart: bool  # whether Corollary 2 starts again after some iterations
    trial: ApcgParameters | None = None  # Corollary 2's, before Corollary 1

    @classmethod
    def with_trial(cls, parameters: ApcgParameters, own_sampling: bool) -> ApcgPlan:
        """Restarts, and a trial by Corollary 2 if there is time, with its own best sampling."""
        if parameters.rho is None:
            return cls(parameters, True)
        M, R = parameters.M, parameters.R
        p = best_sampling("convex", M, R) if own_sampling else parameters.p
        trial = ApcgParameters("convex", M, R, p, parameters.sigma_A, parameters.active)
        plan = cls(parameters, True, trial)
        is_long = plan.trial_length >= TRIAL_UNITS * shortest_stretch(trial)
        return plan if is_long else cls(parameters, True)

    @property
    def trial_length(self) -> int:
        rho = self.parameters.rho
        return 0 if self.trial is None or rho is None else math.ceil(TRIAL / rho)

    def default_limit(self, f: Smooth, tol: float) -> int:
        """Iterations after which a tolerance that can be reached has been reached.

        ``|xi|^2 <= 8 (max D)^2 / (min D) (F(x_t) - F*)``, and the last factor shrinks by 1 - rho.
        """
        rho = self.parameters.rho
        if rho is None:
            return CONVEX_PASSES * f.size
        spread = float(f.majorant.max()) / self.parameters.sigma_A
        efolds = 2.0 * math.log(1.0 / max(tol, 1e-16)) + 3.0 * math.log(max(spread, 1.0)) + 30.0
        return self.trial_length + math.ceil(efolds / rho)

    def restarts(self, parameters: ApcgParameters) -> Iterator[float]:
        """The iterations at which a run in the convex form starts again; inf for never.

        The j-th stretch lasts the largest power of 2 that divides j, in shortest stretches.
        """
        if not self.restart or parameters.form != "convex":
            return itertools.repeat(math.inf)
        unit = shortest_stretch(parameters)
        return itertools.accumulate(unit * (j & -j) for j in itertools.count(1))


def shortest_stretch(parameters: ApcgParameters) -> int:
    return math.ceil(UNIT / parameters.p_R)


class Run:
    """Algorithm 2 on one problem, one block of sampled coordinates after another.

    Errors are relative to ``unit``, the norm of the gradient at zero. Where that is zero, they are
    relative to the first residual: no other number has its units.
    """

    def __init__(
        self, f: Smooth, psi: AnyPenalty, plan: ApcgPlan, start: Vector, seed: int
    ) -> None:
        self._f, self._psi, self._plan, self._seed = f, psi, plan, seed
        self._start, self.iteration = start, 0
        # A coordinate that f_A does not depend on may take any step.
        self._majorant = np.where(f.majorant > 0.0, f.majorant, 1.0)
        self.unit = norm(f.gradient(np.zeros(f.size))) or self._proximal_step(start)[1] or 1.0
        self._refresh_every = REFRESH * f.size
        self._trial_end = math.inf if plan.trial is None else plan.trial_length
        self._follow(plan.trial or plan.parameters)

    def _follow(self, parameters: ApcgParameters) -> None:
        self.parameters = parameters
        self._sampler = CoordinateSampler(parameters.p, self._seed)
        self._restarts = self._plan.restarts(parameters)
        self._next_restart = next(self._restarts)
        self.state = ApcgState(parameters.rule(), parameters.clock(), self._start)

    def evaluate(self) -> CertifiedPoint:
        """Take the proximal step from ``x_t`` and measure it: two gradients."""
        x, sigma_A = self.state.x(), self._plan.parameters.sigma_A
        after, residual = self._proximal_step(x)
        gap = 0.5 * residual * (residual / sigma_A) if sigma_A > 0.0 else math.inf
        error, objective = residual / self.unit, self._objective(after)
        return CertifiedPoint(
            self.iteration, after, residual, error, gap, objective, x, self.state.v()
        )

    def _proximal_step(self, x: Vector) -> tuple[Vector, float]:
        """``x+`` and ``|xi|``."""
        d = self._majorant
        slope = self._f.gradient(x)
        after = self._psi.prox_all(1.0 / d, x - slope / d)
        return after, norm(self._f.gradient(after) - slope + d * (x - after))

    def _objective(self, x: Vector) -> float | None:
        """``F(x)``; None if it is not known."""
        smooth, separable = self._f.value(x), self._psi.value(x)
        return None if smooth is None or separable is None else smooth + separable

    def go(
        self, stopping: Stopping, limit: int, check_every: int, started: float,
        callback: Callback | None = None,
    ) -> tuple[str, CertifiedPoint]:  # fmt: skip
        """Iterate until a limit is reached; return the status and the last evaluation."""
        deadline = math.inf if stopping.time_limit is None else started + stopping.time_limit
        with np.errstate(over="ignore", invalid="ignore"):  # the status reports it
            point = self.evaluate()
            first = max(point.residual, self.unit)
            while True:
                stop = callback is not None and callback(point) is True
                spent = Spent(self.iteration, 0.0, time.perf_counter() - started)
                error = max(point.error, 2.0 * TINY)  # with tol=0, not even an error of 0 stops
                status = stopping.verdict(point.residual / first, error, spent, limit)
                if status is not None or stop:
                    return status or "interrupted", point
                ahead = check_every - self.iteration % check_every
                goal = min(limit, self.iteration + ahead)
                while self.iteration < goal and time.perf_counter() < deadline:
                    self.advance(min(goal, self.iteration + BLOCK))
                point = self.evaluate()

    def advance(self, stop: int) -> None:
        """Iterations up to ``stop``; restarts and refreshes depend on the iteration alone."""
        while self.iteration < stop:
            if self.iteration in (self._next_restart, self._trial_end):
                self._begin_again()
            if self.iteration % self._refresh_every == 0:
                self._f.refresh(self.state)
            ahead = self._refresh_every - self.iteration % self._refresh_every
            last = int(min(stop, self.iteration + ahead, self._next_restart, self._trial_end))
            self._iterate(self._sampler.draw(self.iteration, last))
            self.iteration = last

    def _begin_again(self) -> None:
        """Start a corollary at ``x_t``, or at the last start if that is the better point."""
        x = self._psi.feasible(self.state.x())  # rounding may have put it a little outside
        now, before = self._objective(x), self._objective(self._start)
        if now is None or before is None or now <= before:
            self._start = x
        if self.iteration == self._trial_end:
            self._trial_end = math.inf
            self._follow(self._plan.parameters)
        else:
            self.state = ApcgState(self.state.rule, self.parameters.clock(), self._start)
            self._next_restart = next(self._restarts)
        self._f.refresh(self.state)

    def _iterate(self, which: NDArray[np.int32]) -> None:
        if isinstance(self._psi, Penalty) and isinstance(self._f, Quadratic | LeastSquares):
            self._f.run(which, self._psi.terms, self.state)
            return
        # In Python, from the same elementary functions as the compiled loops.
        state = self.state
        rule, clock, pairs, _ = state.parts
        for i in which.tolist():
            kernel.tick(*state.parts)
            _, w = kernel.point(i, rule, clock, pairs)
            eta = float(clock[kernel.STEP] * rule.inverse_p[i])
            z = float(w) - eta * self._f.partial(i, state)
            move = self._psi.prox(i, eta, z) - w
            to_anchor, to_offset = kernel.shift(i, move, rule, clock, pairs)
            self._f.follow(i, to_anchor, to_offset, state)


@dataclass(frozen=True, eq=False, repr=False)
class ApcgResult(CertifiedPoint):
    """The result of `apcg`: the last evaluation of the run, and how it ended.

    Attributes
    ----------
    x : array
        One full proximal step after the last ``x_t``: never a larger objective, and exact zeros
        and bounds.
    objective : float or None
        ``F(x)``; None where the function or the penalty was given without its value.
    iterations : int
    residual, error, gap, x_t, v_t
        As in `CertifiedPoint`.
    status : str
        ``converged``, ``max_iter``, ``time_limit``, ``interrupted`` (by the callback) or
        ``diverged``.
    parameters : ApcgParameters
        The parameters of the last iterations.
    seed : int
    """

    status: str
    parameters: ApcgParameters
    seed: int

    @property
    def iterations(self) -> int:
        """Iterations of the run."""
        return self.iteration

    def __repr__(self) -> str:
        objective = "unknown" if self.objective is None else f"{self.objective:.10g}"
        return (
            f"ApcgResult({self.status}, objective={objective}, error={self.error:.2g}, "
            f"gap<={self.gap:.2g}, {self.iterations} iterations; {self.parameters})"
        )


def apcg(
    f: Smooth,
    psi: AnyPenalty | PenaltyName | None = None,
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
    psi : Penalty, ProxPenalty or a name, optional
        Names: ``"zero"`` (the default), ``("l1", strength)``, ``("l2", strength)`` and
        ``("box", low, high)``; each number is one for all coordinates or one per coordinate.
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
        Whether the convex form starts again from its current point after some iterations, which is
        far faster wherever F grows as a square around its minimisers; False is Corollary 2 as
        printed. The strongly convex form never restarts.
    x0 : array, optional
        Where to start; by default the feasible point nearest to zero.
    tol : float
        Stop when a subgradient at x has norm at most ``tol |grad f(0)|`` (where that is zero,
        tol times the first such norm); with 0 only the limits stop a run.
    max_iter : int, optional
        By default well beyond what Corollary 1 needs, or 10,000 passes in the convex form.
    time_limit : float, optional
        Seconds, including set-up.
    check_every : int, optional
        Iterations between evaluations of the error, 10 passes by default; an evaluation costs two
        gradients.
    seed : int
        The same seed gives the same bits, whatever ``check_every`` is.
    callback : callable, optional
        Called with each `CertifiedPoint`; returning True ends the run.

    Examples
    --------
    >>> K = [[2.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
    >>> result = apcg(LeastSquares(K, [1.0, 2.0, 3.0]), Penalty(l1=1.0), tol=1e-12)
    >>> result.status, result.x.round(6).tolist(), result.parameters.form
    ('converged', [0.666667, 0.333333], 'strongly-convex')
    """
    started = time.perf_counter()
    if not isinstance(f, Smooth):
        raise ParameterError(
            f"f={type(f).__name__} must be a Quadratic, a LeastSquares or a SmoothFunction."
        )
    flag("restart", restart)
    require_callable("callback", callback, "point", optional=True)
    seed = whole("seed", seed)
    if finite("tol", tol, least=0) == 0.0 and max_iter is None and time_limit is None:
        raise ParameterError("tol=0 never stops a run; give max_iter or time_limit too.")
    stopping = Stopping(float(tol) or TINY, max_iter, time_limit)
    every = 10 * f.size if check_every is None else whole("check_every", check_every, 1)
    separable = penalty_of(psi).on(f.size)
    start = _start(separable, x0)
    with one_blas_thread():
        parameters = choose(f, separable.active, p, R, sigma_A, form, rho, S)
        if form == "auto" and restart and rho is None and S is None:
            plan = ApcgPlan.with_trial(parameters, own_sampling=p is None)
        else:
            plan = ApcgPlan(parameters, restart)
        limit = plan.default_limit(f, tol) if max_iter is None else int(max_iter)
        run = Run(f, separable, plan, start, seed)
        status, point = run.go(stopping, limit, every, started, callback)
    return ApcgResult(**vars(point), status=status, parameters=run.parameters, seed=seed)


def _start(psi: AnyPenalty, x0: ArrayLike | None) -> Vector:
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

"""The loop of a run: draw, iterate, now and then look and decide."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adfs.coordinate.parameters import ApcgParameters, Sampler
from adfs.coordinate.penalties import NamedPsi, Psi
from adfs.coordinate.quadratics import LeastSquares, Quadratic
from adfs.coordinate.reading import Reader, Reading
from adfs.coordinate.restarts import Restarts
from adfs.coordinate.smooth import SmoothFunction
from adfs.coordinate.state import State
from adfs.coordinate.vectors import Vector, whole
from adfs.errors import ParameterError
from adfs.kernels import apcg as kernel

Function: TypeAlias = Quadratic | LeastSquares | SmoothFunction
Callback: TypeAlias = Callable[[Reading], Any]

BLOCK = 1 << 16  # iterations in one compiled call
REFRESH = 32  # passes after which sums kept by additions are computed again
CONVEX_PASSES = 10_000  # default budget where no linear rate gives one
BLOW_UP = 1e8


@dataclass(frozen=True)
class Limits:
    """When a run ends."""

    tol: float
    max_iter: int
    time_limit: float
    check_every: int

    def verdict(self, reading: Reading, first: float, seconds: float) -> str | None:
        """The status with which to stop now, or None to go on."""
        if not reading.residual <= BLOW_UP * first:
            return "diverged"
        if self.tol > 0.0 and reading.error <= self.tol:
            return "converged"
        if reading.iteration >= self.max_iter:
            return "max_iter"
        return "time_limit" if seconds >= self.time_limit else None


class Run:
    """Algorithm 2 on one problem, one block of sampled coordinates after another."""

    def __init__(
        self,
        f: Function,
        psi: Psi,
        parameters: ApcgParameters,
        start: Vector,
        seed: int,
        restart: bool,
    ) -> None:
        self._f, self._psi, self._parameters = f, psi, parameters
        self.state = State(parameters.rule(), parameters.clock(), start)
        self._restarts = Restarts(parameters, restart)
        self._start = start
        self.iteration = 0
        self._sampler = Sampler(parameters.p, seed)
        self._reader = Reader(f, psi, parameters.sigma_A)
        self._refresh_every = REFRESH * f.size

    def go(self, limits: Limits, callback: Callback | None = None) -> tuple[str, Reading]:
        """Iterate until a limit is met; return the status and the last reading."""
        started = time.perf_counter()
        reading = self.read()
        first = max(reading.residual, self._reader.unit)
        while True:
            stop = callback is not None and callback(reading) is True
            status = limits.verdict(reading, first, time.perf_counter() - started)
            if status is not None or stop:
                return status or "interrupted", reading
            ahead = limits.check_every - self.iteration % limits.check_every
            self._advance_in_time(
                min(limits.max_iter, self.iteration + ahead), started + limits.time_limit
            )
            reading = self.read()

    def _advance_in_time(self, stop: int, deadline: float) -> None:
        while self.iteration < stop and time.perf_counter() < deadline:
            self.advance(min(stop, self.iteration + BLOCK))

    def read(self) -> Reading:
        """Look at the state, leaving it as it is."""
        return self._reader.read(self.iteration, self.state.x(), self.state.v())

    def advance(self, stop: int) -> None:
        """Iterations up to ``stop``; where it restarts or refreshes, the iteration alone says."""
        while self.iteration < stop:
            if self.iteration == self._restarts.next:
                self._restart()
            if self.iteration % self._refresh_every == 0:
                self._f.refresh(self.state)
            ahead = self._refresh_every - self.iteration % self._refresh_every
            last = int(min(stop, self.iteration + ahead, self._restarts.next))
            self._iterate(self._sampler.draw(self.iteration, last))
            self.iteration = last

    def _restart(self) -> None:
        """Begin Corollary 2 again at ``x_t``, or where it began if that is the better point."""
        x = self._psi.feasible(self.state.x())  # rounding may have put it a little outside
        now, before = self._reader.objective(x), self._reader.objective(self._start)
        if now is None or before is None or now <= before:
            self._start = x
        self.state = State(self.state.rule, self._parameters.clock(), self._start)
        self._f.refresh(self.state)
        self._restarts.plan()

    def _iterate(self, which: NDArray[np.int32]) -> None:
        if isinstance(self._psi, NamedPsi) and not isinstance(self._f, SmoothFunction):
            self._f.run(which, self._psi.terms, self.state)
        else:
            for i in which.tolist():
                self._step(i)

    def _step(self, i: int) -> None:
        """One iteration in Python, from the same elementary functions as the compiled loops."""
        state = self.state
        state.tick()
        _, w = kernel.point(i, state.rule, state.clock, state.pairs)
        eta = float(state.clock[kernel.STEP] * state.rule.inverse_p[i])
        z = float(w) - eta * self._f.partial(i, state)
        move = self._psi.prox(i, eta, z) - w
        to_anchor, to_offset = kernel.shift(i, move, state.rule, state.clock, state.pairs)
        self._f.follow(i, to_anchor, to_offset, state)


def set_limits(
    f: Function,
    parameters: ApcgParameters,
    tol: float,
    max_iter: int | None,
    time_limit: float | None,
    check_every: int | None,
) -> Limits:
    """Limits as a user gives them, checked and filled in."""
    if not (tol >= 0.0 and math.isfinite(tol)):
        raise ParameterError(f"tol={tol} must be a finite number >= 0.")
    if tol == 0.0 and max_iter is None and time_limit is None:
        raise ParameterError("tol=0 never stops a run; give max_iter or time_limit too.")
    if time_limit is not None and not time_limit > 0.0:
        raise ParameterError(f"time_limit={time_limit} s must be > 0, or None.")
    budget = _budget(f, parameters, tol) if max_iter is None else whole("max_iter", max_iter, 0)
    every = 10 * f.size if check_every is None else whole("check_every", check_every, 1)
    return Limits(float(tol), budget, math.inf if time_limit is None else time_limit, every)


def _budget(f: Function, parameters: ApcgParameters, tol: float) -> int:
    """Iterations after which a tolerance that can be reached has been reached.

    ``|xi|^2 <= 8 (max D)^2 / (min D) (F(x_t) - F*)``, and the last factor shrinks by 1 - rho.
    """
    if parameters.rho is None:
        return CONVEX_PASSES * f.size
    spread = float(f.majorant.max()) / parameters.sigma_A
    efolds = 2.0 * math.log(1.0 / max(tol, 1e-16)) + 3.0 * math.log(max(spread, 1.0)) + 30.0
    return math.ceil(efolds / parameters.rho)

"""The loop of a run: draw, iterate, now and then look and decide."""

import math
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adfs.coordinate.limits import Limits
from adfs.coordinate.parameters import ApcgParameters, Sampler
from adfs.coordinate.penalties import NamedPsi, Psi
from adfs.coordinate.plan import Plan
from adfs.coordinate.quadratics import LeastSquares, Quadratic
from adfs.coordinate.reading import Reader, Reading
from adfs.coordinate.restarts import Restarts
from adfs.coordinate.smooth import SmoothFunction
from adfs.coordinate.state import State
from adfs.coordinate.vectors import Vector
from adfs.kernels import apcg as kernel

Function: TypeAlias = Quadratic | LeastSquares | SmoothFunction
Callback: TypeAlias = Callable[[Reading], Any]

BLOCK = 1 << 16  # iterations in one compiled call
REFRESH = 32  # passes after which sums kept by additions are computed again


class Run:
    """Algorithm 2 on one problem, one block of sampled coordinates after another."""

    def __init__(self, f: Function, psi: Psi, plan: Plan, start: Vector, seed: int) -> None:
        self._f, self._psi, self._plan, self._seed = f, psi, plan, seed
        self._start = start
        self.iteration = 0
        self._reader = Reader(f, psi, plan.parameters.sigma_A, start)
        self._refresh_every = REFRESH * f.size
        self._trial_end = math.inf if plan.trial is None else plan.trial_length
        self._follow(plan.trial or plan.parameters)

    def _follow(self, parameters: ApcgParameters) -> None:
        """Begin at ``_start`` by these parameters."""
        self.parameters = parameters
        self._sampler = Sampler(parameters.p, self._seed)
        self._restarts = Restarts(parameters, self._plan.restart)
        self.state = State(parameters.rule(), parameters.clock(), self._start)

    def go(self, limits: Limits, callback: Callback | None = None) -> tuple[str, Reading]:
        """Iterate until a limit is met; return the status and the last reading."""
        # A run that diverges is told by its status.
        with np.errstate(over="ignore", invalid="ignore"):
            reading = self.read()
            first = max(reading.residual, self._reader.unit)
            while True:
                stop = callback is not None and callback(reading) is True
                status = limits.verdict(reading, first)
                if status is not None or stop:
                    return status or "interrupted", reading
                ahead = limits.check_every - self.iteration % limits.check_every
                self._advance_in_time(
                    min(limits.max_iter, self.iteration + ahead), limits.deadline
                )  # fmt: skip
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
            if self.iteration in (self._restarts.next, self._trial_end):
                self._begin_again()
            if self.iteration % self._refresh_every == 0:
                self._f.refresh(self.state)
            ahead = self._refresh_every - self.iteration % self._refresh_every
            last = int(min(stop, self.iteration + ahead, self._restarts.next, self._trial_end))
            self._iterate(self._sampler.draw(self.iteration, last))
            self.iteration = last

    def _begin_again(self) -> None:
        """Begin a corollary at ``x_t``, or where the last began if that is the better point."""
        x = self._psi.feasible(self.state.x())  # rounding may have put it a little outside
        now, before = self._reader.objective(x), self._reader.objective(self._start)
        if now is None or before is None or now <= before:
            self._start = x
        if self.iteration == self._trial_end:
            self._trial_end = math.inf
            self._follow(self._plan.parameters)
        else:
            self.state = State(self.state.rule, self.parameters.clock(), self._start)
            self._restarts.plan()
        self._f.refresh(self.state)

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

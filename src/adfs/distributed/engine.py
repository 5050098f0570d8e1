"""The loop of a rank: blocks of the schedule, readings on their way meanwhile, agreed ends.

All ranks take the same decisions, because these follow from what all of them know: readings, which
are sums over all ranks, and pulses. A pulse is posted at every multiple of ``beat`` positions: has
any rank had a signal, or run out of time? Its answer must be there at the next multiple, which is
where all ranks then stop.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms.base import message_counts
from adfs.distributed.collective import Sums, Underway
from adfs.distributed.patience import WORK, Patience
from adfs.distributed.rank import Rank
from adfs.distributed.rank_keeper import RankKeeper
from adfs.distributed.spans import Spans
from adfs.problems.sums import Ask, Part, Steps
from adfs.runtime.course import Course, Standing
from adfs.runtime.evaluation import Reading, models, reading_steps
from adfs.runtime.signals import Interrupts

Outcome = tuple[Standing, Reading]
ReadModels = Callable[[NDArray[np.float64]], Steps[Reading]]  # from the models of this rank's nodes


class Engine:
    """Turns one rank of many.

    Parameters
    ----------
    rank : Rank
    course : Course
        The same on every rank.
    carrier : Carrier
    sums : Sums
    pulse : Pulse
    patience : Patience
        Ends the job when a wait takes too long.
    keeper : RankKeeper, optional
    """

    def __init__(
        self, rank: Rank, course: Course, carrier: Any, sums: Sums, pulse: Any,
        patience: Patience, keeper: RankKeeper | None, spans: Spans, seconds: float = 0.0,
    ) -> None:  # fmt: skip
        self.rank, self.course, self.carrier = rank, course, carrier
        self.sums, self.pulse, self.patience, self.keeper = sums, pulse, patience, keeper
        self.spans = spans
        self.comms: list[Any] = []  # communicators of this run alone
        self.reading: ReadModels | None = None
        self._started = time.perf_counter() - seconds
        self._aside = 0.0  # seconds of readings, which are no part of the run's time

    @property
    def wall_time(self) -> float:
        """Seconds of this rank in the loop, readings not counted."""
        return time.perf_counter() - self._started - self._aside

    def go(self, interrupts: Interrupts) -> tuple[str, Reading]:
        """Turn until a limit is met; return the status and the last reading."""
        while True:
            self.run_to(self.course.goal, interrupts)
            halted = self.rank.position < self.course.goal
            if self.keeper is not None and (halted or self.course.is_last()):
                # Before a reading that an undisturbed or longer run would not make.
                self.keeper.save(self.rank, self.course, self.wall_time, self.pulse.saved)
            pending = self._begin_reading()
            if not halted:
                self.run_to(self._ahead(), interrupts, pending)
            standing, reading = self._finish(pending)
            by_signal = halted and self.pulse.signal > 0
            status = self.course.note(standing, reading, lambda: by_signal)  # noqa: B023
            if status is not None:
                self._drain(interrupts)
                return status, reading

    def _ahead(self) -> int:
        """How far to go while a reading is on its way: where no reading will be wanted before."""
        position = self.rank.position
        ahead = self.course.sure_until(position)
        if self.keeper is not None:  # what is kept includes all readings before it
            ahead = min(ahead, self.keeper.next_after(position))
        return max(position, ahead)

    def run_to(
        self, stop: int, interrupts: Interrupts, pending: "Underway[Outcome] | None" = None
    ) -> None:
        """Execute events up to a position, less if all agree to halt or ``pending`` is there."""
        rank = self.rank
        while rank.position < stop or not rank.done:
            if rank.done:
                if not self._may_pass(interrupts):
                    return
                with self.spans.of("scheduling"):
                    rank.load(min(stop, *self._next_cuts()))
            self._serve()
            if pending is not None and self._poll(pending):
                return

    def _next_cuts(self) -> Iterator[int]:
        position = self.rank.position
        yield self.pulse.next_after(position)
        if self.keeper is not None:
            yield self.keeper.next_after(position)

    def _may_pass(self, interrupts: Interrupts) -> bool:
        """Pulse and checkpoint of this position, if it has one; False where all halt."""
        position = self.rank.position
        if self.pulse.is_due(position):
            limit = self.course.stopping.time_limit
            late = limit is not None and self.wall_time >= limit
            with self.spans.of("waiting"):
                self.patience.until(self.pulse.arrived, "the other ranks' pulse")
            saved = -1 if self.keeper is None else self.keeper.kept
            self.pulse.post(position, interrupts.received or 0, late, saved)
        if self.pulse.halts(position):
            return False
        if self.keeper is not None and self.keeper.is_due(position):
            with self.spans.of("saving"):
                self.keeper.save(self.rank, self.course, self.wall_time, self.pulse.saved)
            self.patience.renew()
        return True

    def _serve(self) -> None:
        """One turn of the carrier; a wait in it that lasts too long ends the job."""
        try:
            with self.spans.of("computing"):
                done = self.carrier.serve()
        except ConnectionError as error:
            self.patience.give_up(str(error))
        self.patience.watch(self.rank, done)

    def _begin_reading(self) -> "Underway[Outcome]":
        started = time.perf_counter()
        wall_time = self.wall_time
        with self.spans.of("reading"):
            pending = Underway(self.sums, outcome_steps(self.rank, wall_time, self.reading))
            pending.poll()
        self._aside += time.perf_counter() - started
        return pending

    def _poll(self, pending: "Underway[Outcome]") -> bool:
        started = time.perf_counter()
        with self.spans.of("reading"):
            there = pending.poll()
        if (took := time.perf_counter() - started) > WORK:
            self.patience.renew()
        self._aside += took
        return there

    def _finish(self, pending: "Underway[Outcome]") -> Outcome:
        started = time.perf_counter()
        with self.spans.of("reading"):
            self.patience.until(pending.poll, "the other ranks' part of a reading")
        self._aside += time.perf_counter() - started
        return pending.result

    def _drain(self, interrupts: Interrupts) -> None:
        """Bring all ranks to one position, so that no message is left on its way."""
        furthest = max(self.rank.share.peers.gather(self.rank.position))
        keeper, self.keeper = self.keeper, None
        self.pulse.ignore()
        self.run_to(furthest, interrupts)
        self.patience.until(self.pulse.arrived, "the other ranks' last pulse")
        if keeper is not None:
            keeper.close(self.rank.share.peers)

    def close(self) -> None:
        """Give the communicators back: a library has some thousands, and programs run often."""
        for comm in self.comms:
            comm.Free()


def outcome_steps(
    rank: Rank, wall_time: float, read_models: ReadModels | None = None
) -> Steps[Outcome]:
    """Where the run stands and what it is worth, from a copy of this moment."""
    share, algorithm, state = rank.share, rank.algorithm, rank.state
    outputs = models(algorithm, state)
    duals = [algorithm.duals(state, node) for node in range(share.n_nodes)]
    position, told = rank.position, _facts(rank, wall_time)
    _, facts = yield Ask(0, 4, _given(told))
    with np.errstate(over="ignore", invalid="ignore"):  # told by the run's status
        steps = (
            reading_steps(share, outputs, duals.__getitem__, share.total_sigma)
            if read_models is None
            else read_models(outputs[0])
        )
        reading = yield from steps
    updates, exchanges = (int(total) for total in facts[:, 2:].sum(axis=0))
    standing = Standing(
        position, updates + exchanges, float(facts[:, 0].max()), float(facts[:, 1].max()),
        message_counts(updates, exchanges, share.n_features),
    )  # fmt: skip
    return standing, reading


def _facts(rank: Rank, wall_time: float) -> list[tuple[float, ...]]:
    """Of each node its idealized time, the seconds of its rank, and what it has executed."""
    return [
        (float(finish), wall_time, float(updates), float(exchanges))
        for finish, (updates, exchanges) in zip(rank.hands.finish, rank.tally, strict=True)
    ]


def _given(told: list[tuple[float, ...]]) -> Iterator[Part]:
    for values in told:
        yield Part(np.empty(0), values)

"""Where a rank's time goes: seconds by kind, and the spans themselves if a timeline is wanted."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

KINDS = ("computing", "waiting", "scheduling", "reading", "saving")
MOST_SPANS = 200_000

Span = tuple[str, float, float]


class Spans:
    """Collects what was done from when to when, in the seconds of ``clock``."""

    def __init__(self, keep: bool = False, clock: Callable[[], float] = time.perf_counter) -> None:
        self.keep, self._clock = keep, clock
        self.began = clock()
        self.seconds = dict.fromkeys(KINDS, 0.0)
        self._kept: list[Span] = []

    @contextlib.contextmanager
    def of(self, kind: str) -> Iterator[None]:
        """The time inside belongs to ``kind``."""
        started = self._clock()
        try:
            yield
        finally:
            ended = self._clock()
            self.seconds[kind] += ended - started
            if self.keep and len(self._kept) < MOST_SPANS:
                self._kept.append((kind, started, ended))

    def relative(self, waits: NDArray[np.float64]) -> list[Span]:
        """Spans in seconds since the beginning; ``waits`` of compiled code, in the same clock.

        Of each at most `MOST_SPANS` are kept; spans end where one of the two was full, because
        without waits the rest would look like computing.
        """
        until = min(
            self._kept[-1][2] if len(self._kept) >= MOST_SPANS else math.inf,
            float(waits[-1, 1]) if len(waits) >= MOST_SPANS else math.inf,
        )
        waited = [("waiting", float(a), float(b)) for a, b in waits]
        return [
            (kind, start - self.began, min(end, until) - self.began)
            for kind, start, end in sorted(self._kept + waited, key=lambda span: span[1])
            if start < until
        ]

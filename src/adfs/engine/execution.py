"""Where the time of each rank was spent, and its timeline."""

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.network import Network

KINDS = ("computing", "waiting", "scheduling", "reading", "saving")
MOST_SPANS = 200_000

Span = tuple[str, float, float]


class Spans:
    """Records what this process did from when to when, in the seconds of ``clock``."""

    def __init__(self, keep: bool, clock: Callable[[], float]) -> None:
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

        Of each at most `MOST_SPANS` are recorded; spans end where one of the two is full, because
        without waits the rest would be taken for computing.
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


@dataclass(frozen=True)
class Execution:
    """Where the seconds of one rank went, by kind; its nodes and its use of memory and network."""

    rank: int
    nodes: list[int]
    seconds: dict[str, float]
    cut_edges: int = 0  # edges between ranks
    peak_memory: int = 0  # most memory of the process, in bytes
    bytes_sent: int = 0  # of numbers, to other ranks
    spans: list[Span] = field(default_factory=list)  # since the loop began, if requested


def account(network: Network, spans: Spans, carrier: Any) -> Execution:
    """The account of a process; what its carrier of messages waited, if any, is no computing."""
    seconds = dict(spans.seconds)
    waited = network.waited + (0.0 if carrier is None else float(carrier.seconds))
    seconds["computing"] -= waited
    seconds["waiting"] += waited
    ends = network.rank_of[network.topology.edges].reshape(-1, 2)
    cut_edges = int(np.count_nonzero(ends[:, 0] != ends[:, 1]))
    waits = np.empty((0, 2)) if carrier is None else carrier.waits
    return Execution(
        network.rank, network.nodes.tolist(), seconds, cut_edges, peak_memory(),
        network.bytes_sent, spans.relative(waits),
    )  # fmt: skip


def peak_memory() -> int:
    """Most resident memory of this process so far, in bytes; 0 where it is unknown."""
    try:
        import resource
        import sys

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    except ImportError:
        return 0


def gather_executions(network: Network, own: Execution) -> list[Execution]:
    """Those of all ranks, on every rank."""
    found = network.gather(vars(own))
    return [
        Execution(**each | {"spans": [tuple(span) for span in each["spans"]]}) for each in found
    ]

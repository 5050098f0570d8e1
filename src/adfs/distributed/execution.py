"""How a run went on each rank: where its time was spent, and its timeline."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.distributed.spans import Spans
from adfs.distributed.world import World


@dataclass(frozen=True)
class Execution:
    """One rank's account.

    Attributes
    ----------
    nodes : list of int
    seconds : dict
        By kind (`adfs.distributed.spans.KINDS`).
    spans : list of (kind, start, end)
        In seconds since the loop began, if a timeline was wanted.
    resumed : int or None
        The position from which the run went on.
    cut_edges : int
        Edges between ranks.
    peak_memory : int
        Most memory of the process, in bytes.
    """

    rank: int
    nodes: list[int]
    seconds: dict[str, float]
    resumed: int | None = None
    cut_edges: int = 0
    peak_memory: int = 0
    spans: list[tuple[str, float, float]] = field(default_factory=list)


def account(
    world: World, nodes: list[int], spans: Spans, waited: float, waits: NDArray[np.float64],
    resumed: int | None, cut_edges: int,
) -> Execution:  # fmt: skip
    """The account of a rank; what compiled code spent waiting is no computing."""
    seconds = dict(spans.seconds)
    seconds["computing"] -= waited
    seconds["waiting"] += waited
    kept = spans.relative(waits)
    return Execution(world.rank, nodes, seconds, resumed, cut_edges, peak_memory(), kept)


def peak_memory() -> int:
    """Most resident memory of this process so far, in bytes; 0 where the system does not say."""
    try:
        import resource
        import sys

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    except ImportError:
        return 0


def gather_executions(world: World, own: Execution) -> list[Execution]:
    """Those of all ranks, on every rank."""
    told: list[dict[str, Any]] = world.gather(
        {**vars(own), "spans": [list(span) for span in own.spans]}
    )
    return [
        Execution(**(each | {"spans": [tuple(span) for span in each["spans"]]})) for each in told
    ]

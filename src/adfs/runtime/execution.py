"""How a run went on each rank: where its time was spent, and its timeline."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.network import Network
from adfs.runtime.spans import KINDS, Span, Spans


@dataclass(frozen=True)
class Execution:
    """One rank's account.

    Attributes
    ----------
    nodes : list of int
    seconds : dict
        By kind (`adfs.runtime.spans.KINDS`).
    spans : list of (kind, start, end)
        In seconds since the loop began, if a timeline was wanted.
    resumed : int or None
        The position from which the run went on.
    cut_edges : int
        Edges between ranks.
    peak_memory : int
        Most memory of the process, in bytes.
    bytes_sent : int
        Numbers really sent to other ranks, in bytes, by this rank.
    """

    rank: int
    nodes: list[int]
    seconds: dict[str, float]
    resumed: int | None = None
    cut_edges: int = 0
    peak_memory: int = 0
    bytes_sent: int = 0
    spans: list[Span] = field(default_factory=list)


def account(
    network: Network, spans: Spans, waited: float, waits: NDArray[np.float64], resumed: int | None
) -> Execution:
    """The account of a process; what compiled code spent waiting is no computing."""
    seconds = dict(spans.seconds)
    waited += network.waited
    seconds["computing"] -= waited
    seconds["waiting"] += waited
    ends = network.rank_of[network.topology.edges].reshape(-1, 2)
    return Execution(
        network.rank, network.nodes.tolist(), seconds, resumed,
        int(np.count_nonzero(ends[:, 0] != ends[:, 1])), peak_memory(), network.bytes_sent,
        spans.relative(waits),
    )  # fmt: skip


def peak_memory() -> int:
    """Most resident memory of this process so far, in bytes; 0 where the system does not say."""
    try:
        import resource
        import sys

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    except ImportError:
        return 0


def gather_executions(network: Network, own: Execution) -> list[Execution]:
    """Those of all ranks, on every rank."""
    kinds = np.array([KINDS.index(span[0]) for span in own.spans], dtype=np.int8)
    times = np.array([span[1:] for span in own.spans], dtype=np.float64).reshape(-1, 2)
    told: list[dict[str, Any]] = network.gather(
        {**vars(own), "spans": None, "kinds": kinds, "times": times}
    )
    return [_heard(each) for each in told]


def _heard(told: dict[str, Any]) -> Execution:
    """An account from what its rank has told."""
    kinds, times = told.pop("kinds").tolist(), told.pop("times").tolist()
    told["spans"] = [(KINDS[k], start, end) for k, (start, end) in zip(kinds, times, strict=True)]
    return Execution(**told)

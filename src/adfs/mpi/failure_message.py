"""The facts about a rank, and the one message that is printed when it fails.

Both the supervisor and the rank itself may have to print it, so this module imports nothing that
takes time or memory.
"""

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adfs.mpi.launcher import rank_by_environment

DEFAULT_TIMEOUT = 60.0
MOST_NAMED = 8


@dataclass(frozen=True)
class RankFacts:
    """What a rank has reported of itself; all of it may be missing when it dies early.

    Attributes
    ----------
    rank, size : int or None
        Its number among the ranks, and how many there are.
    nodes : sequence of int
        Its nodes.
    peers : mapping of int to sequence of int
        For each rank that waits for its messages, the nodes there that do.
    timeout : float
        Seconds that it may be stopped.
    resumable : bool
        Whether there are checkpoints to continue from.

    Examples
    --------
    >>> facts = RankFacts().updated({"rank": 1, "nodes": [2, 3], "peers": {"0": [0, 1]}})
    >>> print(failure_message(facts, "was killed by SIGKILL"))
    rank 1 (nodes 2-3) was killed by SIGKILL, and rank 0 (nodes 0-1) waits for it: the job \
ends; run it again, with --checkpoint DIR to be able to continue.
    """

    rank: int | None = None
    size: int | None = None
    nodes: Sequence[int] = ()
    peers: Mapping[int, Sequence[int]] = field(default_factory=dict)
    timeout: float = DEFAULT_TIMEOUT
    resumable: bool = False

    def updated(self, changes: Mapping[str, Any]) -> "RankFacts":
        """The same facts with ``changes``, in which JSON may have made texts of ranks."""
        facts = replace(self, **changes)
        return replace(facts, peers={int(rank): nodes for rank, nodes in facts.peers.items()})


def failure_message(facts: RankFacts, what: str) -> str:
    """Which rank failed and how, which ranks wait for it, and the way out."""
    way_out = (
        "continue with --resume."
        if facts.resumable
        else "run it again, with --checkpoint DIR to be able to continue."
    )
    return f"{rank_name(facts)} {what}{_waiting(facts)}: the job ends; {way_out}"


def how_it_ended(code: int) -> str:
    """Text for a return code as ``subprocess`` gives it: a signal is a negative number."""
    if code >= 0:
        return f"ended with exit code {code} before its work was done"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:  # real-time signals have only a number
        return f"was killed by signal {-code}"


def rank_name(facts: RankFacts) -> str:
    """``rank 1 (nodes 2-3)``, as far as it is known."""
    rank = rank_by_environment() if facts.rank is None else facts.rank
    name = "the process" if rank is None else f"rank {rank}"
    return f"{name} ({_nodes(facts.nodes)})" if facts.nodes else name


def _waiting(facts: RankFacts) -> str:
    """``, and rank 0 (nodes 0-1) waits for it``; the first few peers of many."""
    peers = sorted(facts.peers.items())
    if not peers:
        return ""
    names = [f"rank {rank} ({_nodes(nodes)})" for rank, nodes in peers[:MOST_NAMED]]
    if len(peers) > MOST_NAMED:
        names.append(f"{len(peers) - MOST_NAMED} more ranks")
    return f", and {', '.join(names)} {'waits' if len(peers) == 1 else 'wait'} for it"


def _nodes(nodes: Sequence[int]) -> str:
    """``node 4``, ``nodes 0-3, 7``: consecutive numbers are written as a range."""
    ranges: list[list[int]] = []
    for node in sorted(nodes):
        if ranges and node == ranges[-1][1] + 1:
            ranges[-1][1] = node
        else:
            ranges.append([node, node])
    texts = [str(a) if a == b else f"{a}-{b}" for a, b in ranges[:MOST_NAMED]]
    more = ", ..." if len(ranges) > MOST_NAMED else ""
    return f"node{'s' if len(nodes) > 1 else ''} {', '.join(texts)}{more}"

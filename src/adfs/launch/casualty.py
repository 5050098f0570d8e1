"""What is known of a rank, and the one sentence that is said when it is lost.

Both the supervisor and the rank itself may have to say it, so it lives apart from them and imports
nothing that takes time or memory.
"""

import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from adfs.launch.launcher import rank_by_environment

DEFAULT_TIMEOUT = 60.0
NAMED_PEERS = 8


@dataclass(frozen=True)
class Facts:
    """What a rank has told of itself; all of it may be missing when it dies early.

    Attributes
    ----------
    rank, size : int or None
        Its number among the ranks, and how many there are.
    nodes : tuple of int
        The nodes it holds.
    peers : mapping of int to tuple of int
        For each rank that waits for its messages, the nodes there that do.
    timeout : float
        Seconds that it may be stopped.
    resumable : bool
        Whether there are checkpoints to continue from.

    Examples
    --------
    >>> facts = Facts().told({"rank": 1, "size": 2, "nodes": [2, 3], "peers": {"0": [0, 1]}})
    >>> print(sentence(facts, "was killed by SIGKILL"))
    rank 1 (nodes 2-3) was killed by SIGKILL, and rank 0 (nodes 0-1) waits for it: the job \
ends; run it again, with --checkpoint DIR to be able to continue.
    """

    rank: int | None = None
    size: int | None = None
    nodes: tuple[int, ...] = ()
    peers: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    timeout: float = DEFAULT_TIMEOUT
    resumable: bool = False

    def told(self, news: Mapping[str, Any]) -> "Facts":
        """The same facts with those in ``news`` put in their place; other keys are passed over."""
        known = {key: news[key] for key in news if key in self.__dataclass_fields__}
        if "nodes" in known:
            known["nodes"] = _whole(known["nodes"])
        if "peers" in known:
            known["peers"] = {int(r): _whole(nodes) for r, nodes in known["peers"].items()}
        return replace(self, **known)


def _whole(numbers: Iterable[Any]) -> tuple[int, ...]:
    """Plain numbers: those of an array are no JSON."""
    return tuple(int(number) for number in numbers)


def sentence(facts: Facts, what: str) -> str:
    """Who was lost and how, who waits for it, and the way out."""
    way_out = (
        "continue with --resume."
        if facts.resumable
        else "run it again, with --checkpoint DIR to be able to continue."
    )
    return f"{who(facts)} {what}{_waiting(facts)}: the job ends; {way_out}"


def how_it_ended(code: int) -> str:
    """Words for a return code as ``subprocess`` gives it: a signal is a negative number."""
    if code < 0:
        return f"was killed by {signal_name(-code)}"
    return f"ended with exit code {code} before its work was done"


def signal_name(number: int) -> str:
    """``SIGKILL`` for 9; real-time signals have only a number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def who(facts: Facts) -> str:
    """``rank 1 (nodes 2-3)``, as far as it is known."""
    rank = rank_by_environment() if facts.rank is None else facts.rank
    name = "the process" if rank is None else f"rank {rank}"
    return f"{name} ({_nodes(facts.nodes)})" if facts.nodes else name


def _waiting(facts: Facts) -> str:
    """``, and rank 0 (nodes 0-1) waits for it``; the first few peers of many."""
    peers = sorted(facts.peers.items())
    if not peers:
        return ""
    words = [f"rank {rank} ({_nodes(nodes)})" for rank, nodes in peers[:NAMED_PEERS]]
    if len(peers) > NAMED_PEERS:
        words.append(f"{len(peers) - NAMED_PEERS} more ranks")
    return f", and {', '.join(words)} {'waits' if len(peers) == 1 else 'wait'} for it"


def _nodes(nodes: Iterable[int]) -> str:
    """``node 4``, ``nodes 0-3, 7``: runs of neighbours are written as one."""
    numbers = sorted(nodes)
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    words = [str(a) if a == b else f"{a}-{b}" for a, b in runs[:NAMED_PEERS]]
    more = ", ..." if len(runs) > NAMED_PEERS else ""
    return f"node{'s' if len(numbers) > 1 else ''} {', '.join(words)}{more}"

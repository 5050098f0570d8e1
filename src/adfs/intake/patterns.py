"""One file a node: who sees which, who takes which, and the rows of those taken."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from adfs.errors import AdfsError, DataError
from adfs.intake.layout import Dealt, Layout, Numbers, Piece, lay_out
from adfs.launch.peers import Peers, attempt
from adfs.problems.files import load_data, require_all_nodes, shard_nodes, shard_path
from adfs.problems.libsvm import dense_if_full, is_full, require_samples, stream_libsvm
from adfs.problems.npz import is_npz
from adfs.problems.partition import Shard

Sight = NDArray[np.bool_]


def find_shards(peers: Peers, pattern: str) -> Sight:
    """Which rank sees which node's file, an array of shape (ranks, nodes).

    Hosts need not share a file system: a file that some rank sees is there.
    """
    nodes = attempt(peers, lambda: sorted(shard_nodes(pattern)))
    seen_by = [set(map(int, seen)) for seen in peers.gather(nodes)]
    union = set().union(*seen_by)
    attempt(peers, lambda: require_all_nodes(pattern, union))
    return np.array([[node in seen for node in range(len(union))] for seen in seen_by])


def place_shards(seen: Sight, owner: Sequence[int] | Numbers, pattern: str) -> Numbers:
    """The rank of each node: ``owner`` where all ranks see all files, else one that sees its file.

    The nodes are then spread as evenly as the files allow: no chain of ranks, each handing a node
    to the next, could lead from a rank to one that has two nodes less (an optimal semi-matching;
    Harvey, Ladner, Lovasz and Tamir, 2006).

    Examples
    --------
    >>> seen = np.array([[True, True, True], [True, False, False]])
    >>> place_shards(seen, [0, 0, 1], "part-{node}").tolist()
    [1, 0, 0]
    """
    if seen.all():
        return np.asarray(owner, dtype=np.int64)
    ranks: Numbers = np.full(seen.shape[1], -1, dtype=np.int64)
    loads: Numbers = np.zeros(seen.shape[0], dtype=np.int64)
    for node in range(seen.shape[1]):
        rank = min(np.flatnonzero(seen[:, node]), key=lambda rank: (loads[rank], rank))
        ranks[node] = rank
        loads[rank] += 1
    while _hand_on(seen, ranks, loads):
        pass
    for rank in np.flatnonzero(loads == 0):
        raise DataError(
            f"rank {rank} must see a file of {pattern} that no other rank needs, but there is none "
            "on its host; copy some files there, or start fewer ranks."
        )
    return ranks


def _hand_on(seen: Sight, ranks: Numbers, loads: Numbers) -> bool:
    """Hand nodes along one chain from a rank to another with two less, if there is one."""
    for poor in np.argsort(loads, kind="stable"):
        givers: dict[int, tuple[int, int]] = {}  # a rank, the node it would give and to whom
        queue = deque([int(poor)])
        while queue:
            taker = queue.popleft()
            for node in np.flatnonzero(seen[taker]).tolist():
                giver = int(ranks[node])
                if giver == poor or giver in givers:
                    continue
                givers[giver] = (node, taker)
                queue.append(giver)
                if loads[giver] >= loads[poor] + 2:
                    loads[giver] -= 1
                    loads[poor] += 1
                    while giver != poor:
                        node, taker = givers[giver]
                        ranks[node], giver = taker, taker
                    return True
    return False


class NodeFile(NamedTuple):
    """A node's rows in pieces, their labels, and how they would be kept on their own."""

    pieces: list[Any]
    y: NDArray[np.float64]
    layout: Layout


class PatternRows(NamedTuple):
    """Shards of a rank's nodes, rows of every node, and their common layout."""

    shards: list[Shard]
    counts: Numbers
    layout: Layout


def load_pattern(peers: Peers, pattern: str, owner: Numbers, n_features: int | None) -> PatternRows:
    """The files of this rank's nodes, in the layout that `load_shards` gives to all."""
    nodes = np.flatnonzero(owner == peers.rank).tolist()
    files = attempt(peers, lambda: [_load(pattern, node, n_features) for node in nodes])
    told = [[len(file.y), *file.layout[:2], np.dtype(file.layout.dtype).str] for file in files]
    facts = [fact for facts in peers.gather(told) for fact in facts]
    filled = sum(peers.gather(sum(_filled(X) for file in files for X in file.pieces)))
    layout = _common(facts, filled)
    counts: Numbers = np.empty(len(owner), dtype=np.int64)
    counts[np.argsort(owner, kind="stable")] = [fact[0] for fact in facts]
    return PatternRows(attempt(peers, lambda: _shards(files, layout)), counts, layout)


def _load(pattern: str, node: int, n_features: int | None) -> NodeFile:
    """One file; what is wrong with the first node is told first."""
    try:
        return _load_file(shard_path(pattern, node), n_features)
    except AdfsError as error:
        error.order = node
        raise


def _load_file(path: Path, n_features: int | None) -> NodeFile:
    if is_npz(path):
        X, y = load_data(path, n_features)
        return NodeFile([X], y, Layout(not issparse(X), X.shape[1], X.dtype))
    pieces, labels, n_entries, width = [], [], 0, n_features or 1
    for X, y in stream_libsvm(path, n_features):
        n_entries, width = n_entries + X.nnz, max(width, X.shape[1])
        pieces.append(dense_if_full(X))  # what takes less
        labels.append(y)
    require_samples(path, len(pieces))
    y = np.concatenate(labels)
    return NodeFile(pieces, y, Layout(is_full(n_entries, len(y), width), width))


def _filled(X: Any) -> int:
    """Entries that are not zero, or are stored."""
    return int(X.nnz if issparse(X) else np.count_nonzero(X))


def _common(facts: list[Any], filled: int) -> Layout:
    """The layout of all nodes' files, each fact its rows, layout, width and type of number."""
    width = max(fact[2] for fact in facts)
    dtype = np.result_type(*(np.dtype(fact[3]) for fact in facts))
    kinds = {bool(fact[1]) for fact in facts}
    dense = kinds.pop() if len(kinds) == 1 else is_full(filled, sum(f[0] for f in facts), width)
    return Layout(dense, width, dtype)


def _shards(files: list[NodeFile], layout: Layout) -> list[Shard]:
    """Each node's rows, laid one after another; the files' pieces are used up."""
    y = np.concatenate([file.y for file in files])
    dealt = Dealt(np.split(np.arange(len(y)), np.cumsum([len(file.y) for file in files])[:-1]))
    pieces, first = [], 0
    for file in files:
        for X in file.pieces:
            pieces.append(Piece(X, np.arange(first, first + X.shape[0])))
            first += X.shape[0]
        file.pieces.clear()
    return dealt.shards(lay_out(pieces, len(y), layout), y)

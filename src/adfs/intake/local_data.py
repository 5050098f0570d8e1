"""The rows of a rank's nodes and a few facts about all rows: what the local engine would have.

A rank reads only what it needs: the files of its nodes, the bytes of its rows, or a stream that it
filters. Every step ends in an agreement (see `peers`), so that one faulty line, seen by one rank,
ends the job with one sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from adfs.errors import AdfsError, DataError, ParameterError
from adfs.intake.filtered import Facts, TextSource
from adfs.intake.layout import Dealt, Layout, Numbers
from adfs.intake.npz_rows import NpzSource
from adfs.intake.patterns import load_pattern
from adfs.intake.row_ranges import differing, digest_of_ends
from adfs.launch.peers import Peers, agree, attempt
from adfs.losses import Loss, get_loss
from adfs.problems.files import NODE, find_file, load_data, load_shards
from adfs.problems.labels import distinct, require_two
from adfs.problems.npz import is_npz
from adfs.problems.packed import open_text, reading
from adfs.problems.partition import Shard, partition, partition_counts, partition_rows


class LocalData(NamedTuple):
    """What a rank knows of the samples.

    Attributes
    ----------
    nodes : array of int
        Nodes of this rank, ascending.
    shards : list of Shard
        Their rows and labels, consecutive views of one array; no weights.
    counts : array of shape (n_nodes,)
        Rows of every node.
    n_features : int
        Columns of every shard.
    sparse : bool
        Whether the rows are in CSR.
    classes, label_counts : array of shape (2,) or None
        The two labels over all shards and how often they occur; None where the loss is not for
        classes.
    """

    nodes: Numbers
    shards: list[Shard]
    counts: Numbers
    n_features: int
    sparse: bool
    classes: NDArray[Any] | None
    label_counts: Numbers | None

    @property
    def n_samples(self) -> int:
        """Rows of all nodes; one that was dealt twice counts twice."""
        return int(self.counts.sum())


def load_share(
    peers: Peers,
    source: str,
    owner: Sequence[int] | Numbers,
    loss: str | Loss,
    how: str = "even",
    seed: int = 0,
    m: int | None = None,
    n_features: int | None = None,
) -> LocalData:
    r"""Load the rows of this rank's nodes, bit for bit as `load_data` and `partition` deal them.

    Every rank calls it with the same arguments.

    Parameters
    ----------
    peers : Peers
    source : str
        DATA: a LIBSVM or .npz file, a known name, or a pattern that holds ``{node}``.
    owner : sequence of int
        The rank of each node; see `place_shards` for patterns. Each rank has a node.
    loss : str or Loss
        Says whether labels are classes, of which there must then be two over all shards.
    how, seed, m
        How one file is dealt; see `partition_rows`. A pattern is dealt already.
    n_features : int, optional
        Number of columns; else the largest number over all rows.

    Examples
    --------
    >>> import tempfile
    >>> from adfs.launch.peers import Alone
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "three.txt"
    ...     _ = path.write_text("+1 1:1\n-1 1:2\n+1 1:3\n")
    ...     data = load_share(Alone(), str(path), [0, 0], "logistic", "contiguous")
    >>> [shard.X.tolist() for shard in data.shards], data.classes.tolist()
    ([[[1.0], [2.0]], [[3.0]]], [-1.0, 1.0])
    """
    ranks = np.asarray(owner, dtype=np.int64)
    attempt(peers, lambda: _check(ranks, peers.size, loss))
    if peers.size == 1:
        shards, counts, layout = _load_all(source, len(ranks), how, seed, m, n_features)
    elif NODE in source:
        shards, counts, layout = load_pattern(peers, source, ranks, n_features)
    else:
        deal = (len(ranks), how, seed, m)
        shards, counts, layout = _load_file(peers, source, ranks, deal, n_features)
    classes, label_counts = _classes(peers, [shard.y for shard in shards], get_loss(loss))
    nodes = np.flatnonzero(ranks == peers.rank)
    return LocalData(nodes, shards, counts, layout.width, not layout.dense, classes, label_counts)


def _load_all(
    source: str, n_nodes: int, how: str, seed: int, m: int | None, n_features: int | None
) -> tuple[list[Shard], Numbers, Layout]:
    """All rows, for a process that has all nodes: read at once, then dealt."""
    if NODE in source:
        shards = [Shard(X, y) for X, y in load_shards(source, n_features)]
    else:
        X, y = load_data(source, n_features)
        shards = partition(X, y, n_nodes, how, seed, m)
    first = shards[0].X
    counts = np.array([len(shard.y) for shard in shards], dtype=np.int64)
    return shards, counts, Layout(not issparse(first), first.shape[1], first.dtype)


def _check(ranks: Numbers, size: int, loss: str | Loss) -> None:
    """Every node has a rank, every rank a node, and the loss is known."""
    get_loss(loss)
    if not np.array_equal(np.unique(ranks), np.arange(size)):
        raise ParameterError(
            f"owner={ranks.tolist()} must name each of the {size} ranks and no other; map the "
            "nodes again."
        )


def _load_file(
    peers: Peers,
    source: str,
    ranks: Numbers,
    deal: tuple[int, str, int, int | None],
    n_features: int | None,
) -> tuple[list[Shard], Numbers, Layout]:
    """Deal one file that every rank can open."""
    rows = _open(peers, source, n_features)
    how = deal[1]
    surveyed = how == "draw" or (how == "sorted" and rows.labels is None)
    facts, labels = _survey(peers, rows) if surveyed else ([], rows.labels)
    nodes = np.flatnonzero(ranks == peers.rank).tolist()
    dealt, counts = attempt(peers, lambda: _deal(rows.n_samples, nodes, labels, *deal))
    if isinstance(dealt, AdfsError):
        # The same on every rank; but the local engine reads the file first.
        _survey(peers, rows)
        agree(peers, dealt)
        raise dealt
    labels = None  # all of them are no longer needed
    kept = attempt(peers, lambda: rows.read(dealt))
    if not surveyed:
        facts = _told(peers, kept.facts)
    layout = rows.layout(facts)
    X = attempt(peers, lambda: kept.lay_out(layout))
    return dealt.shards(X, kept.y), counts, layout


def _deal(
    n_samples: int,
    nodes: list[int],
    labels: NDArray[np.float64] | None,
    n_nodes: int,
    how: str,
    seed: int,
    m: int | None,
) -> tuple[Dealt | AdfsError, Numbers]:
    """The rows of some nodes, or why they cannot be dealt, and how many rows each node gets."""
    try:
        counts = partition_counts(n_samples, n_nodes, how, m)
        return Dealt(partition_rows(n_samples, n_nodes, how, seed, m, labels, nodes)), counts
    except AdfsError as refused:
        return refused, np.empty(0, dtype=np.int64)


def _open(peers: Peers, source: str, n_features: int | None) -> TextSource | NpzSource:
    """Find the file and count its rows; all ranks must see the same."""
    path, width = _find(peers, source, n_features)
    kind, n_bytes, ends = attempt(peers, lambda: _look(path))
    seen = peers.gather([kind, n_bytes, ends])
    attempt(peers, lambda: _require_same_file(path, seen))
    if kind == "npz":
        return NpzSource.opened(peers, path, width)
    return TextSource.opened(peers, path, width, packed=kind == "packed")


def _find(peers: Peers, source: str, n_features: int | None) -> tuple[Path, int | None]:
    """The file on each rank's host; a name is downloaded by rank 0 before the others look."""
    found = attempt(peers, lambda: None if peers.rank else find_file(source, n_features))
    try:
        found, error = found or find_file(source, n_features), None
    except AdfsError as missing:
        error = DataError(f"On the host of rank {peers.rank}, {missing}")
    agree(peers, error)
    assert found is not None
    return found


def _look(path: Path) -> tuple[str, int, int]:
    """What kind of file this is, its length in bytes, and a digest of its two ends."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise DataError(
            f"{path} must be a regular file, since each rank reads its own part of it; save it as "
            "one, or use --engine local."
        )
    if is_npz(path):
        with reading(path):
            return "npz", path.stat().st_size, digest_of_ends(path)
    with reading(path), ExitStack() as stack:
        kind = "packed" if open_text(path, stack)[1] else "plain"
        return kind, path.stat().st_size, digest_of_ends(path)


def _require_same_file(path: Path, seen: list[Any]) -> None:
    for rank, (kind, n_bytes, ends) in enumerate(seen):
        if [kind, n_bytes] != list(seen[0][:2]):
            raise DataError(
                f"{path} must be the same file on every rank, but rank 0 sees {seen[0][1]} bytes "
                f"and rank {rank} sees {n_bytes}; copy it anew, or give each node a file ({NODE})."
            )
        if ends != seen[0][2]:
            raise differing(path, 0, rank)


def _survey(
    peers: Peers, rows: TextSource | NpzSource
) -> tuple[list[Facts], NDArray[np.float64] | None]:
    """Check all rows, each rank an equal part; facts and labels of all."""
    cuts = [rank * rows.n_samples // peers.size for rank in (peers.rank, peers.rank + 1)]
    facts, labels = attempt(peers, lambda: rows.survey(*cuts))
    return _told(peers, facts), np.concatenate(peers.gather(labels))


def _told(peers: Peers, facts: Facts) -> list[Facts]:
    return [Facts(*each) for each in peers.gather(list(facts))]


def _classes(
    peers: Peers, labels: list[NDArray[np.float64]], loss: Loss
) -> tuple[NDArray[np.float64] | None, Numbers | None]:
    """The two labels over all ranks and their counts, where labels are classes."""
    if not loss.binary:
        return None, None
    own = attempt(peers, lambda: distinct(np.concatenate(labels)))
    classes = np.unique(np.concatenate(peers.gather(own)))
    attempt(peers, lambda: require_two(classes, loss))
    counts = [sum(int(np.count_nonzero(y == value)) for y in labels) for value in classes]
    return classes, np.sum(peers.gather(counts), axis=0)

"""The rows of a rank's nodes and a few facts about all rows: the same bits as in one process.

A rank reads only what it needs: the files of its nodes, the bytes of its rows, or a stream that it
filters. Every step ends in an agreement (see `adfs.agreement`), so that one faulty line, found by
one rank, ends the job with one message.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from adfs.agreement import Peers, agree, attempt
from adfs.data.files import (
    FORMATS,
    NODE,
    Reader,
    find_file,
    format_of,
    load_data,
    load_pattern,
)
from adfs.data.labels import classes_of
from adfs.data.libsvm import read_errors
from adfs.data.libsvm_ranges import different_content, digest_of_ends
from adfs.data.matrices import Facts, Layout, Numbers, Vector, common_layout, lay_out
from adfs.data.partition import Shard, cut_rows, partition, partition_counts, partition_rows
from adfs.errors import AdfsError, DataError, ParameterError
from adfs.losses import Loss, get_loss


class LocalData(NamedTuple):
    """The samples of a rank's nodes, and facts about all samples.

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
        """Rows of all nodes; a row that two nodes have counts twice."""
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
    r"""Load the rows of this rank's nodes, bit for bit as `load_data` and `partition` give them.

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
        How one file is divided; see `partition_rows`. Not used for a pattern.
    n_features : int, optional
        Number of columns; else the largest number over all rows.

    Examples
    --------
    >>> import tempfile
    >>> from adfs.agreement import Alone
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "three.txt"
    ...     _ = path.write_text("+1 1:1\n-1 1:2\n+1 1:3\n")
    ...     data = load_share(Alone(), str(path), [0, 0], "logistic", "contiguous")
    >>> [shard.X.tolist() for shard in data.shards], data.classes.tolist()
    ([[[1.0], [2.0]], [[3.0]]], [-1.0, 1.0])
    """
    ranks = np.asarray(owner, dtype=np.int64)
    attempt(peers, lambda: _check(ranks, peers.size, loss))
    if NODE in source:
        shards, counts, layout = load_pattern(peers, source, ranks, n_features)
    elif peers.size == 1:
        X, y = load_data(source, n_features)
        shards = partition(X, y, len(ranks), how, seed, m)
        counts = np.array([len(shard.y) for shard in shards], dtype=np.int64)
        layout = Layout(not issparse(X), X.shape[1], X.dtype)
    else:
        division = (len(ranks), how, seed, m)
        shards, counts, layout = _load_file(peers, source, ranks, division, n_features)
    labels = np.concatenate([shard.y for shard in shards])
    classes, label_counts = classes_of(labels, get_loss(loss), peers), None
    if classes is not None:
        own = [int(np.count_nonzero(labels == value)) for value in classes]
        label_counts = np.sum(peers.gather(own), axis=0)
    nodes = np.flatnonzero(ranks == peers.rank)
    return LocalData(nodes, shards, counts, layout.width, not layout.dense, classes, label_counts)


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
    division: tuple[int, str, int, int | None],
    n_features: int | None,
) -> tuple[list[Shard], Numbers, Layout]:
    """Divide one file that every rank can open."""
    reader = _open(peers, source, n_features)
    how = division[1]
    surveyed = how == "draw" or (how == "sorted" and reader.labels is None)
    facts, labels = _survey(peers, reader) if surveyed else ([], reader.labels)
    nodes = np.flatnonzero(ranks == peers.rank).tolist()
    parts, counts = attempt(peers, lambda: _divide(reader.n_samples, nodes, labels, *division))
    if isinstance(parts, AdfsError):
        # The same on every rank; but one process would read the file first.
        _survey(peers, reader)
        agree(peers, parts)
        raise parts
    labels = None  # all of them are no longer needed
    pieces, y = attempt(peers, lambda: reader.read(np.concatenate(parts)))
    if not surveyed:
        facts = _gathered(peers, Facts.of(pieces, reader.n_features, reader.dense))
    layout = common_layout(facts)
    X = attempt(peers, lambda: lay_out(pieces, len(y), layout))
    return cut_rows(X, y, [len(part) for part in parts]), counts, layout


def _divide(
    n_samples: int,
    nodes: list[int],
    labels: Vector | None,
    n_nodes: int,
    how: str,
    seed: int,
    m: int | None,
) -> tuple[list[Numbers] | AdfsError, Numbers]:
    """The rows of some nodes, or why there are none, and how many rows each node gets."""
    try:
        counts = partition_counts(n_samples, n_nodes, how, m)
        return partition_rows(n_samples, n_nodes, how, seed, m, labels, nodes), counts
    except AdfsError as refused:
        return refused, np.empty(0, dtype=np.int64)


def _open(peers: Peers, source: str, n_features: int | None) -> Reader:
    """Find the file on each rank's host and open it together; all ranks must see the same."""
    # A data set is downloaded by rank 0 before the others search for it.
    found = attempt(peers, lambda: None if peers.rank else find_file(source, n_features))
    try:
        found, error = found or find_file(source, n_features), None
    except AdfsError as missing:
        error = DataError(f"On the host of rank {peers.rank}, {missing}")
    agree(peers, error)
    assert found is not None
    path, width = found
    identity = attempt(peers, lambda: _identity(path))
    seen = peers.gather(identity)
    attempt(peers, lambda: _require_same_file(path, seen))
    return format_of(path).open(peers, path, width)


def _identity(path: Path) -> list[int]:
    """The length of a file in bytes, a digest of its two ends, and the number of its format."""
    if not path.is_file():
        raise DataError(
            f"{path} must be a regular file, since each rank reads its own part of it; save it as "
            "one, or use --engine local."
        )
    with read_errors(path):
        return [path.stat().st_size, digest_of_ends(path), FORMATS.index(format_of(path))]


def _require_same_file(path: Path, seen: list[Any]) -> None:
    for rank, each in enumerate(seen):
        if each[0] != seen[0][0]:
            raise DataError(
                f"{path} must be the same file on every rank, but rank 0 sees {seen[0][0]} bytes "
                f"and rank {rank} sees {each[0]}; copy it again, or use one file per node ({NODE})."
            )
        if list(each) != list(seen[0]):
            raise different_content(path, 0, rank)


def _survey(peers: Peers, reader: Reader) -> tuple[list[Facts], Vector]:
    """Check all rows, each rank an equal part; facts and labels of all."""
    first, last = (rank * reader.n_samples // peers.size for rank in (peers.rank, peers.rank + 1))
    facts, labels = attempt(peers, lambda: reader.survey(first, last))
    return _gathered(peers, facts), np.concatenate(peers.gather(labels))


def _gathered(peers: Peers, facts: Facts) -> list[Facts]:
    return [Facts(*each) for each in peers.gather(list(facts))]

"""Loads DATA: a file in one of the known formats, a data set by name, or one file per node.

With ranks, each keeps only the rows of its nodes, with the bits that one process has. It reads only
what it needs: the files of its nodes, the bytes of its rows, or a stream that it filters. Every
step ends in an agreement (see `adfs.agreement`), so that one faulty line, found by one rank, ends
the job with one message.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from adfs.agreement import Alone, Peers, agree, attempt
from adfs.data import datasets
from adfs.data.columns import Columns, Survey, decide
from adfs.data.libsvm import LibsvmReader
from adfs.data.matrices import Matrix, Numbers, Samples
from adfs.data.npz import NpzReader
from adfs.data.npz import save_npz as save_npz
from adfs.data.partition import Shard, Shards, needs_labels, partition, partition_rows
from adfs.data.reader import (
    Facts,
    Piece,
    Reader,
    Selection,
    check_n_features,
    common_layout,
    different_content,
    digest_of_ends,
    join_labels,
    lay_out,
    read_all,
    read_errors,
    require_labels,
)
from adfs.data.shards import classes_of
from adfs.data.tables import CsvReader, ParquetReader, TableReader
from adfs.errors import AdfsError, DataError
from adfs.losses import Loss, get_loss

NODE = "{node}"
# The first that recognises a file reads it, so the last one takes everything.
READERS: tuple[type[Reader], ...] = (NpzReader, CsvReader, ParquetReader, LibsvmReader)
EVERYTHING = Selection()
T = TypeVar("T")


def load_data(
    source: str | os.PathLike[str],
    n_features: int | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
) -> Samples:
    """Load the samples and labels of one DATA.

    Parameters
    ----------
    source : str or path
        A LIBSVM file (plain, .gz, .bz2, .xz), a table (.csv, .tsv, .parquet), a .npz file with
        ``X`` and ``y``, or a name from ``DATASETS``; a file wins over a data set of the same name.
    n_features : int, optional
        Number of columns: rows with fewer are padded with zeros, rows with more are refused.
    target, features, categorical : str, list of str, list of str
        Columns of a table: the one of the labels, those of the features (all others if left out),
        and those whose values are names although they look like numbers.

    Returns
    -------
    Samples
        ``X`` a C-contiguous array or a ``csr_matrix`` with int32 indices, float64 or, from a .npz
        file, float32; ``y`` in float64, or words. All values are finite.
    """
    selection = select_columns(n_features, target, features, categorical)
    return require_labels(*load_rows(source, selection), source)


def select_columns(
    n_features: int | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
) -> Selection:
    """What of a file is read, checked."""
    chosen = None if features is None else tuple(features)
    return Selection(check_n_features(n_features), target, chosen, tuple(categorical))


def load_rows(
    source: str | os.PathLike[str], selection: Selection = EVERYTHING
) -> tuple[Matrix, NDArray[Any] | None]:
    """The same for prediction: a file may leave out the labels, which then are None."""
    reader = _open_file(*find_file(source, selection))
    survey_columns(Alone(), [reader], selection)
    return read_all(reader)


def _open_file(path: Path, selection: Selection) -> Reader:
    return format_of(path)(Alone(), path, selection)


def survey_columns(
    peers: Peers, readers: Sequence[Reader], selection: Selection, rank: int = 0, size: int = 1
) -> None:
    """Decide how the columns of tables become features, by all rows of all files.

    Every rank calls it with its own files, or with its part of one file that all of them read.
    """
    if selection.columns is not None:
        return
    own = attempt(peers, lambda: [reader.survey(rank, size) for reader in readers])
    plain = [None if survey is None else survey.to_plain() for survey in own]
    surveys = [each for of_rank in peers.gather(plain) for each in of_rank]
    tables = [Survey.from_plain(each) for each in surveys if each is not None]
    if not tables:
        return
    columns = attempt(peers, lambda: decide(tables, len(surveys), selection.categorical))
    for reader in readers:
        reader.columns = columns


def is_table(name: str) -> bool:
    """Whether a file is a table, whose columns have names."""
    return issubclass(format_of(Path(name)), TableReader)


def format_of(path: Path) -> type[Reader]:
    return next(reader for reader in READERS if reader.recognises(path))


def find_file(source: str | os.PathLike[str], selection: Selection) -> tuple[Path, Selection]:
    """The file behind one DATA; a data set adds the number of its columns."""
    name, path = os.fspath(source), Path(source)
    if NODE in name:
        raise DataError(f"{name} must name one file, but holds {NODE}; load it as shards.")
    if name in datasets.DATASETS and (path.is_dir() or not path.exists()):
        width = selection.n_features or datasets.DATASETS[name].n_features
        return datasets.locate(name), selection._replace(n_features=width)
    if not path.exists():
        raise DataError(
            f"{name} must be a file or a known data set, but is neither; check the path, or take "
            f"one of {', '.join(datasets.DATASETS)}."
        )
    if path.is_dir():
        raise DataError(f"{path} must be a file, but is a folder; name a file in it.")
    return path, selection


def load_shards(pattern: str | os.PathLike[str], n_features: int | None = None) -> list[Samples]:
    """Load one file per node, numbered from 0 in the place of ``{node}``.

    All shards get the width of the widest (or ``n_features``), and one layout: dense where at
    least half of all entries are non-zero, else CSR.
    """
    nodes = range(len(shard_paths(pattern)))
    shards, _ = _load_pattern(Alone(), os.fspath(pattern), nodes, select_columns(n_features))
    return [Samples(shard.X, shard.y) for shard in shards]


class LocalData(NamedTuple):
    """The samples of a rank's nodes: consecutive views of one array, in ascending order.

    ``classes`` are the labels over all shards and ``label_counts`` how often they occur; None
    where the loss is not for classes. ``columns`` says how the columns of a table became features.
    """

    shards: Sequence[Shard]
    classes: NDArray[Any] | None
    label_counts: Numbers | None
    columns: Columns | None = None


def load_share(
    peers: Peers,
    source: str,
    owner: Sequence[int] | Numbers,
    loss: str | Loss,
    how: str = "even",
    seed: int = 0,
    m: int | None = None,
    most_classes: int = 2,
    **columns: Any,
) -> LocalData:
    r"""Load the rows of this rank's nodes, bit for bit as `load_data` and `partition` give them.

    Every rank calls it with the same arguments. ``owner`` is the rank of each node; each rank has
    one. ``loss`` says whether labels are classes, of which there must then be two, or up to
    ``most_classes``, over all shards.
    ``how``, ``seed`` and ``m`` divide one file (see `partition_rows`), not a pattern. ``columns``
    are the other arguments of `load_data`.

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
    known = attempt(peers, lambda: get_loss(loss))
    selection = attempt(peers, lambda: select_columns(**columns))
    nodes, n_nodes = np.flatnonzero(ranks == peers.rank).tolist(), len(ranks)
    if NODE in source:
        shards, encoding = _load_pattern(peers, source, nodes, selection)
    elif peers.size == 1:
        reader = _open_file(*find_file(source, selection))
        survey_columns(peers, [reader], selection)
        samples = require_labels(*read_all(reader), source)
        shards, encoding = partition(*samples, n_nodes, how, seed, m), reader.columns
    else:
        reader = _open_together(peers, source, selection)
        shards = _load_some(peers, source, reader, nodes, (n_nodes, how, seed, m), selection)
        encoding = reader.columns
    labels = np.concatenate([shard.y for shard in shards])
    classes, label_counts = classes_of(labels, known, peers, most_classes), None
    if classes is not None:
        own = np.bincount(np.searchsorted(classes, labels), minlength=len(classes))
        label_counts = np.sum(peers.gather(own), axis=0)
    return LocalData(shards, classes, label_counts, encoding)


def _load_pattern(
    peers: Peers, pattern: str, nodes: Sequence[int], selection: Selection
) -> tuple[Shards, Columns | None]:
    """The files of this rank's nodes, in one layout for all nodes."""
    paths = {node: shard_path(pattern, node) for node in nodes}
    files = attempt(peers, lambda: _of_each(nodes, lambda node: _open_file(paths[node], selection)))
    readers = dict(zip(nodes, files, strict=True))
    survey_columns(peers, files, selection)

    def read(node: int) -> Samples:
        return require_labels(*read_all(readers[node]), paths[node])

    samples = attempt(peers, lambda: _of_each(nodes, read))
    facts = [Facts.of(X, None) for X, _ in samples]
    bounds = np.cumsum([0, *(len(y) for _, y in samples)])
    pieces = [Piece(X, y, np.arange(*bounds[k : k + 2])) for k, (X, y) in enumerate(samples)]
    shards = _shards(peers, pattern, pieces, _gathered(peers, facts), np.diff(bounds).tolist())
    return shards, files[0].columns


def _of_each(nodes: Sequence[int], work: Callable[[int], T]) -> list[T]:
    """Work for each node. If it fails for several, the first node's error is raised."""
    done = []
    for node in nodes:
        try:
            done.append(work(node))
        except AdfsError as error:
            error.order = node
            raise
    return done


def _load_some(
    peers: Peers,
    source: str,
    reader: Reader,
    nodes: list[int],
    division: tuple[int, str, int, int | None],
    selection: Selection,
) -> Shards:
    """The rows of this rank's nodes, from one file that every rank can open."""
    n_samples, labels, facts = reader.count(), reader.labels, None
    survey_columns(peers, [reader], selection, peers.rank, peers.size)
    how = division[1]
    if how == "draw" or (needs_labels(how) and labels is None):
        facts, labels = _check_all(peers, source, reader, n_samples)
    try:
        parts = attempt(peers, lambda: partition_rows(n_samples, *division, labels, nodes))
    except AdfsError:
        _check_all(peers, source, reader, n_samples)  # one process would read the file first
        raise
    labels = None  # all of them are no longer needed
    pieces = attempt(peers, lambda: list(reader.read(np.concatenate(parts))))
    if facts is None:
        own = [Facts.of(X, reader.n_features) for X, _, _ in pieces]
        facts = _gathered(peers, own)
    return _shards(peers, source, pieces, facts, [len(part) for part in parts])


def _check_all(
    peers: Peers, source: str, reader: Reader, n_samples: int
) -> tuple[list[Facts], NDArray[Any]]:
    """Check all rows, each rank an equal part; facts and labels of all."""
    first, last = (rank * n_samples // peers.size for rank in (peers.rank, peers.rank + 1))

    def check() -> tuple[list[Facts], list[NDArray[Any]]]:
        facts, labels = [], []
        for X, y, _ in reader.read(np.arange(first, last), keep=False):
            facts.append(Facts.of(X, reader.n_features))
            labels.append(require_labels(X, y, source).y)
        return facts, labels

    facts, labels = attempt(peers, check)
    return _gathered(peers, facts), np.concatenate(
        [each for of_rank in peers.gather(labels) for each in of_rank]
    )


def _gathered(peers: Peers, facts: list[Facts]) -> list[Facts]:
    own = [list(each) for each in facts]
    return [Facts(*each) for of_rank in peers.gather(own) for each in of_rank]


def _shards(
    peers: Peers, source: str, pieces: list[Piece], facts: list[Facts], sizes: list[int]
) -> Shards:
    """The pieces in the layout of all rows, cut in shards of these sizes."""

    def join() -> Samples:
        y = join_labels(pieces)
        return require_labels(lay_out(pieces, common_layout(facts)), y, source)

    return Shards(Shard(*attempt(peers, join)), np.cumsum([0, *sizes]))


def _open_together(peers: Peers, source: str, selection: Selection) -> Reader:
    """Find the file on each rank's host and open it together; all ranks must see the same."""
    # A data set is downloaded by rank 0 before the others search for it.
    found = attempt(peers, lambda: None if peers.rank else find_file(source, selection))
    try:
        found, error = found or find_file(source, selection), None
    except AdfsError as missing:
        error = DataError(f"On the host of rank {peers.rank}, {missing}")
    agree(peers, error)
    assert found is not None
    path, selection = found
    seen = peers.gather(attempt(peers, lambda: _identity(path)))
    attempt(peers, lambda: _require_same_file(path, seen))
    return format_of(path)(peers, path, selection)


def _identity(path: Path) -> list[int]:
    """The length of a file in bytes, a digest of its two ends, and the number of its format."""
    if not path.is_file():
        raise DataError(
            f"{path} must be a regular file, since each rank reads its own part of it; save it as "
            "one, or use --engine local."
        )
    with read_errors(path):
        return [path.stat().st_size, digest_of_ends(path), READERS.index(format_of(path))]


def _require_same_file(path: Path, seen: list[Any]) -> None:
    for rank, each in enumerate(seen):
        if each[0] != seen[0][0]:
            raise DataError(
                f"{path} must be the same file on every rank, but rank 0 sees {seen[0][0]} bytes "
                f"and rank {rank} sees {each[0]}; copy it again, or use one file per node ({NODE})."
            )
        if list(each) != list(seen[0]):
            raise different_content(path, 0, rank)


def shard_paths(pattern: str | os.PathLike[str]) -> list[Path]:
    """The files of a pattern that holds ``{node}``, node 0 first, without a hole."""
    nodes = shard_nodes(pattern)
    require_all_nodes(pattern, nodes)
    return [shard_path(pattern, node) for node in sorted(nodes)]


def shard_nodes(pattern: str | os.PathLike[str]) -> set[int]:
    """The numbers of the nodes whose files are seen from here."""
    name = os.fspath(pattern)
    if NODE not in name:
        raise DataError(f"{name} must hold {NODE}; write for example part-{NODE}.txt.")
    spelled = re.compile(re.escape(name).replace(re.escape(NODE), "(0|[1-9][0-9]*)"))
    found = map(spelled.fullmatch, glob.glob(glob.escape(name).replace(NODE, "*")))
    return {int(match[1]) for match in found if match and len({*match.groups()}) == 1}


def require_all_nodes(pattern: str | os.PathLike[str], nodes: set[int]) -> None:
    """Refuse a hole in the numbers from 0 on."""
    for node in range(max(nodes, default=0) + 1):
        if node not in nodes:
            name = os.fspath(pattern)
            missing = name.replace(NODE, str(node))
            raise DataError(
                f"{name} must have one file per node, numbered from 0, but {missing} is missing; "
                "add it or renumber the files."
            )


def shard_path(pattern: str | os.PathLike[str], node: int) -> Path:
    """The file of one node."""
    return Path(os.fspath(pattern).replace(NODE, str(node)))

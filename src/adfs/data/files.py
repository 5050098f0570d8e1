"""Loads DATA: a file in one of the known formats, a data set by name, or one file per node.

`FORMATS` is the place where a format is added.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from adfs.agreement import Alone, Peers, attempt
from adfs.data import datasets
from adfs.data.libsvm import check_n_features, read_libsvm
from adfs.data.libsvm_ranges import LibsvmReader
from adfs.data.matrices import (
    Facts,
    Layout,
    Matrix,
    Numbers,
    Piece,
    Samples,
    Vector,
    common_layout,
    lay_out,
)
from adfs.data.npz import NpzReader, is_npz, read_npz, require_labels
from adfs.data.npz import save_npz as save_npz
from adfs.data.partition import Shard, cut_rows
from adfs.errors import AdfsError, DataError

NODE = "{node}"


class Reader(Protocol):
    """One file of which each rank reads some rows; all ranks make it together.

    Attributes
    ----------
    n_samples : int
        Rows of the file.
    n_features : int or None
        Number of columns; None where the widest row decides.
    labels : array of shape (n_samples,) or None
        All labels, where they are known without reading the rows.
    dense : bool or None
        Whether the file stores its rows as an array or in CSR; None where the number of zeros in
        all rows decides, by `adfs.data.matrices.is_full`.
    """

    n_samples: int
    n_features: int | None
    labels: Vector | None
    dense: bool | None

    def read(self, rows: Numbers) -> tuple[list[Piece], Vector]:
        """Rows in any order, some maybe twice, as pieces with their positions; and the labels."""
        ...

    def survey(self, first: int, last: int) -> tuple[Facts, Vector]:
        """Check the rows of a range without keeping them: facts about them, and their labels."""
        ...


class Format(NamedTuple):
    """How files of a format are recognised, read whole, and read by ranks.

    ``read`` takes a path and a number of columns or None, and returns rows, and labels or None.
    ``open`` takes the ranks too. All errors are `DataError`.
    """

    name: str
    matches: Callable[[Path], bool]
    read: Callable[[Path, int | None], tuple[Matrix, Vector | None]]
    open: Callable[[Peers, Path, int | None], Reader]


# The first that matches is taken, so the last one matches everything.
FORMATS = (
    Format("npz", is_npz, read_npz, NpzReader),
    Format("LIBSVM", lambda path: True, read_libsvm, LibsvmReader),
)


def format_of(path: Path) -> Format:
    """The format of a file."""
    return next(each for each in FORMATS if each.matches(path))


def load_data(source: str | os.PathLike[str], n_features: int | None = None) -> Samples:
    """Load the samples and labels of one DATA.

    Parameters
    ----------
    source : str or path
        A LIBSVM file (plain, .gz, .bz2, .xz), a .npz file with ``X`` and ``y``, or a name from
        ``DATASETS``; a file wins over a data set of the same name.
    n_features : int, optional
        Number of columns: rows with fewer are padded with zeros, rows with more are refused.

    Returns
    -------
    Samples
        ``X`` a C-contiguous array or a ``csr_matrix`` with int32 indices, float64 or, from a .npz
        file, float32; ``y`` in float64. All values are finite.
    """
    X, y = load_rows(source, n_features)
    return Samples(X, require_labels(y, source))


def load_rows(
    source: str | os.PathLike[str], n_features: int | None = None
) -> tuple[Matrix, Vector | None]:
    """The same for prediction: a .npz file may leave out ``y``, which then is None."""
    path, width = find_file(source, n_features)
    return format_of(path).read(path, width)


def find_file(
    source: str | os.PathLike[str], n_features: int | None = None
) -> tuple[Path, int | None]:
    """The file behind one DATA, and the number of its columns where it is known beforehand."""
    n_features = check_n_features(n_features)
    name, path = os.fspath(source), Path(source)
    if NODE in name:
        raise DataError(f"{name} must name one file, but holds {NODE}; load it as shards.")
    if name in datasets.DATASETS and (path.is_dir() or not path.exists()):
        width = datasets.DATASETS[name].n_features if n_features is None else n_features
        return datasets.locate(name), width
    if not path.exists():
        raise DataError(
            f"{name} must be a file or a known data set, but is neither; check the path, or take "
            f"one of {', '.join(datasets.DATASETS)}."
        )
    if path.is_dir():
        raise DataError(f"{path} must be a file, but is a folder; name a file in it.")
    return path, n_features


def load_shards(pattern: str | os.PathLike[str], n_features: int | None = None) -> list[Samples]:
    """Load one file per node, numbered from 0 in the place of ``{node}``.

    All shards get the width of the widest (or ``n_features``), and one layout: dense where at
    least half of all entries are non-zero, else CSR.
    """
    owner = np.zeros(len(shard_paths(pattern)), dtype=np.int64)
    shards, _, _ = load_pattern(Alone(), os.fspath(pattern), owner, n_features)
    return [Samples(shard.X, shard.y) for shard in shards]


def load_pattern(
    peers: Peers, pattern: str, owner: Numbers, n_features: int | None
) -> tuple[list[Shard], Numbers, Layout]:
    """The files of this rank's nodes in one layout for all, and the number of rows of every node.

    ``owner`` is the rank of each node.
    """
    nodes = np.flatnonzero(owner == peers.rank).tolist()
    width = attempt(peers, lambda: check_n_features(n_features))
    files = attempt(peers, lambda: [_load_file(pattern, node, width) for node in nodes])
    sizes = [len(y) for _, y in files]
    ends = np.cumsum([0, *sizes])
    pieces = [Piece(X, np.arange(a, a + len(y))) for a, (X, y) in zip(ends, files, strict=False)]
    own = [list(Facts.of([piece], None, isinstance(piece.X, np.ndarray))) for piece in pieces]
    facts = [Facts(*each) for facts in peers.gather(own) for each in facts]
    counts: Numbers = np.empty(len(owner), dtype=np.int64)
    counts[np.argsort(owner, kind="stable")] = [each.n_rows for each in facts]
    y = np.concatenate([y for _, y in files])
    del files
    layout = common_layout(facts)
    X = attempt(peers, lambda: lay_out(pieces, len(y), layout))
    return cut_rows(X, y, sizes), counts, layout


def _load_file(pattern: str, node: int, n_features: int | None) -> Samples:
    """The file of one node. If several files are faulty, the first node's error is raised."""
    path = shard_path(pattern, node)
    try:
        X, y = format_of(path).read(path, n_features)
        return Samples(X, require_labels(y, path))
    except AdfsError as error:
        error.order = node
        raise


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

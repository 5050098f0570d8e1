"""Loads what a person calls DATA: a LIBSVM or .npz file, a known name, or one file a node."""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from adfs.errors import DataError
from adfs.problems import datasets
from adfs.problems.libsvm import Matrix, Samples, is_full, read_libsvm
from adfs.problems.npz import is_npz, read_npz, widen
from adfs.problems.npz import save_npz as save_npz

NODE = "{node}"


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
    if y is None:
        raise DataError(f"{source} must hold the labels y, but has none; save X and y.")
    return Samples(X, y)


def load_rows(
    source: str | os.PathLike[str], n_features: int | None = None
) -> tuple[Matrix, NDArray[np.float64] | None]:
    """The same for prediction: a .npz file may leave out ``y``, which then is None."""
    path, width = find_file(source, n_features)
    return read_npz(path, width) if is_npz(path) else read_libsvm(path, width)


def find_file(
    source: str | os.PathLike[str], n_features: int | None = None
) -> tuple[Path, int | None]:
    """The file behind one DATA, and the number of its columns where it is known beforehand."""
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
    return path, n_features


def load_shards(pattern: str | os.PathLike[str], n_features: int | None = None) -> list[Samples]:
    """Load one file a node, numbered from 0 in the place of ``{node}``.

    All shards get the width of the widest (or ``n_features``), and one layout: dense where at
    least half of all entries are non-zero, else CSR.
    """
    shards = [load_data(path, n_features) for path in shard_paths(pattern)]
    width = max(X.shape[1] for X, _ in shards)
    rows = _alike([widen(X, width) for X, _ in shards])
    return [Samples(X, y) for X, (_, y) in zip(rows, shards, strict=True)]


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
                f"{name} must have one file a node, numbered from 0, but {missing} is missing; "
                "add it or renumber the files."
            )


def shard_path(pattern: str | os.PathLike[str], node: int) -> Path:
    """The file of one node."""
    return Path(os.fspath(pattern).replace(NODE, str(node)))


def _alike(parts: list[Matrix]) -> list[Matrix]:
    """The parts in one layout and one type of number."""
    dtype = np.result_type(*(X.dtype for X in parts))
    parts = [X.astype(dtype, copy=False) for X in parts]
    if len({issparse(X) for X in parts}) == 1:
        return parts
    filled = sum(np.count_nonzero(X) if isinstance(X, np.ndarray) else X.nnz for X in parts)
    if is_full(filled, sum(X.shape[0] for X in parts), parts[0].shape[1]):
        return [X if isinstance(X, np.ndarray) else X.toarray() for X in parts]
    return [csr_matrix(X) if isinstance(X, np.ndarray) else X for X in parts]

"""Loads what a person calls DATA: a LIBSVM or .npz file, a known name, or one file a node."""

from __future__ import annotations

import glob
import os
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from adfs.errors import DataError
from adfs.problems import datasets
from adfs.problems.libsvm import Matrix, Samples, csr_of, read_libsvm

NODE = "{node}"
ZIP_MAGIC = b"PK"
CSR_KEYS = ("X_data", "X_indices", "X_indptr", "X_shape")


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
    name, path = os.fspath(source), Path(source)
    if NODE in name:
        raise DataError(f"{name} must name one file, but holds {NODE}; load it as shards.")
    if name in datasets.DATASETS and (path.is_dir() or not path.exists()):
        return datasets.load(name, n_features)
    if not path.exists():
        raise DataError(
            f"{name} must be a file or a known data set, but is neither; check the path, or take "
            f"one of {', '.join(datasets.DATASETS)}."
        )
    return _read_npz(path, n_features) if _is_npz(path) else read_libsvm(path, n_features)


def load_shards(pattern: str | os.PathLike[str], n_features: int | None = None) -> list[Samples]:
    """Load one file a node, numbered from 0 in the place of ``{node}``.

    All shards get the width of the widest (or ``n_features``), and one layout: dense where at
    least half of all entries are non-zero, else CSR.
    """
    shards = [load_data(path, n_features) for path in shard_paths(pattern)]
    width = max(X.shape[1] for X, _ in shards)
    rows = _alike([_widen(X, width) for X, _ in shards])
    return [Samples(X, y) for X, (_, y) in zip(rows, shards, strict=True)]


def shard_paths(pattern: str | os.PathLike[str]) -> list[Path]:
    """The files of a pattern that holds ``{node}``, node 0 first, without a hole."""
    name = os.fspath(pattern)
    if NODE not in name:
        raise DataError(f"{name} must hold {NODE}; write for example part-{NODE}.txt.")
    spelled = re.compile(re.escape(name).replace(re.escape(NODE), "(0|[1-9][0-9]*)"))
    found = map(spelled.fullmatch, glob.glob(glob.escape(name).replace(NODE, "*")))
    nodes = {int(match[1]) for match in found if match and len({*match.groups()}) == 1}
    for node in range(max(nodes, default=0) + 1):
        if node not in nodes:
            missing = name.replace(NODE, str(node))
            raise DataError(
                f"{name} must have one file a node, numbered from 0, but {missing} is missing; "
                "add it or renumber the files."
            )
    return [Path(name.replace(NODE, str(node))) for node in sorted(nodes)]


def save_npz(path: str | os.PathLike[str], X: Any, y: Any) -> None:
    """Write samples as `load_data` reads them: arrays ``X`` and ``y``, or CSR parts ``X_...``."""
    y = _checked(X := _canonical(X, os.fspath(path)), np.asarray(y), os.fspath(path))
    if isinstance(X, np.ndarray):
        arrays: dict[str, Any] = {"X": X}
    else:
        parts = (X.data, X.indices, X.indptr, np.array(X.shape))
        arrays = dict(zip(CSR_KEYS, parts, strict=True))
    try:
        with open(path, "wb") as file:
            np.savez(file, y=y, **arrays)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}; choose another.") from error


def _is_npz(path: Path) -> bool:
    """Whether the suffix, or else the content, is that of a .npz file."""
    if path.suffix.lower() == ".npz":
        return True
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(2) == ZIP_MAGIC
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}; check the file.") from error


def _read_npz(path: Path, n_features: int | None) -> tuple[Matrix, NDArray[np.float64] | None]:
    """Rows and labels of a .npz file, never unpickling anything."""
    arrays = _arrays(path)
    if "X" in arrays:
        X = _canonical(arrays["X"], str(path))
    elif all(key in arrays for key in CSR_KEYS):
        X = _canonical(_assemble(arrays, path), str(path))
    else:
        raise DataError(
            f"{path} must hold X, or {', '.join(CSR_KEYS)}, but holds "
            f"{', '.join(arrays) or 'nothing'}; save it again, for example with save_npz."
        )
    y = _checked(X, arrays["y"], str(path)) if "y" in arrays else None
    if n_features is not None and X.shape[1] > n_features:
        raise DataError(
            f"{path} must have at most n_features={n_features} features, but has {X.shape[1]}; "
            "raise n_features or check the file."
        )
    return _widen(X, n_features or X.shape[1]), y


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    """What a .npz file holds, read in full so that damage shows."""
    try:
        # opened as a zip first, since np.load would take a lone .npy array as well
        with zipfile.ZipFile(path), np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(
            f"{path} must be a whole .npz file of plain arrays, but: {error}; save it again, for "
            "example with save_npz."
        ) from error


def _assemble(arrays: Mapping[str, NDArray[Any]], path: Path) -> csr_matrix[Any]:
    """The CSR matrix of four arrays that fit together."""
    data, indices, indptr, shape = (arrays[key] for key in CSR_KEYS)
    try:
        if not all(part.dtype.kind in "iu" for part in (indices, indptr, shape)):
            raise TypeError("indices, indptr and shape are not whole numbers")
        n_samples, n_features = shape.tolist()
        X: csr_matrix[Any] = csr_matrix((data, indices, indptr), shape=(n_samples, n_features))
        X.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        raise DataError(
            f"{path} must hold a valid CSR matrix, but: {error}; save it again."
        ) from error
    return X


def _canonical(source: Any, name: str) -> Matrix:
    """Rows as we keep them: finite floats, C-contiguous or CSR with sorted int32 indices."""
    sparse: bool = issparse(source)
    X = csr_matrix(source) if sparse else np.asarray(source)
    values: NDArray[Any] = X if isinstance(X, np.ndarray) else X.data
    if X.ndim != 2 or 0 in X.shape:
        raise DataError(f"{name}: X must be rows times features, but has shape {X.shape}; fix it.")
    if values.dtype.kind not in "fiub":
        raise DataError(f"{name}: X must hold real numbers, not {values.dtype}; convert it.")
    if not np.isfinite(values).all():
        raise DataError(f"{name}: X must be finite, but holds NaN or infinity; clean the rows.")
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    return np.ascontiguousarray(X) if isinstance(X, np.ndarray) else _sorted_csr(X, name)


def _sorted_csr(X: csr_matrix[Any], name: str) -> csr_matrix[Any]:
    """``X`` with ascending int32 indices; an index given twice in a row is refused."""
    if not X.has_sorted_indices:
        X = X.sorted_indices()
    if not X.has_canonical_format:
        raise DataError(f"{name}: X must give an index once a row; merge what is double.")
    return csr_of(X.data, X.indices, X.indptr, X.shape)


def _checked(X: Matrix, y: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Labels in float64, one a row, finite."""
    if y.ndim != 1 or len(y) != X.shape[0]:
        raise DataError(
            f"{name}: y must be one-dimensional with one label a row, {X.shape[0]} in all, but has "
            f"shape {y.shape}; flatten or complete it."
        )
    if y.dtype.kind not in "fiub":
        raise DataError(f"{name}: y must hold real numbers, not {y.dtype}; convert it.")
    if not np.isfinite(y).all():
        raise DataError(f"{name}: y must be finite, but holds NaN or infinity; clean the labels.")
    return y.astype(np.float64)


def _widen(X: Matrix, width: int) -> Matrix:
    """``X`` with columns of zeros added up to ``width``."""
    if X.shape[1] == width:
        return X
    if isinstance(X, np.ndarray):
        return np.pad(X, ((0, 0), (0, width - X.shape[1])))
    return csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))


def _alike(parts: list[Matrix]) -> list[Matrix]:
    """The parts in one layout and one type of number."""
    dtype = np.result_type(*(X.dtype for X in parts))
    parts = [X.astype(dtype, copy=False) for X in parts]
    if len({issparse(X) for X in parts}) == 1:
        return parts
    filled = sum(np.count_nonzero(X) if isinstance(X, np.ndarray) else X.nnz for X in parts)
    if 2 * filled >= sum(X.shape[0] * X.shape[1] for X in parts):
        return [X if isinstance(X, np.ndarray) else X.toarray() for X in parts]
    return [csr_matrix(X) if isinstance(X, np.ndarray) else X for X in parts]

"""Reads and writes .npz files: arrays ``X`` and ``y``, or the parts of a CSR matrix; no pickles."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from adfs.errors import DataError
from adfs.problems.libsvm import Matrix, csr_of

ZIP_MAGIC = b"PK"
CSR_KEYS = ("X_data", "X_indices", "X_indptr", "X_shape")
DAMAGES = (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error)


def save_npz(path: str | os.PathLike[str], X: Any, y: Any) -> None:
    """Write samples as `load_data` reads them: arrays ``X`` and ``y``, or CSR parts ``X_...``."""
    X = canonical(X, os.fspath(path))
    y = check_labels(np.asarray(y), X.shape[0], os.fspath(path))
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


def is_npz(path: Path) -> bool:
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


def read_npz(path: Path, n_features: int | None) -> tuple[Matrix, NDArray[np.float64] | None]:
    """Rows and labels of a .npz file, never unpickling anything."""
    arrays = _arrays(path)
    is_sparse = holds_csr(arrays, path)
    X = canonical(assemble_csr(arrays, path) if is_sparse else arrays["X"], str(path))
    y = check_labels(arrays["y"], X.shape[0], str(path)) if "y" in arrays else None
    return widen(X, full_width(X.shape[1], n_features, path)), y


def holds_csr(keys: Iterable[str], path: Path) -> bool:
    """Whether the rows are in CSR parts, or else in ``X``."""
    names = list(keys)
    if "X" in names:
        return False
    if all(key in names for key in CSR_KEYS):
        return True
    raise DataError(
        f"{path} must hold X, or {', '.join(CSR_KEYS)}, but holds "
        f"{', '.join(names) or 'nothing'}; save it again, for example with save_npz."
    )


def full_width(width: int, n_features: int | None, path: Path) -> int:
    """The number of columns asked for, else that of the file."""
    if n_features is not None and width > n_features:
        raise DataError(
            f"{path} must have at most n_features={n_features} features, but has {width}; "
            "raise n_features or check the file."
        )
    return n_features or width


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    """What a .npz file holds, read in full so that damage shows."""
    try:
        # opened as a zip first, since np.load would take a lone .npy array as well
        with zipfile.ZipFile(path), np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except DAMAGES as error:
        raise damaged(path, error) from error


def damaged(path: Path, error: object) -> DataError:
    """The error about a file that is no whole archive of plain arrays."""
    return DataError(
        f"{path} must be a whole .npz file of plain arrays, but: {error}; save it again, for "
        "example with save_npz."
    )


def assemble_csr(arrays: Mapping[str, NDArray[Any]], path: Path) -> csr_matrix[Any]:
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


def canonical(source: Any, name: str) -> Matrix:
    """Rows as we keep them: finite floats, C-contiguous or CSR with sorted int32 indices."""
    sparse: bool = issparse(source)
    X = csr_matrix(source) if sparse else np.asarray(source)
    values: NDArray[Any] = X if isinstance(X, np.ndarray) else X.data
    check_kind(X.shape, values.dtype, name)
    if not np.isfinite(values).all():
        raise DataError(f"{name}: X must be finite, but holds NaN or infinity; clean the rows.")
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    return np.ascontiguousarray(X) if isinstance(X, np.ndarray) else _sorted_csr(X, name)


def check_kind(shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> None:
    """Refuse rows of this shape and type, which a stream knows before it reads them."""
    if len(shape) != 2 or 0 in shape:
        raise DataError(f"{name}: X must be rows times features, but has shape {shape}; fix it.")
    if dtype.kind not in "fiub":
        raise DataError(f"{name}: X must hold real numbers, not {dtype}; convert it.")


def _sorted_csr(X: csr_matrix[Any], name: str) -> csr_matrix[Any]:
    """``X`` with ascending int32 indices; an index given twice in a row is refused."""
    if not X.has_sorted_indices:
        X = X.sorted_indices()
    if not X.has_canonical_format:
        raise DataError(f"{name}: X must give an index once a row; merge what is double.")
    return csr_of(X.data, X.indices, X.indptr, X.shape)


def check_labels(y: NDArray[Any], n_samples: int, name: str) -> NDArray[np.float64]:
    """Labels in float64, one a row, finite."""
    if y.ndim != 1 or len(y) != n_samples:
        raise DataError(
            f"{name}: y must be one-dimensional with one label a row, {n_samples} in all, but has "
            f"shape {y.shape}; flatten or complete it."
        )
    if y.dtype.kind not in "fiub":
        raise DataError(f"{name}: y must hold real numbers, not {y.dtype}; convert it.")
    if not np.isfinite(y).all():
        raise DataError(f"{name}: y must be finite, but holds NaN or infinity; clean the labels.")
    return y.astype(np.float64)


def widen(X: Matrix, width: int) -> Matrix:
    """``X`` with columns of zeros added up to ``width``."""
    if X.shape[1] == width:
        return X
    if isinstance(X, np.ndarray):
        return np.pad(X, ((0, 0), (0, width - X.shape[1])))
    return csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))

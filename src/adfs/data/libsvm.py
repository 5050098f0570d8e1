"""Reads LIBSVM text: one sample per line, ``label index:value ...``, indices from 1, ascending.

Large blocks of lines, and those with comments, are parsed by scikit-learn; small ones by NumPy, in
less time than scikit-learn takes to be imported. A block that fails is read again line by line, to
name the line.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from adfs.agreement import Alone, Peers
from adfs.data import text_lines
from adfs.data.matrices import LARGEST_INDEX, Samples, Vector, csr_of
from adfs.data.reader import (
    Selection,
    check_n_features,
    dense_if_full,
    read_all,
    require_labels,
    require_unnamed,
)
from adfs.data.text_lines import Block, LineReader
from adfs.errors import DataError

NUMBER = rb"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?"
LINE = re.compile(rb"%b(?:[ \t]+\d+:%b)*[ \t\r]*\n" % (NUMBER, NUMBER))  # without a comment


def read_libsvm(path: str | os.PathLike[str], n_features: int | None = None) -> Samples:
    r"""Read all samples of a LIBSVM file: plain, .gz, .bz2 or .xz, as its first bytes say.

    ``X`` has ``n_features`` columns, else as many as the largest index: a C-contiguous float64
    array when at least half of the entries are non-zero, else a ``csr_matrix`` with int32 indices
    (int64 past 2^31 entries). ``y`` holds the labels as the file has them.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.txt"
    ...     _ = path.write_text("+1 1:0.5 3:2\n-1 2:1\n")
    ...     X, y = read_libsvm(path)
    >>> X.tolist(), y.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], [1.0, -1.0])
    """
    reader = LibsvmReader(Alone(), Path(path), Selection(check_n_features(n_features)))
    return require_labels(*read_all(reader), path)


class LibsvmReader(LineReader):
    """One LIBSVM file, plain or compressed."""

    kind = "LIBSVM text"
    n_features: int | None = None

    def __init__(self, peers: Peers, path: Path, selection: Selection) -> None:
        super().__init__(peers, path, selection)
        require_unnamed(peers, path, "LIBSVM", selection)
        self.n_features = selection.n_features

    @staticmethod
    def recognises(path: Path) -> bool:
        """Any file that no other format takes."""
        return True

    def holds_sample(self, line: bytes) -> bool:
        """Whether there is anything but a comment."""
        return bool(line.split(b"#")[0].split())

    def parse(self, text: bytes, numbers: Sequence[int]) -> Block:
        """Values, checked; rows are dense if at least half of the block is not zero."""
        path, n_features = self.path, self.n_features
        try:
            found = _parse_numbers(text) if len(text) < text_lines.BLOCK_BYTES else None
            if found is None:
                from sklearn.datasets import load_svmlight_file

                found = load_svmlight_file(BytesIO(text), zero_based=False)
        except (ValueError, OverflowError):
            raise _first_error(path, text, numbers, n_features) from None
        X, y = found
        too_wide = n_features is not None and X.shape[1] > n_features
        if too_wide or not (np.isfinite(X.data).all() and np.isfinite(y).all()):
            raise _first_error(path, text, numbers, n_features)
        X.eliminate_zeros()
        return dense_if_full(csr_of(X.data, X.indices, X.indptr, X.shape)), y


def _parse_numbers(text: bytes) -> tuple[csr_matrix[Any], Vector] | None:
    """Lines of numbers without comments; None if a line holds anything else."""
    if not text.endswith(b"\n"):
        text += b"\n"
    if LINE.sub(b"", text):
        return None
    letters = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    indptr = np.searchsorted(np.flatnonzero(letters == ord(":")), ends)
    indptr = np.concatenate([[0], indptr])
    numbers = np.fromstring(text.replace(b":", b" "), sep=" ")
    labels = 2 * indptr[:-1] + np.arange(len(ends))
    columns, values = np.delete(numbers, labels).reshape(-1, 2).T
    rises = np.diff(columns, prepend=0.0) > 0
    rises[indptr[:-1][np.diff(indptr) > 0]] = True
    if not rises.all() or not (columns >= 1).all() or not (columns <= LARGEST_INDEX).all():
        return None
    width = int(columns.max(initial=1.0))
    X = csr_matrix((values.copy(), columns.astype(np.int32) - 1, indptr), shape=(len(ends), width))
    return X, numbers[labels]


def _first_error(
    path: Path, text: bytes, numbers: Sequence[int], n_features: int | None
) -> DataError:
    """The error about the first line of ``text`` that breaks a rule.

    The numbers of the lines may have gaps, where ``text`` was picked from a longer one.
    """
    lines = list(zip(numbers, text.split(b"\n"), strict=False))
    order = lines[0][0]
    error = DataError(f"{path}, after line {order - 1}: this is not LIBSVM text; check the file.")
    for number, line in lines:
        if broken_rule := _broken_rule(line, n_features):
            order, error = number, DataError(f"{path}, line {number}: {broken_rule}.")
            break
    error.order = order
    return error


def _broken_rule(line: bytes, n_features: int | None) -> str | None:
    tokens = line.split(b"#")[0].split()
    if not tokens:
        return None
    label, *pairs = tokens
    if not math.isfinite(_number(label)):
        return (
            f"a line must begin with a finite label, not {_show(label)}; "
            "write 'label index:value ...', separated by spaces"
        )
    if pairs and pairs[0].startswith(b"qid:"):
        del pairs[0]
    previous = 0
    for pair in pairs:
        name, colon, value = pair.partition(b":")
        try:
            index = int(name)
        except ValueError:
            colon = b""
        if not colon:
            return f"a feature must read index:value, not {_show(pair)}; check the separators"
        if index < 1:
            return f"LIBSVM indices start at 1, but {index} was found; add 1 to every index"
        if index <= previous:
            return (
                f"indices must ascend within a row, each once, but {index} follows {previous}; "
                "sort the row and merge what is double"
            )
        if n_features and index > n_features:
            return f"index {index} is above n_features={n_features}; raise it or check the file"
        if index > LARGEST_INDEX:
            return f"index {index} is above the limit {LARGEST_INDEX}; check the file"
        if not math.isfinite(_number(value)):
            return f"a value must be a finite number, not {_show(value)}; remove or replace it"
        previous = index
    return None


def _number(token: bytes) -> float:
    try:
        return float(token)
    except ValueError:
        return math.nan


def _show(token: bytes) -> str:
    return repr(token[:30].decode("utf-8", "replace"))

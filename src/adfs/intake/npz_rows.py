"""The rows of one .npz file that a rank keeps, taken from the streams of its arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adfs.errors import DataError
from adfs.intake.filtered import Facts, Vector
from adfs.intake.layout import CsrSlots, Dealt, DenseSlots, Layout, Numbers, Piece
from adfs.intake.npz_members import Archive
from adfs.launch.peers import Peers, attempt
from adfs.problems import libsvm
from adfs.problems.libsvm import Matrix
from adfs.problems.npz import (
    CSR_KEYS,
    assemble_csr,
    canonical,
    check_kind,
    check_labels,
    full_width,
    holds_csr,
)

Use: TypeAlias = Callable[[int, Any], None]  # takes the number of a first row or column, and them


class KeptRows(NamedTuple):
    """A rank's rows in their layout, and their labels."""

    X: Matrix
    y: Vector
    facts: Facts

    def lay_out(self, layout: Layout) -> Matrix:
        """The rows, which have their layout from the file."""
        return self.X


class NpzSource:
    """One .npz file, dense or CSR, seen from one rank; damage anywhere in it shows.

    Parameters
    ----------
    path : Path
    n_features : int or None
        Columns asked for.
    thorough : bool
        Whether to look at arrays that are not needed as well: one rank is enough.

    Attributes
    ----------
    n_samples : int
        Rows of the file.
    labels : array of shape (n_samples,)
    """

    def __init__(self, path: Path, n_features: int | None, thorough: bool) -> None:
        self.path = path
        with Archive(path) as archive:
            sparse = holds_csr(archive.keys, path)
            if thorough:
                for key in set(archive.keys) - {"X", "y", *CSR_KEYS}:
                    archive.open(key).drain()
            self.indptr = self._structure(archive) if sparse else None
            member = archive.open(CSR_KEYS[0] if sparse else "X")
            shape = tuple(archive.read("X_shape").tolist()) if sparse else member.shape
            check_kind(shape, member.dtype, str(path))
            self.n_samples, self.width = shape
            if "y" not in archive.keys:
                raise DataError(f"{path} must hold the labels y, but has none; save X and y.")
            self.labels: Vector = check_labels(archive.read("y"), self.n_samples, str(path))
        dtype = member.dtype if member.dtype in (np.float32, np.float64) else np.float64
        self.as_laid = Layout(not sparse, full_width(self.width, n_features, path), dtype)

    @classmethod
    def opened(cls, peers: Peers, path: Path, n_features: int | None) -> NpzSource:
        """Read what is small: the headers, the labels, and where CSR rows begin."""
        return attempt(peers, lambda: cls(path, n_features, peers.rank == 0))

    def read(self, dealt: Dealt) -> KeptRows:
        """The rows that were dealt, checked, float32 or float64."""
        y = np.empty(len(dealt))
        y[dealt.order] = self.labels[dealt.ascending]
        if self.indptr is not None:
            sizes = np.empty(len(dealt), dtype=np.int64)
            sizes[dealt.order] = np.diff(self.indptr)[dealt.ascending]
            target: CsrSlots | DenseSlots = CsrSlots(sizes, self.as_laid)
        else:
            target = DenseSlots(len(dealt), self.as_laid)

        def keep_rows(first: int, X: Any) -> None:
            slots, places = dealt.within(first, first + X.shape[0])
            if len(slots):
                target.put(Piece(canonical(X[places], str(self.path)), slots))

        def keep_columns(first: int, X: Any) -> None:
            columns = canonical(X[dealt.ascending], str(self.path))
            assert isinstance(target, DenseSlots)
            target.put_columns(first, Piece(columns, dealt.order))

        self._stream(keep_rows, keep_columns)
        return KeptRows(target.finish(), y, Facts(0, 0))

    def survey(self, first: int, last: int) -> tuple[Facts, Vector]:
        """Check the rows of a range."""

        def check_rows(start: int, X: Any) -> None:
            part = X[max(first - start, 0) : max(last - start, 0)]
            if part.shape[0]:
                canonical(part, str(self.path))

        def check_columns(_: int, X: Any) -> None:
            check_rows(0, X)

        self._stream(check_rows, check_columns)
        return Facts(0, 0), self.labels[first:last]

    def layout(self, facts: list[Facts]) -> Layout:
        """That of the file, whatever its rows hold."""
        return self.as_laid

    def _stream(self, use_rows: Use, use_columns: Use) -> None:
        """Let all of X pass by; a fault is told once it is known that the file is whole."""
        fault: DataError | None = None
        with Archive(self.path) as archive:
            sparse = self.indptr is not None
            use = use_rows if sparse or not archive.open("X").by_columns else use_columns
            for first, X in self._csr_blocks(archive) if sparse else self._dense_blocks(archive):
                try:
                    if fault is None:
                        use(first, X)
                except DataError as error:
                    fault = error
        if fault is not None:
            raise fault

    def _dense_blocks(self, archive: Archive) -> Iterator[tuple[int, NDArray[Any]]]:
        """Some rows at a time, or columns where the array stands by columns."""
        member = archive.open("X")
        length, count = (self.width, self.n_samples)[:: -1 if member.by_columns else 1]
        step = max(1, libsvm.BLOCK_BYTES // (length * member.dtype.itemsize))
        for first in range(0, count, step):
            block = member.read(min(step, count - first) * length).reshape(-1, length)
            yield first, block.T if member.by_columns else block
        member.drain()

    def _csr_blocks(self, archive: Archive) -> Iterator[tuple[int, Any]]:
        """Some rows at a time, valid in their structure."""
        assert self.indptr is not None
        data, indices = (archive.open(key) for key in CSR_KEYS[:2])
        step = max(1, libsvm.BLOCK_BYTES // (data.dtype.itemsize + indices.dtype.itemsize))
        first = 0
        while first < self.n_samples:
            start = self.indptr[first]
            last = max(first + 1, int(np.searchsorted(self.indptr, start + step, "right")) - 1)
            bounds = self.indptr[first : last + 1] - start
            # SciPy picks rows of a few types of number only.
            values = data.read(int(bounds[-1])).astype(self.as_laid.dtype, copy=False)
            shape = np.array([last - first, self.width])
            parts = (values, indices.read(int(bounds[-1])), bounds, shape)
            yield first, assemble_csr(dict(zip(CSR_KEYS, parts, strict=True)), self.path)
            first = last
        data.drain()
        indices.drain()

    def _structure(self, archive: Archive) -> Numbers:
        """Where the rows begin, once the four arrays are known to fit together.

        Data and indices are stood in for by arrays of their length that take no memory.
        """
        parts: dict[str, Any] = {key: archive.read(key) for key in CSR_KEYS[2:]}
        for key in CSR_KEYS[:2]:
            member = archive.open(key)
            parts[key] = np.broadcast_to(np.zeros(1, member.dtype), member.shape)
        assemble_csr(parts, self.path)
        indptr: Numbers = parts["X_indptr"].astype(np.int64, copy=False)
        if (np.diff(indptr) < 0).any():
            raise DataError(
                f"{self.path} must hold a valid CSR matrix, but: indptr must be a non-decreasing "
                "sequence; save it again."
            )
        return indptr

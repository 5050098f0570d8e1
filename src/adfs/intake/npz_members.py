"""The arrays of a .npz file as streams: a header, then numbers block by block."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from math import prod
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from adfs.problems.npz import DAMAGES, damaged

HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
DRAIN_BYTES = 1 << 20


@contextmanager
def _damage_told(path: Path) -> Iterator[None]:
    """What is wrong with an archive, told as `load_data` tells it."""
    try:
        yield
    except DAMAGES as error:
        raise damaged(path, error) from error


class Member:
    """One array of an archive, read from its beginning to its end.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    by_columns : bool
        Whether an array of two dimensions stands column after column.
    """

    def __init__(self, file: IO[bytes], path: Path) -> None:
        version = npy.read_magic(file)
        if version not in HEADERS:
            raise ValueError(f"an array has the unknown format {version}")
        self.file, self.path = file, path
        self.shape, self.by_columns, self.dtype = HEADERS[version](file)
        if self.dtype.hasobject:
            # As np.load says it.
            raise ValueError("Object arrays cannot be loaded when allow_pickle=False")

    def read(self, count: int) -> NDArray[Any]:
        """The next ``count`` numbers."""
        wanted = count * self.dtype.itemsize
        with _damage_told(self.path):
            content = self.file.read(wanted)
            if len(content) != wanted:
                raise ValueError(f"an array ends after {len(content)} of {wanted} bytes")
        return np.frombuffer(content, dtype=self.dtype)

    def read_all(self) -> NDArray[Any]:
        """The whole array, which must be small."""
        numbers = self.read(prod(self.shape))
        return numbers.reshape(self.shape, order="F" if self.by_columns else "C")

    def drain(self) -> None:
        """Read to the end, where the archive's checksum is compared."""
        with _damage_told(self.path):
            while self.file.read(DRAIN_BYTES):
                pass


class Archive:
    """A .npz file whose arrays are opened one by one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "samples.npz"
    ...     np.savez(path, X=np.eye(3), y=np.arange(3.0))
    ...     with Archive(path) as archive:
    ...         print(archive.keys, archive.open("X").shape, archive.open("y").read(2).tolist())
    ['X', 'y'] (3, 3) [0.0, 1.0]
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with _damage_told(path):
            self.zipped = zipfile.ZipFile(path)
        self.files = ExitStack()  # an archive stays open as long as one of its files is
        self.names = {name.removesuffix(".npy"): name for name in self.zipped.namelist()}

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.files.close()
        self.zipped.close()

    @property
    def keys(self) -> list[str]:
        """Names of the arrays."""
        return list(self.names)

    def open(self, key: str) -> Member:
        """One array, at its first number."""
        with _damage_told(self.path):
            file = self.files.enter_context(self.zipped.open(self.names[key]))
            return Member(file, self.path)

    def read(self, key: str) -> NDArray[Any]:
        """One array, which must be small."""
        return self.open(key).read_all()

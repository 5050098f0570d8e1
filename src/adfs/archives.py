"""The arrays of a .npz file from an unknown source: nothing is trusted, nothing is unpickled."""

from __future__ import annotations

import os
import struct
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from adfs.errors import DataError, shortened

HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
# NumPy writes no others, and zipfile does not limit the memory that others take.
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
CHUNK_BYTES = 1 << 16
LONGEST_REASON = 100


class DamagedArchive(DataError):
    """A file that is not a whole archive of plain arrays; ``reason`` is the part that says why."""

    def __init__(self, path: str | os.PathLike[str], error: Exception) -> None:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        self.reason = shortened(" ".join(reason.split()), LONGEST_REASON)
        super().__init__(
            f"{os.fspath(path)} must be a whole .npz file of plain arrays, but: {self.reason}; "
            "save it again, for example with save_npz."
        )


@contextmanager
def _damage_reported(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        with warnings.catch_warnings():  # that a header looks as if Python 2 had written it
            warnings.filterwarnings("ignore", "Reading `.npy` or `.npz` file", UserWarning)
            yield
    except MemoryError:
        raise
    # A damaged file can make the readers of zip, compressions and array headers raise anything.
    except Exception as error:
        raise DamagedArchive(path, error) from error


class Archive:
    """A .npz file whose arrays are loaded, or mapped into memory, one by one.

    Attributes
    ----------
    members : dict
        The zip entry of each array, by name.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "samples.npz"
    ...     np.savez(path, X=np.eye(3), y=np.arange(3.0))
    ...     archive = Archive(path)
    ...     print(archive.read("X", mapped=True).shape, archive.read("y").tolist())
    (3, 3) [0.0, 1.0, 2.0]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path, self.n_bytes_read = path, 0
        with _damage_reported(path):
            if os.path.exists(path) and not os.path.isfile(path):
                raise ValueError("it is not a regular file")  # zipfile would read a device forever
            with zipfile.ZipFile(path) as zipped:
                self.members = {
                    name.removesuffix(".npy"): zipped.getinfo(name) for name in zipped.namelist()
                }

    def read(self, key: str, mapped: bool = False) -> NDArray[Any]:
        """One array in memory; `MemoryError` where the machine cannot hold all that was read.

        With ``mapped`` it is read-only, on disk unless compressed; maybe unaligned: copy what is
        used.
        """
        with _damage_reported(self.path):
            if key not in self.members:
                raise ValueError(f"it holds no {key}")
            member = self.members[key]
            if member.compress_type not in METHODS:
                raise ValueError(f"{key} is compressed in a way that NumPy does not write")
            with zipfile.ZipFile(self.path) as zipped, zipped.open(member) as file:
                shape, by_columns, dtype = _checked_header(file, member.file_size)
                if mapped and member.compress_type == zipfile.ZIP_STORED and prod(shape):
                    array: NDArray[Any] = np.memmap(
                        self.path, dtype, "r", _start(self.path, member) + file.tell(), shape,
                        "F" if by_columns else "C",
                    )  # fmt: skip
                else:
                    self.n_bytes_read += prod(shape) * dtype.itemsize
                    if self.n_bytes_read > _memory():
                        message = f"{self.path} holds {self.n_bytes_read} bytes of numbers"
                        raise MemoryError(message)
                    file.seek(0)
                    array = npy.read_array(file, allow_pickle=False)
                while file.read(CHUNK_BYTES):  # zipfile compares the checksum at the end
                    pass
        return array


def _checked_header(file: IO[bytes], size: int) -> tuple[Any, bool, np.dtype[Any]]:
    """Shape, order and type of an array, which has to fill the rest of its ``size`` bytes."""
    version = npy.read_magic(file)
    if version not in HEADERS:
        raise ValueError(f"an array has the unknown format {version}")
    shape, by_columns, dtype = HEADERS[version](file)
    if dtype.hasobject:
        # As np.load says it.
        raise ValueError("Object arrays cannot be loaded when allow_pickle=False")
    if min(shape, default=0) < 0 or prod(shape) * dtype.itemsize != size - file.tell():
        raise ValueError(f"an array of shape {shape} and type {dtype} is not what it holds")
    return shape, by_columns, dtype


def _start(path: str | os.PathLike[str], member: zipfile.ZipInfo) -> int:
    """The place in the file where the content of a member begins, after its own header."""
    with open(path, "rb") as file:
        file.seek(member.header_offset + 26)
        name, extra = struct.unpack("<HH", file.read(4))
        return int(member.header_offset + 30 + name + extra)


def _memory() -> float:
    """Bytes of memory that this machine has, as far as its system says."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")

"""One checkpoint file: a header of plain values, raw arrays, and a checksum over every byte.

::

    offset  bytes  little-endian throughout
    0       8      magic: 89 41 44 46 53 0d 0a 1a
    8       8      number of the format, 2
    16      8      length of the file
    24      8      length h of the header's text
    32      32     SHA-256 of bytes 0 to 31 followed by the header's text
    64      h      JSON: {"header": ..., "arrays": [[name, dtype, shape, offset], ...]}
            ...    zeros up to a multiple of 64; here the arrays begin
            ...    each array in C order, at its offset from here, zeros up to a multiple of 64
    end-32  32     SHA-256 of everything before it

The header has its own checksum, so that it can be read without the arrays of a large file.
A file with any fault raises `Damaged`; nothing is ever pickled.
"""

import contextlib
import hashlib
import json
import math
import os
import stat
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.storage import Buffer

Array = NDArray[Any]
MAGIC = b"\x89ADFS\r\n\x1a"
FORMAT = 2
ALIGNMENT = 64
DIGEST = 32
FIELDS = struct.Struct("<8sQQQ")
START = FIELDS.size + DIGEST  # where the header's text begins
# Types whose bytes mean the same everywhere; objects and long doubles do not.
DTYPES = (
    "|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8",
)  # fmt: skip
# Errors of taking apart content with right checksums that was not written by this program.
NOT_OURS = (LookupError, TypeError, ValueError, AttributeError, OverflowError)
# A pipe or a device under the name of a checkpoint must not block until something is written to it.
FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class Damaged(Exception):
    """A file that cannot be used; the message continues a sentence that begins with its path."""


def dumps(value: Any) -> bytes:
    """JSON text of plain values, floats to the bit; NumPy scalars as Python numbers."""
    return json.dumps(value, default=_plain, separators=(",", ":")).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(
        f"a checkpoint's header holds plain values, not {type(value).__name__}; pass arrays as "
        "arrays, and other objects as their numbers and names."
    )


def pack(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> list[Buffer]:
    """The file's content in parts: views of the arrays, which must not change meanwhile."""
    stored = {name: _as_stored(name, array) for name, array in arrays.items()}
    table, n_bytes = _table((name, each.dtype.str, each.shape) for name, each in stored.items())
    text = dumps({"header": dict(header), "arrays": table})
    end = START + len(text)
    fields = FIELDS.pack(MAGIC, FORMAT, _aligned(end) + n_bytes + DIGEST, len(text))
    checksum = hashlib.sha256(fields + text).digest()
    parts: list[Buffer] = [fields, checksum, text, bytes(-end % ALIGNMENT)]
    for array in stored.values():
        parts += [array.reshape(-1).view(np.uint8).data, bytes(-array.nbytes % ALIGNMENT)]
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part)
    return [*parts, whole.digest()]


def _as_stored(name: str, array: Array) -> Array:
    stored = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
    if stored.dtype.str not in DTYPES:
        raise TypeError(
            f"array {name!r} has dtype {array.dtype}, which a checkpoint cannot hold; convert it "
            "to whole numbers or floats of at most 64 bits."
        )
    return stored


def _aligned(n_bytes: int) -> int:
    return -(-n_bytes // ALIGNMENT) * ALIGNMENT


def _table(arrays: Iterable[tuple[str, str, Sequence[int]]]) -> tuple[list[list[Any]], int]:
    """Rows ``[name, dtype, shape, offset]`` for arrays one after another, and bytes of them all."""
    rows: list[list[Any]] = []
    end = 0
    for name, dtype, shape in arrays:
        rows.append([name, dtype, list(shape), end])
        end += _aligned(math.prod(shape) * np.dtype(dtype).itemsize)
    return rows, end


class HashingReader:
    """An ordinary file read from its start to its end, with the SHA-256 of all bytes so far."""

    def __init__(self, stream: Any) -> None:
        found = os.fstat(stream.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise Damaged("is not an ordinary file")
        if found.st_size == 0:
            raise Damaged("is empty")
        self.size, self.hash, self._stream = found.st_size, hashlib.sha256(), stream

    def fill(self, target: bytearray | memoryview) -> None:
        """Read as many bytes as ``target`` has, directly into it."""
        if self._stream.readinto(target) != len(target):
            raise Damaged(f"ends after {self._stream.tell()} bytes, before its content does")
        self.hash.update(target)

    def take(self, n_bytes: int) -> bytes:
        found = bytearray(n_bytes)
        self.fill(found)
        return bytes(found)

    def align(self) -> None:
        """Pass over zeros."""
        self.take(-self._stream.tell() % ALIGNMENT)

    def array(self, dtype: str, shape: list[int]) -> Array:
        try:
            array = np.empty(shape, dtype)
        except ValueError:  # a shape of no bytes can still have a dimension beyond NumPy's
            raise Damaged(f"has an array of shape {tuple(shape)}, which is impossible") from None
        self.fill(array.reshape(-1).view(np.uint8).data)
        return array.astype(array.dtype.newbyteorder("="), copy=False)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[HashingReader]:
    """A reader of the file; system errors become `Damaged`."""
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, FLAGS)) as stream:
            yield HashingReader(stream)
    except IsADirectoryError:
        raise Damaged("is a folder, not a file") from None
    except OSError as error:
        raise Damaged(f"cannot be read: {error.strerror or error}") from None


def read_header(path: Path) -> dict[str, Any]:
    """The header alone, with checks of its checksum and of the file's length."""
    with _opened(path) as reader:
        return _start(reader)[0]


def unpack(
    path: Path, wanted: Callable[[str], bool] = lambda name: True
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and ``wanted`` arrays of a file; every byte is checked."""
    arrays = {}
    with _opened(path) as reader:
        header, table = _start(reader)
        for name, dtype, shape, _ in table:
            reader.align()
            if wanted(name):
                arrays[name] = reader.array(dtype, shape)
            else:
                reader.array(dtype, shape)  # checked, not kept
        reader.align()
        expected = reader.hash.digest()
        if reader.take(DIGEST) != expected:
            raise Damaged("is damaged: its bytes do not match its checksum")
    return header, arrays


def _start(reader: HashingReader) -> tuple[dict[str, Any], list[list[Any]]]:
    """Header and table of arrays; the reader is left where the header's text ends."""
    if reader.size < FIELDS.size:
        raise Damaged(f"has only {reader.size} bytes")
    fields = reader.take(FIELDS.size)
    magic, version, length, n_text = FIELDS.unpack(fields)
    if magic != MAGIC:
        raise Damaged("is not a checkpoint of adfs")
    if version != FORMAT:
        raise Damaged(f"has format {version}, but this version of adfs reads format {FORMAT}")
    if length != reader.size:
        raise Damaged(f"has {reader.size} bytes where it should have {length}")
    if n_text > length - START - DIGEST:
        raise Damaged("is damaged: its header is longer than the file")
    checksum, text = reader.take(DIGEST), reader.take(n_text)
    if hashlib.sha256(fields + text).digest() != checksum:
        raise Damaged("is damaged: its header does not match its checksum")
    return _parsed(text, length - DIGEST - _aligned(START + n_text))


def _parsed(text: bytes, n_bytes: int) -> tuple[dict[str, Any], list[list[Any]]]:
    """The header and its table of arrays, which must fill ``n_bytes`` bytes exactly.

    The checksum is right, so only a file that another program made can fail here; it must not cause
    large allocations, or reads beyond its end.
    """
    try:
        found = json.loads(text)
        header, table = found["header"], found["arrays"]
        if not all(_is_array(*row) for row in table):
            raise ValueError("an array that is none of ours")
    except (*NOT_OURS, RecursionError):
        raise Damaged("has a header that was not written by adfs") from None
    expected, total = _table(row[:3] for row in table)
    if table != expected:
        raise Damaged("has a header whose arrays do not follow each other")
    names = {row[0] for row in table}
    if total != n_bytes or not isinstance(header, dict) or len(names) < len(table):
        raise Damaged("has a header that does not describe its content")
    return header, table


def _is_array(name: Any, dtype: Any, shape: Any, offset: Any) -> bool:
    sizes_are_valid = all(type(size) is int and size >= 0 for size in shape)
    return isinstance(name, str) and dtype in DTYPES and sizes_are_valid

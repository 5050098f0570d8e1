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
import io
import json
import math
import os
import stat
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.storage import Buffer


def dumps(value: Any) -> bytes:
    """JSON text of plain values, floats to the bit; NaN and infinity as Python's `json` has them.

    A tuple becomes a list, a NumPy scalar the Python number of the same value.

    Examples
    --------
    >>> dumps({"gap": float("inf"), "counts": (1, 2)})
    b'{"gap":Infinity,"counts":[1,2]}'
    """
    return json.dumps(value, default=_plain, separators=(",", ":")).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(
        f"a checkpoint's header holds plain values, not {type(value).__name__}; pass arrays as "
        "arrays, and other objects as their numbers and names."
    )


# A pipe or a device under the name of a checkpoint must not block until something is written to it.
FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class Damaged(Exception):
    """A file that cannot be used; the message continues a sentence that begins with its path."""


class HashingReader:
    """A file read from its start to its end, with the SHA-256 of all bytes so far."""

    def __init__(self, stream: io.FileIO, size: int) -> None:
        self.size, self.position, self.hash = size, 0, hashlib.sha256()
        self._stream = stream

    def fill(self, target: memoryview) -> None:
        """Read as many bytes as ``target`` has, directly into it."""
        done = 0
        while done < len(target):
            n_read = self._stream.readinto(target[done:])
            if not n_read:
                raise Damaged(f"ends after {self.position + done} bytes, before its content does")
            done += n_read
        self.hash.update(target)
        self.position += done

    def take(self, n_bytes: int) -> bytes:
        """The next bytes."""
        if n_bytes > self.size - self.position:
            raise Damaged(f"has only {self.size} bytes")
        found = bytearray(n_bytes)
        self.fill(memoryview(found))
        return bytes(found)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[HashingReader]:
    """A reader of an ordinary file that is not empty; system errors become `Damaged`."""
    try:
        with io.FileIO(path, opener=lambda name, _: os.open(name, FLAGS)) as stream:
            found = os.fstat(stream.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise Damaged("is not an ordinary file")
            if found.st_size == 0:
                raise Damaged("is empty")
            yield HashingReader(stream, found.st_size)
    except IsADirectoryError:
        raise Damaged("is a folder, not a file") from None
    except OSError as error:
        raise Damaged(f"cannot be read: {error.strerror or error}") from None


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


class ArrayPlace(NamedTuple):
    """Where an array is, and what it is."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int

    @property
    def n_bytes(self) -> int:
        """Its length, padding not counted."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


def pack(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> list[Buffer]:
    """The file's content in parts; an array with the layout of the file is not copied.

    The parts are views of the arrays, so these must not change until the parts are written.
    """
    flat = {name: _as_stored(name, array) for name, array in arrays.items()}
    places = _places(flat)
    text = dumps({"header": dict(header), "arrays": [list(place) for place in places]})
    first = _aligned(START + len(text))
    length = first + sum(_aligned(place.n_bytes) for place in places) + DIGEST
    fields = FIELDS.pack(MAGIC, FORMAT, length, len(text))
    parts: list[Buffer] = [fields, hashlib.sha256(fields + text).digest(), text]
    parts.append(bytes(first - START - len(text)))
    for array in flat.values():
        parts.append(array.reshape(-1).view(np.uint8).data)
        parts.append(bytes(_aligned(array.nbytes) - array.nbytes))
    checksum = hashlib.sha256()
    for part in parts:
        checksum.update(part)
    return [*parts, checksum.digest()]


def read_header(path: Path) -> dict[str, Any]:
    """The header alone, with checks of its checksum and of the file's length."""
    with opened(path) as reader:
        return _start(reader)[0]


def unpack(
    path: Path, wanted: Callable[[str], bool] = lambda name: True
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and ``wanted`` arrays of a file; every byte is checked."""
    with opened(path) as reader:
        header, places = _start(reader)
        reader.take(-reader.position % ALIGNMENT)
        arrays = {}
        for place in places:
            if wanted(place.name):
                arrays[place.name] = _array(reader, place)
            else:
                _array(reader, place)  # checked, not kept
            reader.take(-place.n_bytes % ALIGNMENT)
        expected = reader.hash.digest()
        if reader.take(DIGEST) != expected:
            raise Damaged("is damaged: its bytes do not match its checksum")
    return header, arrays


def _as_stored(name: str, array: Array) -> Array:
    """The array in C order and little-endian: itself, where possible."""
    stored = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
    if stored.dtype.str not in DTYPES:
        raise TypeError(
            f"array {name!r} has dtype {array.dtype}, which a checkpoint cannot hold; convert it "
            "to whole numbers or floats of at most 64 bits."
        )
    return stored


def _aligned(n_bytes: int) -> int:
    return -(-n_bytes // ALIGNMENT) * ALIGNMENT


def _places(arrays: Mapping[str, Array]) -> list[ArrayPlace]:
    places, offset = [], 0
    for name, array in arrays.items():
        places.append(ArrayPlace(name, array.dtype.str, array.shape, offset))
        offset += _aligned(array.nbytes)
    return places


def _start(reader: HashingReader) -> tuple[dict[str, Any], list[ArrayPlace]]:
    """Header and places of the arrays; the reader is left where the header's text ends."""
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


def _parsed(text: bytes, n_bytes: int) -> tuple[dict[str, Any], list[ArrayPlace]]:
    """The header and its arrays, which must fill ``n_bytes`` bytes exactly.

    The checksum is right, so only a file that another program made can fail here; it must not cause
    large allocations, or reads beyond its end.
    """
    try:
        found = json.loads(text)
        header, places = found["header"], [_place(*entry) for entry in found["arrays"]]
    except (ValueError, TypeError, LookupError, RecursionError):
        raise Damaged("has a header that was not written by adfs") from None
    offset = 0
    for place in places:
        if place.offset != offset:
            raise Damaged("has a header whose arrays do not follow each other")
        offset += _aligned(place.n_bytes)
    names = {place.name for place in places}
    if offset != n_bytes or not isinstance(header, dict) or len(names) < len(places):
        raise Damaged("has a header that does not describe its content")
    return header, places


def _place(name: Any, dtype: Any, shape: Any, offset: Any) -> ArrayPlace:
    sizes = tuple(shape)
    if not isinstance(name, str) or dtype not in DTYPES or type(offset) is not int:
        raise ValueError("no place of an array")
    if not all(type(size) is int and size >= 0 for size in sizes):
        raise ValueError("no shape of an array")
    return ArrayPlace(name, dtype, sizes, offset)


def _array(reader: HashingReader, place: ArrayPlace) -> Array:
    try:
        array = np.empty(place.shape, dtype=place.dtype)
    except ValueError:  # a shape of no bytes can still have a dimension beyond NumPy's
        raise Damaged(f"has an array of shape {place.shape}, which is impossible") from None
    reader.fill(array.reshape(-1).view(np.uint8).data)
    return array.astype(array.dtype.newbyteorder("="), copy=False)

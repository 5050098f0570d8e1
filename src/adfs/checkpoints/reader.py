"""Reading a file of which nothing is known: in order, hashed on the way, never waiting."""

import contextlib
import hashlib
import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path

CHUNK = 1 << 20
# A pipe or a device under a checkpoint's name must not hold us up until somebody writes to it.
FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class Damaged(Exception):
    """A file that cannot be trusted; the message continues a sentence that begins with its path."""


class Reader:
    """A file read from its start to its end; what was read so far has a SHA-256."""

    def __init__(self, stream: io.FileIO, size: int) -> None:
        self.size = size
        self.position = 0
        self._stream = stream
        self._hash = hashlib.sha256()

    def fill(self, target: memoryview) -> None:
        """Read as many bytes as ``target`` has, straight into it."""
        done = 0
        while done < len(target):
            n_read = self._stream.readinto(target[done : done + CHUNK])
            if not n_read:
                raise Damaged(f"ends after {self.position} bytes, in the middle of its content")
            self._hash.update(target[done : done + n_read])
            done += n_read
            self.position += n_read

    def take(self, n_bytes: int) -> bytes:
        """The next bytes."""
        if n_bytes > self.size - self.position:
            raise Damaged(f"has only {self.size} bytes")
        found = bytearray(n_bytes)
        self.fill(memoryview(found))
        return bytes(found)

    def skip(self, n_bytes: int) -> None:
        """Read and hash, but do not keep."""
        scratch = memoryview(bytearray(min(n_bytes, CHUNK)))
        for start in range(0, n_bytes, CHUNK):
            self.fill(scratch[: min(CHUNK, n_bytes - start)])

    def digest(self) -> bytes:
        """SHA-256 of what was read so far."""
        return self._hash.digest()


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Reader]:
    """A reader of an ordinary file that is not empty; what the system refuses is `Damaged`."""
    try:
        handle = os.open(path, FLAGS)
        try:
            found = os.fstat(handle)
            _check_kind(found)
            with io.FileIO(handle, "rb", closefd=False) as stream:
                yield Reader(stream, found.st_size)
        finally:
            os.close(handle)
    except OSError as error:
        raise Damaged(f"cannot be read: {error.strerror or error}") from None


def _check_kind(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise Damaged("is a folder, not a file")
    if not stat.S_ISREG(found.st_mode):
        raise Damaged("is not an ordinary file")
    if found.st_size == 0:
        raise Damaged("is empty")

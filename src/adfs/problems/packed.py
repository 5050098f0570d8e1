"""Opens a text file, plain or compressed, and says in one sentence why one cannot be read."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from adfs.errors import DataError

MAGIC = {"gz": b"\x1f\x8b", "bz2": b"BZh", "xz": b"\xfd7zXZ\x00"}
OPENERS: dict[str, Callable[[Any], Any]] = {"gz": gzip.open, "bz2": bz2.open, "xz": lzma.open}


def open_text(path: Path, stack: ExitStack) -> tuple[IO[bytes], str | None]:
    """The text of ``path``, decompressed as its first bytes say, and the name of its packing."""
    if path.is_dir():
        raise DataError(f"{path} must be a file, but is a folder; name a file in it.")
    if not path.exists():
        raise DataError(f"{path} must be an existing file, but there is none; check the name.")
    raw = stack.enter_context(path.open("rb"))
    head = raw.peek(6)[:6]
    packing = next((name for name, magic in MAGIC.items() if head.startswith(magic)), None)
    promised = path.suffix.removeprefix(".").lower()
    if head and promised in MAGIC and promised != packing:
        raise DataError(
            f"{path} must hold {promised} data, as its suffix says, but holds "
            f"{packing or 'something else'}; rename the file or fetch it again."
        )
    return (stack.enter_context(OPENERS[packing](raw)) if packing else raw), packing


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """What goes wrong while ``path`` is read, as a sentence."""
    try:
        yield
    except EOFError as error:
        raise DataError(
            f"{path} must be a whole compressed file, but ends too early; fetch it again."
        ) from error
    except (OSError, zlib.error, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path} cannot be read: {reason}; check the file.") from error


def refuse_binary(path: Path, text: bytes) -> None:
    """LIBSVM text has no zero byte."""
    if b"\0" in text:
        raise DataError(
            f"{path} must be LIBSVM text, but holds binary data; pass a text file, packed or not, "
            "or a .npz file."
        )

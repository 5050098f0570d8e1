"""Files that are complete or absent, values for JSON, and digests.

The old file stays on disk until the new one is complete.
"""

import contextlib
import csv
import hashlib
import io
import json
import math
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Buffer = bytes | bytearray | memoryview
_TOKEN = 6  # random bytes in a temporary file's name
_TEMPORARY = re.compile(rf"\.(.+)\.[0-9a-f]{{{2 * _TOKEN}}}")


def write_whole(path: str | os.PathLike[str], content: Buffer | Iterable[Buffer]) -> None:
    """Write a complete file in one step; a link keeps its target.

    The new file is written beside the old one, forced to disk and renamed over it, so a full disk
    or a crash leaves the old one as it was. Its mode follows the umask, as for any new file.
    Several buffers are written one after the other, without a copy that joins them.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(_TOKEN)}")
    parts = (content,) if isinstance(content, bytes | bytearray | memoryview) else content
    try:
        with open(temporary, "xb") as stream:
            for part in parts:
                stream.write(part)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def temporary_of(name: str) -> str | None:
    """The final name of a temporary file of `write_whole`; None for any other name.

    A process that is killed while it writes leaves its temporary file behind.

    Examples
    --------
    >>> temporary_of(".model.npz.0123456789ab"), temporary_of("model.npz")
    ('model.npz', None)
    """
    match = _TEMPORARY.fullmatch(name)
    return match[1] if match else None


def sync_folder(folder: Path) -> None:
    """Force a folder's list of files to disk, so that a rename survives a power cut.

    A system that cannot do this (some network file systems, Windows) is not an error.
    """
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def json_value(value: Any) -> Any:
    """``value`` as JSON has it: lists for tuples, None for NaN and infinity, no NumPy types.

    Examples
    --------
    >>> json_value({1: (0.5, float("nan"))})
    {'1': [0.5, None]}
    """
    if isinstance(value, Mapping):
        return {str(key): json_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(each) for each in value]
    if hasattr(value, "tolist"):  # NumPy's; it is not imported for this
        return json_value(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_bytes(content: Any) -> bytes:
    """The content of a JSON file for people and programs."""
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()


def digest(*parts: str | Buffer) -> str:
    """SHA-256 of texts and buffers, one after the other, as 64 hexadecimal digits."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part.encode() if isinstance(part, str) else part)
    return found.hexdigest()


def csv_bytes(rows: Iterable[Iterable[Any]], separator: str = ",") -> bytes:
    """The content of a CSV file: numbers keep all digits, None is empty."""
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()

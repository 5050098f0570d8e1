"""Files that are whole or not there: what was on disk stays until its successor is complete."""

import contextlib
import os
import re
import secrets
from collections.abc import Iterable
from pathlib import Path

Buffer = bytes | bytearray | memoryview
_TOKEN = 6  # random bytes in a temporary file's name
_TEMPORARY = re.compile(rf"\.(.+)\.[0-9a-f]{{{2 * _TOKEN}}}")


def write_whole(path: str | os.PathLike[str], content: Buffer | Iterable[Buffer]) -> None:
    """Put ``content`` at ``path`` in one step; a link keeps pointing where it points.

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
    settle(target.parent)


def temporary_of(name: str) -> str | None:
    """The file that a temporary file of `write_whole` was to become; None for any other name.

    A process that is killed while it writes leaves its temporary file behind.

    Examples
    --------
    >>> temporary_of(".model.npz.0123456789ab")
    'model.npz'
    >>> temporary_of("model.npz") is None
    True
    """
    match = _TEMPORARY.fullmatch(name)
    return match[1] if match else None


def settle(folder: Path) -> None:
    """Force a folder's list of files to disk, so that a rename survives a power cut.

    The new file is whole and in its place already, so a system that cannot do this (some network
    file systems, Windows) is no reason to say that the file could not be written.
    """
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

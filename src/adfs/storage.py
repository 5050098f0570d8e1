"""Files that are whole or not there: what was on disk stays until its successor is complete."""

import contextlib
import os
import secrets
from pathlib import Path


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Put ``content`` at ``path`` in one step; a link keeps pointing where it points.

    The new file is written beside the old one, forced to disk and renamed over it, so a full disk
    or a crash leaves the old one as it was. Its mode follows the umask, as for any new file.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    try:
        with open(temporary, "xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise

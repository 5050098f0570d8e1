"""What commands say and write: lines, JSON, and files that are whole or not there."""

import contextlib
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from adfs.cli import terminal
from adfs.errors import DataError


class OutputError(Exception):
    """A file or stream that could not be written although the input was good."""


def complain(message: object, code: int) -> int:
    """One line on stderr; returns the exit code."""
    name = terminal.paint("adfs:", "bad", sys.stderr)
    _say(f"{name} {' '.join(str(message).split())}")
    return code


def refuse(message: object, code: int) -> int:
    """Complain before a rank has begun: once for a job on this host, and its ranks end with us.

    Where one of them alone refuses (a file that only its host lacks), the others would wait for it
    within MPI for ever.
    """
    from adfs.launch.launcher import Turn, end_job, size_by_environment
    from adfs.launch.supervisor import is_supervised

    if (size_by_environment() or 1) == 1 or is_supervised():
        return complain(message, code)
    Turn(os.getppid()).say(" ".join(str(message).split()))
    end_job(code)
    return code


def note(message: str) -> None:
    """A remark on stderr, so that stdout stays what was asked for."""
    _say(message)


def _say(line: str) -> None:
    """A line on stderr; where that is closed, nobody is left to be told."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(_encodable(line, sys.stderr), file=sys.stderr, flush=True)


def _encodable(text: str, stream: Any) -> str:
    """The text, with escapes for what the stream's encoding lacks."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def emit(text: str) -> None:
    """Text on stdout; a reader who has gone away, or was never there, is no failure."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.write(_encodable(text, sys.stdout))
        sys.stdout.flush()
    except BrokenPipeError:
        _silence()
    except OSError as error:
        _silence()
        raise OutputError(f"stdout cannot be written: {error.strerror}.") from None


def emit_json(record: dict[str, Any]) -> None:
    """One JSON object on stdout; numbers that JSON does not have become null."""
    emit(json.dumps(plain(record), allow_nan=False) + "\n")


def plain(value: Any) -> Any:
    """The value in what JSON has: what is not finite is None, tuples are lists."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _silence() -> None:
    """Send the rest of stdout nowhere: Python would fail again when it flushes at its exit."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def check_writable(flag: str, path: str | None) -> None:
    """Refuse, before any work, a place where a file could not be put."""
    if path is None:
        return
    try:
        fault = _fault(path)
    except OSError as error:
        fault = f"cannot be written: {error.strerror}; choose another place"
    if fault:
        raise DataError(f"{flag} {path or repr(path)} {fault}.")


def _fault(path: str) -> str | None:
    """What keeps a file from being put at ``path``, with the way out."""
    target = Path(os.path.realpath(path))
    if not path or target.is_dir():
        return "must name a file, but is a folder; add a file name"
    if not target.parent.is_dir():
        return f"must be in an existing folder, but {target.parent} is none; create it first"
    if target.exists() and not target.is_file():
        return "must be an ordinary file, not a device; choose another"
    if target.exists() and not os.access(target, os.W_OK):
        return "is write-protected; choose another file"
    import tempfile

    # Writing a file whole needs a neighbour, so making one shows whether that will work.
    handle, neighbour = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(handle)
    os.unlink(neighbour)
    return None


def check_distinct(outputs: dict[str, str | None], inputs: Iterable[str] = ()) -> None:
    """Refuse two outputs in one file, and an output over the samples it is made from."""
    seen = {os.path.realpath(name): name for name in inputs if os.path.exists(name)}
    for flag, path in outputs.items():
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in seen:
            raise DataError(f"{flag} {path} would overwrite {seen[place]}; name another file.")
        seen[place] = f"{flag} {path}"


@contextlib.contextmanager
def writing(path: str) -> Iterator[str]:
    """Where to write, symbolic links followed; what the system refuses becomes a sentence."""
    try:
        yield os.path.realpath(path)
    except OSError as error:
        raise OutputError(
            f"{path} could not be written: {error.strerror}; what was there before is intact."
        ) from None


def write(path: str, content: bytes) -> None:
    """Put ``content`` at ``path``, whole or not at all."""
    from adfs.storage import write_whole

    with writing(path) as place:
        write_whole(place, content)

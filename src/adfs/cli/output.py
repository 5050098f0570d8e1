"""Text and JSON on stdout and stderr: colours, widths, tables, notes and error lines."""

import argparse
import contextlib
import json
import os
import shutil
import sys
import textwrap
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from adfs.errors import LongRunWarning, shortened
from adfs.storage import json_value
from adfs.study.numbers import aligned

USUAL = 80  # columns
SLOW, SLOW_IN_LOG = 2.0, 10.0  # seconds
NARROWEST = 24  # columns below which breaking lines gains nothing
FAILED = 1
STYLES = {"bold": "1", "good": "32", "warning": "33", "bad": "1;31"}


def is_terminal(stream: Any) -> bool:
    """Whether the stream is a terminal; one that is closed or missing is not."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


def is_live(stream: Any) -> bool:
    """Whether a line on the stream can be overwritten."""
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def has_colour(stream: Any) -> bool:
    forced = bool(os.environ.get("FORCE_COLOR"))
    return not os.environ.get("NO_COLOR") and (forced or is_live(stream))


def paint(text: str, style: str, stream: Any) -> str:
    """The text in a style of `STYLES`, or as it is where colours are not wanted."""
    return f"\033[{STYLES[style]}m{text}\033[0m" if has_colour(stream) else text


def columns(stream: Any) -> int | None:
    """Columns of a terminal; None for files and pipes, where lines have no limit."""
    return width() if is_terminal(stream) else None


def width() -> int:
    """Columns of the terminal, 80 where they are not known (Python 3.10 then returns 0)."""
    return shutil.get_terminal_size().columns or USUAL


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Lines ``name  text`` with the texts below each other."""
    rows = list(pairs)
    width = max(len(name) for name, _ in rows)
    return "".join(_broken(f"{name:<{width}}  ", text) for name, text in rows)


def _broken(name: str, text: str) -> str:
    """One fact on as many lines as the terminal needs; on one line in a file or a pipe."""
    room = columns(sys.stdout)
    if room is None or len(name) + len(text) <= room:
        return f"{name}{text}\n"
    hang = len(name) if room - len(name) >= NARROWEST else 2
    lines = textwrap.wrap(
        text, max(NARROWEST, room - 1 - hang), break_on_hyphens=False, break_long_words=False
    )
    body = ("\n" + " " * hang).join(lines)
    return f"{name}{body}\n" if hang == len(name) else f"{name.rstrip()}\n{' ' * hang}{body}\n"


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Aligned columns; those numbered in ``right`` are aligned to the right.

    Where a terminal is too narrow for them, each row is a block of facts instead.
    """
    text, room = aligned(headers, rows, right), columns(sys.stdout)
    if room is not None and max(map(len, text.splitlines())) > room:
        return "\n".join(facts(zip(headers, row, strict=True)) for row in rows)
    return text


class OutputError(Exception):
    """A file or stream that could not be written although the input was good."""


def complain(message: object, code: int) -> int:
    """One line on stderr; returns the exit code."""
    note(f"{paint('adfs:', 'bad', sys.stderr)} {_one_line(message)}")
    return code


def refuse(message: object, code: int) -> int:
    """Complain before a rank has begun: once per job and host, and end the ranks on this host.

    If one rank alone refuses (a file is missing on its host only), the others would wait for it
    in MPI without end.
    """
    from adfs.mpi.launcher import size_by_environment
    from adfs.mpi.supervisor import SupervisorLink

    if (size_by_environment() or 1) == 1:
        return complain(message, code)
    SupervisorLink().fail(_one_line(message), code)
    return code


def _one_line(message: object) -> str:
    return shortened(" ".join(str(message).split()))


def note(message: str) -> None:
    """A line on stderr, so that stdout holds the result only; nothing where stderr is closed."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(_encodable(message, sys.stderr), file=sys.stderr, flush=True)


@contextlib.contextmanager
def note_if_slow(message: str, wanted: bool) -> Iterator[None]:
    """A note about what goes on, if it takes two seconds on a terminal, or ten elsewhere."""
    seconds = SLOW if is_live(sys.stderr) else SLOW_IN_LOG
    timer = threading.Timer(seconds, note, (message,))
    timer.daemon = True
    if wanted:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextlib.contextmanager
def warnings_as_notes(quiet: bool) -> Iterator[None]:
    """Python's warnings, each one line on stderr; not those about long runs if ``quiet``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if quiet else "always", LongRunWarning)
        warnings.showwarning = lambda message, *_: note(f"warning: {message}")
        yield


def _encodable(text: str, stream: Any) -> str:
    """The text, with escapes for what the stream's encoding lacks."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def emit(text: str) -> None:
    """Text on stdout; a reader that has left, or a closed stdout, is not a failure."""
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
    emit(json.dumps(json_value(record), allow_nan=False) + "\n")


def values(source: object, *names: str) -> dict[str, Any]:
    """Attributes by their names, for a record."""
    return {name: getattr(source, name) for name in names}


def show(
    args: argparse.Namespace, record: dict[str, Any], text: str, failures: Sequence[object] = ()
) -> int:
    """The result of a command as JSON or as text, or neither if it is to be quiet; the exit code.

    ``failures`` say what could not be written; each is one line on stderr.
    """
    if args.json:
        emit_json(record)
    elif not getattr(args, "quiet", False):
        emit(text)
    for failure in failures:
        complain(failure, FAILED)
    return FAILED if failures else 0


def _silence() -> None:
    """Discard the rest of stdout: Python would fail again when it flushes at its exit."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())

"""Files that commands read and write: checks before the work, then files that are complete.

Also pictures (only where matplotlib is installed), timelines of ranks and HTML reports.
"""

import argparse
import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adfs.cli.arguments import Kind
from adfs.cli.options import FOLDER, INPUT, OUTPUT, SHARDS
from adfs.cli.output import OutputError
from adfs.errors import DataError, ParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from adfs.engine.execution import Execution
    from adfs.storage import Buffer

MISSING = (
    "pictures need matplotlib, which is not installed; run pip install '.[plots]' in the folder of "
    "adfs's source."
)
PICTURES = ("png", "pdf", "svg")
TRACE = "json"


def check_paths(args: argparse.Namespace) -> None:
    """Refuse outputs that cannot be written, or would overwrite an input or each other."""
    files, folders = [*_given(args, OUTPUT).items(), *_shards(args)], _given(args, FOLDER)
    if not files and not folders:
        return
    made = {os.path.realpath(path) for path in folders.values() if not os.path.exists(path)}
    for flag, path in files:
        if os.path.dirname(os.path.realpath(path)) not in made:
            check_writable(flag, path)
    taken = {identity(path): path for path in _inputs(args)}
    for flag, path in [*files, *folders.items()]:
        rival = taken.setdefault(identity(path), f"{flag} {path}")
        if rival != f"{flag} {path}":
            raise DataError(f"{flag} {path} would overwrite {rival}; name another.")


def _given(args: argparse.Namespace, kind: Kind) -> dict[str, str]:
    options = [each for each in args.command.options if each.kind == kind]
    found = {each.flag or each.metavar: getattr(args, each.dest) for each in options}
    return {name: path for name, path in found.items() if path is not None}


def _shards(args: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Of the files that are written one per node, the first and those that exist already."""
    for flag, pattern in _given(args, SHARDS).items():
        from adfs.data.files import shard_nodes, shard_path

        nodes = {0, *shard_nodes(pattern)}
        if (last := max(nodes)) >= args.nodes:
            raise DataError(
                f"{flag} {pattern} must be the files of --nodes {args.nodes} only, but "
                f"{shard_path(pattern, last)} exists, which would count as a node; remove it."
            )
        yield from ((flag, str(shard_path(pattern, node))) for node in sorted(nodes))


def _inputs(args: argparse.Namespace) -> Iterator[str]:
    """The files that are read: those of a pattern, or of a known data set, too."""
    for name in _given(args, INPUT).values():
        if os.path.isfile(name):
            yield name
            continue
        from adfs.data.datasets import available
        from adfs.data.files import NODE, shard_nodes, shard_path

        if NODE in name:
            yield from (str(shard_path(name, node)) for node in shard_nodes(name))
        else:
            yield from (str(path) for known, path in available() if path and known.name == name)


def identity(path: str) -> tuple[int, int, str]:
    """The same for all names of a file: other spellings, symbolic links and hard links.

    For a file that does not exist yet: its folder, and its name in it.
    """
    place = Path(os.path.realpath(path))
    for file, name in ((place, ""), (place.parent, place.name)):
        with contextlib.suppress(OSError):
            found = os.stat(file)
            return found.st_dev, found.st_ino, name
    return 0, 0, str(place)


def check_writable(flag: str, path: str) -> None:
    """Refuse, before any work, a path where a file cannot be written."""
    try:
        target = Path(os.path.realpath(path))
        if not path or target.is_dir():
            fault = "must name a file, but is a folder; add a file name"
        elif not target.parent.is_dir():
            fault = f"must be in an existing folder, but {target.parent} is none; create it first"
        elif target.exists() and not target.is_file():
            fault = "must be an ordinary file, not a device; choose another"
        elif target.exists() and not os.access(target, os.W_OK):
            fault = "is write-protected; choose another file"
        else:  # files are written beside their final name first, so try that
            tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.").close()
            return
    except OSError as error:
        fault = f"cannot be written: {error.strerror}; choose another place"
    raise DataError(f"{flag} {path or repr(path)} {fault}.")


@contextlib.contextmanager
def writing(path: str) -> Iterator[str]:
    """The path to write to, symbolic links followed; errors of the system become one sentence."""
    try:
        yield os.path.realpath(path)
    except OSError as error:
        raise OutputError(
            f"{path} could not be written: {error.strerror}; what was there before is intact."
        ) from None


def write(path: str, content: "Buffer | Iterable[Buffer]") -> None:
    """Write a complete file, or leave what was there."""
    from adfs.storage import write_whole

    with writing(path) as place:
        write_whole(place, content)


def write_each(*writers: tuple[str | None, Callable[[str], object]]) -> list[OutputError]:
    """Let each write to its path, if it is given; errors are returned, so that others go on."""
    failures = []
    for path, save in writers:
        try:
            if path is not None:
                with writing(path) as place:
                    save(place)
        except OutputError as error:
            failures.append(error)
    return failures


def have_matplotlib() -> bool:
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        return False
    return True


def picture_kind(flag: str, path: str, or_trace: bool = False) -> str:
    """The format of a picture, or of a trace where one is allowed, by the suffix of its name."""
    kind, suffixes = path.rpartition(".")[2].lower(), ", .".join(PICTURES)
    if or_trace:
        suffixes = f"{TRACE} for a trace, or in .{suffixes} for a picture"
    if kind not in (*PICTURES, *([TRACE] if or_trace else [])):
        raise ParameterError(f"{flag} {path} must end in .{suffixes}; rename it.")
    if kind != TRACE and not have_matplotlib():
        raise ParameterError(f"{flag} {path}: {MISSING}")
    return kind


def save_picture(
    path: str, kind: str, size: tuple[float, float], draw: "Callable[[Figure], object]"
) -> None:
    from adfs.study.plots.style import figure_images

    write(path, figure_images(size, draw, (kind,))[kind])


def save_ranks(ranks: "Sequence[Execution]", path: str, kind: str) -> None:
    from adfs.study.plots.timeline_plot import draw_ranks

    size = (10.0, 1.2 + min(0.62 * len(ranks), 14.0))
    if kind == TRACE:
        write(path, json.dumps(chrome_trace(ranks)).encode())
    else:
        save_picture(path, kind, size, lambda figure: draw_ranks(ranks, figure.add_subplot()))


def chrome_trace(ranks: "Sequence[Execution]") -> dict[str, Any]:
    """Spans in the Trace Event Format: one process per rank, microseconds since the loop began.

    Times are whole nanoseconds, the resolution of the viewers: rounding keeps the order of times,
    so a wait stays inside the computing that it interrupts. Each rank counts from its own start of
    the loop, which is accurate enough on one machine, where ranks start after a common exchange.
    """
    from adfs.study.plots.timeline_plot import name_of

    rows: list[dict[str, Any]] = []
    for each in ranks:
        about: dict[str, Any] = {"ph": "M", "pid": each.rank, "tid": 0}
        rows += [
            {**about, "name": "process_name", "args": {"name": name_of(each)}},
            {**about, "name": "process_sort_index", "args": {"sort_index": each.rank}},
            {**about, "name": "thread_name", "args": {"name": "loop"}},
        ]
        for kind, start, end in each.spans:
            begin = round(1e9 * start)
            times = {"ts": begin / 1e3, "dur": (round(1e9 * end) - begin) / 1e3}
            rows.append({"name": kind, "cat": kind, "ph": "X", "pid": each.rank, "tid": 0, **times})
    return {"traceEvents": rows, "displayTimeUnit": "ns"}


def check_report(path: str | None) -> None:
    """Refuse a name that a browser would not open as a page."""
    if path is not None and not path.lower().endswith((".html", ".htm")):
        raise ParameterError(f"--report {path or repr(path)} must end in .html; rename it.")

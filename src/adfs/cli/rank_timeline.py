"""What each rank did when, as a picture or for chrome://tracing and ui.perfetto.dev."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from adfs.cli import output, pictures
from adfs.errors import ParameterError

if TYPE_CHECKING:
    from adfs.runtime.execution import Execution

TRACE = "json"


def timeline_kind(flag: str, path: str) -> str:
    """Format that the name's suffix asks for; refuses what cannot be written."""
    kind = path.rpartition(".")[2].lower()
    if kind == TRACE:
        return kind
    if kind not in pictures.KINDS:
        raise ParameterError(
            f"{flag} {path} must end in .{TRACE} for a trace, or in .{', .'.join(pictures.KINDS)} "
            "for a picture; rename it."
        )
    return pictures.picture_kind(flag, path)


def save_ranks(ranks: "Sequence[Execution]", path: str, kind: str) -> None:
    """Write the spans of all ranks; ``kind`` is from `timeline_kind`."""
    if kind == TRACE:
        output.write(path, json.dumps(chrome_trace(ranks)).encode())
        return
    from adfs.plots.ranks import draw_ranks

    ax = pictures.new_axes(10.0, 1.2 + min(0.62 * len(ranks), 14.0))
    draw_ranks(ranks, ax)
    pictures.save(ax.figure, path, kind)


def chrome_trace(ranks: "Sequence[Execution]") -> dict[str, Any]:
    """Spans in the Trace Event Format: a process a rank, microseconds since the loop began.

    Times are whole nanoseconds, the viewers' own resolution: rounding keeps the order of times, so
    that a wait stays inside the computing that it interrupts. Each rank counts from its own
    beginning of the loop: good enough on one machine, where ranks come from a common exchange.
    """
    rows: list[dict[str, Any]] = []
    for each in ranks:
        rows += _names(each)
        for kind, start, end in each.spans:
            begin = round(1e9 * start)
            rows.append(
                {
                    "name": kind, "cat": kind, "ph": "X", "pid": each.rank, "tid": 0,
                    "ts": begin / 1e3, "dur": (round(1e9 * end) - begin) / 1e3,
                }
            )  # fmt: skip
    return {"traceEvents": rows, "displayTimeUnit": "ns"}


def _names(each: "Execution") -> list[dict[str, Any]]:
    from adfs.plots.ranks import name_of

    about: dict[str, Any] = {"ph": "M", "pid": each.rank, "tid": 0}
    return [
        {**about, "name": "process_name", "args": {"name": name_of(each)}},
        {**about, "name": "process_sort_index", "args": {"sort_index": each.rank}},
        {**about, "name": "thread_name", "args": {"name": "loop"}},
    ]

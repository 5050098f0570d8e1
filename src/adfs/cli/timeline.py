"""`adfs schedule times` and `timeline`: the same schedule on a model of the network."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from adfs.cli import delays, layout, options, output, pictures
from adfs.cli.kinds import Whole
from adfs.cli.parser import add_command
from adfs.cli.settings import add_settings
from adfs.errors import ParameterError

if TYPE_CHECKING:
    from adfs.schedule.schedule import Schedule

WINDOW = 60
BLOCK = 1 << 16

TIMES_EXAMPLES = """\
examples:
  adfs schedule times s.npz --tau 5 --delay-law exponential
  adfs schedule times s.npz --speed 1,1,10,1,1,1,1,1
  adfs schedule times s.npz --clock rendezvous --json"""

TIMELINE_EXAMPLES = """\
examples:
  adfs schedule timeline s.npz --tau 3 --last 40 --out timeline.png
  adfs schedule timeline s.npz --first 100 --last 200 --chrome timeline.json --json"""


def add_times(verbs: Any) -> None:
    """Declare the verb."""
    times = add_command(
        verbs, "times", run_times, help="when each node is done, and how long it waited",
        description="Time a schedule on a model of the network: when each node is done, how long "
        "it was busy and how long it waited. The algorithm is not run.",
        epilog=TIMES_EXAMPLES,
    )  # fmt: skip
    times.add_argument("file", metavar="FILE", help="a schedule file")
    delays.add_delays(times)
    options.add_json(times)
    add_settings(times)


def add_timeline(verbs: Any) -> None:
    """Declare the verb."""
    timeline = add_command(
        verbs, "timeline", run_timeline, help="what each node does when, as a picture or a trace",
        description="Draw a window of a schedule as the paper's Figure 2, or write it for "
        "chrome://tracing and ui.perfetto.dev: what each node does when, and when it waits.",
        epilog=TIMELINE_EXAMPLES,
    )  # fmt: skip
    timeline.add_argument("file", metavar="FILE", help="a schedule file")
    delays.add_delays(timeline)
    window = timeline.add_argument_group("the window")
    window.add_argument(
        "--first",
        type=Whole(0),
        default=0,
        metavar="N",
        help="first event of the window (default 0)",
    )
    window.add_argument(
        "--last",
        type=Whole(1),
        metavar="N",
        help=f"event before which the window ends (default: {WINDOW} after --first)",
    )
    files = timeline.add_argument_group("files and words")
    files.add_argument("--out", metavar="FILE", help="the picture (.png, .pdf or .svg)")
    files.add_argument("--chrome", metavar="FILE", help="the trace (.json)")
    options.add_json(files)
    add_settings(timeline)


def run_times(args: argparse.Namespace) -> int:
    """Finish time and idle share of each node."""
    from adfs.schedule.schedule import Schedule

    schedule = Schedule.load(args.file)
    clock = schedule.clock(clock=args.clock, delays=delays.read_delays(args))
    idle = clock.idle_share()
    columns = {"finish": clock.finish, "busy": clock.busy, "waiting": clock.waiting}
    if args.json:
        nodes = {name: values.tolist() for name, values in columns.items()}
        output.emit_json({"makespan": clock.time, "idle_share": idle.tolist(), **nodes})
        return 0
    rows = [
        (str(k), *(f"{values[k]:,.6g}" for values in columns.values()), f"{100 * idle[k]:.1f} %")
        for k in range(clock.n_nodes)
    ]
    output.emit(layout.table(("node", *columns, "idle"), rows, right=range(5)))
    output.emit(f"makespan {clock.time:,.6g}, mean idle share {100 * idle.mean():.1f} %\n")
    return 0


def run_timeline(args: argparse.Namespace) -> int:
    """The picture, the trace, or both."""
    from adfs.schedule.schedule import Schedule

    kind = _check_timeline(args)
    schedule = Schedule.load(args.file)
    last = min(schedule.n_events, args.first + WINDOW if args.last is None else args.last)
    if args.first >= last:
        raise ParameterError(
            f"--first {args.first} must come before --last {last} in a schedule of "
            f"{schedule.n_events} events; choose another window."
        )
    table = _intervals(args, schedule, last)
    if args.chrome is not None:
        _write_chrome(args.chrome, table)
    if args.out is not None:
        _draw(args.out, kind, table, schedule.n_nodes)
    if args.json:
        window = {"first": args.first, "last": last}  # as the flags count
        output.emit_json({**window, "out": args.out, "chrome": args.chrome})
        return 0
    written = ", ".join(path for path in (args.out, args.chrome) if path is not None)
    output.emit(f"events {args.first} to {last - 1}: wrote {written}\n")
    return 0


def _check_timeline(args: argparse.Namespace) -> str:
    """Refuse early what cannot be written; the kind of picture."""
    if args.out is None and args.chrome is None:
        raise ParameterError("a timeline needs a file; give --out picture.png or --chrome t.json.")
    kind = pictures.picture_kind("--out", args.out) if args.out is not None else ""
    outputs = {"--out": args.out, "--chrome": args.chrome}
    for flag, path in outputs.items():
        output.check_writable(flag, path)
    output.check_distinct(outputs, [args.file])
    return kind


def _intervals(args: argparse.Namespace, schedule: "Schedule", last: int) -> Any:
    """What each node does in the window, the clock having run up to it."""
    from adfs.schedule.clock import Clock
    from adfs.schedule.timeline import intervals

    clock = Clock(schedule.edges, schedule.n_nodes, delays.read_delays(args), args.clock)
    for start in range(0, args.first, BLOCK):
        clock.advance(schedule.events(start, min(args.first, start + BLOCK)))
    return intervals(schedule.events(args.first, last), clock)


def _write_chrome(path: str, table: Any) -> None:
    from adfs.schedule.timeline import chrome_trace

    output.write(path, json.dumps(chrome_trace(table)).encode())


def _draw(path: str, kind: str, table: Any, n_nodes: int) -> None:
    from adfs.plots.timeline import draw_timeline

    ax = pictures.new_axes(9.0, 1.3 + min(0.62 * n_nodes, 14.0))
    draw_timeline(table, n_nodes, ax)
    pictures.save(ax.figure, path, kind)

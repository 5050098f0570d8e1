"""`adfs schedule`: sample a schedule, show it, time it, draw it."""

import argparse
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adfs.cli import files, options, output
from adfs.cli.arguments import Command, Option, read_delays
from adfs.errors import ParameterError

if TYPE_CHECKING:
    from adfs.graphs.topology import Topology
    from adfs.schedule.sampling_law import SamplingLaw
    from adfs.schedule.schedule import Schedule

BLOCK = 1 << 16
FILE = Option("FILE", "a schedule file", options.INPUT)

EXAMPLES = """\
examples:
  adfs schedule sample --graph ring --nodes 8 --p-comm 0.3 --events 1000 --out s.npz
  adfs schedule show s.npz
  adfs schedule times s.npz --tau 5 --delay-law exponential
  adfs schedule timeline s.npz --tau 5 --last 40 --out timeline.png --chrome timeline.json"""

SAMPLE_EXAMPLES = """\
examples:
  adfs schedule sample --graph ring --nodes 8 --p-comm 0.3 --events 1000 --out s.npz
  adfs schedule sample breast-cancer --nodes 9 --sigma 0.1 --events 10000 --seed 1 --json"""

SHOW_EXAMPLES = """\
examples:
  adfs schedule show s.npz
  adfs schedule show s.npz --first 3 --json"""

TIMES_EXAMPLES = """\
examples:
  adfs schedule times s.npz --tau 5 --delay-law exponential
  adfs schedule times s.npz --speed 1,1,10,1,1,1,1,1
  adfs schedule times s.npz --clock rendezvous --json"""

TIMELINE_EXAMPLES = """\
examples:
  adfs schedule timeline s.npz --tau 3 --last 40 --out timeline.png
  adfs schedule timeline s.npz --first 100 --last 200 --chrome timeline.json --json"""


@dataclass(frozen=True)
class BareLaw:
    """Probabilities without a problem."""

    edges: Any
    p_edge: Any
    p_node: Any
    offsets: Any

    def importance_of(self, node: int) -> Any:
        """The same for all samples."""
        import numpy as np

        return np.ones(int(self.offsets[node + 1] - self.offsets[node]))


def run_sample(args: argparse.Namespace) -> int:
    """Sample, write, show."""
    from adfs.schedule.schedule import Schedule

    schedule = Schedule.sample(_law(args), args.events, args.seed)
    if args.out is not None:
        with files.writing(args.out) as place:
            schedule.save(place)
    _show(args, schedule, options.FIRST_EVENTS, args.out)
    return 0


def _law(args: argparse.Namespace) -> "SamplingLaw":
    """Probabilities: chosen for DATA, or equal ones."""
    from adfs.cli.problem_arguments import build_problem, read_topology
    from adfs.theory.non_smooth_parameters import NonSmoothParameters
    from adfs.theory.parameters import Parameters

    if args.data is None:
        return _uniform(read_topology(args), args.p_comm, args.m or 1)
    problem = build_problem(args)
    rules = Parameters if problem.loss.smooth else NonSmoothParameters
    return rules.choose(problem, args.parameters, args.tau, args.clock, p_comm=args.p_comm)


def _uniform(topology: "Topology", p_comm: float | None, m: int) -> BareLaw:
    """Equal probabilities of all edges, and of all nodes; ``m`` samples per node."""
    import numpy as np

    n_edges, n_nodes = topology.n_edges, topology.n_nodes
    share = (0.5 if n_edges else 0.0) if p_comm is None else p_comm
    if not 0.0 <= share <= (1.0 if n_edges else 0.0):
        raise ParameterError(
            f"--p-comm {share:g} must be a share between 0 and 1, and 0 on a graph without edges; "
            "leave it out for the default."
        )
    p_edge = np.full(n_edges, share / max(1, n_edges))
    p_node = np.full(n_nodes, (1.0 - share) / n_nodes)
    return BareLaw(topology.edges, p_edge, p_node, m * np.arange(n_nodes + 1))


def run_show(args: argparse.Namespace) -> int:
    """Counts, shares, first events."""
    from adfs.schedule.schedule import Schedule

    _show(args, Schedule.load(args.file), args.first)
    return 0


def _show(
    args: argparse.Namespace, schedule: "Schedule", first: int, written: str | None = None
) -> None:
    record = _record(schedule, first)
    if args.json:
        output.emit_json({**record, "out": written})
        return
    counts = record["n_local"]
    lines = [
        ("events", f"{record['n_events']:,}"),
        ("network", f"{record['n_nodes']} nodes, {record['n_edges']} edges"),
        ("communications", f"{record['n_exchanges']:,} ({100 * record['p_comm']:.1f} %)"),
        ("local updates", f"{sum(counts):,}, {min(counts):,} to {max(counts):,} per node"),
        (f"first {len(record['first'])}", " ".join(map(_event, record["first"]))),
    ]
    output.emit(output.facts([*lines, *([("wrote", written)] if written else [])]))


def _record(schedule: "Schedule", first: int) -> dict[str, Any]:
    import numpy as np

    n_edges, n_nodes = len(schedule.edges), schedule.n_nodes
    counts = np.zeros(n_edges + n_nodes, dtype=np.int64)
    for block in schedule.blocks():
        counts += np.bincount(block.which, minlength=len(counts))
    n_exchanges = int(counts[:n_edges].sum())
    shown = schedule.events(0, first).which.tolist()
    return {
        "n_events": schedule.n_events,
        "n_nodes": n_nodes,
        "n_edges": n_edges,
        "n_exchanges": n_exchanges,
        "p_comm": n_exchanges / max(1, schedule.n_events),
        "n_local": counts[n_edges:].tolist(),
        "first": [schedule.edges[k].tolist() if k < n_edges else k - n_edges for k in shown],
    }


def _event(event: Any) -> str:
    """As in the paper: (0,3) is an exchange, (2) a local update."""
    return "(" + ",".join(map(str, event if isinstance(event, list) else [event])) + ")"


def run_times(args: argparse.Namespace) -> int:
    """Finish time and idle share of each node."""
    from adfs.schedule.schedule import Schedule

    schedule = Schedule.load(args.file)
    clock = schedule.clock(clock=args.clock, delays=read_delays(args))
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
    output.emit(output.table(("node", *columns, "idle"), rows, right=range(5)))
    output.emit(f"makespan {clock.time:,.6g}, mean idle share {100 * idle.mean():.1f} %\n")
    return 0


def run_timeline(args: argparse.Namespace) -> int:
    """The picture, the trace, or both."""
    from adfs.schedule.schedule import Schedule
    from adfs.schedule.timeline import chrome_trace
    from adfs.study.plots.timeline_plot import draw_timeline

    if args.out is None and args.chrome is None:
        raise ParameterError("a timeline needs a file; give --out picture.png or --chrome t.json.")
    kind = files.picture_kind("--out", args.out) if args.out is not None else ""
    schedule = Schedule.load(args.file)
    last = min(schedule.n_events, args.first + options.WINDOW if args.last is None else args.last)
    if args.first >= last:
        raise ParameterError(
            f"--first {args.first} must come before --last {last} in a schedule of "
            f"{schedule.n_events} events; choose another window."
        )
    table = _intervals(args, schedule, last)
    if args.chrome is not None:
        files.write(args.chrome, json.dumps(chrome_trace(table)).encode())
    if args.out is not None:
        ax = files.new_axes(9.0, 1.3 + min(0.62 * schedule.n_nodes, 14.0))
        draw_timeline(table, schedule.n_nodes, ax)
        files.save_picture(ax.figure, args.out, kind)
    if args.json:
        window = {"first": args.first, "last": last}  # as the flags count
        output.emit_json({**window, "out": args.out, "chrome": args.chrome})
        return 0
    written = ", ".join(path for path in (args.out, args.chrome) if path is not None)
    output.emit(f"events {args.first} to {last - 1}: wrote {written}\n")
    return 0


def _intervals(args: argparse.Namespace, schedule: "Schedule", last: int) -> Any:
    """What each node does in the window; the clock runs up to it first."""
    from adfs.schedule.clock import Clock
    from adfs.schedule.timeline import intervals

    clock = Clock(schedule.edges, schedule.n_nodes, read_delays(args), args.clock)
    for start in range(0, args.first, BLOCK):
        clock.advance(schedule.events(start, min(args.first, start + BLOCK)))
    return intervals(schedule.events(args.first, last), clock)


SAMPLE = Command(
    "sample",
    "sample a schedule from a seed",
    "Sample a schedule from a seed: with the parameters that suit a DATA, or without DATA with "
    "equal probabilities and a share --p-comm of communications.",
    SAMPLE_EXAMPLES,
    run_sample,
    (options.OPTIONAL_DATA,),
    options.SAMPLE,
)
SHOW = Command(
    "show",
    "counts, shares and the first events",
    "Show the content of a schedule file: how many events of which kind, on which network, and the "
    "first of them in the paper's notation.",
    SHOW_EXAMPLES,
    run_show,
    (FILE,),
    options.SHOW,
)
TIMES = Command(
    "times",
    "when each node is done, and how long it waited",
    "Time a schedule on a model of the network: when each node is done, how long it was busy and "
    "how long it waited. The algorithm is not run.",
    TIMES_EXAMPLES,
    run_times,
    (FILE,),
    options.TIMES,
)
TIMELINE = Command(
    "timeline",
    "what each node does when, as a picture or a trace",
    "Draw a window of a schedule as in the paper's Figure 2, or write it for chrome://tracing and "
    "ui.perfetto.dev: what each node does when, and when it waits.",
    TIMELINE_EXAMPLES,
    run_timeline,
    (FILE,),
    options.TIMELINE,
)
COMMAND = Command(
    "schedule",
    "sample, show, time and draw a schedule",
    "Work with schedules: which node computes and which edge communicates, in which order. A "
    "schedule is sampled from a seed. It can be timed and drawn under any model of the network "
    "without running the algorithm.",
    EXAMPLES,
    verbs=(SAMPLE, SHOW, TIMES, TIMELINE),
)

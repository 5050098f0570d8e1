"""`adfs schedule`: draw a schedule, look at it, time it, picture it."""

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adfs.cli import layout, options, output, timeline
from adfs.cli.kinds import Whole
from adfs.cli.parser import add_command
from adfs.cli.settings import add_settings
from adfs.errors import ParameterError

if TYPE_CHECKING:
    from adfs.graphs.topology import Topology
    from adfs.schedule.law import SamplingLaw
    from adfs.schedule.schedule import Schedule

FIRST_EVENTS = 10

EXAMPLE = """\
examples:
  adfs schedule sample --graph ring --nodes 8 --p-comm 0.3 --events 1000 --out s.npz
  adfs schedule show s.npz
  adfs schedule times s.npz --tau 5 --delay-law exponential
  adfs schedule timeline s.npz --tau 5 --last 40 --out timeline.png --chrome timeline.json"""

SAMPLE_EXAMPLES = """\
examples:
  adfs schedule sample --graph ring --nodes 8 --p-comm 0.3 --events 1000 --out s.npz
  adfs schedule sample breast-cancer --nodes 9 --sigma 0.1 --events 10000 --seed 1 --json"""


def add_parser(commands: Any) -> None:
    """Declare the command and its four verbs."""
    parser = commands.add_parser(
        "schedule", help="draw, show, time and picture a schedule",
        description="Work with schedules: which node computes and which edge communicates, in "
        "which order. A schedule is drawn from a seed, and can be timed and pictured under any "
        "model of the network without running the algorithm.",
        epilog=EXAMPLE,
    )  # fmt: skip
    parser.set_defaults(parser=parser)
    verbs = parser.add_subparsers(metavar="VERB", dest="verb", required=True)
    _add_sample(verbs)
    show = add_command(
        verbs, "show", run_show, help="counts, shares and the first events",
        description="Show what a schedule file holds: how many events of which kind, on which "
        "network, and the first of them as the paper writes them.",
        epilog="examples:\n  adfs schedule show s.npz\n  adfs schedule show s.npz --first 3 --json",
    )  # fmt: skip
    show.add_argument("file", metavar="FILE", help="a schedule file")
    show.add_argument(
        "--first",
        type=Whole(0),
        default=FIRST_EVENTS,
        metavar="N",
        help=f"how many events to list (default {FIRST_EVENTS})",
    )
    options.add_json(show)
    timeline.add_times(verbs)
    timeline.add_timeline(verbs)


def _add_sample(verbs: Any) -> None:
    sample = add_command(
        verbs, "sample", run_sample, help="draw a schedule from a seed",
        description="Draw a schedule from a seed: with the parameters that suit a DATA, or without "
        "DATA with equal probabilities and a share --p-comm of communications.",
        epilog=SAMPLE_EXAMPLES,
    )  # fmt: skip
    sample.add_argument("data", metavar="DATA", nargs="?", help=options.DATA_HELP)
    options.add_problem(sample)
    options.add_time(sample)
    group = sample.add_argument_group("the schedule")
    options.add_rule(group)
    group.add_argument(
        "--p-comm",
        type=float,
        metavar="P",
        help="share of communications (default: what the rule says; 0.5 without DATA)",
    )
    group.add_argument(
        "--events",
        type=Whole(1),
        default=1000,
        metavar="N",
        help="number of events (default 1000)",
    )
    options.add_seed(group)
    files = sample.add_argument_group("files and words")
    files.add_argument("--out", metavar="FILE", help="write the schedule here (.npz)")
    options.add_json(files)
    add_settings(sample)


def run_sample(args: argparse.Namespace) -> int:
    """Draw, write, show."""
    from adfs.schedule.schedule import Schedule

    output.check_writable("--out", args.out)
    schedule = Schedule.sample(_law(args), args.events, args.seed)
    if args.out is not None:
        with output.writing(args.out) as place:
            schedule.save(place)
    _show(args, schedule, FIRST_EVENTS)
    return 0


def _law(args: argparse.Namespace) -> "SamplingLaw":
    """Probabilities: chosen for DATA, or equal ones."""
    from adfs.cli.data import build_problem, input_files, read_topology
    from adfs.theory.non_smooth import NonSmoothParameters
    from adfs.theory.parameters import Parameters

    if args.data is None:
        return _uniform(read_topology(args), args.p_comm, args.m or 1)
    output.check_distinct({"--out": args.out}, input_files(args.data))
    problem = build_problem(args)
    rules = Parameters if problem.loss.smooth else NonSmoothParameters
    return rules.choose(problem, args.parameters, args.tau, args.clock, p_comm=args.p_comm)


@dataclass(frozen=True)
class Law:
    """Probabilities that no problem stands behind."""

    edges: Any
    p_edge: Any
    p_node: Any
    offsets: Any

    def importance_of(self, node: int) -> Any:
        """All samples alike."""
        import numpy as np

        return np.ones(int(self.offsets[node + 1] - self.offsets[node]))


def _uniform(topology: "Topology", p_comm: float | None, m: int) -> Law:
    """Every edge as likely as the next, and so every node; ``m`` samples a node."""
    import numpy as np

    n_edges, n_nodes = topology.n_edges, topology.n_nodes
    share = (0.5 if n_edges else 0.0) if p_comm is None else p_comm
    if not 0.0 <= share <= (1.0 if n_edges else 0.0):
        raise ParameterError(
            f"--p-comm {share:g} must be a share between 0 and 1, and 0 on a graph without edges; "
            "leave it out for the usual one."
        )
    p_edge = np.full(n_edges, share / max(1, n_edges))
    p_node = np.full(n_nodes, (1.0 - share) / n_nodes)
    return Law(topology.edges, p_edge, p_node, m * np.arange(n_nodes + 1))


def run_show(args: argparse.Namespace) -> int:
    """Counts, shares, first events."""
    from adfs.schedule.schedule import Schedule

    _show(args, Schedule.load(args.file), args.first)
    return 0


def _show(args: argparse.Namespace, schedule: "Schedule", first: int) -> None:
    record = _record(schedule, first)
    if args.json:
        output.emit_json({**record, "out": getattr(args, "out", None)})
        return
    counts = record["n_local"]
    lines = [
        ("events", f"{record['n_events']:,}"),
        ("network", f"{record['n_nodes']} nodes, {record['n_edges']} edges"),
        ("communications", f"{record['n_exchanges']:,} ({100 * record['p_comm']:.1f} %)"),
        ("local updates", f"{sum(counts):,}, {min(counts):,} to {max(counts):,} a node"),
        (f"first {len(record['first'])}", " ".join(map(_event, record["first"]))),
    ]
    if getattr(args, "out", None):
        lines.append(("wrote", args.out))
    output.emit(layout.facts(lines))


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
    """As the paper writes it: (0,3) is an exchange, (2) a local update."""
    return "(" + ",".join(map(str, event if isinstance(event, list) else [event])) + ")"

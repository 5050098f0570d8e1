"""`adfs schedule`: sample a schedule, show it, time it, draw it."""

import argparse
import json

import numpy as np
from numpy.typing import NDArray

from adfs.cli import files, options, output
from adfs.cli.problem_arguments import build_problem, read_delays, read_topology
from adfs.errors import ParameterError
from adfs.graphs.topology import Topology
from adfs.schedule.clock import Clock
from adfs.schedule.sampling_law import SamplingLaw
from adfs.schedule.schedule import Schedule
from adfs.schedule.timeline import chrome_trace, intervals
from adfs.study.plots.timeline_plot import draw_timeline
from adfs.theory.non_smooth_parameters import NonSmoothParameters
from adfs.theory.parameters import Parameters

BLOCK = 1 << 16


class UniformLaw:
    """Equal probabilities of all edges, and of all nodes; ``m`` samples per node."""

    def __init__(self, topology: Topology, p_comm: float | None, m: int) -> None:
        n_edges, n_nodes = topology.n_edges, topology.n_nodes
        share = (0.5 if n_edges else 0.0) if p_comm is None else p_comm
        if not 0.0 <= share <= (1.0 if n_edges else 0.0):
            raise ParameterError(
                f"--p-comm {share:g} must be a share between 0 and 1, and 0 on a graph without "
                "edges; leave it out for the default."
            )
        self.edges = topology.edges
        self.p_edge = np.full(n_edges, share / max(1, n_edges))
        self.p_node = np.full(n_nodes, (1.0 - share) / n_nodes)
        self.offsets = m * np.arange(n_nodes + 1)

    def importance_of(self, node: int) -> NDArray[np.float64]:
        return np.ones(int(self.offsets[node + 1] - self.offsets[node]))


def run_sample(args: argparse.Namespace) -> int:
    schedule = Schedule.sample(_law(args), args.events, args.seed)
    if args.out is not None:
        with files.writing(args.out) as place:
            schedule.save(place)
    return _show(args, schedule, options.FIRST_EVENTS, args.out)


def _law(args: argparse.Namespace) -> SamplingLaw:
    if args.data is None:
        return UniformLaw(read_topology(args), args.p_comm, args.m or 1)
    problem = build_problem(args)
    rules = Parameters if problem.loss.smooth else NonSmoothParameters
    return rules.choose(problem, args.parameters, args.tau, args.clock, p_comm=args.p_comm)


def run_show(args: argparse.Namespace) -> int:
    return _show(args, Schedule.load(args.file), args.first)


def _show(args: argparse.Namespace, schedule: Schedule, first: int, out: str | None = None) -> int:
    """Counts, shares, and the first events as in the paper: (0,3) exchanges, (2) is local."""
    n_edges, n_nodes = len(schedule.edges), schedule.n_nodes
    counts = np.zeros(n_edges + n_nodes, dtype=np.int64)
    for block in schedule.blocks():
        counts += np.bincount(block.which, minlength=len(counts))
    n_exchanges, local = int(counts[:n_edges].sum()), counts[n_edges:]
    p_comm = n_exchanges / max(1, schedule.n_events)
    shown = schedule.events(0, first).which.tolist()
    events = [schedule.edges[k].tolist() if k < n_edges else k - n_edges for k in shown]
    texts = [f"({','.join(map(str, np.atleast_1d(event)))})" for event in events]
    record = {
        "n_events": schedule.n_events,
        "n_nodes": n_nodes,
        "n_edges": n_edges,
        "n_exchanges": n_exchanges,
        "p_comm": p_comm,
        "n_local": local,
        "first": events,
        "out": out,
    }
    lines = [
        ("events", f"{schedule.n_events:,}"),
        ("network", f"{n_nodes} nodes, {n_edges} edges"),
        ("communications", f"{n_exchanges:,} ({100 * p_comm:.1f} %)"),
        ("local updates", f"{local.sum():,}, {local.min():,} to {local.max():,} per node"),
        (f"first {len(events)}", " ".join(texts)),
        *([("wrote", out)] if out else []),
    ]
    return output.show(args, record, output.facts(lines))


def run_times(args: argparse.Namespace) -> int:
    schedule = Schedule.load(args.file)
    clock = schedule.clock(clock=args.clock, delays=read_delays(args))
    idle = clock.idle_share()
    columns = {"finish": clock.finish, "busy": clock.busy, "waiting": clock.waiting}
    rows = [
        (str(k), *(f"{values[k]:,.6g}" for values in columns.values()), f"{100 * idle[k]:.1f} %")
        for k in range(clock.n_nodes)
    ]
    return output.show(
        args,
        {"makespan": clock.time, "idle_share": idle, **columns},
        output.table(("node", *columns, "idle"), rows, right=range(5))
        + f"makespan {clock.time:,.6g}, mean idle share {100 * idle.mean():.1f} %\n",
    )


def run_timeline(args: argparse.Namespace) -> int:
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
    clock = Clock(schedule.edges, schedule.n_nodes, read_delays(args), args.clock)
    for start in range(0, args.first, BLOCK):  # up to the window
        clock.advance(schedule.events(start, min(args.first, start + BLOCK)))
    table = intervals(schedule.events(args.first, last), clock)
    if args.chrome is not None:
        files.write(args.chrome, json.dumps(chrome_trace(table)).encode())
    if args.out is not None:
        size = (9.0, 1.3 + min(0.62 * schedule.n_nodes, 14.0))
        files.save_picture(
            args.out, kind, size,
            lambda figure: draw_timeline(table, schedule.n_nodes, figure.add_subplot()),
        )  # fmt: skip
    written = ", ".join(path for path in (args.out, args.chrome) if path is not None)
    record = {**output.values(args, "first", "out", "chrome"), "last": last}
    return output.show(args, record, f"events {args.first} to {last - 1}: wrote {written}\n")

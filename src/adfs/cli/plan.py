"""`adfs plan`: which method, how many nodes, which graph; from data or from sizes alone."""

import argparse
import contextlib
from typing import Any

from adfs.agreement import Alone, attempt
from adfs.checks import positive, whole
from adfs.cli import files, output
from adfs.cli.on_ranks import Finish, check_engine, run_on_engine
from adfs.cli.problem_arguments import (
    as_list,
    build_problem,
    mean_tau,
    read_delays,
    shell_command,
)
from adfs.costs import Costs, agreed_costs
from adfs.errors import ParameterError
from adfs.mpi.communicator import Communicator
from adfs.plan.planning import HEADERS, LEFT, Plan, number, plan, plan_sizes, table_rows
from adfs.problem.conditioning import LARGEST_KAPPA
from adfs.schedule.delays import Delays

SIZES = ("rows", "features", "kappa")
MOST = 1 << 40
PICTURE = (11.0, 4.4)
GRID_HEADERS = ("graph", "nodes", "best", "idealized time", "messages", "limited by", "next")


def run(args: argparse.Namespace) -> int:
    if args.data is not None or args.engine == "mpi":
        return run_on_engine(args, _from_data)
    _check(args)
    costs = Costs.read(args.costs)
    return _finish(args, _from_sizes(args, costs), costs)


def _check(args: argparse.Namespace) -> None:
    """Everything that can be refused before a sample is read."""
    check_engine(args)
    if args.picture is not None:
        files.picture_kind("--picture", args.picture)
    for flag, given in (("--time-steps", args.time_steps), ("--engine mpi", args.engine == "mpi")):
        if given and args.data is None:
            raise ParameterError(f"{flag} runs steps on rows; name a DATA, or leave it out.")
    given = [name for name in SIZES if getattr(args, name) is not None]
    if args.data is not None and set(given) - {"features"}:
        raise ParameterError(
            f"--{given[0]} is for plans without DATA, which has its own; leave one of them out."
        )
    if args.data is not None and args.nodes is not None:
        args.nodes = _whole("nodes", args.nodes)


def _from_data(
    args: argparse.Namespace, world: Communicator | None, stack: contextlib.ExitStack
) -> Finish:
    peers = world or Alone()
    attempt(peers, lambda: _check(args))
    problem = build_problem(args, world)
    costs = agreed_costs(peers, args.costs)
    found = plan(
        problem, mean_tau(args), args.tol, args.clock, read_delays(args), args.seed,
        pilot=not args.no_pilot, costs=costs, ranks=args.ranks, time_steps=args.time_steps,
    )  # fmt: skip
    return lambda: _finish(args, [found], costs) if problem.network.rank == 0 else 0


def _finish(args: argparse.Namespace, plans: list[Plan], costs: Costs) -> int:
    """Write the picture and print; the exit code."""
    failures = files.write_each((args.picture, lambda place: _save_picture(args, plans, place)))
    record = {**_record(args, plans), "costs": costs.to_dict()}
    return output.show(args, record, _text(args, plans), failures)


def _from_sizes(args: argparse.Namespace, costs: Costs) -> list[Plan]:
    missing = next((name for name in SIZES if getattr(args, name) is None), None)
    if missing is not None:
        raise ParameterError(
            f"--{missing} is missing: without DATA a plan needs --rows, --features and --kappa; "
            "add it, or name a DATA."
        )
    if not 1.0 <= args.kappa <= LARGEST_KAPPA:
        raise ParameterError(
            f"--kappa {args.kappa:g} must be from 1 to {LARGEST_KAPPA:g}: it is 1 + smoothness / "
            "regularisation; try 1e4."
        )
    positive("tol", args.tol, "try 1e-6")
    nodes = read_nodes(args.nodes or "4")
    if (most := max(nodes)) > args.rows:
        raise ParameterError(
            f"--rows {args.rows} must be at least --nodes {most}: every node needs a row; give "
            "more rows or fewer nodes."
        )
    n_features = _whole("features", ",".join(as_list(args.features) or ()))
    graphs = [word.strip() for word in args.graph.split(",")]
    tau = mean_tau(args)
    Delays(tau=tau)  # refuses a tau that is no time
    return plan_sizes(args.rows, n_features, args.kappa, graphs, nodes, tau, args.tol, costs)


def read_nodes(text: str) -> list[int]:
    """``16``, a list ``4,16,64``, or ``4:1024`` in steps of a factor 4.

    Examples
    --------
    >>> read_nodes("4:100"), read_nodes("9,25")
    ([4, 16, 64], [9, 25])
    """
    if ":" not in text:
        return [_whole("nodes", word) for word in text.split(",")]
    low, high = (_whole("nodes", word) for word in text.split(":", 1))
    found = []
    while low <= high:
        found.append(low)
        low *= 4
    if not found:
        raise ParameterError(f"--nodes {text} must go from few to many, such as 4:1024.")
    return found


def _whole(name: str, text: str) -> int:
    """The number behind ``--name``."""
    try:
        return whole(name, int(text), 1, MOST)
    except ValueError:
        more = "; without DATA also a list such as 4,16 or a range such as 4:1024"
        raise ParameterError(
            f"--{name} {text} must be a whole number{more if name == 'nodes' else ' without DATA'}."
        ) from None


def _save_picture(args: argparse.Namespace, plans: list[Plan], place: str) -> None:
    from adfs.study.plots.plan_plot import draw_plan

    kind = files.picture_kind("--picture", args.picture)
    files.save_picture(
        place, kind, PICTURE, lambda figure: draw_plan(plans[-1], figure.subplots(1, 2))
    )


def _record(args: argparse.Namespace, plans: list[Plan]) -> dict[str, Any]:
    about = output.values(args, "data", "tau", "clock", "tol", "picture")
    command = {"command": shell_command(args)}
    if args.data is not None:
        return {**plans[0].to_dict(), **about, **command}
    fastest = min(plans, key=lambda each: each.best.idealized_time)
    return {
        **about, **command, "plans": [each.to_dict() for each in plans],
        "algorithm": fastest.best.algorithm, "graph": fastest.graph,
    }  # fmt: skip


def _text(args: argparse.Namespace, plans: list[Plan]) -> str:
    wrote = "" if args.picture is None else f"wrote {args.picture}\n"
    if len(plans) == 1:
        [only] = plans
        right = [k for k in range(len(HEADERS)) if k not in LEFT]
        table = output.table(HEADERS, table_rows(only), right=right)
        return f"{table}\n" + "\n".join([only.recommendation, *only.outlook(), wrote])
    rows = [
        [
            each.graph.partition(":")[0], f"{each.sizes.n:,}", each.best.algorithm,
            number(each.best.idealized_time), number(each.best.n_comm), each.best.limit,
            f"{second.algorithm} {second.idealized_time / each.best.idealized_time:.2g}x",
        ]
        for each in plans
        for second in each.predictions[1:2]
    ]  # fmt: skip
    fastest = min(plans, key=lambda each: each.best.idealized_time)
    table = output.table(GRID_HEADERS, rows, right=(1, 3, 4))
    return f"{table}\nfastest: {fastest.graph}. {fastest.recommendation}\n{wrote}"

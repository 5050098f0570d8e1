"""Options of `adfs train` that no other command has."""

import argparse

from adfs.cli import html_report, options, ranks
from adfs.cli.kinds import Whole


def add_run(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the run")
    group.add_argument(
        "--algorithm",
        default="auto",
        metavar="NAME",
        help="one of the names that `adfs info` lists; auto takes adfs, or ns-adfs where the loss "
        "is not smooth (default auto)",
    )
    options.add_rule(group)
    group.add_argument(
        "--schedule",
        choices=("shared", "poisson"),
        default="shared",
        metavar="NAME",
        help="shared: one sequence of events, of which every node draws all; poisson: a clock for "
        "each edge and node, of which a node draws its own (default shared)",
    )
    group.add_argument(
        "--tol",
        type=float,
        default=1e-6,
        metavar="TOL",
        help="stop at this relative duality gap, gap / max(1, |F|) (default 1e-6)",
    )
    group.add_argument(
        "--max-iter",
        type=Whole(0),
        metavar="N",
        help="most events, or units of time under --schedule poisson, which hold about one event "
        "each (default: well beyond what theory needs for --tol)",
    )
    group.add_argument(
        "--time-limit",
        type=float,
        metavar="S",
        help="most seconds in the loop, those before a --resume included (default: no limit)",
    )
    group.add_argument(
        "--evaluate-every",
        type=Whole(1),
        metavar="N",
        help="events, or units of time under --schedule poisson, between evaluations, for a fine "
        "trace (default: as few as the stop needs, and with --trace or --report some ten more, "
        "which change nothing)",
    )
    options.add_seed(group)
    ranks.add_ranks(group)
    group.add_argument("--warm-start", metavar="MODEL", help="start from this model file")


def add_files(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("files and words")
    group.add_argument("--test", metavar="FILE", help="a DATA on which to judge the model")
    group.add_argument("--out", metavar="FILE", help="write the model here (.npz)")
    group.add_argument("--trace", metavar="FILE", help="write one row an evaluation here (.csv)")
    html_report.add_report(group)
    group.add_argument(
        "--checkpoint", metavar="DIR", help="keep the run in this folder, so that it can go on"
    )
    group.add_argument(
        "--checkpoint-every",
        type=Whole(1),
        metavar="N",
        help="events or rounds, or units of time under --schedule poisson, between two checkpoints "
        "(default: ten passes over the samples, at least 5,000,000 sample steps)",
    )
    group.add_argument(
        "--resume", action="store_true", help="go on from the newest whole checkpoint, if any"
    )
    group.add_argument(
        "--timeline",
        metavar="FILE",
        help="what each rank did when, as a Chrome trace (.json) or a picture (.png, .svg, .pdf); "
        "needs --engine mpi",
    )
    options.add_json(group)
    group.add_argument("--quiet", action="store_true", help="no progress and no summary")

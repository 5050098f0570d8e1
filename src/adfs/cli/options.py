"""Arguments that several commands share.

Lists of names are written out here so that ``adfs --help`` imports no arithmetic; a test holds
them equal to the registries.
"""

import argparse
from typing import Any

from adfs.cli.kinds import Whole

LOSSES = (
    "logistic", "squared", "squared_hinge", "smoothed_hinge", "huber", "hinge", "absolute",
)  # fmt: skip
PARTITIONS = ("even", "contiguous", "draw", "sorted")
CLOCKS = ("nonblocking", "rendezvous")
RULES = ("paper", "balanced", "exact", "projector", "tuned", "theory")
LAWS = ("constant", "exponential", "lognormal", "pareto")
SCOPES = ("both", "communications", "computations")
AXES = ("idealized_time", "iteration", "passes", "n_comm", "bytes", "wall_time")
DEFAULT_NODES = 4

DATA_HELP = (
    "a LIBSVM file (plain, .gz, .bz2, .xz), a .npz file with X and y, a name from "
    "`adfs datasets`, or a pattern holding {node} (from 0) with one file a node"
)


def add_problem(parser: argparse.ArgumentParser) -> None:
    """What is minimised, and how the samples lie on the nodes."""
    group = parser.add_argument_group("the problem")
    group.add_argument(
        "--loss",
        default="logistic",
        choices=LOSSES,
        metavar="NAME",
        help=f"{', '.join(LOSSES)} (default logistic)",
    )
    strength = group.add_mutually_exclusive_group()
    strength.add_argument(
        "--sigma",
        type=float,
        metavar="S",
        help="regularisation of each node, S/2 |theta|^2 (default 1)",
    )
    strength.add_argument(
        "--C",
        type=float,
        metavar="C",
        help="scikit-learn's C, the inverse of the nodes' sigma summed",
    )
    group.add_argument(
        "--intercept",
        action="store_true",
        help="append a constant feature 1; like in liblinear, its weight is "
        "regularised as the others are",
    )
    group.add_argument(
        "--class-weight",
        choices=("balanced",),
        metavar="balanced",
        help="weigh each sample by n_samples / (2 x samples of its class)",
    )
    group.add_argument(
        "--n-features",
        type=Whole(1),
        metavar="D",
        help="number of columns (default: the largest index in the data)",
    )
    add_network(parser)


def add_network(parser: argparse.ArgumentParser) -> None:
    """The nodes, their graph, and which samples each one gets."""
    group = parser.add_argument_group("the network")
    group.add_argument(
        "--nodes",
        type=Whole(1),
        metavar="N",
        help=f"number of nodes (default: the files of a {{node}} pattern, else {DEFAULT_NODES})",
    )
    group.add_argument(
        "--graph",
        default="grid",
        metavar="G",
        help="grid, ring, path, star, complete, torus, hypercube, "
        "random_regular:k=4, erdos_renyi:p=0.5, single; a size as in grid:3x4 must "
        "agree with --nodes (default grid, as square as possible)",
    )
    group.add_argument(
        "--partition",
        choices=PARTITIONS,
        metavar="HOW",
        help="even (shuffled), contiguous, sorted (by label, not iid) or draw (m "
        "rows a node, overlap allowed) (default even)",
    )
    group.add_argument("--m", type=Whole(1), metavar="M", help="rows a node, for --partition draw")


def add_time(parser: argparse.ArgumentParser) -> None:
    """The time model."""
    group = parser.add_argument_group("the time model")
    group.add_argument(
        "--tau",
        type=float,
        default=5.0,
        metavar="T",
        help="time of one communication, in units of one sample's proximal step (default 5)",
    )
    add_clock(group)


def add_clock(group: Any) -> None:
    """``--clock``, where ``--tau`` is declared otherwise."""
    group.add_argument(
        "--clock",
        choices=CLOCKS,
        default="nonblocking",
        metavar="KIND",
        help="nonblocking (a node posts its message and goes on) or rendezvous "
        "(both nodes are held) (default nonblocking)",
    )


def add_rule(parser: Any) -> None:
    """``--parameters``."""
    parser.add_argument(
        "--parameters",
        choices=RULES,
        default="tuned",
        metavar="RULE",
        help="who chooses rates and probabilities: for adfs paper, balanced, exact, projector or "
        "tuned; for the others theory or tuned, the fastest that theory allows; for dsba also "
        "paper (default tuned)",
    )


def add_seed(parser: Any) -> None:
    """``--seed``."""
    parser.add_argument(
        "--seed",
        type=Whole(0),
        default=0,
        metavar="K",
        help="the same seed gives the same bits (default 0)",
    )


def add_json(parser: Any) -> None:
    """``--json``."""
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")

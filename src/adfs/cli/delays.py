"""How long messages and local updates take, as arguments: constant, one each, or by chance."""

import argparse
from math import fsum
from typing import TYPE_CHECKING

from adfs.cli import options
from adfs.cli.kinds import Whole, numbers

if TYPE_CHECKING:
    from adfs.schedule.delays import Delays


def add_delays(parser: argparse.ArgumentParser) -> None:
    """The whole time model."""
    group = parser.add_argument_group("the time model")
    group.add_argument(
        "--tau",
        type=numbers,
        default=5.0,
        metavar="T",
        help="time of one communication, or one an edge: 5,5,2 (default 5)",
    )
    group.add_argument(
        "--speed",
        type=numbers,
        default=1.0,
        metavar="S",
        help="time of one local update, or one a node: 1,1,10 (default 1)",
    )
    options.add_clock(group)
    group.add_argument(
        "--delay-law",
        choices=options.LAWS,
        default="constant",
        metavar="LAW",
        help=f"{', '.join(options.LAWS)}, of mean 1 (default constant)",
    )
    group.add_argument(
        "--delay-shape", type=float, metavar="A", help="sigma of lognormal, alpha of pareto"
    )
    group.add_argument(
        "--delay-of",
        choices=options.SCOPES,
        default="both",
        metavar="WHAT",
        help=f"{', '.join(options.SCOPES)} (default both)",
    )
    group.add_argument(
        "--delay-seed",
        type=Whole(0),
        default=0,
        metavar="K",
        help="seed of the law (default 0)",
    )


def read_delays(args: argparse.Namespace) -> "Delays":
    """What the arguments say, checked."""
    from adfs.schedule.delays import Delays

    return Delays(
        args.tau, args.speed, args.delay_law, args.delay_shape, args.delay_of, args.delay_seed
    )


def mean_tau(args: argparse.Namespace) -> float:
    """``--tau``, averaged over edges."""
    tau: float | list[float] = args.tau
    return fsum(tau) / len(tau) if isinstance(tau, list) else tau

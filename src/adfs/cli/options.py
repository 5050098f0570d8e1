"""Arguments that several commands share, and a parser whose complaints are one line.

Lists of names are written out here so that ``adfs --help`` imports no arithmetic; a test holds
them equal to the registries.
"""

import argparse
import re
from collections.abc import Callable
from typing import Any, NoReturn

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


class Parser(argparse.ArgumentParser):
    """Refuses in one line that ends with the way out; flags are never abbreviated."""

    def __init__(self, **keywords: Any) -> None:
        keywords.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        keywords.setdefault("allow_abbrev", False)
        super().__init__(**keywords)
        # argparse takes -1e-3 and -inf for flags, and then misses the number it was given.
        self._negative_number_matcher = re.compile(r"^-(\d|\.\d|inf$|nan$)")

    def error(self, message: str) -> NoReturn:
        """One line on stderr, exit code 2."""
        line = " ".join(f"adfs: {message}; see `{self.prog} --help`.".split())
        self.exit(2, line + "\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Where mpiexec started several of us, one is enough to say it."""
        from adfs.launch.launcher import rank_by_environment

        if not rank_by_environment():
            super()._print_message(message, file)


def add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], **keywords: Any
) -> Parser:
    """Parser of one command that ends in ``run``."""
    parser: Parser = commands.add_parser(name, **keywords)
    parser.set_defaults(run=run, parser=parser)
    return parser


def whole(least: int) -> Callable[[str], int]:
    """Type of an argument: a whole number not below ``least``."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"{text!r} must be a whole number >= {least}")
        return value

    return read


def numbers(text: str) -> float | list[float]:
    """Type of an argument: a number, or several with commas between them."""
    try:
        values = [float(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} must be a number, or several such as 1,1,10"
        ) from None
    return values if "," in text else values[0]


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
        type=whole(1),
        metavar="D",
        help="number of columns (default: the largest index in the data)",
    )
    add_network(parser)


def add_network(parser: argparse.ArgumentParser) -> None:
    """The nodes, their graph, and which samples each one gets."""
    group = parser.add_argument_group("the network")
    group.add_argument(
        "--nodes",
        type=whole(1),
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
    group.add_argument("--m", type=whole(1), metavar="M", help="rows a node, for --partition draw")


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


def add_rule(parser: argparse.ArgumentParser) -> None:
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


def add_seed(parser: argparse.ArgumentParser) -> None:
    """``--seed``."""
    parser.add_argument(
        "--seed",
        type=whole(0),
        default=0,
        metavar="K",
        help="the same seed gives the same bits (default 0)",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """``--json``."""
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")

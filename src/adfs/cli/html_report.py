"""`--report FILE.html`: its checks before the work, and the page when the work is over."""

import argparse
import math
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adfs.cli import output
from adfs.errors import ParameterError

if TYPE_CHECKING:
    from adfs.bench.comparison import Comparison
    from adfs.problems.finite_sum import Problem
    from adfs.runtime.execution import Execution
    from adfs.runtime.solve import Result

SUFFIXES = (".html", ".htm")


def add_report(group: Any) -> None:
    """Declare the option."""
    group.add_argument(
        "--report",
        metavar="FILE",
        help="write a page about it here (.html): convergence along every axis, parameters, graph, "
        "timeline, theory beside measurement; it opens in a browser without a network",
    )


def check_name(path: str | None) -> None:
    """Refuse a name that no browser would take for a page."""
    if path is not None and not path.lower().endswith(SUFFIXES):
        raise ParameterError(f"--report {path or repr(path)} must end in .html; rename it.")


def check_comparison(args: argparse.Namespace) -> None:
    """Everything about the page of a comparison that can be refused before the work."""
    from adfs.cli.data import input_files

    check_name(args.report)
    output.check_distinct({"--report": args.report}, input_files(args.data))
    if args.report is not None and not _inside_new_folder(args):
        output.check_writable("--report", args.report)


def _inside_new_folder(args: argparse.Namespace) -> bool:
    """Whether the page goes into the folder of ``--out``, which the comparison will make."""
    if args.out is None or os.path.exists(args.out):
        return False
    parent = Path(os.path.realpath(args.report)).parent
    return parent == Path(os.path.realpath(args.out))


def save_training(
    args: argparse.Namespace, problem: "Problem", result: "Result", record: dict[str, Any],
    ranks: "Sequence[Execution]", path: str,
) -> None:  # fmt: skip
    """Write the page of a run."""
    from adfs.report import train_page

    page = train_page(
        problem, result, tol=args.tol, data=args.data, command=_command(args),
        measures=_measures(record), ranks=ranks,
    )  # fmt: skip
    output.write(path, page.encode())


def save_comparison(
    args: argparse.Namespace, problem: "Problem", comparison: "Comparison"
) -> list[str]:
    """Write the page of a comparison, if one is wanted; what went wrong, as sentences."""
    if args.report is None:
        return []
    from adfs.report import compare_page

    page = compare_page(
        problem, comparison, data=args.data, command=_command(args), axis=args.axis
    )  # fmt: skip
    try:
        output.write(args.report, page.encode())
    except output.OutputError as error:
        return [str(error)]
    return []


def _command(args: argparse.Namespace) -> str:
    return shlex.join(["adfs", *args.command_line])


def _measures(record: dict[str, Any]) -> dict[str, str]:
    """How well the model fits the samples, and those of ``--test``."""
    from adfs.cli.metrics import phrase

    found = {}
    for which, word in (("train", "training"), ("test", "test")):
        for name, value in (record[which] or {}).items():
            words = name.replace("_", " ")
            known = math.nan if value is None else value
            found[f"{words}, {word}"] = phrase(name, known).removeprefix(f"{words} ")
    return found

"""`adfs reproduce`: the paper's figures, table and theorem, measured again and judged."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adfs.cli import options, output, pictures, progress
from adfs.cli.kinds import Whole
from adfs.cli.parser import add_command
from adfs.cli.settings import add_settings
from adfs.cli.signals import SIGNALS
from adfs.errors import DataError
from adfs.reproduce.catalogue import ALL, CATALOGUE, names_of

if TYPE_CHECKING:
    from adfs.reproduce.report import Report

JOBS = 2

EXAMPLE = """\
examples:
  adfs reproduce theorem-2
  adfs reproduce figure-3b --out results
  adfs reproduce all --quick
  adfs reproduce theorem-2 --quick --json

Each name prints its setting, what the paper claims, what was measured, and whether the claim holds:
yes, no or partly, decided from the numbers. Figures need the real data (ADFS_DATA, see
`adfs datasets`); with --quick, generated data serve where a set is not on disk. Ctrl-C keeps what
is finished. Exit codes: 0 done, whether or not the claims hold, 2 bad input, 1 the program or its
surroundings failed, 130 and 143 interrupted."""


def add_parser(commands: Any) -> None:
    """Declare the command."""
    width = max(map(len, CATALOGUE))
    listed = "\n".join(f"  {name:<{width}}  {entry.about}" for name, entry in CATALOGUE.items())
    parser = add_command(
        commands, "reproduce", run, help="measure the paper's results again",
        description=f"Measure a result of the paper again, print it beside what the paper "
        f"claims, and say whether the claim holds.\n\nnames:\n"
        f"{listed}\n  {ALL:<{width}}  every one of them",
        epilog=EXAMPLE,
    )  # fmt: skip
    parser.add_argument("name", metavar="NAME", help="one of the names above")
    parser.add_argument(
        "--quick", action="store_true", help="the same at a size that ends within a minute"
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="folder for reports, tables and pictures, one folder a name inside; finished runs in "
        "it are not computed again",
    )
    parser.add_argument(
        "--jobs",
        type=Whole(1),
        default=JOBS,
        metavar="N",
        help=f"threads; results are the same (default {JOBS})",
    )
    options.add_json(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress and no report")
    add_settings(parser)


def run(args: argparse.Namespace) -> int:
    """Check, then reproduce name after name, printing and writing each as it is finished."""
    names = names_of(args.name)
    _check(args, names)
    records: list[dict[str, Any]] = []
    number, status = None, 0
    for name in names:
        report, number = _reproduce(args, name)
        records.append(report.to_dict())
        if not (args.json or args.quiet):
            output.emit(f"{report}\n\n")
        status = max(status, _save(args, report))
        if number is not None:
            break
    if args.json:
        state = "finished" if number is None else "interrupted"
        output.emit_json({"status": state, "quick": args.quick, "reports": records})
    if number is not None:
        return output.complain(_how_to_go_on(args, names[: len(records)]), 128 + number)
    return status


def _check(args: argparse.Namespace, names: list[str]) -> None:
    """Everything that can be refused before any work."""
    from adfs.reproduce.samples import require

    for name in names:
        if not args.quick:
            require(name, CATALOGUE[name].data)
    if args.out is not None:
        for name in names:
            _folder(args.out, name)


def _folder(out: str, name: str) -> Path:
    """The folder of a name, made if need be."""
    folder = Path(out) / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"--out {out} must be a folder that can be made and written, but: {error.strerror}; "
            "choose another."
        ) from None
    output.check_writable("--out", str(folder / "report.txt"))
    return folder


def _reproduce(args: argparse.Namespace, name: str) -> tuple["Report", int | None]:
    """The report, and the signal that ended it early, if one did."""
    from adfs.reproduce.order import Order
    from adfs.reproduce.progress import terminal_progress
    from adfs.runtime.signals import Interrupts

    folder = None if args.out is None else Path(args.out) / name
    function = CATALOGUE[name].load()
    with Interrupts(SIGNALS) as interrupts, terminal_progress(name, args.quiet) as show:
        args.leaving.repeat()
        look = None
        if progress.are_lines_wanted(args):
            show, look = progress.ShareLines(name), progress.RunLines()
        order = Order(args.quick, args.jobs, folder, interrupts, show, args.quiet, look)
        report = function(order)
    return report, interrupts.received


def _save(args: argparse.Namespace, report: "Report") -> int:
    """Write the report where that was asked for; a failure is told, and costs the exit code."""
    if args.out is None:
        return 0
    folder = Path(args.out) / report.name
    try:
        with output.writing(str(folder)):
            report.save(folder)
    except output.OutputError as error:
        return output.complain(error, 1)
    if not (args.json or args.quiet):
        missing = "" if pictures.have_matplotlib() else f" (no picture: {pictures.MISSING})"
        output.emit(f"written to {folder}{missing}\n\n")
    return 0


def _how_to_go_on(args: argparse.Namespace, begun: list[str]) -> str:
    if args.out is None:
        way = "give --out DIR to keep what is finished"
    else:
        way = f"what is finished is in {args.out}"
    return f"interrupted in {begun[-1]}; {way}."

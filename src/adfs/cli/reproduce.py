"""`adfs reproduce`: the paper's figures, table and theorem, measured again."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adfs.cli import files, options, output, plain_progress
from adfs.cli.arguments import Command, Option
from adfs.cli.main import SIGNALS
from adfs.study.paper.catalogue import ALL, CATALOGUE, names_of

if TYPE_CHECKING:
    from adfs.study.paper.paper_report import Report

EXAMPLES = """\
examples:
  adfs reproduce theorem-2
  adfs reproduce figure-3b --out results
  adfs reproduce all --quick
  adfs reproduce theorem-2 --quick --json

Each name prints its setting, what the paper claims, what was measured, and whether the claim holds:
yes, no or partly, decided from the numbers. Figures need the real data (ADFS_DATA, see
`adfs datasets`); with --quick, data are generated where a set is not on disk. Ctrl-C keeps what is
finished. Exit codes: 0 done, whether or not the claims hold, 2 bad input, 1 the program or its
environment failed, 130 and 143 interrupted."""


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
        return output.complain(_how_to_continue(args, names[: len(records)]), 128 + number)
    return status


def _check(args: argparse.Namespace, names: list[str]) -> None:
    """Everything that can be refused before any work."""
    from adfs.study.paper.samples import require

    for name in names:
        if not args.quick:
            require(name, CATALOGUE[name].data)
    if args.out is not None:
        for name in names:
            files.make_folder(args.out, Path(args.out) / name, "report.txt")


def _reproduce(args: argparse.Namespace, name: str) -> tuple["Report", int | None]:
    """The report, and the signal that ended it early, if any."""
    from adfs.engine.interrupts import Interrupts
    from adfs.study.paper.study_context import StudyContext

    progress: dict[str, Any] = {}
    if plain_progress.are_lines_wanted(args):
        lines, run_lines = plain_progress.ShareLines(name), plain_progress.ProgressLines()
        progress = {"progress": lines, "callback": run_lines}
    folder = None if args.out is None else Path(args.out) / name
    function = CATALOGUE[name].load()
    with Interrupts(SIGNALS) as interrupts:
        args.leaving.repeat()
        report = function(
            StudyContext(
                args.quick, args.jobs, folder, interrupts, quiet=args.quiet, name=name, **progress
            )
        )
    return report, interrupts.received


def _save(args: argparse.Namespace, report: "Report") -> int:
    """Write the report if it was asked for; the exit code."""
    if args.out is None:
        return 0
    folder = Path(args.out) / report.name
    try:
        with files.writing(str(folder)):
            report.save(folder)
    except output.OutputError as error:
        return output.complain(error, 1)
    if not (args.json or args.quiet):
        missing = "" if files.have_matplotlib() else f" (no picture: {files.MISSING})"
        output.emit(f"written to {folder}{missing}\n\n")
    return 0


def _how_to_continue(args: argparse.Namespace, begun: list[str]) -> str:
    if args.out is None:
        way = "give --out DIR to keep what is finished"
    else:
        way = f"what is finished is in {args.out}"
    return f"interrupted in {begun[-1]}; {way}."


WIDTH = max(map(len, CATALOGUE))
LISTED = "\n".join(f"  {name:<{WIDTH}}  {entry.about}" for name, entry in CATALOGUE.items())

COMMAND = Command(
    "reproduce",
    "measure the paper's results again",
    "Measure a result of the paper again, print it beside what the paper claims, and say whether "
    f"the claim holds.\n\nnames:\n{LISTED}\n  {ALL:<{WIDTH}}  all of them",
    EXAMPLES,
    (Option("NAME  one of the names above", options.text_like((*CATALOGUE, ALL))),),
    options.REPRODUCE,
)

"""`adfs reproduce`: the paper's figures, table and theorem, measured again."""

import argparse
from pathlib import Path
from typing import Any

from adfs.cli import files, output
from adfs.cli.main import SIGNALS
from adfs.engine.interrupts import Interrupts
from adfs.engine.progress import ShareLines, is_drawn
from adfs.errors import DataError, ParameterError
from adfs.study.paper import ALL, CATALOGUE, is_on_disk
from adfs.study.paper.study_context import Report, StudyContext


def run(args: argparse.Namespace) -> int:
    """Check, then reproduce name after name, printing and writing each as it is finished."""
    names = list(CATALOGUE) if args.name == ALL else [args.name]
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
    if number is None:
        return status
    kept = f"what is finished is in {args.out}"
    way = "give --out DIR to keep what is finished" if args.out is None else kept
    return output.complain(f"interrupted in {name}; {way}.", 128 + number)


def _check(args: argparse.Namespace, names: list[str]) -> None:
    if unknown := [name for name in names if name not in CATALOGUE]:
        raise ParameterError(
            f"{unknown[0]!r} is nothing that can be reproduced; choose {ALL} or one of "
            f"{', '.join(CATALOGUE)}."
        )
    for name in names:
        needed = CATALOGUE[name].data
        if needed and not (args.quick or is_on_disk(needed)):
            raise DataError(
                f"{name} needs the data set {needed}, which is not on disk; put its file into the "
                "folder named by ADFS_DATA, or give --quick for a small version on generated data."
            )
    folders = [] if args.out is None else [Path(args.out) / name for name in names]
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"--out {args.out} must be a folder that can be made and written, but: "
                f"{error.strerror}; choose another."
            ) from None
        files.check_writable("--out", str(folder / "report.txt"))


def _reproduce(args: argparse.Namespace, name: str) -> tuple[Report, int | None]:
    """The report, and the signal that ended it early, if any."""
    progress: dict[str, Any] = {}
    if not args.quiet and not is_drawn(None):
        progress = {"progress": ShareLines(name), "lines": True}
    folder = None if args.out is None else Path(args.out) / name
    study = CATALOGUE[name].load()
    with Interrupts(SIGNALS) as interrupts:
        args.leaving.repeat()
        context = StudyContext(
            name, args.quick, args.jobs, folder, interrupts, quiet=args.quiet, **progress
        )
        return study(context), interrupts.received


def _save(args: argparse.Namespace, report: Report) -> int:
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

"""How `adfs train` ends, on one process or many: files, the record in words or JSON, the code."""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from adfs.cli import output, terminal

if TYPE_CHECKING:
    from adfs.problems.finite_sum import Problem
    from adfs.runtime.execution import Execution
    from adfs.runtime.model import Model
    from adfs.runtime.solve import Result

NOT_CONVERGED, FAILED = 3, 1

WAYS_OUT = {
    "max_iter": "give a larger --max-iter, or a larger --tol",
    "time_limit": "give a larger --time-limit, or a larger --tol",
    "interrupted": "what exists was kept",
    "diverged": "scale the features, or raise --sigma",
}


def finish(
    args: argparse.Namespace, problem: "Problem", result: "Result", model: "Model",
    record: dict[str, Any], ranks: "Sequence[Execution]" = (),
) -> int:  # fmt: skip
    """Write and print; the exit code."""
    from adfs.cli import report

    failures = _write(args, problem, result, model, record, ranks)
    if ranks:
        record["ranks"] = report.ranks_record(ranks)
    if args.json:
        output.emit_json(record)
    elif not args.quiet:
        output.emit(_painted(report.summary(args, record), result.status))
    for failure in failures:
        output.complain(failure, FAILED)
    return FAILED if failures else exit_code(args, result)


def _painted(text: str, status: str) -> str:
    """The summary with its first word, the status, in the colour of good or bad news."""
    style = "good" if status == "converged" else "warning"
    return terminal.paint(status, style, sys.stdout) + text.removeprefix(status)


def _write(
    args: argparse.Namespace, problem: "Problem", result: "Result", model: "Model",
    record: dict[str, Any], ranks: "Sequence[Execution]",
) -> list[Exception]:  # fmt: skip
    """All files asked for; one that fails does not keep the others from being written."""
    from adfs.cli.html_report import save_training
    from adfs.cli.rank_timeline import save_ranks, timeline_kind

    def save_timeline(path: str) -> None:
        # The kind is that of the name given, whatever a symbolic link points to.
        save_ranks(ranks, path, timeline_kind("--timeline", args.timeline))

    def save_report(path: str) -> None:
        save_training(args, problem, result, record, ranks, path)

    writers = (
        (args.out, model.save), (args.trace, result.trace.to_csv), (args.timeline, save_timeline),
        (args.report, save_report),
    )  # fmt: skip
    failures: list[Exception] = []
    for path, save in writers:
        try:
            if path is not None:
                with output.writing(path) as place:
                    save(place)
        except output.OutputError as error:
            failures.append(error)
    return failures


def exit_code(args: argparse.Namespace, result: "Result", speak: bool = True) -> int:
    """The exit code, after a line that says why the run stopped early, if it did."""
    if result.status == "converged":
        return 0
    message = (
        f"{result.status} at relative gap {result.relative_gap:.2g}, before tol={args.tol:g}; "
        f"{WAYS_OUT[result.status]}."
    )
    code = NOT_CONVERGED
    if result.status == "interrupted" and result.signal is not None:
        code = 128 + result.signal
    return output.complain(message, code) if speak else code

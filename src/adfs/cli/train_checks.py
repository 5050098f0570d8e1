"""What `adfs train` can refuse before a sample is read."""

import argparse

from adfs.cli import html_report, output
from adfs.errors import ParameterError

FILES = ("FILE", "DIR", "MODEL")  # what help calls the value of an option that names a file


def check(args: argparse.Namespace) -> None:
    """Everything that can be refused before a sample is read."""
    from adfs.algorithms import registered  # noqa: F401  (fills the registry)
    from adfs.algorithms.base import get_algorithm, require_schedule
    from adfs.cli.rank_timeline import timeline_kind
    from adfs.runtime.stopping import Stopping
    from adfs.schedule.delays import Delays

    if args.algorithm != "auto":
        get_algorithm(args.algorithm)
        require_schedule(args.algorithm, args.schedule)
    Stopping(args.tol, args.max_iter, args.time_limit)
    Delays(tau=args.tau)
    _check_engine(args)
    if args.timeline is not None:
        timeline_kind("--timeline", args.timeline)
    html_report.check_name(args.report)


def check_outputs(args: argparse.Namespace) -> None:
    """Refuse places where nothing can be written; only who writes has to look."""
    from adfs.cli.data import input_files
    from adfs.cli.settings import require_text

    if args.save_config is not None:
        require_text(args, args.save_config)
    outputs = {
        "--out": args.out, "--trace": args.trace, "--report": args.report,
        "--timeline": args.timeline, "--save-config": args.save_config,
    }  # fmt: skip
    for flag, path in outputs.items():
        output.check_writable(flag, path)
    output.check_distinct(outputs, input_files(args.data, args.test))


def shared_by_ranks(args: argparse.Namespace) -> dict[str, str]:
    """Every option as it is typed, in words that have to be the same on all ranks.

    Files may have other paths on other hosts, so of them only the presence counts.
    """
    from adfs.agreement import words

    found = {"DATA": _kind_of_data(args.data)}
    for action in args.parser._actions:
        is_shown = action.option_strings and action.help != argparse.SUPPRESS
        if not is_shown or action.dest == "help":
            continue
        value = getattr(args, action.dest)
        if value is None or value is False:
            shown = "not given"
        else:
            shown = "given" if value is True or action.metavar in FILES else words(value)
        found[action.option_strings[-1]] = shown
    return found


def _kind_of_data(name: str) -> str:
    from adfs.problems.datasets import DATASETS
    from adfs.problems.files import NODE

    if NODE in name:
        return f"a pattern with {NODE}"
    return f"the data set {name}" if name in DATASETS else "a file"


def _check_engine(args: argparse.Namespace) -> None:
    """Refuse options that need an engine or a folder which was not asked for."""
    from adfs.launch.launcher import size_by_environment

    if args.engine == "local" and (size_by_environment() or 1) > 1:
        error = ParameterError(
            f"{size_by_environment()} processes were started, each of which would do the whole "
            "work; add --engine mpi, or start one."
        )
        error.before_ranks = True  # type: ignore[attr-defined]
        raise error
    if args.timeline is not None and args.engine != "mpi":
        raise ParameterError(
            "--timeline shows what ranks did, so it needs --engine mpi; for idealized time use "
            "`adfs schedule timeline`."
        )
    if args.checkpoint is None and (args.resume or args.checkpoint_every is not None):
        flag = "--resume" if args.resume else "--checkpoint-every"
        raise ParameterError(f"{flag} needs the folder of the checkpoints; add --checkpoint DIR.")
    if not 0 < args.timeout < float("inf"):
        raise ParameterError(f"--timeout {args.timeout:g} must be a finite number of seconds > 0.")

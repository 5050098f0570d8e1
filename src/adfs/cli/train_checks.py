"""What `adfs train` can refuse before a sample is read."""

import argparse

from adfs.cli import html_report, output, ranks
from adfs.errors import ParameterError


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


def _check_engine(args: argparse.Namespace) -> None:
    """Refuse options that need an engine or a folder which was not asked for."""
    ranks.check_engine(args)
    if args.timeline is not None and args.engine != "mpi":
        raise ParameterError(
            "--timeline shows what ranks did, so it needs --engine mpi; for idealized time use "
            "`adfs schedule timeline`."
        )
    if args.checkpoint is None and (args.resume or args.checkpoint_every is not None):
        flag = "--resume" if args.resume else "--checkpoint-every"
        raise ParameterError(f"{flag} needs the folder of the checkpoints; add --checkpoint DIR.")

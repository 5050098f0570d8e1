"""All commands: find the one that is meant, run it, and report errors in one line.

Exit codes: 0 converged or done; 2 bad input or usage; 3 stopped before ``tol``; 1 the program or
its environment failed; 130 and 143 interrupted by SIGINT and SIGTERM.
"""

import argparse
import contextlib
import re
import sys
from collections.abc import Iterator, Sequence

from adfs.cli import (
    compare,
    completion,
    datasets,
    files,
    info,
    output,
    predict,
    reproduce,
    schedule,
    settings,
    train,
)
from adfs.cli.arguments import Command
from adfs.cli.early_signals import Leaving
from adfs.cli.on_ranks import acts_for_the_job
from adfs.cli.parser import Parser
from adfs.errors import AdfsError, BeforeRanks, is_printed_elsewhere
from adfs.kernels import compile_notice

FAILED, BAD_INPUT = 1, 2

EXAMPLES = """\
examples:
  adfs train breast-cancer --nodes 9 --sigma 0.1 --tol 1e-8 --out model.npz
  adfs predict model.npz breast-cancer > labels.txt
  adfs compare breast-cancer --nodes 9 --sigma 0.1 --algorithms adfs,msda

`adfs COMMAND --help` explains a command. Exit codes: 0 converged or done, 2 bad input, 3 stopped
before tol, 1 the program or its environment failed, 130 and 143 interrupted."""

ADFS = Command(
    "adfs",
    "",
    "Train regularised linear models over a network of nodes, to a duality gap you can trust.",
    EXAMPLES,
    verbs=(
        train.COMMAND,
        predict.COMMAND,
        compare.COMMAND,
        reproduce.COMMAND,
        schedule.COMMAND,
        datasets.COMMAND,
        info.COMMAND,
        completion.COMMAND,
    ),
)


def run(argv: Sequence[str] | None, leaving: Leaving) -> int:
    """Find the command, run it, and report an error in one line; the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    args = None
    try:
        args = parse(arguments)
        check(args)
        args.leaving = leaving
        quiet = getattr(args, "quiet", False)
        if quiet:
            compile_notice.enabled = False
        with output.warnings_as_notes(quiet):
            return settings.run_and_save(args)
    except SystemExit as stop:
        return int(stop.code or 0)
    except AdfsError as error:
        return _report(error, as_flags(str(error), args), BAD_INPUT)
    except output.OutputError as error:
        return output.complain(error, FAILED)
    except MemoryError as error:
        return _report(error, "this needs more memory than there is; use less data.", FAILED)
    except OSError as error:
        why = f"{error.filename or 'a file'} cannot be used: {error.strerror}; check the path."
        return _report(error, why, BAD_INPUT)


def _report(error: Exception, message: object, code: int) -> int:
    """One line on stderr, unless another rank of the job prints it; the exit code."""
    if is_printed_elsewhere(error):
        return code
    before_ranks = isinstance(error.__cause__, BeforeRanks)
    return (output.refuse if before_ranks else output.complain)(message, code)


@contextlib.contextmanager
def _before_ranks() -> Iterator[None]:
    """Errors raised here are raised before a rank has begun."""
    try:
        yield
    except (AdfsError, OSError) as error:
        raise error from BeforeRanks()


def parse(arguments: list[str]) -> argparse.Namespace:
    """The arguments of the command that the first words name."""
    command, prog, words = find(arguments)
    if command.verbs:
        parser = Parser(command, prog)
        if not arguments:
            parser.print_help()
        parser.parse_args(words)
        parser.error("the name of the command must come first")
    with _before_ranks():
        expanded, config = settings.expand(command, prog, words)
    args, unknown = Parser(command, prog).parse_words(expanded)
    if unknown:
        Parser(command, prog).error(f"unrecognized arguments: {' '.join(unknown)}")
    if getattr(args, "sigma", None) is not None:
        args.C = None  # --sigma replaces --C, and its default too
    args.command_line = arguments[: len(arguments) - len(words)] + expanded
    args.config = config
    return args


def find(words: list[str]) -> tuple[Command, str, list[str]]:
    """The command that the first words name, its full name, and the words after it."""
    command, prog = ADFS, "adfs"
    while words and words[0] in {verb.name for verb in command.verbs}:
        command = next(verb for verb in command.verbs if verb.name == words[0])
        prog, words = f"{prog} {words[0]}", words[1:]
    return command, prog, words


def check(args: argparse.Namespace) -> None:
    """Refuse paths that the command cannot or must not write to, before any work is done."""
    with _before_ranks():
        if acts_for_the_job():
            files.check_paths(args)
            settings.require_text(args)


# Arguments of Python functions whose flags have other names.
OTHER_NAMES = {
    "how": "--partition", "n_nodes": "--nodes", "n_events": "--events", "law": "--delay-law",
    "shape": "--delay-shape", "algorithm": "--algorithms", "parameters": "--algorithms",
}  # fmt: skip


def as_flags(message: str, args: argparse.Namespace | None) -> str:
    """The message with flags for arguments: ``--max-iter 3`` where Python has ``max_iter=3``.

    Messages write an argument as ``name=value``, or ``name=`` without a value. What the user has
    typed (a file may be called ``tol=1``) stays as it is.
    """
    if args is None:
        return message
    own = {each.dest: each.flag for each in args.command.options if each.flag}
    others = {name: flag for name, flag in OTHER_NAMES.items() if flag in own.values()}
    flags = {**others, **own}
    typed = [each for each in vars(args).values() if isinstance(each, str) and "=" in each]
    kept = "|".join(map(re.escape, typed)) or "(?!)"
    pattern = (
        rf"(?:{kept})|(?<![\w.'\"/=-])(?P<name>{'|'.join(flags)})="
        r"(?:'(?P<word>[\w.:+-]+)'|(?P<bare>(?=[\s,;.)]|$)))?"
    )

    def replace(found: re.Match[str]) -> str:
        if found["name"] is None:
            return found[0]
        flag = flags[found["name"]]
        return flag if found["bare"] is not None else f"{flag} {found['word'] or ''}"

    return re.sub(pattern, replace, message)

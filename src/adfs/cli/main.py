"""`adfs`: finds the command, runs it, and turns what goes wrong into one line and an exit code.

Exit codes: 0 converged or done; 2 bad input or usage; 3 stopped before ``tol``; 1 the program or
its surroundings failed; 130 and 143 interrupted by SIGINT and SIGTERM.
"""

import argparse
import sys
from collections.abc import Sequence

import adfs
from adfs.cli import (
    compare,
    completion,
    datasets,
    demo,
    info,
    output,
    predict,
    reproduce,
    schedule,
    settings,
    train,
)
from adfs.cli.parser import Parser, leaf_of
from adfs.cli.signals import Interrupted, Leaving
from adfs.errors import AdfsError, BeforeRanks, is_printed_elsewhere
from adfs.kernels import compile_notice

COMMANDS = (train, predict, compare, reproduce, schedule, datasets, info, completion, demo)
FAILED, BAD_INPUT = 1, 2

EXAMPLES = """\
examples:
  adfs train breast-cancer --nodes 9 --sigma 0.1 --tol 1e-8 --out model.npz
  adfs predict model.npz breast-cancer > labels.txt
  adfs compare breast-cancer --nodes 9 --sigma 0.1 --algorithms adfs,msda

`adfs COMMAND --help` explains a command. Exit codes: 0 converged or done, 2 bad input, 3 stopped
before tol, 1 the program or its surroundings failed, 130 and 143 interrupted."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        with Leaving() as leaving:
            args = _parse(arguments)
            args.leaving = leaving
            if getattr(args, "quiet", False):
                compile_notice.enabled = False
            return settings.run_and_save(args)
    except SystemExit as stop:
        return int(stop.code or 0)
    except AdfsError as error:
        return _complain(error, error, BAD_INPUT)
    except output.OutputError as error:
        return output.complain(error, FAILED)
    except MemoryError as error:
        return _complain(error, "this needs more memory than there is; use less data.", FAILED)
    except OSError as error:
        why = f"{error.filename or 'a file'} cannot be used: {error.strerror}; check the path."
        return _complain(error, why, BAD_INPUT)
    except Interrupted as stop:
        return output.complain(stop, 128 + stop.number)


def _complain(error: Exception, message: object, code: int) -> int:
    """One line on stderr, unless another rank of the job says it; the exit code."""
    if is_printed_elsewhere(error):
        return code
    before_ranks = isinstance(error.__cause__, BeforeRanks)
    return (output.refuse if before_ranks else output.complain)(message, code)


def _parse(arguments: list[str]) -> argparse.Namespace:
    """Arguments of the command they name; leftovers are refused by that command's own parser."""
    if not arguments:
        build().print_help()
    leaf, words = leaf_of(build(), arguments)
    try:
        command_line = arguments[: len(arguments) - len(words)] + settings.expand(leaf, words)
    except (AdfsError, OSError) as error:
        raise error from BeforeRanks()
    args, unknown = build().parse_known_args(command_line)
    if unknown:
        args.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    args.command_line = command_line
    return args


def build() -> Parser:
    """The parser of all commands."""
    parser = Parser(
        prog="adfs",
        description="Train regularised linear models over a network of nodes, to a duality gap "
        "you can trust.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--version", action="version", version=f"adfs {adfs.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", dest="command", required=True)
    for module in COMMANDS:
        module.add_parser(commands)
    return parser

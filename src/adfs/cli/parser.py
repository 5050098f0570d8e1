"""A parser whose complaints are one line with the way out, and whose help has examples."""

import argparse
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from adfs.cli import output, terminal

WIDEST = 100
CHOICE = re.compile(r"invalid choice: '(?P<word>[^']*)'")


class Parser(argparse.ArgumentParser):
    """Refuses in one line that ends with the way out; flags are never abbreviated."""

    def __init__(self, **keywords: Any) -> None:
        keywords.setdefault("formatter_class", Formatter)
        keywords.setdefault("allow_abbrev", False)
        super().__init__(**keywords)
        # argparse takes -1e-3 and -inf for flags, and then misses the number it was given.
        self._negative_number_matcher = re.compile(r"^-(\d|\.\d|inf$|nan$)")

    def error(self, message: str) -> NoReturn:
        """One line on stderr, exit code 2; a name that nearly exists is named."""
        near = self._near(message)
        hint = f" (nearest: {near})" if near else ""
        line = " ".join(f"{message}; see `{self.prog} --help`{hint}.".split())
        self.exit(2, line)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Leave, after one line on stderr if there is a message."""
        if message:
            output.refuse(message, status)
        sys.exit(status)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Help and version, on stdout: a reader that leaves early is no failure."""
        if message and not _spoken_by_another():
            output.emit(message)

    def _near(self, message: str) -> str | None:
        """The choice or flag that is nearest to the one which was refused."""
        found = CHOICE.search(message)
        if found:
            return nearest(found["word"], self._choices(message))
        words = message.removeprefix("unrecognized arguments: ").split()
        if len(words) == len(message.split()) or not words[0].startswith("-"):
            return None
        return nearest(words[0].split("=")[0], self.flags())

    def _choices(self, message: str) -> list[str]:
        """Choices of the argument that the message is about."""
        for action in self._actions:
            name = "/".join(action.option_strings) or str(action.metavar)
            if action.choices and message.startswith(f"argument {name}:"):
                return [str(choice) for choice in action.choices]
        return []

    def flags(self) -> list[str]:
        """Every flag that help shows."""
        shown = (each for each in self._actions if each.help != argparse.SUPPRESS)
        return [flag for action in shown for flag in action.option_strings]


def _spoken_by_another() -> bool:
    """Where mpiexec started several of us, one is enough to say it."""
    from adfs.launch.launcher import rank_by_environment

    return bool(rank_by_environment())


def nearest(word: str, names: Iterable[str]) -> str | None:
    """The name that a mistyped or shortened word most likely stands for, if there is one."""
    from difflib import get_close_matches

    known = list(names)
    same = [name for name in known if name.casefold() == word.casefold()]
    longer = [name for name in known if name.startswith(word) and _is_telling(word)]
    shorter = [name for name in known if word.startswith(name) and _is_telling(name)]
    close = get_close_matches(word, known, n=1, cutoff=0.6)
    by_length = [*sorted(longer, key=len), *sorted(shorter, key=len, reverse=True)]
    return next(iter([*same, *by_length, *close]), None)


def _is_telling(start: str) -> bool:
    """Whether enough of a word is there to know it by."""
    return len(start.strip("-")) >= 3


class Formatter(argparse.HelpFormatter):
    """A short usage; paragraphs are filled, blocks with indented lines stay as they are."""

    def __init__(self, prog: str, **keywords: Any) -> None:
        keywords.setdefault("width", min(WIDEST, terminal.width()) - 2)
        super().__init__(prog, **keywords)

    def start_section(self, heading: str | None) -> None:
        """The headings of groups stand out."""
        super().start_section(heading and terminal.paint(heading, "bold", sys.stdout))

    def _format_usage(self, usage: Any, actions: Any, groups: Any, prefix: Any) -> str:
        """Options have their own sections: here they are one word.

        An empty ``prefix`` asks for the name of a parser whose verbs are declared.
        """
        given = [action for action in actions if not action.option_strings]
        words = [self._format_args(action, str(action.metavar)) for action in given]
        start = [self._prog] if prefix == "" else [f"usage: {self._prog}", "[OPTION ...]"]
        return " ".join([*start, *words]) + "\n\n"

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        blocks = text.split("\n\n")
        return "\n\n".join(self._fill(block, width, indent) for block in blocks) + "\n"

    def _fill(self, block: str, width: int, indent: str) -> str:
        if any(line.startswith(" ") for line in block.splitlines()):
            return block
        return textwrap.fill(" ".join(block.split()), width, break_on_hyphens=False)


def add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], **keywords: Any
) -> Parser:
    """Parser of one command that ends in ``run``."""
    parser: Parser = commands.add_parser(name, **keywords)
    parser.set_defaults(run=run, parser=parser)
    return parser


def verbs_of(parser: argparse.ArgumentParser) -> dict[str, Parser]:
    """The commands of a parser by their names; none for one that ends in an action."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def leaf_of(parser: Parser, words: list[str]) -> tuple[Parser, list[str]]:
    """The command that the words name, as far as they do, and the words behind its name."""
    verbs = verbs_of(parser)
    if words and words[0] in verbs:
        return leaf_of(verbs[words[0]], words[1:])
    return parser, words


def leaves(parser: Parser) -> Iterator[Parser]:
    """Every command of the tree that does something itself."""
    verbs = verbs_of(parser)
    if not verbs:
        yield parser
    for verb in verbs.values():
        yield from leaves(verb)

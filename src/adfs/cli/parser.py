"""The parser of a `Command`: errors are one line with the way out, help ends with examples."""

import argparse
import re
import sys
import textwrap
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import adfs
from adfs.cli import output
from adfs.cli.arguments import Command, Option

WIDEST = 100
LONGEST = 200  # letters of a message without its hint
CHOICE = re.compile(r"argument (?P<name>\S+): invalid choice: '(?P<word>[^']*)'")
NEGATIVE_NUMBER = re.compile(r"-(\d|\.\d|inf$|nan$)")

Hook = Callable[[Option, argparse.Action], None]


class Parser(argparse.ArgumentParser):
    """Parser of one command and of its verbs; flags are never abbreviated.

    With ``typed_only`` nothing is required and nothing has a default, so that the result holds
    what was typed. ``hook`` is called for every option and its action.
    """

    def __init__(
        self, command: Command, prog: str, typed_only: bool = False, hook: Hook | None = None
    ) -> None:
        self.command, self._typed_only, self._hook = command, typed_only, hook
        width = min(WIDEST, output.width()) - 2
        super().__init__(
            prog=prog,
            usage=" ".join([prog, "[OPTION ...]", *_positions(command)]),
            description=_filled(command.description, width),
            epilog=_filled(command.epilog, width),
            formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=width),
            allow_abbrev=False,
            add_help=False,
        )
        self._add_arguments()
        self.set_defaults(**({} if typed_only else {"command": command, "prog": prog}))

    def _add_arguments(self) -> None:
        command = self.command
        if command.verbs:
            self._add_verbs()
        if command.positions:
            self._add_group("positional arguments", command.positions)
        general = self.add_argument_group(_heading("options"))
        general.add_argument("-h", "--help", action="help", help="show this help and exit")
        if self.prog == "adfs":
            general.add_argument(
                "--version", action=ShowVersion, nargs=0, help="show the version and exit"
            )
        for title, options in command.groups.items():
            self._add_group(title, options, None if title else general)

    def _add_verbs(self) -> None:
        kind = "COMMAND" if self.prog == "adfs" else "VERB"
        verbs: Any = self.add_subparsers(
            title=_heading(f"{kind.lower()}s"), metavar=kind, dest="verb", required=True,
            prog=self.prog, parser_class=Parser,
        )  # fmt: skip
        for verb in self.command.verbs:
            shown = {"help": verb.summary} if verb.summary else {}
            verbs.add_parser(
                verb.name, command=verb, prog=f"{self.prog} {verb.name}", hook=self._hook, **shown
            )

    def _add_group(self, title: str, options: Iterable[Option], group: Any = None) -> None:
        group = group or self.add_argument_group(_heading(title))
        rivals: dict[str, Any] = {}
        for option in options:
            place = group
            if option.rivals:
                place = rivals.setdefault(option.rivals, group.add_mutually_exclusive_group())
            action = place.add_argument(*_names(option), **self._keywords(option))
            if self._hook is not None:
                self._hook(option, action)
            if option.is_switch and self.command.has_settings:
                hidden = {"help": argparse.SUPPRESS, "default": argparse.SUPPRESS}
                undo = option.flag.replace("--", "--no-", 1)
                group.add_argument(undo, dest=option.dest, action="store_false", **hidden)

    def _keywords(self, option: Option) -> dict[str, Any]:
        """What argparse is told about an option."""
        keywords: dict[str, Any] = {"help": option.full_help.replace("%", "%%")}
        if option.is_switch:
            keywords["action"] = "store_true"
        else:
            keywords |= {"metavar": option.metavar, "type": option.kind}
            keywords |= {"choices": option.choices} if option.choices else {}
            keywords |= {} if option.default is None else {"default": option.default}
        if not option.flag and (self._typed_only or not option.required):
            keywords["nargs"] = "?"
        if self._typed_only:
            keywords["default"] = argparse.SUPPRESS
        return keywords

    def parse_words(self, words: list[str]) -> tuple[argparse.Namespace, list[str]]:
        """Parse, with negative numbers (-1e-3, -inf) as values: argparse takes them for flags."""
        takes_value = {each.flag for each in self.command.options if each.metavar}
        joined: list[str] = []
        for word in words:
            flag = word.removesuffix("=--")
            if flag != word and flag in takes_value:  # argparse drops the two dashes
                self.error(f"argument {flag}: expected one argument")
            if joined and joined[-1] in takes_value and NEGATIVE_NUMBER.match(word):
                joined[-1] += f"={word}"
            else:
                joined.append(word)
        return self.parse_known_args(joined)

    def error(self, message: str) -> NoReturn:
        """One line on stderr, exit code 2; the nearest known name is suggested."""
        near = self._near(message)
        hint = f" (nearest: {near})" if near else ""
        self.exit(2, " ".join(f"{_cut(message)}; see `{self.prog} --help`{hint}.".split()))

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Leave, after one line on stderr if there is a message."""
        if message:
            output.refuse(message, status)
        sys.exit(status)

    def print_help(self, file: Any = None) -> None:
        """Print the help on stdout; a reader that leaves early is not a failure."""
        print_once(self.format_help())

    def _near(self, message: str) -> str | None:
        """The choice or flag that is nearest to the one which was refused."""
        found = CHOICE.search(message)
        if found:
            choices = {each.flag or each.metavar: each.choices for each in self.command.options}
            verbs = tuple(each.name for each in self.command.verbs)
            return nearest(found["word"], choices.get(found["name"], verbs))
        words = message.removeprefix("unrecognized arguments: ").split()
        if len(words) == len(message.split()) or not words or not words[0].startswith("-"):
            return None
        return nearest(words[0].split("=")[0], self.command.flags)


class ShowVersion(argparse.Action):
    """``--version``."""

    def __call__(self, parser: argparse.ArgumentParser, *values: Any, **keywords: Any) -> None:
        """Print the version and leave."""
        print_once(f"adfs {adfs.__version__}\n")
        parser.exit()


def print_once(text: str) -> None:
    """Print on stdout; where mpiexec started several processes, only the first one prints."""
    from adfs.mpi.launcher import rank_by_environment

    if not rank_by_environment():
        output.emit(text)


def nearest(word: str, names: Iterable[str]) -> str | None:
    """The name that a mistyped or shortened word most likely stands for, if there is one."""
    from difflib import get_close_matches

    known = list(names)
    same = [name for name in known if name.casefold() == word.casefold()]
    longer = [name for name in known if name.startswith(word) and _is_long_enough(word)]
    shorter = [name for name in known if word.startswith(name) and _is_long_enough(name)]
    close = get_close_matches(word, known, n=1, cutoff=0.6)
    by_length = [*sorted(longer, key=len), *sorted(shorter, key=len, reverse=True)]
    return next(iter([*same, *by_length, *close]), None)


def _is_long_enough(start: str) -> bool:
    return len(start.strip("-")) >= 3


def _positions(command: Command) -> list[str]:
    """Positional arguments as the usage shows them."""
    if command.verbs:
        return ["COMMAND ..." if command.name == "adfs" else "VERB ..."]
    return [each.metavar if each.required else f"[{each.metavar}]" for each in command.positions]


def _names(option: Option) -> list[str]:
    return [option.flag or option.dest]


def _heading(title: str) -> str:
    return output.paint(title, "bold", sys.stdout)


def _cut(message: str) -> str:
    """The message with its middle left out where an argument is very long."""
    return message if len(message) <= LONGEST else f"{message[:140]} ... {message[-55:]}"


def _filled(text: str, width: int) -> str:
    """Paragraphs filled to the width; blocks with indented lines stay as they are."""
    return "\n\n".join(_filled_block(block, width) for block in text.split("\n\n"))


def _filled_block(block: str, width: int) -> str:
    if any(line.startswith(" ") for line in block.splitlines()):
        return block
    return textwrap.fill(" ".join(block.split()), width, break_on_hyphens=False)

"""Commands and their arguments as data, and the parser that argparse makes of them.

The parser, ``--help``, settings files, shell completion and the checks of paths all read the same
`Command` and `Option` objects (the options are in `adfs.cli.options`).
"""

import argparse
import re
import sys
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import adfs
from adfs.checks import nearest
from adfs.cli import output
from adfs.errors import ParameterError
from adfs.mpi.launcher import rank_by_environment

WIDEST = 100
CHOICE = re.compile(r"argument (?P<name>\S+): invalid choice: '(?P<word>[^']*)'")
UNKNOWN_FLAG = re.compile(r"unrecognized arguments: (?P<word>-[^\s=]*)")
NEGATIVE_NUMBER = re.compile(r"-(\d|\.\d|inf$|nan$)")


@dataclass(frozen=True)
class Kind:
    """A type of value: how its text is read, and what a settings file may hold instead.

    ``suggestions`` are names that a shell completes although other values are allowed too.
    """

    wanted: str = "a text in quotes"
    read: Callable[[str], Any] = str
    types: tuple[type, ...] = (str,)
    is_list: bool = False
    role: str = ""  # of a path: what a command does there
    choices: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()
    default: Any = None

    def __call__(self, text: str) -> Any:
        """The value that a text stands for; ``argparse`` calls this."""
        try:
            return self.read(text)
        except ParameterError as error:
            raise argparse.ArgumentTypeError(str(error).removesuffix(".")) from None
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} must be {self.wanted}") from None


@dataclass(frozen=True)
class Option:
    """One argument: ``--tau T``, a switch such as ``--json``, or a position such as ``DATA``.

    A position has no ``flag``, a switch no ``metavar``. Options with the same ``rivals`` exclude
    each other.
    """

    flag: str
    metavar: str
    help: str
    kind: Kind = Kind()
    rivals: str = ""
    required: bool = True

    @property
    def is_switch(self) -> bool:
        return not self.metavar

    @property
    def key(self) -> str:
        """Its name in a settings file."""
        return self.flag.removeprefix("--") or self.metavar.lower()

    @property
    def dest(self) -> str:
        """Its name among the parsed arguments."""
        return self.key.replace("-", "_")


Groups = dict[str, list[Option]]
Hook = Callable[[Option, argparse.Action], None]


@dataclass(frozen=True)
class Command:
    """A command with its groups of options, or with verbs of its own.

    It is run by ``run`` in the file with its name, the verb of a command by ``run_`` and its name.
    """

    name: str
    summary: str
    description: str
    epilog: str
    groups: Groups = field(default_factory=dict)
    verbs: "tuple[Command, ...]" = ()

    @property
    def has_settings(self) -> bool:
        """Whether it takes ``--config``."""
        return "settings" in self.groups

    @property
    def options(self) -> list[Option]:
        """Everything that help shows, but help itself."""
        return [each for group in self.groups.values() for each in group]

    @property
    def positions(self) -> list[Option]:
        return [each for each in self.options if not each.flag]

    @property
    def flags(self) -> list[str]:
        return ["-h", "--help", *(each.flag for each in self.options if each.flag)]


class Parser(argparse.ArgumentParser):
    """Parser of one command and of its verbs; flags are never abbreviated.

    With ``typed_only`` nothing is required and nothing has a default, so that the result holds
    what was typed. ``hook`` is called for every option and its action.
    """

    def __init__(
        self, command: Command, prog: str, typed_only: bool = False, hook: Hook | None = None
    ) -> None:
        self.command, self._typed_only, self._hook = command, typed_only, hook
        self._verb = "COMMAND" if prog == "adfs" else "VERB"
        words = [f"{self._verb} ..."] if command.verbs else []
        for each in command.positions:
            words.append(each.metavar if each.required else f"[{each.metavar}]")
        width = min(WIDEST, output.width()) - 2
        super().__init__(
            prog=prog,
            usage=" ".join([prog, "[OPTION ...]", *words]),
            description=_filled(command.description, width),
            epilog=_filled(command.epilog, width),
            formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=width),
            allow_abbrev=False,
            add_help=False,
        )
        if command.verbs:
            self._add_verbs()
        positional = self.add_argument_group(_heading("positional arguments"))
        self._add_options(positional, command.positions)
        general = self.add_argument_group(_heading("options"))
        general.add_argument("-h", "--help", action="help", help="show this help and exit")
        if prog == "adfs":
            general.add_argument(
                "--version", action=ShowVersion, nargs=0, help="show the version and exit"
            )
        for title, options in command.groups.items():
            group = self.add_argument_group(_heading(title)) if title else general
            self._add_options(group, [each for each in options if each.flag])
        self.set_defaults(**({} if typed_only else {"command": command, "prog": prog}))

    def _add_verbs(self) -> None:
        verbs: Any = self.add_subparsers(
            title=_heading(f"{self._verb.lower()}s"), metavar=self._verb, dest="verb",
            required=True, prog=self.prog, parser_class=Parser,
        )  # fmt: skip
        for verb in self.command.verbs:
            prog = f"{self.prog} {verb.name}"
            verbs.add_parser(verb.name, help=verb.summary, command=verb, prog=prog, hook=self._hook)

    def _add_options(self, group: Any, options: Iterable[Option]) -> None:
        rivals: dict[str, Any] = {"": group}
        for option in options:
            if option.rivals not in rivals:
                rivals[option.rivals] = group.add_mutually_exclusive_group()
            name = option.flag or option.dest
            action = rivals[option.rivals].add_argument(name, **self._keywords(option))
            if self._hook is not None:
                self._hook(option, action)
            if option.is_switch and self.command.has_settings:
                hidden = {"help": argparse.SUPPRESS, "default": argparse.SUPPRESS}
                undo = option.flag.replace("--", "--no-", 1)
                group.add_argument(undo, dest=option.dest, action="store_false", **hidden)

    def _keywords(self, option: Option) -> dict[str, Any]:
        kind, keywords = option.kind, dict[str, Any](help=option.help.replace("%", "%%"))
        if option.is_switch:
            keywords["action"] = "store_true"
        else:
            keywords |= {"metavar": option.metavar, "type": kind, "default": kind.default}
            keywords["choices"] = kind.choices or None
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
        hint = f" (nearest: {near})" if (near := self._near(message)) else ""
        self.exit(2, f"{message}; see `{self.prog} --help`{hint}.")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        if message:
            output.refuse(message, status)
        sys.exit(status)

    def print_help(self, file: Any = None) -> None:
        print_once(self.format_help())

    def _near(self, message: str) -> str | None:
        """The choice or flag that is nearest to the one which was refused."""
        if found := CHOICE.search(message):
            options = self.command.options
            choices = {each.flag or each.metavar: each.kind.choices for each in options}
            verbs = tuple(each.name for each in self.command.verbs)
            return nearest(found["word"], choices.get(found["name"], verbs))
        if found := UNKNOWN_FLAG.match(message):
            return nearest(found["word"], self.command.flags)
        return None


class ShowVersion(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *values: Any, **keywords: Any) -> None:
        print_once(f"adfs {adfs.__version__}\n")
        parser.exit()


def print_once(text: str) -> None:
    """Print on stdout; where mpiexec started several processes, only the first one prints."""
    if not rank_by_environment():
        output.emit(text)


def _heading(title: str) -> str:
    return output.paint(title, "bold", sys.stdout)


def _filled(text: str, width: int) -> str:
    """Paragraphs filled to the width; blocks with indented lines stay as they are."""
    return "\n\n".join(
        block if "\n " in f"\n{block}" else textwrap.fill(block, width, break_on_hyphens=False)
        for block in text.split("\n\n")
    )

"""Commands and their arguments as data.

The parser, ``--help``, settings files, shell completion and the checks of paths all read the same
`Command` and `Option` objects (the options are in `adfs.cli.options`).
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import fsum
from typing import TYPE_CHECKING, Any

from adfs.errors import ParameterError

if TYPE_CHECKING:
    from adfs.schedule.delays import Delays


@dataclass(frozen=True)
class Kind:
    """A type of value: how its text is read, and what a settings file may hold instead."""

    wanted: str
    read: Callable[[str], Any]
    types: tuple[type, ...] = (str,)
    is_list: bool = False
    role: str = ""  # of a path: what a command does there

    def __call__(self, text: str) -> Any:
        """The value that a text stands for; ``argparse`` calls this."""
        try:
            return self.read(text)
        except ParameterError as error:
            raise argparse.ArgumentTypeError(str(error).removesuffix(".")) from None
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} must be {self.wanted}") from None

    def allows(self, value: Any) -> bool:
        """Whether a settings file may hold this value; True and False are not numbers."""
        every = value if self.is_list and isinstance(value, list) else [value]
        return bool(every) and all(type(each) in self.types for each in every)


TEXT = Kind("a text in quotes", str)
SWITCH = Kind("true or false", bool, (bool,))


@dataclass(frozen=True)
class Option:
    """One argument: ``"--tau T"``, a switch such as ``"--json"``, or a position such as ``"DATA"``.

    ``default`` is added to the help. Options with the same ``rivals`` exclude each other.
    ``suggestions`` are names that a shell completes although other values are allowed too.
    """

    names: str
    help: str
    kind: Kind = TEXT
    default: Any = None
    choices: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()
    rivals: str = ""
    required: bool = True

    @property
    def flag(self) -> str:
        """``--tau``; empty for a position."""
        first = self.names.split()[0]
        return first if first.startswith("--") else ""

    @property
    def metavar(self) -> str:
        """The name of the value in the help; empty for a switch."""
        return self.names.removeprefix(self.flag).strip()

    @property
    def is_switch(self) -> bool:
        """Whether it is a flag without a value."""
        return not self.metavar

    @property
    def value_kind(self) -> Kind:
        """The type of its value."""
        return SWITCH if self.is_switch else self.kind

    @property
    def key(self) -> str:
        """Its name in a settings file."""
        return self.flag.removeprefix("--") or self.metavar.lower()

    @property
    def dest(self) -> str:
        """Its name among the parsed arguments."""
        return self.key.replace("-", "_")

    @property
    def full_help(self) -> str:
        """The help with the default."""
        if self.default is None:
            return self.help
        shown = f"{self.default:g}" if isinstance(self.default, float) else str(self.default)
        return f"{self.help} (default {shown})"


Groups = dict[str, tuple[Option, ...]]


@dataclass(frozen=True)
class Command:
    """A command with its groups of options, or with verbs of its own.

    A command without ``summary`` is not listed.
    """

    name: str
    summary: str
    description: str
    epilog: str
    run: Callable[[argparse.Namespace], int] | None = None
    positions: tuple[Option, ...] = ()
    groups: Groups = field(default_factory=dict)
    verbs: "tuple[Command, ...]" = ()

    @property
    def has_settings(self) -> bool:
        """Whether it takes ``--config``."""
        return "settings" in self.groups

    @property
    def options(self) -> list[Option]:
        """Everything that help shows, but help itself."""
        return [*self.positions, *(each for group in self.groups.values() for each in group)]

    @property
    def flags(self) -> list[str]:
        """All flags that help shows."""
        return ["-h", "--help", *(each.flag for each in self.options if each.flag)]

    def leaves(self, prog: str) -> "Iterator[tuple[str, Command]]":
        """All commands without verbs, by their full names."""
        if not self.verbs:
            yield prog, self
        for verb in self.verbs:
            yield from verb.leaves(f"{prog} {verb.name}")


def read_delays(args: argparse.Namespace) -> "Delays":
    """The time model that the arguments describe, checked."""
    from adfs.schedule.delays import Delays

    return Delays(
        args.tau, args.speed, args.delay_law, args.delay_shape, args.delay_of, args.delay_seed
    )


def mean_tau(args: argparse.Namespace) -> float:
    """``--tau``, averaged over edges."""
    tau: float | list[float] = args.tau
    return fsum(tau) / len(tau) if isinstance(tau, list) else tau

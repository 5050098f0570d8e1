"""Values of a settings file as the command line writes them, each of the type its flag takes."""

import argparse
from typing import Any

from adfs.cli import toml
from adfs.cli.kinds import Whole, names, numbers
from adfs.errors import ParameterError


def is_switch(action: argparse.Action) -> bool:
    """Whether an argument is a flag without a value."""
    return isinstance(action, argparse._StoreTrueAction)


def words_of(command: str, where: str, action: argparse.Action, value: Any) -> list[str]:
    """A value as the command line writes it; refuses one of another type or out of range."""
    flag = action.option_strings[0] if action.option_strings else None
    if is_switch(action):
        _require(isinstance(value, bool), where, "true or false", value)
        return [str(flag)] if value else []
    text = _text(where, action, value)
    try:
        converted = action.type(text) if callable(action.type) else text
    except argparse.ArgumentTypeError as error:
        raise ParameterError(f"{where}: {error}; see `{command} --help`.") from None
    if action.choices is not None:
        wanted = f"one of {', '.join(map(str, action.choices))}"
        _require(converted in action.choices, where, wanted, value)
    if flag is None:
        return [f"./{text}" if text.startswith("-") else text]  # a file, not a flag
    return [f"{flag}={text}"]


def _text(where: str, action: argparse.Action, value: Any) -> str:
    """One value, or a list where the argument takes one."""
    if action.type is numbers:
        every = value if isinstance(value, list) else [value]
        fits = bool(every) and all(map(_is_number, every))
        _require(fits, where, "a number or a list of numbers", value)
        return ",".join(map(repr, every))
    if action.type is names:
        every = value if isinstance(value, list) else [value]
        fits = bool(every) and all(isinstance(each, str) for each in every)
        _require(fits, where, "a name or a list of names", value)
        return ",".join(every)
    if isinstance(action.type, Whole):
        _require(_is_number(value) and isinstance(value, int), where, "a whole number", value)
        return repr(value)
    if action.type is float:
        _require(_is_number(value), where, "a number", value)
        return repr(value)
    _require(isinstance(value, str), where, "a text in quotes", value)
    return str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _require(fits: bool, where: str, wanted: str, value: Any) -> None:
    if not fits:
        raise ParameterError(f"{where} must be {wanted}, but is {toml.shown(value)}; correct it.")

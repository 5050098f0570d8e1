"""Settings in a TOML file: the same as flags, but typed flags take precedence.

The settings of a file are inserted as flags before the typed ones. So the rules for flags hold for
them too (types, ranges, exclusions), and the command stored with a model needs no file.
"""

import argparse
import json
import sys
from typing import Any

from adfs.checks import nearest
from adfs.cli import files, output
from adfs.cli.arguments import Command, Option, Parser
from adfs.errors import DataError, ParameterError
from adfs.installed import load_file

LONGEST = 1_000_000  # letters of a file
OWN = ("--config", "--save-config")
UNFINISHED = (1, 2)  # exit codes of runs whose settings are not saved


def load(path: str) -> dict[str, Any]:
    """The keys and values of a file; an error names the file and the line."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:  # the same code, as a package
        import tomli as tomllib
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:  # Notepad's mark is allowed
            text = file.read(LONGEST + 1)
        if len(text) > LONGEST:
            raise ValueError(f"it has more than {LONGEST:,} letters")
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise DataError(f"--config {path} must be TOML, but: {why}; correct the file.") from None


def expand(command: Command, prog: str, words: list[str]) -> tuple[list[str], str | None]:
    """The words after a command's name, with the settings of ``--config`` as flags; that file."""
    places = [place for place, word in enumerate(words) if word.split("=")[0] == "--config"]
    if not places or not command.has_settings:
        return words, None
    if (n := len(places)) > 1:
        raise ParameterError(f"--config can be given once, but occurs {n} times; keep one.")
    typed = vars(Parser(command, prog, typed_only=True).parse_words(words)[0])
    path = typed.get("config")
    if path is None:
        return words, None
    found = _read(command, prog, path)
    for rivals in {each.rivals for each in found if each.rivals}:
        keys = [each.key for each in found if each.rivals == rivals]
        if len(keys) > 1:
            raise ParameterError(f"{' and '.join(keys)} in {path} exclude each other; keep one.")
    taken = [each for each in command.options if each.dest in typed]
    rivals_taken = {each.rivals for each in taken if each.rivals}
    added = [
        word
        for option, words_of_option in found.items()
        if option not in taken and option.rivals not in rivals_taken
        for word in words_of_option
    ]
    after = places[0] + 1 + (words[places[0]] == "--config")
    return [*added, *words[: places[0]], *words[after:]], path


def known(command: Command) -> dict[str, Option]:
    return {each.key: each for each in command.options if each.flag not in OWN}


def _read(command: Command, prog: str, path: str) -> dict[Option, list[str]]:
    """The settings of a file, each checked, with their words on the command line."""
    options, keys = known(command), dict[str, str]()
    found: dict[Option, list[str]] = {}
    written_values = load(path)
    if isinstance(plugin := written_values.get("plugin"), str):
        load_file(plugin)  # its names are allowed below
    for written, value in written_values.items():
        key = written.replace("_", "-")
        if key not in options:
            near = nearest(key, options)
            way = f"the nearest is {near}" if near else f"see `{prog} --help`"
            raise ParameterError(f"{written} in {path} is not a setting of `{prog}`; {way}.")
        if key in keys:
            raise ParameterError(f"{written} in {path} is also set as {keys[key]}; keep one.")
        keys[key] = written
        found[options[key]] = _words(prog, f"{written} in {path}", options[key], value)
    return found


def _words(prog: str, where: str, option: Option, value: Any) -> list[str]:
    """A value as it would be typed; refuses one of another type or out of range."""
    kind = option.kind
    every = value if kind.is_list and isinstance(value, list) else [value]
    # By type(): True and False are not numbers.
    _require(every and all(type(each) in kind.types for each in every), where, kind.wanted, value)
    if option.is_switch:
        return [option.flag] if value else []
    text = ",".join(each if isinstance(each, str) else repr(each) for each in every)
    try:
        kind(text)
    except argparse.ArgumentTypeError as error:
        raise ParameterError(f"{where}: {error}; see `{prog} --help`.") from None
    if kind.choices:
        _require(text in kind.choices, where, f"one of {', '.join(kind.choices)}", value)
    if option.flag:
        return [f"{option.flag}={text}"]
    return [f"./{text}" if text.startswith("-") else text]  # a file, not a flag


def _require(holds: object, where: str, wanted: str, value: Any) -> None:
    if not holds:
        shown = "a table" if isinstance(value, dict) else json.dumps(value, default=str)
        raise ParameterError(f"{where} must be {wanted}, but is {shown}; correct it.")


def require_text(args: argparse.Namespace) -> None:
    """Refuse words that the file of ``--save-config`` cannot hold."""
    path = getattr(args, "save_config", None)
    for name, value in vars(args).items():
        try:
            if path is not None and isinstance(value, str):
                value.encode()
        except UnicodeEncodeError:
            raise DataError(
                f"--save-config {path} must hold {name}, but TOML cannot hold a name that is not "
                "UTF-8; rename the file."
            ) from None


def save(args: argparse.Namespace, code: int) -> None:
    """Write the settings of a command that ended with this code, if ``--save-config`` is given."""
    path = getattr(args, "save_config", None)
    if path is not None and code not in UNFINISHED:
        files.write(path, in_force(args).encode())
        if not getattr(args, "quiet", False):
            output.note(f"settings written to {path}")


def in_force(args: argparse.Namespace) -> str:
    """All settings as TOML, with the defaults: later versions may have other defaults."""
    import tomli_w

    values = {key: getattr(args, option.dest) for key, option in known(args.command).items()}
    given = {key: value for key, value in values.items() if value not in (None, False)}
    return f"# settings of `{args.prog}`, for its --config\n{tomli_w.dumps(given)}"

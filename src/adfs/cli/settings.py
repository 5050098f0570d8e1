"""Settings in a TOML file: the same as flags, but typed flags take precedence.

The settings of a file are inserted as flags before the typed ones. So the rules for flags hold for
them too (types, ranges, exclusions), and the command stored with a model needs no file.
"""

import argparse
import json
import sys
from typing import Any

from adfs.cli import files, output
from adfs.cli.arguments import Command, Option
from adfs.cli.on_ranks import acts_for_the_job
from adfs.cli.parser import Parser, nearest
from adfs.errors import DataError, ParameterError

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
    given = sum(word.split("=")[0] == "--config" for word in words)
    if not given or not command.has_settings:
        return words, None
    if given > 1:
        raise ParameterError(f"--config can be given once, but occurs {given} times; keep one.")
    typed = vars(Parser(command, prog, typed_only=True).parse_words(words)[0])
    path = typed.get("config")
    if path is None:
        return words, None
    found = _read(command, prog, path)
    options = [option for option, _ in found]
    for rivals in {each.rivals for each in options if each.rivals}:
        keys = [each.key for each in options if each.rivals == rivals]
        if len(keys) > 1:
            raise ParameterError(f"{' and '.join(keys)} in {path} exclude each other; keep one.")
    taken = [each for each in command.options if each.dest in typed]
    rivals_taken = {each.rivals for each in taken if each.rivals}
    added = [
        word
        for option, words_of_option in found
        if option not in taken and option.rivals not in rivals_taken
        for word in words_of_option
    ]
    return [*added, *_without_config(words)], path


def _without_config(words: list[str]) -> list[str]:
    """The words without ``--config FILE`` or ``--config=FILE``, which is there once."""
    place = next(k for k, word in enumerate(words) if word.split("=")[0] == "--config")
    return words[:place] + words[place + 1 + (words[place] == "--config") :]


def known(command: Command) -> dict[str, Option]:
    """Options that a file may set, by their keys."""
    return {each.key: each for each in command.options if each.flag not in OWN}


def _read(command: Command, prog: str, path: str) -> list[tuple[Option, list[str]]]:
    """The settings of a file, each checked, with their words on the command line."""
    options, found, keys = known(command), [], dict[str, str]()
    for written, value in load(path).items():
        key = written.replace("_", "-")
        if key not in options:
            near = nearest(key, options)
            way = f"the nearest is {near}" if near else f"see `{prog} --help`"
            raise ParameterError(f"{written} in {path} is not a setting of `{prog}`; {way}.")
        if key in keys:
            raise ParameterError(f"{written} in {path} is also set as {keys[key]}; keep one.")
        keys[key] = written
        found.append((options[key], _words(prog, f"{written} in {path}", options[key], value)))
    return found


def _words(prog: str, where: str, option: Option, value: Any) -> list[str]:
    """A value as it would be typed; refuses one of another type or out of range."""
    wanted = option.value_kind.wanted
    _require(option.value_kind.allows(value), where, wanted, value)
    if option.is_switch:
        return [option.flag] if value else []
    every = value if isinstance(value, list) else [value]
    text = ",".join(each if isinstance(each, str) else repr(each) for each in every)
    try:
        option.kind(text)
    except argparse.ArgumentTypeError as error:
        raise ParameterError(f"{where}: {error}; see `{prog} --help`.") from None
    if option.choices:
        _require(text in option.choices, where, f"one of {', '.join(option.choices)}", value)
    if option.flag:
        return [f"{option.flag}={text}"]
    return [f"./{text}" if text.startswith("-") else text]  # a file, not a flag


def _require(holds: bool, where: str, wanted: str, value: Any) -> None:
    if not holds:
        shown = "a table" if isinstance(value, dict) else json.dumps(value, default=str)
        raise ParameterError(f"{where} must be {wanted}, but is {shown}; correct it.")


def run_and_save(args: argparse.Namespace) -> int:
    """Run the command; write its settings if ``--save-config`` is given and it succeeded."""
    path, writes = getattr(args, "save_config", None), acts_for_the_job()
    code: int = args.command.run(args)
    if path is not None and writes and code not in UNFINISHED:
        files.write(path, in_force(args).encode())
        if not getattr(args, "quiet", False):
            output.note(f"settings written to {path}")
    return code


def require_text(args: argparse.Namespace) -> None:
    """Refuse words that the file of ``--save-config`` cannot hold."""
    path = getattr(args, "save_config", None)
    for name, value in vars(args).items():
        if path is None or not isinstance(value, str):
            continue
        try:
            value.encode()
        except UnicodeEncodeError:
            raise DataError(
                f"--save-config {path} must hold {name}, but TOML cannot hold a name that is not "
                "UTF-8; rename the file."
            ) from None


def in_force(args: argparse.Namespace) -> str:
    """All settings as TOML, with the defaults: later versions may have other defaults."""
    import tomli_w

    values = {key: getattr(args, option.dest) for key, option in known(args.command).items()}
    given = {key: value for key, value in values.items() if value not in (None, False)}
    return f"# settings of `{args.prog}`, for its --config\n{tomli_w.dumps(given)}"

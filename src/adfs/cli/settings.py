"""Settings in a TOML file: the same as flags, and weaker than those that are typed.

A file's settings are put as flags before the typed ones, so whatever holds for flags holds for
them: types, ranges, what excludes what; and the command kept with a model needs no file.
"""

import argparse
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from adfs.cli import output, toml
from adfs.cli.parser import Parser, nearest
from adfs.cli.setting_values import is_switch, words_of
from adfs.errors import DataError, ParameterError

OWN = ("--config", "--save-config")
UNFINISHED = (1, 2)  # exit codes of runs whose settings are not worth keeping


class Setting(NamedTuple):
    """One line of a file: the key as it is written, the argument it stands for, its words."""

    key: str
    action: argparse.Action
    words: list[str]


def add_settings(parser: Parser) -> None:
    """``--config``, ``--save-config``, and a hidden ``--no-X`` for every switch ``--X``.

    Called last, when all switches are declared.
    """
    for action in list(parser._actions):
        if is_switch(action):
            flag = action.option_strings[0].replace("--", "--no-", 1)
            parser.add_argument(
                flag, dest=action.dest, action="store_false", default=argparse.SUPPRESS,
                help=argparse.SUPPRESS,
            )  # fmt: skip
    group = parser.add_argument_group("settings")
    group.add_argument(
        "--config",
        metavar="FILE",
        help="take settings from this TOML file: a key is a long flag without its dashes, such as "
        "max-iter = 1000; what is typed wins over it, and --no-X undoes a switch X = true",
    )
    group.add_argument(
        "--save-config",
        metavar="FILE",
        help="write all settings in force to this file, for --config",
    )


def expand(leaf: Parser, words: list[str]) -> list[str]:
    """The words behind a command's name, with the file that they name replaced by its settings.

    ``leaf`` is spoilt: whoever parses the result takes a new parser.
    """
    named = sum(word.split("=")[0] == "--config" for word in words)
    if not named:
        return words
    if named > 1:
        raise ParameterError(f"--config can be given once, but is there {named} times; keep one.")
    known = _known(leaf)
    groups = [set(map(id, group._group_actions)) for group in leaf._mutually_exclusive_groups]
    typed = _typed(leaf, words)
    path = typed.pop("config", None)
    if path is None:
        return words
    found = _read(leaf.prog, path, known)
    _check_exclusive(path, found, groups)
    rivals = {id(each) for each in leaf._actions if each.dest in typed}
    for group in groups:
        rivals |= group if group & rivals else set()
    added = [word for each in found if id(each.action) not in rivals for word in each.words]
    return [*added, *_without_config(words)]


def _typed(leaf: Parser, words: list[str]) -> dict[str, Any]:
    """What the words say themselves, without defaults and without what they lack."""
    leaf._defaults.clear()
    for action in leaf._actions:
        action.default = argparse.SUPPRESS
        if not action.option_strings:
            action.nargs, action.required = "?", False
    return vars(leaf.parse_known_args(words)[0])


def _without_config(words: list[str]) -> list[str]:
    kept, skip = [], False
    for word in words:
        if not skip and word != "--config" and not word.startswith("--config="):
            kept.append(word)
        skip = word == "--config" and not skip
    return kept


def _known(leaf: Parser) -> dict[str, argparse.Action]:
    """Arguments that a file may set, by their keys."""
    actions = [
        action
        for action in leaf._actions
        if action.help != argparse.SUPPRESS and not {*OWN, "--help"} & set(action.option_strings)
    ]
    return {_key(action): action for action in actions}


def _key(action: argparse.Action) -> str:
    return action.option_strings[0].removeprefix("--") if action.option_strings else action.dest


def _read(command: str, path: str, known: dict[str, argparse.Action]) -> list[Setting]:
    """The settings of a file, each checked."""
    found: dict[str, Setting] = {}
    for written, value in toml.load("--config", path).items():
        key = written.replace("_", "-")
        if key not in known:
            near = nearest(key, known)
            way = f"the nearest is {near}" if near else f"see `{command} --help`"
            raise ParameterError(f"{written} in {path} is no setting of `{command}`; {way}.")
        if key in found:
            raise ParameterError(
                f"{written} in {path} is there a second time, as {found[key].key}; keep one."
            )
        words = words_of(command, f"{written} in {path}", known[key], value)
        found[key] = Setting(written, known[key], words)
    return list(found.values())


def _check_exclusive(path: str, found: list[Setting], groups: list[set[int]]) -> None:
    for group in groups:
        rivals = [each.key for each in found if id(each.action) in group]
        if len(rivals) > 1:
            raise ParameterError(f"{' and '.join(rivals)} in {path} exclude each other; keep one.")


def run_and_save(args: argparse.Namespace) -> int:
    """Run the command; write its settings if that was asked for and it came to something."""
    run: Callable[[argparse.Namespace], int] = args.run
    path = getattr(args, "save_config", None)
    if path is None:
        return run(args)
    from adfs.launch.launcher import rank_by_environment
    from adfs.launch.supervisor import is_supervised

    mine = not is_supervised() and not rank_by_environment()
    if rank_by_environment() is None:  # ranks look together, in `check_outputs`
        _check_place(args, path)
    code = run(args)
    if mine and code not in UNFINISHED:
        output.write(path, in_force(args, path).encode())
        if not getattr(args, "quiet", False):
            output.note(f"settings written to {path}")
    return code


def _check_place(args: argparse.Namespace, path: str) -> None:
    """Refuse a place where nothing can be written, or which another argument names."""
    output.check_writable("--save-config", path)
    require_text(args, path)
    others = [value for name, value in vars(args).items() if name != "save_config"]
    place = os.path.realpath(path)
    if any(isinstance(each, str) and os.path.realpath(each) == place for each in others):
        raise DataError(f"--save-config {path} is named by another argument; name another file.")


def require_text(args: argparse.Namespace, path: str) -> None:
    """Refuse words that no TOML file can hold."""
    for name, value in vars(args).items():
        if isinstance(value, str) and not _is_text(value):
            raise DataError(
                f"--save-config {path} must hold {name}, but TOML has no words for a name that is "
                "no UTF-8; rename the file."
            )


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def in_force(args: argparse.Namespace, path: str) -> str:
    """All settings as TOML, defaults too: the run stays the same if those change."""
    lines = [f"# {args.parser.prog} --config {path}"]
    for key, action in _known(args.parser).items():
        value = getattr(args, action.dest)
        if value is not None and value is not False:
            lines.append(f"{toml.key(key)} = {toml.shown(value)}")
    return "\n".join(lines) + "\n"

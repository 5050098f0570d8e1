"""What every case must keep, whatever it was given."""

import json
import re
import signal
import sys
from typing import NamedTuple

from fuzz import sandbox

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LONGEST_LINE = 300
HELP = ("-h", "--help", "--version")
DONE, FAILED, REFUSED, STOPPED = 0, 1, 2, 3
TIMES_UP = {signal.SIGXCPU: f"{sandbox.PROCESSOR_SECONDS} s of processor time",
            signal.SIGALRM: f"{sandbox.WALL_SECONDS} s"}  # fmt: skip


class Fault(NamedTuple):
    """``cause`` is the same for cases that most likely have the same reason."""

    cause: str
    detail: str


def faults(case, outcome):
    """Everything in which an outcome breaks the contract."""
    found = list(_faults_of_the_end(case, outcome))
    if found:
        return found
    words = [] if "stderr" in case.process else _faults_of_words(case, outcome)
    return [*words, *_faults_of_files(case, outcome)]


def _faults_of_the_end(case, outcome):
    if outcome.signal in TIMES_UP:
        yield Fault("time", f"it took more than {TIMES_UP[outcome.signal]}")
    elif outcome.signal:
        name = signal.Signals(outcome.signal).name
        yield Fault(name, f"killed by {name}: {outcome.err[-300:]}")
    elif "Traceback" in outcome.err:
        yield Fault(_place(outcome.err), outcome.err[-1500:])
    elif outcome.code not in (DONE, FAILED, REFUSED, STOPPED):
        yield Fault(f"code {outcome.code}", f"exit code {outcome.code}: {outcome.err[-300:]}")
    elif case.code not in (None, outcome.code):
        yield Fault("code", f"exit code {outcome.code}, not {case.code}: {outcome.err[-300:]}")
    elif outcome.code == FAILED and not _may_fail(case, outcome):
        yield Fault("code 1", f"exit code 1, but not about memory: {outcome.err[-300:]}")


def _may_fail(case, outcome):
    """Whether exit code 1 is right: there is too little memory, or no room on stdout."""
    is_full = case.process.get("stdout") == "/dev/full"
    return "memory" in outcome.err or (is_full and "cannot be written" in outcome.err)


def _place(text):
    """The exception, and the last line of ours that it passed."""
    ours = re.findall(r'File "[^"]*/src/(adfs/[^"]*)", line \d+, in (\S+)', text)
    error = re.findall(r"^(\w[\w.]*(?:Error|Exception|Warning|Interrupt)\w*)", text, re.MULTILINE)
    place = " ".join(ours[-1]) if ours else "outside adfs"
    return f"{error[-1] if error else 'an exception'} from {place}"


def _faults_of_words(case, outcome):
    lines = outcome.err.splitlines()
    warned = re.search(r"^\S+:\d+: \w+Warning: .*", outcome.err, re.MULTILINE)
    if warned:
        place = warned[0].split("src/")[-1]
        yield Fault(f"warning {place.split(' ')[0]}", place[:300])
        return
    if any(len(line) > LONGEST_LINE for line in lines):
        yield Fault("long line", f"{max(map(len, lines))} characters on stderr: {lines[-1][:400]}")
    if outcome.code in (FAILED, REFUSED):
        yield from _faults_of_refusal(case, outcome, lines)
    elif _owes_json(case) and not _is_one_object(outcome.out):
        yield Fault("json", f"stdout is not one JSON object: {outcome.out[:300]!r}")
    if outcome.code == STOPPED and not any(_is_sentence([line]) for line in lines):
        yield Fault("sentence", f"stderr does not say why it stopped: {outcome.err[-300:]!r}")


def _faults_of_refusal(case, outcome, lines):
    if not _is_sentence(lines):
        yield Fault("sentence", f"stderr is not one sentence: {outcome.err[-600:]!r}")
    if outcome.out and case.arguments:
        yield Fault("stdout", f"refused, but stdout has {outcome.out[:300]!r}")


def _is_sentence(lines):
    lines = [
        line for line in lines if not line.startswith("reading ")
    ]  # progress, if it takes long
    return len(lines) == 1 and lines[0].startswith("adfs: ") and lines[0].rstrip(")").endswith(".")


def _owes_json(case):
    is_read = case.process.get("stdout", "file") == "file"
    last = [each for each in case.arguments if each in ("--json", "--no-json")][-1:]
    return is_read and last == ["--json"] and not {*HELP} & {*case.arguments}


def _is_one_object(text):
    def no_number(word):
        raise ValueError(word)

    try:
        return isinstance(json.loads(text, parse_constant=no_number), dict)
    except ValueError:
        return False


def _faults_of_files(case, outcome):
    changed = [name for name, content in outcome.after.items()
               if outcome.before.get(name) != content]  # fmt: skip
    changed += [name for name in outcome.before if name not in outcome.after]
    named = _words(case)
    # Where only the summary could not be written, what was written before is kept.
    kept = outcome.code == FAILED and case.process.get("stdout") == "/dev/full"
    for name in changed:
        refused = outcome.code in (FAILED, REFUSED) and not kept
        known = any(_names(part, named) for part in name.split("/")) and not _is_read(case, name)
        if refused or not known:
            yield Fault("files", f"{name} was changed or left, with exit code {outcome.code}")


def _names(part, named):
    """Whether a word is a part of a path, or a pattern with a node's number in it."""
    return (
        part in named
        or "." in named
        or any(re.fullmatch(re.escape(word).replace(r"\{node\}", r"\d+"), part) for word in named)
    )


def _words(case):
    """Everything that could name an output."""
    settings = [text for text in case.files.values() if isinstance(text, str)]
    words = " ".join([*case.arguments, *settings])
    given = {word.partition("=")[2] if word.startswith("--") else word for word in case.arguments}
    values = [value for text in settings for value in _texts_of_toml(text)]
    parts = {part for value in values for part in value.split("/")}
    # A name may hold a space or a newline.
    return given | parts | set(re.split(r"[\s=/\"']+", words))


def _texts_of_toml(text):
    try:
        return [value for value in tomllib.loads(text).values() if isinstance(value, str)]
    except (ValueError, RecursionError):
        return []


def _is_read(case, name):
    """Whether a file is the DATA of the command or its ``--test``, which no output replaces."""
    inputs = [word for word in case.arguments[1:2] if not word.startswith("-")]
    if "--test" in case.arguments[:-1]:
        inputs.append(case.arguments[case.arguments.index("--test") + 1])
    return name.removeprefix("here/") in inputs

"""Settings in TOML files, for the commands that take ``--config``."""

from adfs.cli.commands import find
from fuzz.case import Case, of_bytes
from fuzz.mutations import NUMBERS, WORDS, mutated_bytes, mutated_text, pick, some
from fuzz.targets import files

COMMANDS = (
    (["train", "data.txt"], ["--max-iter", "20"]),
    (["train"], ["--max-iter", "20"]),
    (["path", "data.txt"], ["--max-iter", "20", "--C", "0.1:1:2", "--cv", "2"]),
    (["compare", "data.txt"], ["--max-iter", "20", "--algorithms", "adfs", "--clock-limit", "99"]),
    (["schedule", "sample", "data.txt"], ["--events", "9"]),
    (["schedule", "times", "s.npz"], []),
)
VALUES = (
    "1", "0", "-1", "1.5", "1e400", "nan", "-inf", "0x10", "0b1", "9" * 400, "true", "false", '""',
    '"data.txt"', '"missing.txt"', '"bystander.txt"', '"new.npz"', '"hinge"', '"-1"', '"--help"',
    '"\\u0000"', '"a\\nb"', "'''\nlines\n'''", "[]", "[1]", "[1, 2.5]", '["adfs", "msda"]',
    '["a", 1]', "[[1]]", "{}", "{a = 1}", "1979-05-27T07:32:00Z", "07:32:00", "[" * 2000,
    "[" * 5 + "]" * 5, "[" * 500 + "]" * 500, "{a=" * 200 + "1" + "}" * 200, '"' + "x" * 2000 + '"',
    '"\\ud800"', "1_000", "+1",
)  # fmt: skip
SLOW = ("engine", "jobs")  # not here: real ranks are tested elsewhere


def draw(generator):
    """A file of settings, and the command that reads it."""
    command, limits = pick(generator, COMMANDS)
    how = generator.random()
    if how < 0.25:
        content = some(generator, mutated_text, files.SETTINGS)
    elif how < 0.35:
        content = of_bytes(some(generator, mutated_bytes, _encoded(generator)))
    else:
        content = _lines(generator, command)
    given = {name: files.good()[name] for name in ("data.txt", "s.npz")}
    arguments = [*command, "--config", "run.toml", *limits]
    return Case("settings", arguments, {**given, "run.toml": content})


def _encoded(generator):
    return files.SETTINGS.encode(pick(generator, ("utf-8", "utf-16", "utf-8-sig", "utf-32-be")))


def _lines(generator, command):
    """Keys that the command has, and values that they may not have."""
    leaf, _, _ = find(command)
    keys = tuple(flag.removeprefix("--") for flag in leaf.flags if flag[2:] not in SLOW)
    lines = []
    for _ in range(int(generator.integers(1, 5))):
        key = pick(generator, keys if generator.random() < 0.9 else WORDS + NUMBERS)
        how = generator.random()
        if how < 0.05:
            key = f"[{key}]"
        elif how < 0.1:
            key = pick(generator, (f"{key}.{key}", f'"{key}"', key.replace("-", "_"), "a." * 1000))
        lines.append(f"{key} = {pick(generator, VALUES)}")
    return "\n".join(lines) + "\n"

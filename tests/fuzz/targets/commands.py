"""Command lines: every command with its own flags, so that new ones take part."""

from adfs.cli.arguments import Option
from adfs.cli.commands import ADFS
from fuzz.case import Case
from fuzz.mutations import NUMBERS, WORDS, mutated_text, pick
from fuzz.targets import files

LIMITS = {
    "--max-iter": "20", "--time-limit": "5", "--events": "9", "--clock-limit": "99",
    "--algorithms": "adfs", "--engine": "local", "--jobs": "1",
}  # fmt: skip
FILES = ("data.txt", "data.npz", "model.npz", "s.npz", "run.toml", "part-{node}.txt", "missing.txt",
         "missing/new.txt", "data.txt/x", ".", "..", "", "/", "/dev/null", "/dev/full", "/proc/x",
         "bystander.txt", "../bystander.txt", "new", "new.npz", "new.csv", "new.html", "new.json",
         "new.png", "../new.npz", "x" * 300, "a\nb", "\udcff", "-", "--", "{node}", "{node}{node}",
         "breast-cancer", "part-{node}{node}.txt", "*", "[", "é.txt", "~", "a b")  # fmt: skip
SIZES = ("0", "1", "2", "3", "4", "9", "-1", "1.0", "1e2", "", "x", "10000000000000000000000", "１",
         "0x1", "1_0", " 1", "9" * 5000)  # fmt: skip
TEXTS = ("grid", "ring", "path", "star:3", "complete", "torus", "torus:3x3", "hypercube",
         "grid:2x2", "grid:0x3", "grid:2x2x2", "single", "random_regular:k=2", "erdos_renyi:p=0.5",
         "erdos_renyi:p=nan", "grid:" + "9" * 400 + "x1", "auto", "adfs", "dsba:theory",
         "adfs:paper", "best", "newton", "point-saga", "x:y:z", "adfs,adfs")  # fmt: skip
LONG = ("reproduce",)  # with good arguments it takes minutes


def draw(generator):
    """A command, some of its flags with some values, and a few words that belong nowhere."""
    path, leaf = _leaf(generator)
    flags = [Option("--help", "", ""), *(option for option in leaf.options if option.flag)]
    arguments = [*path, *_positionals(generator, leaf)]
    for _ in range(int(generator.geometric(0.35)) - 1):
        arguments += _flag(generator, pick(generator, flags))
    arguments += [word for flag, value in LIMITS.items() if flag in leaf.flags
                  for word in (flag, value)]  # fmt: skip
    if path[:1] == ["info"]:
        arguments = [word for word in arguments if word not in ("--compile", "--mpi", "--costs")]
    arguments = ["paper" if word == "measured" else word for word in arguments]  # takes seconds
    if generator.random() < 0.15:
        place = int(generator.integers(len(arguments) + 1))
        arguments.insert(place, pick(generator, WORDS + NUMBERS + FILES))
    arguments = [word.replace("\0", "?") for word in arguments]  # a system passes no NUL on
    return Case("commands", arguments, files.good())


def _leaf(generator):
    """A command and the words that name it."""
    path, command = [], ADFS
    while command.verbs:
        command = pick(generator, command.verbs)
        path = [*path, command.name]
    if generator.random() < 0.02:
        path = [*path[:-1], mutated_text(generator, path[-1])]
    return path, command


def _positionals(generator, leaf):
    found = []
    for option in leaf.positions:
        good = {"DATA": "data.txt", "MODEL": "model.npz", "FILE": "s.npz"}.get(option.metavar)
        if leaf.name in LONG or good is None:
            found.append(pick(generator, WORDS + NUMBERS))
        else:
            found.append(good if generator.random() < 0.8 else pick(generator, FILES))
    if generator.random() < 0.05:
        found = found[1:]
    return found


def _flag(generator, option):
    """A flag and its value, as two words or as one."""
    flag = option.flag
    if option.is_switch:
        flag = flag if generator.random() < 0.5 else flag.replace("--", "--no-", 1)
        return [flag] if generator.random() < 0.95 else [f"{flag}=1"]
    value = _value(generator, option)
    how = generator.random()
    return [flag, value] if how < 0.6 else [f"{flag}={value}"] if how < 0.95 else [flag]


def _value(generator, option):
    if generator.random() < 0.05:
        return pick(generator, WORDS + NUMBERS + FILES)
    if option.kind.choices:
        value = str(pick(generator, list(option.kind.choices)))
        return value if generator.random() < 0.9 else mutated_text(generator, value)
    if option.kind.types == (int,):
        return pick(generator, SIZES)
    is_number = option.kind.types == (int, float)
    if option.kind.is_list:
        pool = NUMBERS if is_number else TEXTS
        return ",".join(pick(generator, pool) for _ in range(int(generator.integers(1, 4))))
    if is_number:
        return pick(generator, NUMBERS)
    return pick(generator, FILES if option.kind.role else TEXTS)

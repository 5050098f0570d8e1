"""How commands are read from the text of their help, and the options that several of them share.

Lists of names are written out, so that ``adfs --help`` need not import NumPy; a test compares them
with the registries.
"""

import math
import re
import sys
from collections.abc import Iterator
from dataclasses import replace

from adfs import algorithms, checks
from adfs.cli.arguments import Command, Groups, Kind, Option
from adfs.errors import ParameterError
from adfs.installed import load_installed
from adfs.study.paper import ALL, CATALOGUE

ALGORITHMS = algorithms.NAMES


class LossNames(tuple[str, ...]):
    """Names of the package's losses and, once plug-ins are asked for, those of plug-ins too."""

    def __iter__(self) -> Iterator[str]:
        own = tuple(super().__iter__())
        known = getattr(sys.modules.get("adfs.losses"), "LOSSES", ())
        return iter((*own, *(name for name in known if name not in own)))

    def __contains__(self, name: object) -> bool:
        if name not in list(self):
            load_installed("adfs.losses")
        return name in list(self)


LOSSES = LossNames((
    "logistic", "squared", "squared_hinge", "smoothed_hinge", "huber", "hinge", "absolute",
))  # fmt: skip
PARTITIONS = ("even", "contiguous", "draw", "sorted")
SUITE_NAMES = ("paper", "sparse", "unequal")
CLOCKS = ("nonblocking", "rendezvous")
COST_NAMES = ("paper", "measured")
RULES = ("paper", "balanced", "exact", "projector", "tuned", "theory")
LAWS = ("constant", "exponential", "lognormal", "pareto")
SCOPES = ("both", "communications", "computations")
AXES = ("idealized_time", "iteration", "passes", "n_comm", "bytes", "wall_time")
GRAPHS = (
    "grid", "ring", "path", "star", "complete", "torus", "hypercube", "random_regular",
    "erdos_renyi", "single",
)  # fmt: skip
DATASETS = (
    "covtype", "higgs", "a9a", "a9a.t", "mushrooms", "rcv1", "news20", "real-sim", "abalone",
    "reuters-money-fx", "breast-cancer", "diabetes",
)  # fmt: skip
SHELLS = ("bash", "zsh")
DEFAULT_NODES = 4
LARGEST = 2**31 - 1  # columns have int32 numbers
MOST_VALUES = 1000  # of C on a grid
FIRST_EVENTS = 10  # listed by `adfs schedule show`
WINDOW = 60  # events of a timeline


PLUGIN = (
    "--plugin FILE: input  import this Python file first: algorithms and losses that it "
    "registers can be named like the others"
)


def whole(least: int, most: int | None = None) -> Kind:
    def read(text: str) -> int:
        return checks.whole("", int(text), least, most)

    limits = f">= {least}" if most is None else f"from {least} to {most}"
    return Kind(f"a whole number {limits}", read, (int,))


def _path(text: str) -> str:
    if "\0" in text:
        raise ParameterError(f"{text!r} must be a path, which cannot contain NUL.")
    return text


def _numbers(text: str) -> float | list[float]:
    values = [float(word) for word in text.split(",")]
    return values if "," in text else values[0]


def _names(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]


def read_grid(text: str) -> list[float]:
    """Values of C: ``1e-3:1e3:7`` is geometric with so many values, ``0.1,1,10`` lists them.

    Examples
    --------
    >>> read_grid("1e-2:100:5"), read_grid("3,1")
    ([0.01, 0.1, 1.0, 10.0, 100.0], [3.0, 1.0])
    """
    if ":" not in text:
        return [checks.positive("", float(word), "try 0.1,1,10") for word in text.split(",")]
    first, second, third = text.split(":")
    low, high, count = float(first), float(second), int(third)
    if not (0.0 < low < high < math.inf and 2 <= count <= MOST_VALUES):
        raise ParameterError(
            f"{text!r} must be LOW:HIGH:COUNT with 0 < LOW < HIGH and COUNT from 2 to "
            f"{MOST_VALUES}, such as 1e-3:1e3:20."
        )
    logs = math.log(low), math.log(high)
    shares = (k / (count - 1) for k in range(count))
    # Without the last digits, so that powers of ten are exact.
    return [float(f"{math.exp(logs[0] + s * (logs[1] - logs[0])):.12g}") for s in shares]


def _grid(text: str) -> str:
    """The text itself, once it can be read."""
    read_grid(text)
    return text


def _partition(text: str) -> str:
    """A way to divide rows, checked."""
    if text not in PARTITIONS:
        from adfs.data.partition import check_how  # needs NumPy

        check_how(text)
    return text


INPUT = Kind(read=_path, role="reads a file")
OUTPUT = Kind(read=_path, role="writes a file")
FOLDER = Kind(read=_path, role="writes a folder")
SHARDS = Kind(read=_path, role="writes one file per node")
CHOICES = {
    "loss": LOSSES, "cut": PARTITIONS[:2], "clock": CLOCKS,
    "law": LAWS, "scope": SCOPES, "axis": AXES, "weighting": ("balanced",),
    "shell": SHELLS, "engine": ("local", "mpi"), "mapping": ("contiguous", "graph"),
    "schedule": ("auto", "shared", "poisson", "stratified"), "costs": COST_NAMES,
    "suite": SUITE_NAMES,
}  # fmt: skip
SUGGESTIONS = {
    "graph": GRAPHS, "rule": RULES, "dataset": DATASETS, "algorithm": ("auto", "best", *ALGORITHMS),
    "result": (*CATALOGUE, ALL),
}  # fmt: skip
KINDS = {  # by the words for them in the texts below
    "": Kind("true or false", bool, (bool,)),  # a switch
    "number": Kind("a number", float, (int, float)),
    "numbers": Kind("a number or a list of numbers such as 1,1,10", _numbers, (int, float), True),
    "grid": Kind("values such as 1e-3:1e3:20 or 0.1,1,10", _grid, (int, float, str), True),
    "text": Kind(),
    "names": Kind("a name or a list of names", _names, (str,), True),
    "whole": whole(0),
    "positive": whole(1),
    "int32": whole(1, LARGEST),
    "input": INPUT,
    "output": OUTPUT,
    "folder": FOLDER,
    "shards": SHARDS,
    "partition": Kind(read=_partition, suggestions=(*PARTITIONS, "dirichlet:0.1")),
    **{name: Kind(choices=names) for name, names in CHOICES.items()},
    **{name: Kind(suggestions=names) for name, names in SUGGESTIONS.items()},
}
# Options with the same word here exclude each other.
RIVALS = {
    "--sigma": "strength", "--C": "strength", "--mpi": "task", "--compile": "task",
    "--costs": "task",    "--partition": "rows", "--by": "rows",
}  # fmt: skip


def read_command(page: str, verbs: tuple[Command, ...] = ()) -> Command:
    """A command from the text of its help.

    The first line has its name, two spaces and a summary. Then come the description, ``options:``
    and what `read_groups` reads, and ``examples:`` with what the help shows below the options.
    """
    first, _, rest = page.strip().partition("\n\n")
    name, _, summary = first.partition("  ")
    above, examples, below = rest.partition("examples:\n")
    description, _, options = above.partition("options:\n")
    groups = read_groups(options)
    if not verbs:
        groups["plug-ins"] = [read_option(PLUGIN)]
    return Command(name, summary, description.rstrip(), examples + below, groups, verbs)


def read_groups(text: str) -> Groups:
    """Options below the titles of their groups; those before the first title are general ones.

    Titles are not indented; lines that are indented by four spaces continue the one above.
    """
    found: Groups = {"": []}
    group = found[""]
    for line in re.sub(r"\n {4}", " ", text).splitlines():
        if line.startswith(" "):
            group.append(read_option(line.strip()))
        elif line:
            group = found[line] = []
    return found


def read_option(line: str) -> Option:
    """An option from a line such as ``--tau T: number = 5  time of one communication``.

    The name of the value is followed by its kind, one of `KINDS`, and by its default if it has one.
    A switch such as ``--json`` has no value, a position such as ``DATA`` no flag; ``[DATA]`` may be
    left out.
    """
    head, _, about = line.partition("  ")
    name, _, value = head.partition(": ")
    word, _, default = value.partition(" = ")
    kind = KINDS[word]
    if default:
        kind, about = replace(kind, default=kind(default)), f"{about} (default {default})"
    flag, _, metavar = name.partition(" ") if name.startswith("--") else ("", "", name)
    required = not metavar.startswith("[")
    return Option(flag, metavar.strip("[]"), about, kind, RIVALS.get(flag, ""), required)


# Parts of several commands; each begins with a new line.
SETTINGS = """
settings
  --config FILE: input  take settings from this TOML file: a key is a long flag without its dashes,
    such as max-iter = 1000; typed flags take precedence, and --no-X undoes a switch X = true
  --save-config FILE: output  write all settings to this file, for --config"""

ONE_FILE = """
  DATA: input  a LIBSVM file (plain, .gz, .bz2, .xz), a table (.csv, .tsv, .parquet), a .npz file
    with X and y, a name from `adfs datasets`"""
DATA = f"""{ONE_FILE}, or a pattern holding {{node}} (from 0) with one file
    per node"""
SCHEDULE_FILE = "\n  FILE: input  a schedule file"

STRENGTH = """
  --sigma S: number  regularisation per node, S/2 |theta|^2 (default: what --C says)
  --C C: number = 1  scikit-learn's C: the regularisation of all nodes together is 1/(2C)
    |theta|^2, for any number of nodes"""
GRID = """
  --C LOW:HIGH:COUNT: grid = 1e-3:1e3:13  so many values from LOW to HIGH in equal ratios, or a list
    such as 0.1,1,10: the regularisation of all nodes together is 1/(2C) |theta|^2"""
PROBLEM = f"""
the problem
  --loss NAME: loss = logistic  {", ".join(LOSSES)}{STRENGTH}
  --intercept  append a constant feature 1; as in liblinear, its weight is regularised like the
    others
  --standardize  subtract the mean of each column of numbers and divide by its standard deviation,
    over all nodes; columns that are mostly zero in sparse data are only divided. The model has the
    coefficients of the columns as they were
  --class-weight balanced: weighting  weight each sample by n_samples / (2 x samples of its class)
  --n-features D: int32  number of columns (default: the largest index in the data)
  --target NAME: text  column of a table to predict
  --features A,B,C: names  columns of a table to use (default: all others)
  --categorical A,B,C: names  columns of a table that hold names, though they look like numbers;
    columns of words are found by themselves. Each category becomes a feature
the network
  --nodes N: positive  number of nodes (default: the files of a {{node}} pattern, else
    {DEFAULT_NODES})
  --graph G: graph = grid  grid (as square as possible), ring, path, star, complete, torus,
    hypercube, random_regular:k=4, erdos_renyi:p=0.5, single; a size as in grid:3x4 must agree with
    --nodes
  --partition HOW: partition  even (shuffled), contiguous, sorted (by label, not iid), dirichlet:A
    (random shares of each class; the smaller A, the less alike the nodes) or draw (m rows per node,
    overlap allowed) (default even)
  --m M: positive  rows per node, for --partition draw"""

CLOCK = """
  --clock KIND: clock = nonblocking  nonblocking (a node sends its message and continues) or
    rendezvous (both nodes wait)"""
TIME = f"""
the time model
  --tau T: number = 5  time of one communication, in units of one sample's proximal step
{CLOCK}"""
COSTS = """
  --costs NAME: costs = paper  what elementary steps take: paper (the gradient of a sample takes as
    long as its proximal step, a dual gradient one pass) or measured (what they take on this
    machine, measured once and stored)"""
DELAYS = f"""
the time model
  --tau T: numbers = 5  time of one communication, or one per edge: 5,5,2
  --speed S: numbers = 1  time of one local update, or one per node: 1,1,10
{CLOCK}
  --delay-law LAW: law = constant  {", ".join(LAWS)}; the mean is 1
  --delay-shape A: number  sigma of lognormal, alpha of pareto
  --delay-of WHAT: scope = both  {", ".join(SCOPES)}
  --delay-seed K: whole = 0  seed of the law"""

RULE = """
  --parameters RULE: rule = tuned  rule that chooses rates and probabilities: for adfs paper,
    balanced, exact, projector or tuned; for ns-adfs paper or tuned; for the others theory or tuned;
    for dsba also paper. Some methods have variants and options, as in sampled,step=0.1"""
DRAWS = """
  --schedule NAME: schedule = auto  for adfs and ns-adfs. shared: one sequence of events, which all
    nodes generate, as in the paper and its theorems; stratified: the same, with a node's samples in
    epochs, mostly faster but covered by no theorem; poisson: one clock per edge and node, and each
    node generates only its own events; auto: stratified for --algorithm auto and best, shared for
    the others"""
SEED = "\n  --seed K: whole = 0  the same seed gives the same bits"
JSON = "\n  --json  print one JSON object instead"
QUIET = "\n  --quiet  no progress and no summary"
REPORT = """
  --report FILE: output  write an HTML page here (.html): the result, convergence along every axis,
    the model and its quality or the ranking, then theory; a browser needs no network for it"""
RANKS = """
  --engine NAME: engine = local  local: all nodes in this process; mpi: nodes on the ranks that
    mpiexec started, each with its own rows; the same bits
  --mapping NAME: mapping = contiguous  nodes to ranks by their numbers, or so that few edges are
    cut
  --timeout S: number = 60  seconds a rank waits for another before the job ends; must exceed the
    time to read, or to save, the rows of one rank"""

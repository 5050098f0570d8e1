"""The options of all commands as data: their values, and their groups in the help.

Lists of names are written out, so that ``adfs --help`` need not import NumPy; a test compares them
with the registries. A group without a title belongs to the general options.
"""

from adfs import algorithms, checks
from adfs.cli.arguments import Groups, Kind, Option
from adfs.errors import ParameterError

ALGORITHMS = algorithms.NAMES
LOSSES = (
    "logistic", "squared", "squared_hinge", "smoothed_hinge", "huber", "hinge", "absolute",
)  # fmt: skip
PARTITIONS = ("even", "contiguous", "draw", "sorted")
CLOCKS = ("nonblocking", "rendezvous")
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
FIRST_EVENTS = 10  # listed by `adfs schedule show`
WINDOW = 60  # events of a timeline


def one_of(names: tuple[str, ...], default: str | None = None) -> Kind:
    return Kind(choices=names, default=default)


def text_like(names: tuple[str, ...], default: str | None = None) -> Kind:
    """Any text; these are suggested."""
    return Kind(suggestions=names, default=default)


def whole(least: int, most: int | None = None) -> Kind:
    """A whole number from ``least`` to ``most``."""

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


NUMBER = Kind("a number", float, (int, float))
NUMBERS = Kind("a number or a list of numbers such as 1,1,10", _numbers, (int, float), True)
NAMES = Kind("a name or a list of names", _names, (str,), True)
INPUT = Kind(read=_path, role="reads a file")
OUTPUT = Kind(read=_path, role="writes a file")
FOLDER = Kind(read=_path, role="writes a folder")

SETTINGS: Groups = {
    "settings": (
        Option(
            "--config FILE  take settings from this TOML file: a key is a long flag without its "
            "dashes, such as max-iter = 1000; typed flags take precedence, and --no-X undoes a "
            "switch X = true",
            INPUT,
        ),
        Option("--save-config FILE  write all settings to this file, for --config", OUTPUT),
    )
}

DATA = Option(
    "DATA  a LIBSVM file (plain, .gz, .bz2, .xz), a table (.csv, .tsv, .parquet), a .npz file with "
    "X and y, a name from `adfs datasets`, or a pattern holding {node} (from 0) with one file per "
    "node",
    INPUT,
)
OPTIONAL_DATA = Option(DATA.line, INPUT, required=False)
SCHEDULE_FILE = Option("FILE  a schedule file", INPUT)

PROBLEM: Groups = {
    "the problem": (
        Option(f"--loss NAME  {', '.join(LOSSES)}", one_of(LOSSES, "logistic")),
        Option(
            "--sigma S  regularisation per node, S/2 |theta|^2 (default: what --C says)",
            NUMBER,
            rivals="strength",
        ),
        Option(
            "--C C  scikit-learn's C: the regularisation of all nodes together is 1/(2C) "
            "|theta|^2, for any number of nodes",
            NUMBER.with_default(1.0),
            rivals="strength",
        ),
        Option(
            "--intercept  append a constant feature 1; as in liblinear, its weight is regularised "
            "like the others"
        ),
        Option(
            "--standardize  subtract the mean of each column of numbers and divide by its standard "
            "deviation, over all nodes; columns that are mostly zero in sparse data are only "
            "divided. The model has the coefficients of the columns as they were"
        ),
        Option(
            "--class-weight balanced  weight each sample by n_samples / (2 x samples of its class)",
            one_of(("balanced",)),
        ),
        Option(
            "--n-features D  number of columns (default: the largest index in the data)",
            whole(1, LARGEST),
        ),
        Option("--target NAME  column of a table to predict", Kind()),
        Option("--features A,B,...  columns of a table to use (default: all others)", NAMES),
        Option(
            "--categorical A,B,...  columns of a table that hold names, though they look like "
            "numbers; columns of words are found by themselves. Each category becomes a feature",
            NAMES,
        ),
    ),
    "the network": (
        Option(
            "--nodes N  number of nodes (default: the files of a {node} pattern, else "
            f"{DEFAULT_NODES})",
            whole(1),
        ),
        Option(
            "--graph G  grid (as square as possible), ring, path, star, complete, torus, "
            "hypercube, random_regular:k=4, erdos_renyi:p=0.5, single; a size as in grid:3x4 must "
            "agree with --nodes",
            text_like(GRAPHS, "grid"),
        ),
        Option(
            "--partition HOW  even (shuffled), contiguous, sorted (by label, not iid) or draw (m "
            "rows per node, overlap allowed) (default even)",
            one_of(PARTITIONS),
        ),
        Option("--m M  rows per node, for --partition draw", whole(1)),
    ),
}

CLOCK = Option(
    "--clock KIND  nonblocking (a node sends its message and continues) or rendezvous (both nodes "
    "wait)",
    one_of(CLOCKS, "nonblocking"),
)
TIME: Groups = {
    "the time model": (
        Option(
            "--tau T  time of one communication, in units of one sample's proximal step",
            NUMBER.with_default(5.0),
        ),
        CLOCK,
    )
}
DELAYS: Groups = {
    "the time model": (
        Option(
            "--tau T  time of one communication, or one per edge: 5,5,2", NUMBERS.with_default(5.0)
        ),
        Option(
            "--speed S  time of one local update, or one per node: 1,1,10",
            NUMBERS.with_default(1.0),
        ),
        CLOCK,
        Option(f"--delay-law LAW  {', '.join(LAWS)}; the mean is 1", one_of(LAWS, "constant")),
        Option("--delay-shape A  sigma of lognormal, alpha of pareto", NUMBER),
        Option(f"--delay-of WHAT  {', '.join(SCOPES)}", one_of(SCOPES, "both")),
        Option("--delay-seed K  seed of the law", whole(0).with_default(0)),
    )
}

RULE = Option(
    "--parameters RULE  rule that chooses rates and probabilities: for adfs paper, balanced, "
    "exact, projector or tuned; for ns-adfs paper or tuned; for the others theory or tuned; for "
    "dsba also paper",
    one_of(RULES, "tuned"),
)
SEED = Option("--seed K  the same seed gives the same bits", whole(0).with_default(0))
JSON = Option("--json  print one JSON object instead")
QUIET = Option("--quiet  no progress and no summary")
REPORT = Option(
    "--report FILE  write an HTML page here (.html): convergence along every axis, parameters, "
    "graph, timeline, theory beside measurement; it opens in a browser without a network",
    OUTPUT,
)
RANKS = (
    Option(
        "--engine NAME  local: all nodes in this process; mpi: nodes on the ranks that mpiexec "
        "started, each with its own rows; the same bits",
        one_of(("local", "mpi"), "local"),
    ),
    Option(
        "--mapping NAME  nodes to ranks by their numbers, or so that few edges are cut",
        one_of(("contiguous", "graph"), "contiguous"),
    ),
    Option(
        "--timeout S  seconds a rank waits for another before the job ends; must exceed the time "
        "to read, or to save, the rows of one rank",
        NUMBER.with_default(60.0),
    ),
)

TRAIN: Groups = {
    **PROBLEM,
    **TIME,
    "the run": (
        Option(
            "--algorithm NAME  one of the names that `adfs info` lists; auto takes adfs, or "
            "ns-adfs where the loss is not smooth",
            text_like(("auto", *ALGORITHMS), "auto"),
        ),
        RULE,
        Option(
            "--schedule NAME  shared: one sequence of events, which all nodes generate; poisson: "
            "one clock per edge and node, and each node generates only its own events",
            one_of(("shared", "poisson"), "shared"),
        ),
        Option(
            "--tol TOL  stop at this relative duality gap, gap / |F|", NUMBER.with_default(1e-6)
        ),
        Option(
            "--max-iter N  most events, or units of time under --schedule poisson, which hold "
            "about one event each (default: well beyond what theory needs for --tol)",
            whole(0),
        ),
        Option(
            "--time-limit S  most seconds in the loop, including those before a --resume (default:"
            " no limit)",
            NUMBER,
        ),
        Option(
            "--evaluate-every N  events, or units of time under --schedule poisson, between "
            "evaluations, for a fine trace (default: as few as stopping needs; with --trace or "
            "--report about ten more, which do not change the run)",
            whole(1),
        ),
        SEED,
        *RANKS,
        Option("--warm-start MODEL  start from this model file", INPUT),
    ),
    "files and output": (
        Option("--test FILE  a DATA on which to test the model", INPUT),
        Option("--out FILE  write the model here (.npz)", OUTPUT),
        Option("--trace FILE  write one row per evaluation here (.csv)", OUTPUT),
        REPORT,
        Option("--checkpoint DIR  save checkpoints in this folder, for --resume", FOLDER),
        Option(
            "--checkpoint-every N  events or rounds, or units of time under --schedule poisson, "
            "between two checkpoints (default: ten passes over the samples, at least 5,000,000 "
            "sample steps)",
            whole(1),
        ),
        Option("--resume  continue from the newest complete checkpoint, if any"),
        Option(
            "--timeline FILE  what each rank did when, as a Chrome trace (.json) or a picture "
            "(.png, .svg, .pdf); needs --engine mpi",
            OUTPUT,
        ),
        JSON,
        QUIET,
    ),
    **SETTINGS,
}

COMPARE: Groups = {
    **PROBLEM,
    **DELAYS,
    "the runs": (
        Option(
            "--algorithms A,B,C  names from `adfs info`, with a rule for the parameters as in "
            "dsba:theory if they are not to be tuned (default: all that accept the problem; the "
            "table lists the others)",
            NAMES,
        ),
        Option(
            "--seeds K  number of seeds, from --seed on; the table shows medians",
            whole(1, LARGEST).with_default(1),
        ),
        SEED,
        Option(
            "--tol TOL  stop a run at this suboptimality, mean over nodes of F(theta_i) - F*, over"
            " |F*|; with --engine mpi, at this relative duality gap",
            NUMBER.with_default(1e-8),
        ),
        Option(
            "--clock-limit X  most idealized time of a run (default: 5 times what adfs needs, if "
            "it takes part; no limit with --engine mpi)",
            NUMBER,
        ),
        Option("--time-limit S  most seconds of a run in its loop (default: no limit)", NUMBER),
        Option(
            "--max-iter N  most events of a run, or rounds of a synchronous method (default: well "
            "beyond what theory needs for --tol)",
            whole(0),
        ),
        Option(
            "--jobs N  runs at a time; wall times are accurate only with 1, since runs that share "
            "a machine slow each other down; all else has the same bits",
            whole(1).with_default(1),
        ),
        *RANKS,
    ),
    "files and output": (
        Option(
            "--out DIR  folder for config, traces, tables and pictures; finished runs in it are "
            "not computed again",
            FOLDER,
        ),
        REPORT,
        Option(
            f"--axis NAME  of table and picture: {', '.join(AXES)}", one_of(AXES, "idealized_time")
        ),
        JSON,
        QUIET,
    ),
    **SETTINGS,
}

PREDICT: Groups = {
    "": (
        Option("--proba  print the probability of the larger label instead (logistic)"),
        Option("--out FILE  write the predictions here, one per line", OUTPUT),
        JSON,
    )
}

REPRODUCE: Groups = {
    "": (
        Option("--quick  the same at a size that ends within a minute"),
        Option(
            "--out DIR  folder for reports, tables and pictures, with one folder per name; "
            "finished runs in it are not computed again",
            FOLDER,
        ),
        Option("--jobs N  threads; results are the same", whole(1).with_default(2)),
        JSON,
        QUIET,
    ),
    **SETTINGS,
}

DATA_SETS: Groups = {
    "": (
        Option(
            "--forget NAME  remove the file of this set from the cache, and its checksum",
            text_like(DATASETS),
        ),
        JSON,
    )
}

INFO: Groups = {
    "": (
        Option(
            "--mpi  measure what a proximal step and an exchange between ranks take; start it with"
            " mpiexec",
            rivals="task",
        ),
        Option(
            "--compile  compile every kernel that an ordinary run uses and that is not compiled "
            "yet; takes a minute or two on one core",
            rivals="task",
        ),
        JSON,
    )
}

SAMPLE: Groups = {
    **PROBLEM,
    **TIME,
    "the schedule": (
        RULE,
        Option(
            "--p-comm P  share of communications (default: what the rule says; 0.5 without DATA)",
            NUMBER,
        ),
        Option("--events N  number of events", whole(1).with_default(1000)),
        SEED,
    ),
    "files and output": (
        Option("--out FILE  write the schedule here (.npz)", OUTPUT),
        JSON,
    ),
    **SETTINGS,
}

TIMELINE: Groups = {
    **DELAYS,
    "the window": (
        Option("--first N  first event of the window", whole(0).with_default(0)),
        Option(
            f"--last N  event before which the window ends (default: {WINDOW} after --first)",
            whole(1),
        ),
    ),
    "files and output": (
        Option("--out FILE  the picture (.png, .pdf or .svg)", OUTPUT),
        Option("--chrome FILE  the trace (.json)", OUTPUT),
        JSON,
    ),
    **SETTINGS,
}

SHOW: Groups = {
    "": (Option("--first N  how many events to list", whole(0).with_default(FIRST_EVENTS)), JSON)
}
TIMES: Groups = {"": (JSON,), **DELAYS, **SETTINGS}

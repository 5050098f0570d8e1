"""What the arguments describe: the `Problem` with its samples, and the time model."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from math import fsum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.agreement import Alone, Peers, attempt
from adfs.algorithms import registered  # noqa: F401  (fills the registry)
from adfs.algorithms.base import CHOSEN, MethodSetting, get_algorithm, require_schedule
from adfs.cli import output
from adfs.cli.options import DEFAULT_NODES
from adfs.costs import Costs
from adfs.data.columns import NUMBER, Columns
from adfs.data.datasets import DATASETS, available, locate
from adfs.data.files import NODE, is_table, load_rows, load_share, shard_paths
from adfs.data.matrices import Numbers, Vector, with_constant
from adfs.data.partition import Shard
from adfs.data.reader import Selection
from adfs.data.scaling import Scaler, measure
from adfs.errors import DataError, GraphError, ParameterError
from adfs.graphs.topology import Topology
from adfs.losses import get_loss
from adfs.model import Model
from adfs.mpi.communicator import Communicator
from adfs.mpi.problem_loading import network_of, place_nodes
from adfs.problem.finite_sum import RANGE, Problem
from adfs.run import Result
from adfs.schedule.delays import Delays

Labels = NDArray[Any]
MOST_CLASSES = 1000


class Loaded(NamedTuple):
    """What the arguments describe, loaded.

    ``classes`` are all labels; of more than two, each has a problem of its own against the others,
    and ``problem`` is the first class's. ``codes`` has the number of each sample's class here and
    ``counts`` the samples per class on all nodes, if there are more than two.
    """

    problem: Problem
    classes: NDArray[Any] | None
    columns: Columns | None
    scaler: Scaler | None
    codes: Numbers | None = None
    counts: Numbers | None = None
    is_balanced: bool = False

    @property
    def n_problems(self) -> int:
        """One, or as many as there are classes if there are more than two."""
        return 1 if self.counts is None else len(self.counts)

    @property
    def labels(self) -> NDArray[Any]:
        """The labels of the samples here, as the data had them."""
        if self.classes is None:
            return self.problem.labels
        is_second = (self.problem.labels > 0).astype(int)
        return self.classes[is_second if self.codes is None else self.codes]

    def problem_of(self, number: int) -> Problem:
        """The problem of one class against the others; called on all ranks."""
        if number == 0 or self.codes is None or self.counts is None:
            return self.problem
        return self.problem.with_targets(
            *against_the_rest(self.codes, self.counts, number, self.is_balanced)
        )


def against_the_rest(
    codes: Numbers, counts: Numbers, number: int, is_balanced: bool
) -> tuple[Vector, Vector]:
    """Labels and weights of one class's problem.

    Balanced weights give the samples of the class, and all others, the same sum.
    """
    is_own, total, own = codes == number, counts.sum(), counts[number]
    heavy = total / (2.0 * np.where(is_own, own, total - own))
    return np.where(is_own, 1.0, -1.0), heavy if is_balanced else np.ones(len(codes))


def build_problem(args: argparse.Namespace, world: Communicator | None = None) -> Problem:
    """The problem that the arguments describe, which has at most two classes."""
    return load_problem(args, world, most_classes=2).problem


def load_problem(
    args: argparse.Namespace, world: Communicator | None, most_classes: int = MOST_CLASSES
) -> Loaded:
    """Load what the arguments describe; errors that are cheap to find come first.

    With a ``world`` each of its ranks loads the rows of its own nodes, and all call this together.
    """
    peers: Peers = world or Alone()
    attempt(peers, lambda: check_options(args))
    topology, rank_of = place_nodes(
        peers, args.data, lambda n_files, least: read_topology(args, n_files, least),
        getattr(args, "mapping", "contiguous"),
    )  # fmt: skip
    sigma = attempt(peers, lambda: read_sigma(args, topology.n_nodes))
    quiet = getattr(args, "quiet", False)
    if NODE not in args.data:
        attempt(peers, lambda: fetch(args.data, quiet) if peers.rank == 0 else None)
    with output.note_if_slow(f"reading {args.data}", peers.rank == 0 and not quiet):
        data = load_share(
            peers, args.data, rank_of, args.loss, args.partition or "even", args.seed, args.m,
            most_classes, n_features=args.n_features, target=args.target,
            features=as_list(args.features), categorical=as_list(args.categorical) or (),
        )  # fmt: skip
    network = network_of(world, topology, rank_of)
    shards, scaler = data.shards, None
    if args.standardize:
        scaler = measure(network, shards, _is_number(data.columns, shards[0].X.shape[1]))
        shards = [shard._replace(X=scaler.scaled(shard.X)) for shard in shards]
    if args.intercept:
        shards = [shard._replace(X=with_constant(shard.X)) for shard in shards]
    origin = (data.columns, scaler)
    classes, counts, is_balanced = data.classes, data.label_counts, args.class_weight is not None
    if classes is None or counts is None:
        return Loaded(Problem(shards, args.loss, sigma, network=network), None, *origin)
    numbers = [np.searchsorted(classes, shard.y) for shard in shards]
    if len(classes) == 2:
        if is_balanced:
            weight = np.sum(counts) / (2.0 * counts)
            pairs = zip(shards, numbers, strict=True)
            shards = [shard._replace(weights=weight[codes]) for shard, codes in pairs]
        return Loaded(Problem(shards, args.loss, sigma, network=network), classes, *origin)
    targets = [against_the_rest(codes, counts, 0, is_balanced) for codes in numbers]
    shards = [Shard(shard.X, *target) for shard, target in zip(shards, targets, strict=True)]
    problem = Problem(shards, args.loss, sigma, network=network)
    return Loaded(problem, classes, *origin, np.concatenate(numbers), counts, is_balanced)


def model_of(
    args: argparse.Namespace, loaded: Loaded, results: Sequence[Result], problem: Problem
) -> Model:
    """The model of a run, or of one run per class, of what is loaded."""
    return Model.from_result(
        results, problem, args.intercept, shell_command(args), loaded.classes, loaded.columns,
        loaded.scaler,
    )  # fmt: skip


def _is_number(columns: Columns | None, width: int) -> NDArray[np.bool_]:
    """Which features are numbers, not categories."""
    if columns is None:
        return np.ones(width, dtype=bool)
    sizes = [len(columns.categories.get(name, "1")) for name in columns.kinds]
    return np.repeat([kind == NUMBER for kind in columns.kinds.values()], sizes)


def check_options(args: argparse.Namespace) -> None:
    """Refuse options that contradict each other."""
    if args.class_weight and not get_loss(args.loss).binary:
        raise ParameterError(
            f"--class-weight needs two classes, but --loss {args.loss} is a regression; leave it "
            "out, or take a loss such as logistic."
        )
    if NODE in args.data and (args.partition or args.m):
        raise ParameterError(
            f"--partition and --m distribute one file to the nodes, but {args.data} has one file "
            "per node; leave them out."
        )


def read_topology(
    args: argparse.Namespace, n_files: int | None = None, least: int = DEFAULT_NODES
) -> Topology:
    """The graph on as many nodes as asked for, or as there are files, else on ``least``."""
    n_nodes = args.nodes or least
    if args.data is not None and NODE in args.data:
        if args.nodes not in (None, n_files):
            raise DataError(
                f"--nodes {args.nodes} must equal the number of files of {args.data}, which is "
                f"{n_files}; leave --nodes out."
            )
        n_nodes = n_files or least
    if n_nodes == 1 and args.graph == "grid":
        return Topology.single()
    try:
        return Topology.parse(args.graph, n_nodes=n_nodes)
    except GraphError as error:
        if args.nodes is not None:
            raise
        raise GraphError(f"{error} Without --nodes there are {n_nodes} of them.") from None


def read_sigma(args: argparse.Namespace, n_nodes: int) -> float:
    """Regularisation per node, from ``--sigma`` or else ``--C``."""
    sigma = args.sigma if args.C is None else 1.0 / (args.C * n_nodes) if args.C > 0 else np.nan
    low, high = RANGE
    if low <= sigma <= high:
        return float(sigma)
    if args.C is not None:
        raise ParameterError(
            f"--C {args.C:g} must be a finite number > 0, so that the regularisation per node is "
            f"from {low:g} to {high:g}; try 1."
        )
    raise ParameterError(
        f"--sigma {args.sigma:g} must be a finite number > 0, from {low:g} to {high:g}: without "
        "regularisation there is no rate and no certificate; try a small one such as 1e-3."
    )


def read_setting(args: argparse.Namespace, costs: Costs | None = None) -> MethodSetting:
    """The method's settings, checked."""
    if args.algorithm not in CHOSEN:
        get_algorithm(args.algorithm)
        require_schedule(args.algorithm, args.schedule)
    return MethodSetting(
        args.parameters, args.tau, args.clock, Delays(tau=args.tau), args.seed, args.schedule,
        costs or Costs.paper(),
    )  # fmt: skip


def as_list(given: str | list[str] | None) -> list[str] | None:
    """Names as a list; a settings file may have one as a text."""
    return [given] if isinstance(given, str) else given


def load_all(source: str, columns: Columns | None) -> tuple[list[Any], Labels | None]:
    """Rows of a DATA, one matrix per file, and all labels if every file has them.

    ``columns`` are those of the model that is to predict, if its data was a table.
    """
    fetch(source)
    names = [str(path) for path in shard_paths(source)] if NODE in source else [source]
    if columns is None and any(is_table(name) for name in names):
        raise DataError(
            f"{source} is a table, but the model was trained on columns without names; save the "
            "rows as it had them (LIBSVM or .npz), or train on a table."
        )
    pieces = [load_rows(name, Selection(columns=columns)) for name in names]
    labels = [y for _, y in pieces if y is not None]
    return [X for X, _ in pieces], np.concatenate(labels) if len(labels) == len(pieces) else None


def fetch(name: str, quiet: bool = False) -> None:
    """Download a known data set that is not on disk, with a note."""
    if name not in DATASETS or Path(name).is_file():
        return
    found = {dataset.name: path for dataset, path in available()}
    if found[name] is not None or DATASETS[name].url is None:
        return
    if not quiet:
        output.note(f"{name} is not on disk: downloading {DATASETS[name].url}")
    locate(name, progress=_draw if sys.stderr.isatty() and not quiet else None)


def _draw(done: int, total: int | None) -> None:
    share = f" of {total / 1e6:.1f}" if total else ""
    end = "\n" if done == total else ""
    print(f"\r{done / 1e6:8.1f}{share} MB", end=end, file=sys.stderr, flush=True)


def read_delays(args: argparse.Namespace) -> Delays:
    """The time model that the arguments describe, checked."""
    return Delays(
        args.tau, args.speed, args.delay_law, args.delay_shape, args.delay_of, args.delay_seed
    )


def mean_tau(args: argparse.Namespace) -> float:
    tau: float | list[float] = args.tau
    return fsum(tau) / len(tau) if isinstance(tau, list) else tau


def shell_command(args: argparse.Namespace) -> str:
    """The command line as a shell takes it, with settings as flags."""
    return shlex.join(["adfs", *args.command_line])

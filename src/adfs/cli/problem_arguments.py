"""What the arguments describe: the `Problem` with its samples, and the time model."""

import argparse
import shlex
import sys
from math import fsum
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from adfs.agreement import Alone, Peers, attempt
from adfs.cli import output
from adfs.cli.options import DEFAULT_NODES
from adfs.data.datasets import DATASETS, available, locate
from adfs.data.files import NODE, load_rows, load_share, shard_paths
from adfs.errors import DataError, GraphError, ParameterError
from adfs.graphs.topology import Topology
from adfs.losses import get_loss
from adfs.mpi.communicator import Communicator
from adfs.mpi.problem_loading import network_of, place_nodes
from adfs.problem.finite_sum import Problem
from adfs.schedule.delays import Delays

SIGMA_RANGE = (1e-100, 1e100)  # outside it, quotients in rates and steps overflow
Labels = NDArray[np.float64]


def build_problem(args: argparse.Namespace, world: Communicator | None = None) -> Problem:
    """The problem that the arguments describe; errors that are cheap to find come first.

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
            args.n_features,
        )  # fmt: skip
    shards = data.shards
    if args.intercept:
        shards = [shard._replace(X=with_constant(shard.X)) for shard in shards]
    classes, counts = data.classes, data.label_counts
    if args.class_weight and classes is not None and counts is not None:
        weight = np.sum(counts) / (2.0 * counts)  # counted over all shards
        labels = [np.searchsorted(classes, shard.y) for shard in shards]
        shards = [each._replace(weights=weight[k]) for each, k in zip(shards, labels, strict=True)]
    return Problem(shards, args.loss, sigma, network=network_of(world, topology, rank_of))


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
    low, high = SIGMA_RANGE
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


def with_constant(X: Any) -> Any:
    """``X`` with a last column of ones, in its own layout and type of number."""
    ones = np.ones((X.shape[0], 1), dtype=X.dtype)
    if isinstance(X, np.ndarray):
        return np.hstack([X, ones])
    return sp.hstack([X, sp.csr_matrix(ones)], format="csr")


def load_all(source: str) -> tuple[list[Any], Labels | None]:
    """Rows of a DATA, one matrix per file, and all labels if every file has them."""
    fetch(source)
    names = [str(path) for path in shard_paths(source)] if NODE in source else [source]
    pieces = [load_rows(name) for name in names]
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

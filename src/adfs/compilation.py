"""Compile the kernels of ordinary runs before they are needed, as for a container image."""

import contextlib
import itertools
import os
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from adfs.agreement import rounding
from adfs.algorithms.base import SCHEDULES, usual_names
from adfs.algorithms.nested_samples import NestedSamples
from adfs.apcg.penalties import Penalty
from adfs.apcg.smooth import LeastSquares
from adfs.apcg.solver import apcg
from adfs.data.partition import Shards, partition
from adfs.errors import DataError, ParameterError
from adfs.graphs.topology import Topology
from adfs.kernels.compiled import counts
from adfs.kernels.event_loop import run_events
from adfs.kernels.rank_messages import time_exchanges
from adfs.mpi.communicator import load_mpi, register_mpi_symbols
from adfs.mpi.mpi_network import PlainCarrier, make_carrier
from adfs.network import Network
from adfs.problem.finite_sum import Problem
from adfs.run import automatic
from adfs.schedule.schedule import Schedule
from adfs.schedule.timeline import intervals
from adfs.solver import solve
from adfs.study.compare import compare
from adfs.theory.parameters import Parameters

WAY_OUT = "set NUMBA_CACHE_DIR to a folder that can be written"
FORMS = tuple(itertools.product((np.float64, np.float32), (np.asarray, sp.csr_matrix)))
LOSSES = ("logistic", "squared", "hinge")  # kernels know losses by numbers: these meet all paths
SIGMA = 0.1
N_NODES, N_SAMPLES, N_FEATURES = 4, 40, 5
EVENTS = 20


class Compiled(NamedTuple):
    """What `compile_all` did. ``n_loaded`` counts kernels called from Python, not their callees."""

    folder: str
    seconds: float
    n_compiled: int
    n_loaded: int


def compile_all() -> Compiled:
    """Run tiny problems of every kind, so that all their kernels are in the cache."""
    folder = _require_folder()
    started, before = time.perf_counter(), counts.copy()
    for shards, loss in _problems():
        problem = Problem(shards, loss, SIGMA)
        _run_all(problem)
        if problem.loss.smooth:
            _run_on_samples(problem)
        compare(problem, [automatic(problem)], max_iter=EVENTS, progress=False, signals=())
        _run_as_rank(shards, loss)
    _run_others()
    if counts["not kept"]:
        raise DataError(f"{folder} does not take compiled kernels; free some space, or {WAY_OUT}.")
    compiled, loaded = (counts[kind] - before[kind] for kind in ("compiled", "loaded"))
    return Compiled(folder, time.perf_counter() - started, compiled, loaded)


def _require_folder() -> str:
    if not hasattr(run_events, "stats"):
        raise DataError("NUMBA_DISABLE_JIT is set, so no kernel is compiled; unset it.")
    folder: str = run_events.stats.cache_path
    wanted = os.environ.get("NUMBA_CACHE_DIR")
    if wanted and not os.path.realpath(folder).startswith(os.path.realpath(wanted) + os.sep):
        raise DataError(f"NUMBA_CACHE_DIR={wanted} cannot be written; {WAY_OUT}.")
    if not os.access(folder, os.W_OK):
        raise DataError(f"No folder for compiled kernels can be written; {WAY_OUT}.")
    return folder


def _problems() -> Iterator[tuple[Shards, str]]:
    """Every form of rows, with losses that take different paths."""
    generator = np.random.default_rng(0)
    dense = generator.normal(size=(N_SAMPLES, N_FEATURES))
    signs = np.where(dense[:, 0] > 0.0, 1.0, -1.0)
    for (number, layout), loss in itertools.product(FORMS, LOSSES):
        yield partition(layout(dense.astype(number)), signs, N_NODES), loss


def _run_as_rank(shards: Shards, loss: str) -> None:
    """The kernels of a rank under MPI: one that behaves as one of several, but has all nodes."""
    mpi = _mpi()

    class OneRank(Network):
        is_whole = False

        def carrier(self, stepper: Any) -> Any:
            if mpi is None:
                return PlainCarrier(stepper, None)
            return make_carrier(stepper, mpi, mpi.COMM_WORLD)

    _run_all(Problem(shards, loss, SIGMA, network=OneRank(Topology.grid(2, 2))))


def _run_all(problem: Problem) -> None:
    for name, schedule in itertools.product(usual_names(), SCHEDULES):
        # Not every algorithm has this loss, this schedule, or runs on ranks.
        with contextlib.suppress(ParameterError):
            solve(problem, name, max_iter=EVENTS, schedule=schedule, progress=False, signals=())
    first = solve(problem, max_iter=EVENTS, progress=False, signals=())
    solve(problem, max_iter=EVENTS, warm_start=first, progress=False, signals=())


def _run_on_samples(problem: Problem) -> None:
    """What Newton's method runs where nodes have many rows."""
    samples = NestedSamples(problem, (0.5, 1.0), 0)
    samples.load_kernels()
    samples.objective_and_gradient(np.zeros(problem.n_features), 0)


def _run_others() -> None:
    """What does not depend on the rows: timelines, APCG, what ranks compare, timed messages."""
    shards, loss = next(_problems())
    parameters = Parameters.choose(Problem(shards, loss, SIGMA), "paper")
    schedule = Schedule.sample(parameters, EVENTS)
    intervals(schedule.events(), schedule.clock())
    for rows in (np.eye(2), sp.csr_matrix(np.eye(2))):
        apcg(LeastSquares(rows, np.ones(2)), Penalty(l1=0.1), max_iter=EVENTS)
    rounding()
    if _mpi() is not None:
        word, real, byte = np.uintp(0), np.empty(0), np.empty(0, np.uint8)
        time_exchanges(np.int32(0), real, real, word, word, byte, byte, np.empty(0, np.int32), real)


def _mpi() -> Any:
    with contextlib.suppress(ParameterError):
        mpi = load_mpi()
        return mpi if register_mpi_symbols(mpi) else None
    return None

"""`solve` on ranks: the same run as in one process, its nodes dealt to many."""

import hashlib
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms import registered  # noqa: F401  (fills the registry)
from adfs.algorithms.base import (
    Method,
    Setting,
    numbers_per_event,
    parameters_of,
    require_schedule,
)
from adfs.checkpoints.store import Store
from adfs.distributed.carriers import Carrier, make_carrier
from adfs.distributed.collective import Sums
from adfs.distributed.engine import Engine, ReadModels
from adfs.distributed.execution import Execution, account
from adfs.distributed.patience import Patience
from adfs.distributed.pulse import Pulse, beat_of
from adfs.distributed.rank import Rank
from adfs.distributed.rank_keeper import RankKeeper
from adfs.distributed.share import Share
from adfs.distributed.spans import Spans
from adfs.errors import ParameterError
from adfs.launch.casualty import sentence
from adfs.launch.peers import agree, attempt
from adfs.launch.world import World
from adfs.runtime.course import Callback, Course
from adfs.runtime.keeping import Checkpoints, identity_of, require_new
from adfs.runtime.signals import Interrupts
from adfs.runtime.solve import Result, automatic, looks_of, pace_of
from adfs.runtime.stopping import Stopping
from adfs.theory.non_smooth import NonSmoothParameters
from adfs.theory.parameters import Parameters

ALGORITHMS = ("adfs", "ns-adfs")
DIFFERENT_BITS = (
    "The ranks computed different parameters from the same numbers, so their processors round "
    "differently; run on one type of CPU."
)


@dataclass
class Job:
    """How a run is executed; nothing here changes its bits."""

    timeout: float = 60.0
    carrier: str = "auto"
    checkpoints: Checkpoints | None = None
    keep_spans: bool = False
    gather_thetas: bool = True


def solve_on_ranks(
    world: World,
    share: Share,
    algorithm: str,
    stopping: Stopping,
    setting: Setting,
    warm_start: NDArray[np.float64] | None = None,
    evaluate_every: int | str | None = None,
    callbacks: tuple[Callback, ...] = (),
    interrupts: Interrupts | None = None,
    job: Job | None = None,
    reading: ReadModels | None = None,
) -> tuple[Result, Execution]:
    """Minimise the whole problem's ``F``; every rank calls it with its own share.

    The result is the same on every rank, but for ``thetas``: all nodes' on rank 0 (unless the job
    does not want them), a rank's own elsewhere. ``reading`` says what models are worth, where that
    is not the certificate of the problem.
    """
    started = time.perf_counter()
    job, interrupts = job or Job(), interrupts or Interrupts(())
    name = automatic(share) if algorithm == "auto" else algorithm
    _tell(world, share)
    chosen = attempt(world, lambda: _parameters(name, share, setting))
    _require_equal(world, chosen)
    rank = Rank(share, chosen, setting)
    rank.start(warm_start)
    course = _course(world, share, name, chosen.rho, stopping, evaluate_every, callbacks)
    keeper = _keeper(world, rank, name, setting, warm_start, job)
    resumed, seconds = None, 0.0
    if keeper is not None and job.checkpoints is not None and job.checkpoints.resume:
        resumed, seconds = keeper.resume(world, rank, course)
        told = world.gather([[str(path), why] for path, why in keeper.store.skipped])
        if world.rank == 0:
            skipped = dict.fromkeys((path, why) for each in told for path, why in each)
            job.checkpoints.announce(resumed, list(skipped))
    engine = _engine(world, rank, course, keeper, chosen.p_comm, seconds, job)
    engine.reading = reading
    setup_time = time.perf_counter() - started
    world.limit = job.timeout
    status, found = engine.go(interrupts)
    engine.close()
    result = Result(
        found.theta, _thetas(world, share, found.thetas, job), status, found.objective,
        found.duality_gap, chosen, course.trace, name, _rule(setting), chosen.rho,
        float(setting.tau), setting.clock, setting.seed, setup_time, engine.pulse.signal or None,
        setting.schedule, resumed,
    )  # fmt: skip
    return result, _account(world, share, engine, resumed)


def _course(
    world: World, share: Share, name: str, rho: float, stopping: Stopping,
    evaluate_every: int | str | None, callbacks: tuple[Callback, ...],
) -> Course:  # fmt: skip
    """The same as in one process, which knows the number of all samples."""
    shortest = Method.shortest
    if name == "ns-adfs":
        shortest = max(shortest, sum(world.gather(share.n_samples)))
    pace = pace_of(name == "adfs", rho, shortest, stopping.tol, evaluate_every)
    return Course(stopping, pace, rho, callbacks, looks_of(evaluate_every, shortest))


def _engine(
    world: World, rank: Rank, course: Course, keeper: RankKeeper | None, p_comm: float,
    seconds: float, job: Job,
) -> Engine:  # fmt: skip
    """Everything compiled, each kind of message with a communicator of its own."""
    mpi, share = world.mpi, rank.share
    comms = [world.comm.Dup() for _ in range(3)]
    carrier = make_carrier(rank, mpi, comms[0], job.carrier, job.keep_spans)
    _warm_up(rank, carrier)
    beat = beat_of(world.size, _numbers_per_event(world, share, p_comm))
    patience = Patience(job.timeout, lambda what: world.abort(sentence(world.watch.facts, what)))
    engine = Engine(
        rank, course, carrier, Sums(mpi, comms[1], share.mapping), Pulse(mpi, comms[2], beat),
        patience, keeper, Spans(job.keep_spans, mpi.Wtime), seconds,
    )  # fmt: skip
    engine.comms = comms
    return engine


def _account(world: World, share: Share, engine: Engine, resumed: int | None) -> Execution:
    return account(
        world, share.nodes.tolist(), engine.spans, engine.carrier.seconds, engine.carrier.waits,
        resumed, share.mapping.cut(share.topology),
    )  # fmt: skip


def _rule(setting: Setting) -> str:
    rule: str = setting.rule if isinstance(setting.rule, str) else setting.rule.how
    return rule


def _tell(world: World, share: Share) -> None:
    """Let the supervisor know what to say should this rank die."""
    ends, owners = share.topology.edges, share.mapping.rank_of
    peers: dict[int, list[int]] = {}
    for k, l in ends.tolist():
        for mine, other in ((k, l), (l, k)):
            rank = int(owners[other])
            if owners[mine] == world.rank != rank and other not in peers.setdefault(rank, []):
                peers[rank].append(other)
    world.watch.tell(nodes=share.nodes.tolist(), peers=peers)


def _parameters(name: str, share: Share, setting: Setting) -> Parameters | NonSmoothParameters:
    if name not in ALGORITHMS:
        raise ParameterError(
            f"Algorithm {name!r} runs in one process; choose --engine local, or one of the "
            f"algorithms {' and '.join(ALGORITHMS)}."
        )
    require_schedule(name, setting.schedule)
    if setting.delays.law != "constant":
        raise ParameterError("Ranks time themselves with constant delays; use --engine local.")
    if name == "adfs":
        return parameters_of(name, Parameters, share, setting)
    return parameters_of(name, NonSmoothParameters, share, setting)


def _require_equal(world: World, chosen: Parameters | NonSmoothParameters) -> None:
    """Ranks that round differently would follow different schedules."""
    numbers = np.concatenate([chosen.p_edge, chosen.p_node, chosen.edge_eta, [chosen.rho]])
    digest = hashlib.sha256(numbers.tobytes()).hexdigest()
    alike = len(set(world.gather(digest))) == 1
    agree(world, None if alike else ParameterError(DIFFERENT_BITS))


def _keeper(
    world: World, rank: Rank, name: str, setting: Setting,
    warm_start: NDArray[np.float64] | None, job: Job,
) -> RankKeeper | None:  # fmt: skip
    if job.checkpoints is None:
        return None
    share, folder = rank.share, job.checkpoints.folder
    identity = identity_of(share, share.nodes, share.whole_sigma, name, setting, warm_start)
    store = Store(folder, identity, world.rank, world.size)
    attempt(world, store.open)
    if not job.checkpoints.resume:
        attempt(world, lambda: require_new(store, share.nodes))
    every = job.checkpoints.interval(sum(world.gather(share.n_samples)))
    return RankKeeper(store, every, job.checkpoints.complain)


def _warm_up(rank: Rank, carrier: Carrier) -> None:
    """Compile or load what the loop will call: that belongs to set-up."""
    rank.load(rank.position)
    carrier.serve()


def _numbers_per_event(world: World, share: Share, p_comm: float) -> float:
    """Numbers that an event reads and writes, in the mean."""
    told = np.array(world.gather([share.n_numbers, share.n_samples]), dtype=np.float64)
    row = float(told[:, 0].sum() / told[:, 1].sum())
    return numbers_per_event(row, share.n_features, p_comm)


def _thetas(world: World, share: Share, own: NDArray[np.float64], job: Job) -> NDArray[np.float64]:
    """All nodes' models on rank 0, if they are wanted: n d numbers."""
    if not job.gather_thetas:
        return own
    d = own.shape[1]
    counts = [len(share.mapping.nodes(rank)) * d for rank in range(world.size)]
    whole = np.empty(sum(counts)) if world.rank == 0 else None
    world.comm.Gatherv(np.ascontiguousarray(own), None if whole is None else [whole, counts])
    if whole is None:
        return own
    order = np.concatenate([share.mapping.nodes(rank) for rank in range(world.size)])
    by_rank = whole.reshape(-1, d)
    return by_rank if (np.diff(order) > 0).all() else by_rank[np.argsort(order)]

"""`solve` on ranks: the same run as in one process, its nodes dealt to many."""

import hashlib
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms import registered  # noqa: F401  (fills the registry)
from adfs.algorithms.base import Method, Setting, parameters_of, require_schedule
from adfs.checkpoints.store import Store
from adfs.distributed.carriers import Carrier, make_carrier
from adfs.distributed.casualty import sentence
from adfs.distributed.collective import Sums
from adfs.distributed.engine import Engine
from adfs.distributed.execution import Execution, account
from adfs.distributed.patience import Patience
from adfs.distributed.peers import agree, attempt
from adfs.distributed.pulse import Pulse, beat_of
from adfs.distributed.rank import Rank
from adfs.distributed.rank_keeper import RankKeeper
from adfs.distributed.share import Share
from adfs.distributed.spans import Spans
from adfs.distributed.world import World
from adfs.errors import ParameterError
from adfs.kernels.rows import DenseRows
from adfs.runtime.course import Callback, Course
from adfs.runtime.keeping import Checkpoints, identity_of, require_new
from adfs.runtime.signals import Interrupts
from adfs.runtime.solve import Result, automatic, pace_of
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


def solve_on_ranks(
    world: World,
    share: Share,
    algorithm: str,
    stopping: Stopping,
    setting: Setting,
    warm_start: NDArray[np.float64] | None = None,
    evaluate_every: int | None = None,
    callbacks: tuple[Callback, ...] = (),
    interrupts: Interrupts | None = None,
    job: Job | None = None,
) -> tuple[Result, Execution]:
    """Minimise the whole problem's ``F``; every rank calls it with its own share.

    The result is the same on every rank, but for ``thetas``: all nodes' on rank 0, a rank's own
    elsewhere.
    """
    started = time.perf_counter()
    job = job or Job()
    name = automatic(share) if algorithm == "auto" else algorithm
    _tell(world, share)
    chosen = attempt(world, lambda: _parameters(name, share, setting))
    _require_equal(world, chosen)
    rank = Rank(share, chosen, setting)
    rank.start(warm_start)
    shortest = Method.shortest
    if name == "ns-adfs":
        shortest = max(shortest, sum(world.gather(share.n_samples)))
    pace = pace_of(name == "adfs", chosen.rho, shortest, stopping.tol, evaluate_every)
    course = Course(stopping, pace, chosen.rho, callbacks)
    keeper = _keeper(world, rank, name, setting, warm_start, job)
    resumed, seconds = None, 0.0
    if keeper is not None and job.checkpoints is not None and job.checkpoints.resume:
        resumed, seconds = keeper.resume(world, rank, course)
        if world.rank == 0:
            job.checkpoints.announce(resumed)
    interrupts = interrupts or Interrupts(())
    carrier = make_carrier(rank, world.mpi, world.comm.Dup(), job.carrier, job.keep_spans)
    _warm_up(rank, carrier)
    spans = Spans(job.keep_spans, world.mpi.Wtime)
    engine = Engine(
        rank, course, carrier, Sums(world.mpi, world.comm.Dup(), share.mapping),
        Pulse(world.mpi, world.comm.Dup(), beat_of(world.size, _numbers_per_row(world, share))),
        Patience(job.timeout, lambda what: world.abort(sentence(world.watch.facts, what)),
                 world.check),
        keeper, spans, seconds,
    )  # fmt: skip
    setup_time = time.perf_counter() - started
    status, reading = engine.go(interrupts)
    thetas = _thetas(world, share, reading.thetas)
    rule = setting.rule if isinstance(setting.rule, str) else setting.rule.how
    result = Result(
        reading.theta, thetas, status, reading.objective, reading.duality_gap, chosen,
        course.trace, name, rule, chosen.rho, float(setting.tau), setting.clock, setting.seed,
        setup_time, engine.pulse.signal or None, setting.schedule, resumed,
    )  # fmt: skip
    cut = share.mapping.cut(share.topology)
    return result, account(
        world, share.nodes.tolist(), spans, carrier.seconds, carrier.waits, resumed, cut
    )


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


def _numbers_per_row(world: World, share: Share) -> float:
    rows = share.rows
    own = rows.values.size if isinstance(rows, DenseRows) else int(rows.indptr[-1])
    told = np.array(world.gather([own, share.n_samples]), dtype=np.float64)
    return float(told[:, 0].sum() / told[:, 1].sum())


def _thetas(world: World, share: Share, own: NDArray[np.float64]) -> NDArray[np.float64]:
    """All nodes' models on rank 0."""
    d = share.n_features
    counts = [len(share.mapping.nodes(rank)) * d for rank in range(world.size)]
    whole = np.empty(sum(counts)) if world.rank == 0 else None
    world.comm.Gatherv(np.ascontiguousarray(own), None if whole is None else [whole, counts])
    if whole is None:
        return own
    order = np.concatenate([share.mapping.nodes(rank) for rank in range(world.size)])
    thetas = np.empty((len(order), d))
    thetas[order] = whole.reshape(-1, d)
    return thetas

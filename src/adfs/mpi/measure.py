"""What a proximal step and an exchange take on this machine, and the ``tau`` that follows.

The theory's time unit is one sample's proximal step, and an exchange takes ``tau`` of them. Both
are measured with the code that a run uses, on all ranks at once, because ranks share memory and
cores in a run as well. Between the measured sizes an exchange of d + 1 numbers takes about

    time(d) = latency + 8 (d + 1) / bandwidth.
"""

import os
import platform
import time
from typing import Any

import numpy as np
from scipy.optimize import nnls

from adfs.algorithms.adfs import prepare
from adfs.algorithms.base import MethodSetting
from adfs.data.generators import two_gaussians
from adfs.errors import ParameterError
from adfs.graphs.topology import Topology
from adfs.mpi.communicator import Communicator, register_mpi_symbols, yield_core
from adfs.mpi.mpi_network import MpiTransport
from adfs.network import Vector
from adfs.problem.finite_sum import Problem

SIZES = (28, 1_000, 10_000, 100_000)
NUMBERS = 2_000_000  # of a measured problem: more than fit in a core's cache, as in a real run
MOST_ROWS, FEWEST_ROWS = 10_000, 20
MOST_ROUNDS = 7  # partners that a rank is measured with
REPEATS = 7
BATCHES = 21


def measure(world: Communicator) -> dict[str, Any]:
    """All that ``adfs info --mpi`` shows; times are medians over ranks or pairs of ranks."""
    if world.size < 2:
        raise ParameterError(
            "adfs info --mpi measures messages between ranks, and there is only one; start it as "
            "mpiexec -n 2 adfs info --mpi."
        )
    compiled = all(world.gather(register_mpi_symbols(world.mpi)))
    rows = [_measure_size(world, n_features, compiled) for n_features in SIZES]
    exchange = np.array([row["exchange_us"] for row in rows])
    latency, per_byte, error = fit_line(8.0 * (np.array(SIZES) + 1), exchange)
    hosts = world.gather(platform.node())
    crowd = max(hosts.count(host) for host in hosts)
    return {
        "library": world.library,
        "ranks": world.size,
        "hosts": len(set(hosts)),
        "oversubscribed": crowd > min(world.gather(os.cpu_count() or 1)),
        "compiled": compiled,
        "sizes": rows,
        "latency_us": latency,
        "bandwidth_gb_s": 1e-3 / per_byte if per_byte > 0.0 else None,
        "fit_error": error,
    }


def _measure_size(world: Communicator, n_features: int, compiled: bool) -> dict[str, Any]:
    prox = float(np.median(world.gather(prox_seconds(n_features))))
    pairs = exchange_seconds(world, n_features, compiled)
    exchange, slowest = float(np.median(list(pairs.values()))), max(pairs, key=pairs.__getitem__)
    return {
        "n_features": n_features,
        "prox_ns": 1e9 * prox,
        "exchange_us": 1e6 * exchange,
        "slowest_us": 1e6 * pairs[slowest],
        "slowest_pair": list(slowest),
        "tau": exchange / prox,
    }


def prox_seconds(n_features: int) -> float:
    """Seconds of one local update of Algorithm 1 at a dense logistic sample, all included."""
    n_samples = int(np.clip(NUMBERS // n_features, FEWEST_ROWS, MOST_ROWS))
    X, y = two_gaussians(n_samples, n_features)
    method = prepare(Problem([(X, y)], "logistic", 1.0, Topology.single()), MethodSetting())
    state, block = method.algorithm.init(), max(200, n_samples)
    seconds = []
    for turn in range(REPEATS + 1):
        events = method.source.draw(turn * block, (turn + 1) * block)
        started = time.perf_counter()
        state = method.algorithm.step(state, events)
        seconds.append((time.perf_counter() - started) / block)
    return float(np.median(seconds[1:]))  # the first may have compiled


def exchange_seconds(
    world: Communicator, n_features: int, compiled: bool
) -> dict[tuple[int, int], float]:
    """Seconds of an exchange of d + 1 numbers, of each pair of ranks that was tried."""
    mine: list[list[float]] = []
    rounds = world.size - 1 + world.size % 2  # of a tournament of all pairs
    for turn in np.linspace(0, rounds - 1, min(rounds, MOST_ROUNDS)).astype(int).tolist():
        peer = partner(world.rank, turn, world.size)
        world.gather(None)  # all begin together, and ranks without a partner wait
        if peer is not None:
            mine.append([peer, _seconds_with(world, peer, n_features, compiled)])
    return {
        (rank, int(peer)): seconds
        for rank, pairs in enumerate(world.gather(mine))
        for peer, seconds in pairs
        if rank < peer
    }


def partner(rank: int, turn: int, size: int) -> int | None:
    """The partner of a rank in a round of a tournament of all pairs; None: it has none.

    Examples
    --------
    >>> [[partner(rank, turn, 4) for rank in range(4)] for turn in range(3)]
    [[3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1]]
    """
    last = size - 1 + size % 2  # the one that keeps its place; with an odd size, no rank
    alone = turn * (last + 1) // 2 % last  # 2 alone = turn, modulo last, which is odd
    other = alone if rank == last else last if rank == alone else (turn - rank) % last
    return other if other < size else None


def fit_line(amounts: Vector, times: Vector) -> tuple[float, float, float]:
    """``times = a + b amounts`` in relative errors, a, b >= 0: a, b, the largest error."""
    scaled = np.stack([np.ones_like(amounts), amounts / amounts.max()], axis=1) / times[:, None]
    solution, _ = nnls(scaled, np.ones_like(times))
    error = float(np.abs(scaled @ solution - 1.0).max())
    return float(solution[0]), float(solution[1] / amounts.max()), error


def _seconds_with(world: Communicator, peer: int, n_features: int, compiled: bool) -> float:
    """Seconds of an exchange: the median of means of some in a row, the first not counted.

    Single ones mislead where two ranks share a core: the second of two exchanges has then
    already arrived when it is posted.
    """
    mpi, comm = world.mpi, world.comm
    outgoing, incoming = np.ones(n_features + 1), np.empty(n_features + 1)
    seconds = np.zeros((BATCHES, int(np.clip(1_000_000 // n_features, 5, 100))))
    if compiled:
        from adfs.kernels.rank_messages import time_exchanges

        fault = time_exchanges(
            np.int32(peer), outgoing, incoming, np.uintp(mpi._handleof(comm)),
            np.uintp(mpi._handleof(mpi.DOUBLE)), np.zeros(2 * mpi._sizeof(mpi.Request), np.uint8),
            np.zeros(2 * mpi._sizeof(mpi.Status), np.uint8), np.zeros(1, np.int32),
            seconds.reshape(-1),
        )  # fmt: skip
        if fault:
            raise mpi.Exception(fault)
    else:
        transport = MpiTransport(mpi, comm)
        for k in range(seconds.size):
            started = time.perf_counter()
            transport.post(0, peer, 0, outgoing, incoming)
            while not transport.done(0):
                yield_core()
            seconds.flat[k] = time.perf_counter() - started
    return float(np.median(seconds.mean(axis=1)[1:]))

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
from numpy.typing import NDArray
from scipy.optimize import nnls

from adfs.errors import ParameterError
from adfs.mpi import library
from adfs.mpi.communicator import Communicator, yield_core

Vector = NDArray[np.float64]

SIZES = (28, 1_000, 10_000, 100_000)
NUMBERS = 2_000_000  # of a measured problem: more than fit in a core's cache, as in a real run
MOST_ROWS, FEWEST_ROWS = 10_000, 20
MOST_ROUNDS = 7  # partners that a rank is measured with
REPEATS = 7
BATCHES = 21


def measure(world: Communicator) -> dict[str, Any]:
    """All that ``adfs info --mpi`` shows; the same on every rank, all of which have to call.

    A time is the median over ranks or pairs of ranks; the slowest pair is given beside it.
    """
    if world.size < 2:
        raise ParameterError(
            "adfs info --mpi measures messages between ranks, and there is only one; start it as "
            "mpiexec -n 2 adfs info --mpi."
        )
    swapper = Swapper(world)
    rows = [_measure_size(world, swapper, n_features) for n_features in SIZES]
    exchange = np.array([row["exchange_us"] for row in rows])
    latency, per_byte, error = fit_line(8.0 * (np.array(SIZES) + 1), exchange)
    hosts = world.gather(platform.node())
    crowd = max(hosts.count(host) for host in hosts)
    return {
        "library": world.library,
        "ranks": world.size,
        "hosts": len(set(hosts)),
        "oversubscribed": crowd > min(world.gather(os.cpu_count() or 1)),
        "compiled": swapper.compiled,
        "sizes": rows,
        "latency_us": latency,
        "bandwidth_gb_s": 1e-3 / per_byte if per_byte > 0.0 else None,
        "fit_error": error,
    }


def _measure_size(world: Communicator, swapper: "Swapper", n_features: int) -> dict[str, Any]:
    """One row of the table."""
    prox = float(np.median(world.gather(prox_seconds(n_features))))
    pairs = exchange_seconds(world, swapper, n_features)
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
    from adfs.algorithms.adfs import prepare
    from adfs.algorithms.base import MethodSetting
    from adfs.data.generators import two_gaussians
    from adfs.graphs.topology import Topology
    from adfs.problem.finite_sum import Problem

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
    world: Communicator, swapper: "Swapper", n_features: int
) -> dict[tuple[int, int], float]:
    """Seconds of an exchange of d + 1 numbers, of each pair of ranks that was tried."""
    mine: list[list[float]] = []
    for turn in _turns(world.size):
        peer = partner(world.rank, turn, world.size)
        world.gather(None)  # all begin together, and ranks without a partner wait
        if peer is not None:
            mine.append([peer, swapper.seconds(peer, n_features)])
    return {
        (rank, int(peer)): seconds
        for rank, pairs in enumerate(world.gather(mine))
        for peer, seconds in pairs
        if rank < peer
    }


def _turns(size: int) -> list[int]:
    """Rounds of a tournament of all ranks, or some of them spread evenly."""
    rounds = size - 1 + size % 2
    chosen = np.linspace(0, rounds - 1, min(rounds, MOST_ROUNDS))
    return [int(turn) for turn in chosen]


def partner(rank: int, turn: int, size: int) -> int | None:
    """The partner of a rank in a round of a tournament of all pairs; None: it has none.

    Examples
    --------
    >>> [[partner(rank, turn, 4) for rank in range(4)] for turn in range(3)]
    [[3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1]]
    >>> [partner(rank, 0, 3) for rank in range(3)]
    [None, 2, 1]
    """
    last = size - 1 + size % 2  # the one that keeps its place; with an odd size, no rank
    if rank == last:
        other = next(k for k in range(last) if 2 * k % last == turn % last)
    else:
        other = (turn - rank) % last
        other = last if other == rank else other
    return other if other < size else None


def fit_line(amounts: Vector, times: Vector) -> tuple[float, float, float]:
    """Least squares of ``times = a + b amounts`` with a, b >= 0, in relative errors.

    Absolute errors would let the largest message alone decide, and the latency be negative.

    Returns
    -------
    tuple of float
        ``a``, ``b`` and the largest relative error.
    """
    scaled = np.stack([np.ones_like(amounts), amounts / amounts.max()], axis=1) / times[:, None]
    solution, _ = nnls(scaled, np.ones_like(times))
    error = float(np.abs(scaled @ solution - 1.0).max())
    return float(solution[0]), float(solution[1] / amounts.max()), error


class Swapper:
    """Exchanges messages with another rank: by MPI's C functions where they are available."""

    def __init__(self, world: Communicator) -> None:
        self.world = world
        self.compiled = all(world.gather(bool(library.register_mpi_symbols(world.mpi))))

    def seconds(self, peer: int, n_features: int) -> float:
        """Seconds of an exchange: the median of means of some in a row, the first not counted.

        Single ones mislead where two ranks share a core: the second of two exchanges has then
        already arrived when it is posted.
        """
        n_swaps = BATCHES * int(np.clip(1_000_000 // n_features, 5, 100))
        outgoing, incoming = np.ones(n_features + 1), np.empty(n_features + 1)
        swap = self._compiled if self.compiled else self._plain
        seconds = swap(peer, outgoing, incoming, n_swaps)
        return float(np.median(seconds.reshape(BATCHES, -1).mean(axis=1)[1:]))

    def _compiled(self, peer: int, outgoing: Vector, incoming: Vector, n_swaps: int) -> Vector:
        from adfs.kernels.exchange_timing import time_exchanges

        mpi, seconds = self.world.mpi, np.zeros(n_swaps)
        fault = time_exchanges(
            np.int32(peer), outgoing, incoming, np.uintp(mpi._handleof(self.world.comm)),
            np.uintp(mpi._handleof(mpi.DOUBLE)), np.zeros(2 * mpi._sizeof(mpi.Request), np.uint8),
            np.zeros(2 * mpi._sizeof(mpi.Status), np.uint8), np.zeros(1, np.int32), seconds,
        )  # fmt: skip
        if fault:
            raise mpi.Exception(fault)
        return seconds

    def _plain(self, peer: int, outgoing: Vector, incoming: Vector, n_swaps: int) -> Vector:
        comm, testall = self.world.comm, self.world.mpi.Request.Testall
        seconds = np.zeros(n_swaps)
        for k in range(n_swaps):
            started = time.perf_counter()
            requests = [comm.Irecv(incoming, peer), comm.Isend(outgoing, peer)]
            while not testall(requests):
                yield_core()
            seconds[k] = time.perf_counter() - started
        return seconds

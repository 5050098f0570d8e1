"""Several ranks in one process: for tests of everything but the network."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import adfs
from adfs.algorithms.base import Setting
from adfs.distributed.mapping import Mapping, map_nodes
from adfs.distributed.rank import Rank, serve
from adfs.distributed.share import Share
from adfs.distributed.transport import Hub, Loopback


class ThreadPeers:
    """Peers that are threads of this process and meet at a barrier."""

    def __init__(self, rank, board, barrier):
        self.rank, self.size = rank, barrier.parties
        self._board, self._barrier = board, barrier

    def gather(self, item):
        self._board[self.rank] = item
        self._barrier.wait(timeout=60)
        items = list(self._board)
        self._barrier.wait(timeout=60)
        return items


def on_threads(size, work):
    """``work(peers)`` on as many threads as ranks; their results in the order of ranks."""
    board, barrier = [None] * size, threading.Barrier(size)

    def run(rank):
        try:
            return work(ThreadPeers(rank, board, barrier))
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(run, rank) for rank in range(size)]
    errors = [future.exception() for future in futures]
    real = [e for e in errors if e and not isinstance(e, threading.BrokenBarrierError)]
    if real:
        raise real[0]
    return [future.result() for future in futures]


def make_ranks(problem, parameters, setting, mapping):
    """A rank for each part of a mapping, with parameters chosen by each from gathered numbers."""
    n = problem.n_nodes
    shards = [_shard(problem, node) for node in range(n)]

    def make(peers):
        share = Share(
            peers, [shards[node] for node in mapping.nodes(peers.rank)], problem.loss,
            problem.sigma, problem.topology, mapping, np.array([-1.0, 1.0])
            if problem.loss.binary else None,
        )  # fmt: skip
        kind = adfs.Parameters if problem.loss.smooth else adfs.NonSmoothParameters
        chosen = kind.choose(share, parameters, setting.tau, setting.clock, setting.delays)
        return Rank(share, chosen, setting)

    return on_threads(mapping.size, make)


def _shard(problem, node):
    from adfs.problems.shards import slice_rows

    rows = problem.node_rows(node)
    X = slice_rows(problem.rows, problem.n_features, rows.start, rows.stop)
    return X, problem.labels[rows], problem.weights[rows]


def run_ranks(ranks, stop, transports, block=1_000):
    """Turn all ranks to the position ``stop``, each in blocks of its own."""
    idle = 0
    while idle < 10_000:
        moved = 0
        for rank, transport in zip(ranks, transports, strict=True):
            if rank.position < stop and rank.done:
                rank.load(min(stop, rank.position + block))
            moved += serve(rank, transport) if rank.position else 0
        if all(rank.done and rank.position == stop for rank in ranks):
            return
        idle = 0 if moved else idle + 1
    raise AssertionError("the ranks wait for each other")

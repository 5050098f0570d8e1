"""Ranks that are threads of this process, what the local engine has, and a comparison of bits."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy.sparse import issparse

from adfs.data.files import NODE, load_data, load_shards
from adfs.data.partition import Shard, partition
from adfs.mpi.communicator import pack, unpack
from support.limits import HANG


class Threads:
    """Peers that meet at a barrier; every item travels as bytes, as it would between hosts.

    Between two meetings the ranks work one after another: CPython 3.11 fails now and then where
    several threads read the headers of arrays, and ranks are processes anyway.
    """

    def __init__(self, rank, board, barrier, turn):
        self.rank, self.size = rank, barrier.parties
        self.board, self.barrier, self.turn = board, barrier, turn
        self.heard = []

    def gather(self, item):
        self.board[self.rank] = pack(item)
        self.turn.release()
        try:
            self.barrier.wait(timeout=HANG)
            packed = list(self.board)
            self.barrier.wait(timeout=HANG)
        finally:
            self.turn.acquire()
        self.heard.append(packed)
        return [unpack(each) for each in packed]


class Replay:
    """One rank alone, told again what a run of all ranks told it; it must say the same."""

    def __init__(self, peers):
        self.rank, self.size = peers.rank, peers.size
        self.heard = list(peers.heard)

    def gather(self, item):
        packed = self.heard.pop(0)
        assert pack(item).tobytes() == packed[self.rank].tobytes()
        return [unpack(each) for each in packed]


def on_ranks(size, work):
    """What ``work(peers)`` returns or raises on each rank, and the peers.

    A rank that leaves while another waits for it shows as a `BrokenBarrierError`.
    """
    board, barrier, turn = [None] * size, threading.Barrier(size), threading.Lock()
    peers = [Threads(rank, board, barrier, turn) for rank in range(size)]

    def run(rank):
        try:
            with turn:
                return work(peers[rank])
        except Exception as error:
            return error

    with ThreadPoolExecutor(size) as pool:
        outcomes = list(pool.map(run, range(size)))
    assert len({len(each.heard) for each in peers}) == 1, "the ranks gathered unequally often"
    return outcomes, peers


def succeed(size, work):
    """What all ranks return; none may fail."""
    outcomes, _ = on_ranks(size, work)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
    return outcomes


def local_shards(data, n_nodes, how=None, seed=0, m=None, n_features=None):
    """The shards of all rows, read at once."""
    if NODE in str(data):
        return [Shard(X, y) for X, y in load_shards(str(data), n_features)]
    X, y = load_data(str(data), n_features)
    return partition(X, y, n_nodes, how or "even", seed, m)


def owners(n_nodes, size):
    """Some mappings of nodes to ranks: in runs, and dealt like cards."""
    nodes = np.arange(n_nodes)
    return [nodes * size // n_nodes, nodes[::-1] % size]


def require_same_bits(found, expected):
    """Two lists of shards are equal in type, layout and every bit."""
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert type(ours.X) is type(theirs.X)
        assert ours.X.shape == theirs.X.shape
        assert ours.weights is theirs.weights is None
        for left, right in zip(arrays(ours), arrays(theirs), strict=True):
            assert left.dtype == right.dtype
            assert left.shape == right.shape
            assert left.flags.c_contiguous
            assert left.tobytes() == right.tobytes()


def arrays(shard):
    X = (shard.X.data, shard.X.indices, shard.X.indptr) if issparse(shard.X) else (shard.X,)
    return [*X, shard.y]

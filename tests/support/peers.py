"""Ranks that are threads of this process, what the local engine has, and a comparison of bits."""

import numpy as np
from scipy.sparse import issparse

from adfs import simulated_ranks
from adfs.data.files import NODE, load_data, load_shards
from adfs.data.partition import Shard, partition
from adfs.mpi.communicator import pack, unpack
from support.limits import HANG


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
    """As `simulated_ranks.on_ranks`, where the ranks gather equally often."""
    outcomes, peers = simulated_ranks.on_ranks(size, work, HANG)
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

"""Ranks that are threads of one process: what MPI would do, without MPI, to test methods.

All numbers go through one gathering, as bytes, and are added along the same tree as over MPI.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from adfs.agreement import Peers
from adfs.graphs.topology import Topology
from adfs.kernels.node_sums import SUM
from adfs.mpi.communicator import pack, unpack
from adfs.network import NO_VALUES, Answer, Callback, Matrix, Network, Numbers, leaves, pair_up

PATIENCE = 600.0  # seconds at a meeting, after which the ranks give up


class ThreadPeers(Peers):
    """Ranks that meet at a barrier.

    Between two meetings they work one after another: CPython 3.11 fails now and then where several
    threads read the headers of arrays, and ranks are processes anyway.
    """

    def __init__(
        self, rank: int, board: list[Any], barrier: threading.Barrier, turn: threading.Lock,
        patience: float,
    ) -> None:  # fmt: skip
        self.rank, self.size = rank, barrier.parties  # type: ignore[misc]
        self.patience = patience
        self.board, self.barrier, self.turn = board, barrier, turn
        self.heard: list[list[Any]] = []

    def gather(self, item: Any) -> list[Any]:
        self.board[self.rank] = pack(item)
        self.turn.release()
        try:
            self.barrier.wait()
            packed = list(self.board)
            self.barrier.wait()
        finally:
            if not self.turn.acquire(timeout=self.patience):
                raise TimeoutError("another rank works on, or waits for this one")
        self.heard.append(packed)
        return [unpack(each) for each in packed]


def on_ranks(
    size: int, work: Callable[[ThreadPeers], Any], patience: float = PATIENCE
) -> tuple[list[Any], list[ThreadPeers]]:
    """What ``work(peers)`` returns or raises on each rank, and the peers.

    A rank that leaves while another one waits for it shows as a `BrokenBarrierError`.
    """
    board, turn = [None] * size, threading.Lock()
    barrier = threading.Barrier(size, timeout=patience)
    peers = [ThreadPeers(rank, board, barrier, turn, patience) for rank in range(size)]

    def run(rank: int) -> Any:
        try:
            with turn:
                return work(peers[rank])
        except Exception as error:
            return error

    with ThreadPoolExecutor(size) as pool:
        outcomes = list(pool.map(run, range(size)))
    return outcomes, peers


class ThreadNetwork(Network):
    """Nodes on such ranks; has no carrier, so only methods in rounds run on it."""

    def __init__(self, peers: Peers, topology: Topology, rank_of: Numbers) -> None:
        super().__init__(topology, rank_of, peers)

    def carrier(self, stepper: Any) -> Any:
        """None: whoever steps through pairwise exchanges here moves the messages."""

    def _combined(self, blocks: Matrix, values: Matrix) -> Iterator[Answer | None]:
        told = self.gather([blocks.copy(), values])
        n = self.topology.n_nodes
        every, stack, whole = np.empty((n, values.shape[1])), list[Any](), list[Any]()
        for rank, (rows, numbers) in enumerate(told):
            nodes = np.flatnonzero(self.rank_of == rank)
            every[nodes] = numbers
            whole += zip(pair_up(leaves(nodes), n)[1].tolist(), rows, strict=True)
        whole.sort(key=lambda pair: pair[0])
        merges, _ = pair_up(np.array([block for block, _ in whole]), n)
        for (_, row), additions in zip(whole, merges, strict=True):
            stack.append(row)
            for _ in range(additions):
                stack[-2:] = [stack[-2] + stack[-1]]
        yield Answer(stack[0], every)

    def neighbours(self, rows: Matrix) -> None:
        told = self.gather(rows[: len(self.nodes)])
        for row, node in enumerate(self.beyond.tolist(), start=len(self.nodes)):
            rank = int(self.rank_of[node])
            own = np.flatnonzero(self.rank_of == rank).tolist().index(node)
            rows[row] = told[rank][own]

    def _callback_address(self) -> int:
        def answer(kind: int, rows: Matrix) -> None:
            if kind == SUM:
                (found,) = self._combined(rows, np.repeat(NO_VALUES, len(self.nodes), axis=0))
                assert found is not None
                rows[0] = found.total
            else:
                self.neighbours(rows)

        self._callback = Callback(answer)
        return self._callback.address

"""Nodes on the ranks that mpiexec started: the methods of `adfs.network` between processes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from adfs.agreement import attempt, gather_from_all, require_same
from adfs.errors import ParameterError
from adfs.graphs.topology import Topology
from adfs.kernels import node_sums as kernel
from adfs.mpi.communicator import Communicator, open_world
from adfs.mpi.transport import make_carrier
from adfs.network import (
    Answer,
    Callback,
    Matrix,
    Network,
    Numbers,
    Vector,
    leaves,
    pair_up,
    push,
)

GATHERED = 4_096  # numbers of all ranks together, up to which each rank receives all of them
ROWS = 0  # tag of neighbours' rows


class MpiNetwork(Network):
    """A graph whose nodes are spread over ranks.

    Parameters
    ----------
    world : Communicator
        The ranks; its communicators carry sums, heartbeats and messages apart from each other.
    topology : Topology
    rank_of : array of shape (n_nodes,)
        The rank of each node; every rank has one.
    carrier : {"auto", "plain"}
        Whether messages of pairwise events are sent by compiled code, where the platform allows it.
    """

    engine = "mpi"

    def __init__(
        self, world: Communicator, topology: Topology, rank_of: Numbers, carrier: str = "auto"
    ) -> None:
        self.world, self._carrier = world, carrier
        self.clock = world.mpi.Wtime
        super().__init__(topology, world.rank, rank_of, world)
        self._all_nodes = [np.flatnonzero(rank_of == rank) for rank in range(self.size)]
        self._order = np.argsort(np.concatenate(self._all_nodes))
        blocks = [pair_up(leaves(nodes), topology.n_nodes)[1] for nodes in self._all_nodes]
        every = [block for each in blocks for block in each]
        self._n_blocks = np.array([len(each) for each in blocks])
        self._block_order = sorted(range(len(every)), key=every.__getitem__)
        self._block_merges = pair_up(sorted(every), topology.n_nodes)[0]
        self._links_to = self._shared_rows()
        waiting = {
            rank: self.beyond[rows - len(self.nodes)].tolist() for rank, _, rows in self._links_to
        }
        world.link.report(nodes=self.nodes.tolist(), peers=waiting)

    def _shared_rows(self) -> list[tuple[int, Numbers, Numbers]]:
        """For each neighbouring rank: own rows that it needs, and where its rows go here."""
        leaving = (self.ends >= 0).sum(axis=1) == 1
        pairs = self.topology.edges[leaving].astype(np.int64)
        first_is_here = self.ends[leaving, :1] >= 0
        own, far = np.where(first_is_here, pairs, pairs[:, ::-1]).T
        ranks = self.rank_of[far]
        return [
            (rank, self.here[np.unique(own[ranks == rank])],
             self._row_of[np.unique(far[ranks == rank])])
            for rank in np.unique(ranks).tolist()
        ]  # fmt: skip

    # Sums over all nodes.

    def _combined(
        self, width: int, blocks: list[Vector], values: Matrix
    ) -> Iterator[Answer | None]:
        every, total = np.empty((self.topology.n_nodes, 0)), np.zeros(0)
        if values.shape[1]:
            counts = [len(nodes) * values.shape[1] for nodes in self._all_nodes]
            flat = yield from self._gathered(values.ravel(), counts)
            every = flat.reshape(len(self._order), -1)[self._order]
        if width:
            total = yield from self._total(np.array(blocks))
        yield Answer(total, every)

    def _total(self, own: Matrix) -> Any:
        """Sum of the blocks of all ranks: all to all if they are small, else a slice per rank."""
        width, n_blocks = own.shape[1], self._n_blocks
        if width * n_blocks.sum() <= GATHERED:
            every = yield from self._gathered(own.ravel(), (n_blocks * width).tolist())
            return self._tree_sum(every.reshape(-1, width))
        cuts = np.linspace(0, width, self.size + 1).astype(np.int64)
        widths = np.diff(cuts)
        outgoing = np.concatenate([own[:, a:b].ravel() for a, b in itertools.pairwise(cuts)])
        mine = int(widths[self.rank])
        sent, received = len(own) * widths, n_blocks * mine
        incoming = np.empty(received.sum())
        self.bytes_sent += 8 * int(sent.sum() - sent[self.rank])
        yield from _until(self.world.sums.Ialltoallv([outgoing, sent], [incoming, received]))
        part = self._tree_sum(incoming.reshape(-1, mine))
        total = yield from self._gathered(part, widths.tolist())
        return total

    def _tree_sum(self, rows: Matrix) -> Vector:
        """The sum of all ranks' blocks, whose rows come rank after rank."""
        stack: list[Vector] = []
        for place, additions in zip(self._block_order, self._block_merges, strict=True):
            push(stack, rows[place], additions)
        return stack[0]

    def _gathered(self, own: Vector, counts: list[int]) -> Any:
        """The numbers of all ranks, one after the other."""
        every = np.empty(sum(counts))
        self.bytes_sent += 8 * len(own) * (self.size - 1)
        yield from _until(self.world.sums.Iallgatherv(own, [every, counts]))
        return every

    # Callbacks of compiled code.

    def _callback_address(self) -> int:
        if self.is_whole:
            return 0
        self._callback = Callback(self._answer_kernel)
        return self._callback.address

    def _answer_kernel(self, kind: int, rows: Matrix) -> None:
        try:
            if kind == kernel.SUM:
                no_values = np.empty((len(self.nodes), 0))
                answers = self._combined(rows.shape[1], list(rows), no_values)
                rows[0] = self._awaited(answers).total
            else:
                self.neighbours(rows)
        except BaseException as error:  # a second Ctrl-C, too: compiled code cannot pass it on
            self.world.fail_with(error)

    def neighbours(self, rows: Matrix) -> None:
        """Fill the rows of neighbours on other ranks."""
        comm, requests, incoming = self.world.messages, [], []
        for rank, _, theirs in self._links_to:
            buffer = np.empty((len(theirs), rows.shape[1]))
            incoming.append((theirs, buffer))
            requests.append(comm.Irecv(buffer, rank, ROWS))
        outgoing = [np.ascontiguousarray(rows[ours]) for _, ours, _ in self._links_to]
        for (rank, _, _), piece in zip(self._links_to, outgoing, strict=True):
            requests.append(comm.Isend(piece, rank, ROWS))
            self.bytes_sent += piece.nbytes
        self._wait_all(requests, "the rows of neighbours on other ranks")
        for theirs, buffer in incoming:
            rows[theirs] = buffer

    def exchange(self, edge: int, outgoing: Vector) -> Vector:
        """Swap a row with the far end of an edge."""
        k, l = self.topology.edges[edge].tolist()
        rank = int(self.rank_of[l] if self.rank_of[k] == self.rank else self.rank_of[k])
        incoming, sent = np.empty_like(outgoing), np.ascontiguousarray(outgoing)
        comm = self.world.messages
        requests = [comm.Irecv(incoming, rank, 1 + edge), comm.Isend(sent, rank, 1 + edge)]
        self.bytes_sent += sent.nbytes
        self._wait_all(requests, f"a message over the edge between nodes {k} and {l}")
        return incoming

    def _wait_all(self, requests: list[Any], what: str) -> None:
        test = self.world.mpi.Request.Testall
        self._await(lambda: bool(test(requests)), what)

    # Heartbeats, messages of queues, and rows collected on the first rank.

    def begin_max(self, own: Numbers, largest: Numbers) -> Callable[[], bool]:
        """Begin to compute the largest of each number over all ranks."""
        if self.is_whole:
            return super().begin_max(own, largest)
        request = self.world.beats.Iallreduce(own, largest, self.world.mpi.MAX)
        return lambda: bool(request.Test())

    def carrier(self, stepper: Any) -> Any:
        """What moves the messages of a `QueueStepper`."""
        world = self.world
        return make_carrier(stepper, world.mpi, world.messages, self._carrier, self.keep_waits)

    def collect(self, own: Matrix) -> Matrix:
        """The rows of all nodes on rank 0; on the others, their own."""
        counts = [len(nodes) * own.shape[1] for nodes in self._all_nodes]
        whole = np.empty(sum(counts)) if self.rank == 0 else None
        into = None if whole is None else [whole, counts]
        request = self.world.comm.Igatherv(np.ascontiguousarray(own), into)
        self.world.wait(lambda: bool(request.Test()), lambda: "the other ranks' models")
        return own if whole is None else whole.reshape(-1, own.shape[1])[self._order]


def _until(request: Any) -> Iterator[None]:
    """None until a request is complete."""
    while not request.Test():
        yield None


def connect(topology: Topology | None, n_own: int, nodes: Sequence[int] | None) -> Network:
    """The network of a program under mpiexec, whose ranks have ``n_own`` shards each."""
    world = open_world()
    counts = gather_from_all(world, n_own)
    first = sum(counts[: world.rank])
    own = list(range(first, first + n_own)) if nodes is None else [int(node) for node in nodes]
    claims = world.gather(own)
    graph = topology or Topology.parse("grid", n_nodes=max(1, sum(counts)))
    require_same(world, {"topology": graph})
    rank_of = attempt(world, lambda: _placed(claims, counts, graph))
    return MpiNetwork(world, graph, rank_of)


def _placed(claims: list[list[int]], counts: list[int], graph: Topology) -> Numbers:
    """The rank of each node, from the nodes that each rank claims."""
    rank_of = np.full(graph.n_nodes, -1, np.int64)
    for rank, own in enumerate(claims):
        if len(own) != counts[rank] or own != sorted(set(own)) or not own:
            raise ParameterError(
                f"Rank {rank} gives {counts[rank]} shards for nodes={own[:8]}; give one shard for "
                "each node, at least one, in ascending order of the nodes."
            )
        for node in own:
            if not 0 <= node < graph.n_nodes or rank_of[node] >= 0:
                where = "twice" if 0 <= node < graph.n_nodes else f"not in {graph.name}"
                raise ParameterError(
                    f"Node {node} of rank {rank} is {where}; every node of the graph is on one "
                    "rank."
                )
            rank_of[node] = rank
    if (rank_of < 0).any():
        raise ParameterError(
            f"Node {int(np.argmin(rank_of))} of {graph.name} is on no rank; give its shard to one."
        )
    return rank_of

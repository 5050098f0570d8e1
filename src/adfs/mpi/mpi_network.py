"""Nodes on the ranks that mpiexec started: the methods of `adfs.network` between processes.

A carrier moves the messages of pairwise events: plain mpi4py as the readable reference, C calls
from compiled code for speed. It serves a rank until its nodes are done, or for some time without a
message, after which the engine checks the clock and signals. ``seconds`` were spent waiting;
``waits`` are the begin and end of each wait, if recorded.
"""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from adfs.agreement import attempt, gather_from_all, require_same
from adfs.engine.execution import MOST_SPANS
from adfs.engine.steppers import QueueStepper
from adfs.errors import ParameterError
from adfs.graphs.topology import Topology
from adfs.kernels import node_sums, rank_nodes
from adfs.mpi.communicator import Communicator, open_world, register_mpi_symbols, yield_core
from adfs.network import (
    Answer,
    Callback,
    Matrix,
    Network,
    Numbers,
    Vector,
    leaves,
    n_levels,
    pair_up,
)

GATHERED = 4_096  # numbers of all ranks together, up to which each rank receives all of them
ROWS = 0  # tag of neighbours' rows
POLLS = 2_000  # of a plain carrier without a message, before it returns


class MpiNetwork(Network):
    """A graph whose nodes are spread over ranks, each of which has at least one."""

    def __init__(self, world: Communicator, topology: Topology, rank_of: Numbers) -> None:
        self.world = world
        self.clock = world.mpi.Wtime
        super().__init__(topology, rank_of, world)
        self._all_nodes = [np.flatnonzero(rank_of == rank) for rank in range(self.size)]
        self._order = np.argsort(np.concatenate(self._all_nodes))
        blocks = [pair_up(leaves(nodes), topology.n_nodes)[1] for nodes in self._all_nodes]
        every = np.concatenate(blocks)
        self._n_blocks = np.array([len(each) for each in blocks])
        self._block_order = np.argsort(every[:, 0])
        self._block_merges = pair_up(every[self._block_order], topology.n_nodes)[0]
        self._links_to = self._shared_rows()
        waiting = {
            rank: self.beyond[rows - len(self.nodes)].tolist() for rank, _, rows in self._links_to
        }
        world.link.report(nodes=self.nodes.tolist(), peers=waiting)

    def _shared_rows(self) -> list[tuple[int, Numbers, Numbers]]:
        """For each neighbouring rank: own rows that it needs, and where its rows go here."""
        leaving = self.peer_of >= 0
        pairs, ranks = self.topology.edges[leaving].astype(np.int64), self.peer_of[leaving]
        first_is_here = self.ends[leaving, :1] >= 0
        own, far = np.where(first_is_here, pairs, pairs[:, ::-1]).T
        return [
            (rank, self.here[np.unique(own[ranks == rank])],
             self.row_of[np.unique(far[ranks == rank])])
            for rank in np.unique(ranks).tolist()
        ]  # fmt: skip

    def _combined(self, blocks: Matrix, values: Matrix) -> Iterator[Answer | None]:
        every, total = np.empty((self.topology.n_nodes, 0)), np.zeros(0)
        if values.shape[1]:
            counts = [len(nodes) * values.shape[1] for nodes in self._all_nodes]
            flat = yield from self._gathered(values.ravel(), counts)
            every = flat.reshape(len(self._order), -1)[self._order]
        if blocks.shape[1]:
            total = yield from self._total(blocks)
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
        stack = np.empty((n_levels(self._block_merges), rows.shape[1]))
        node_sums.push_rows(stack, 0, rows[self._block_order], self._block_merges)
        return np.asarray(stack[0])

    def _gathered(self, own: Vector, counts: list[int]) -> Any:
        every = np.empty(sum(counts))
        self.bytes_sent += 8 * len(own) * (self.size - 1)
        yield from _until(self.world.sums.Iallgatherv(own, [every, counts]))
        return every

    def _callback_address(self) -> int:
        if self.is_whole:
            return 0
        self._callback = Callback(self._answer_kernel)
        return self._callback.address

    def _answer_kernel(self, kind: int, rows: Matrix) -> None:
        try:
            if kind == node_sums.SUM:
                no_values = np.empty((len(self.nodes), 0))
                answers = self._combined(rows, no_values)
                rows[0] = self._awaited(answers).total
            else:
                self.neighbours(rows)
        except BaseException as error:  # a second Ctrl-C, too: compiled code cannot pass it on
            self.world.fail_with(error)

    def neighbours(self, rows: Matrix) -> None:
        messages = [
            (rank, np.ascontiguousarray(rows[ours]), np.empty((len(theirs), rows.shape[1])))
            for rank, ours, theirs in self._links_to
        ]
        self._swap(messages, ROWS, "the rows of neighbours on other ranks")
        for (_, _, theirs), (_, _, incoming) in zip(self._links_to, messages, strict=True):
            rows[theirs] = incoming

    def exchange(self, edge: int, outgoing: Vector) -> Vector:
        k, l = self.topology.edges[edge].tolist()
        message = (int(self.peer_of[edge]), np.ascontiguousarray(outgoing), np.empty_like(outgoing))
        self._swap([message], 1 + edge, f"a message over the edge between nodes {k} and {l}")
        return message[2]

    def _swap(self, messages: list[tuple[int, Matrix, Matrix]], tag: int, what: str) -> None:
        """Send an array to each of these ranks, and receive one."""
        comm, test = self.world.messages, self.world.mpi.Request.Testall
        requests = [comm.Irecv(incoming, rank, tag) for rank, _, incoming in messages]
        requests += [comm.Isend(outgoing, rank, tag) for rank, outgoing, _ in messages]
        self.bytes_sent += sum(outgoing.nbytes for _, outgoing, _ in messages)
        self._await(lambda: bool(test(requests)), what)

    def begin_max(self, own: Numbers, largest: Numbers) -> Callable[[], bool]:
        if self.is_whole:
            return super().begin_max(own, largest)
        request = self.world.beats.Iallreduce(own, largest, self.world.mpi.MAX)
        return lambda: bool(request.Test())

    def carrier(self, stepper: Any) -> Any:
        return make_carrier(stepper, self.world.mpi, self.world.messages, self.keep_waits)

    def collect(self, own: Matrix) -> Matrix:
        counts = [len(nodes) * own.shape[1] for nodes in self._all_nodes]
        whole = np.empty(sum(counts)) if self.rank == 0 else None
        into = None if whole is None else [whole, counts]
        request = self.world.comm.Igatherv(np.ascontiguousarray(own), into)
        self.world.wait(lambda: bool(request.Test()), lambda: "the other ranks' models")
        return own if whole is None else whole.reshape(-1, own.shape[1])[self._order]


def _until(request: Any) -> Iterator[None]:
    while not request.Test():
        yield None


class MpiTransport:
    """Buffers through mpi4py: receive, send, test."""

    def __init__(self, mpi: Any, comm: Any) -> None:
        self._mpi, self._comm = mpi, comm
        self._requests: dict[int, list[Any]] = {}

    def post(self, node: int, rank: int, edge: int, outgoing: Vector, incoming: Vector) -> None:
        """Receive before sending, so that a large message has a buffer to go to."""
        received = self._comm.Irecv(incoming, rank, edge)
        self._requests[node] = [received, self._comm.Isend(outgoing, rank, edge)]

    def done(self, node: int) -> bool:
        return bool(self._mpi.Request.Testall(self._requests[node]))


class PlainCarrier:
    """The reference: each message goes through Python."""

    def __init__(self, rank: QueueStepper, transport: Any) -> None:
        self._rank, self._transport = rank, transport
        self.seconds = 0.0
        self.waits = np.empty((0, 2))

    def serve(self) -> bool:
        """Serve until no node has moved for `POLLS` polls."""
        idle = 0
        while idle < POLLS:
            moved = serve(self._rank, self._transport)
            if self._rank.done:
                return True
            idle = 0 if moved else idle + 1
            if idle:
                started = time.perf_counter()
                yield_core()
                self.seconds += time.perf_counter() - started
        return False


class CompiledCarrier:
    """The same in one compiled loop."""

    def __init__(self, rank: QueueStepper, mpi: Any, comm: Any, keep_waits: bool = False) -> None:
        from adfs.kernels import rank_messages  # needs MPI's symbols

        self._rank, self._loop = rank, rank_messages
        n, request = len(rank.problem.nodes), mpi._sizeof(mpi.Request)
        self._port = rank_messages.Port(
            np.uint64(mpi._handleof(comm)), np.uint64(mpi._handleof(mpi.DOUBLE)), rank.peer_of,
            np.zeros(2 * n * request, np.uint8), np.zeros(2 * mpi._sizeof(mpi.Status), np.uint8),
            np.zeros(1, np.int32), np.zeros(1),
            np.empty((MOST_SPANS if keep_waits else 0, 2)), np.zeros(1, np.int64),
        )  # fmt: skip

    def serve(self) -> bool:
        rank = self._rank
        code = self._loop.run_until_idle(
            rank.work, rank.problem.rows, rank.queue, rank.clocks, rank.mailbox, self._port
        )  # fmt: skip
        if code == self._loop.FAILED:
            raise ConnectionError("could not send or receive a message: MPI reports a fault")
        return bool(code == self._loop.FINISHED)

    @property
    def seconds(self) -> float:
        return float(self._port.seconds[0])

    @property
    def waits(self) -> Matrix:
        return self._port.waits[: self._port.n_waits[0]]


def serve(rank: QueueStepper, transport: Any) -> int:
    """Run nodes as far as possible, begin exchanges, finish completed ones; how many moved."""
    moved, mailbox = rank.advance(), rank.mailbox
    for node in np.flatnonzero(mailbox.status == rank_nodes.POST).tolist():
        edge = int(rank.queue.which[rank.queue.head[node]])
        side = 0 if rank.ends[edge, 0] == node else 1
        outgoing, incoming = (mailbox.messages[2 * node + k] for k in (side, 1 - side))
        transport.post(node, int(rank.peer_of[edge]), edge, outgoing, incoming)
        mailbox.status[node] = rank_nodes.WAIT_REMOTE
    for node in np.flatnonzero(mailbox.status == rank_nodes.WAIT_REMOTE).tolist():
        if transport.done(node):
            rank_nodes.finish_exchange(node, rank.work, rank.queue, rank.clocks, mailbox)
            moved += 1
    return moved


def make_carrier(
    rank: QueueStepper, mpi: Any, comm: Any, keep_waits: bool = False
) -> CompiledCarrier | PlainCarrier:
    if register_mpi_symbols(mpi):
        return CompiledCarrier(rank, mpi, comm, keep_waits)
    return PlainCarrier(rank, MpiTransport(mpi, comm))


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
    rank_of = np.full(graph.n_nodes, -1, np.int64)
    for rank, own in enumerate(claims):
        if len(own) != counts[rank] or own != sorted(set(own)) or not own:
            raise ParameterError(
                f"Rank {rank} gives {counts[rank]} shards for nodes={own[:8]}; give one shard for "
                "each node, at least one, in ascending order of the nodes."
            )
        for node in own:
            is_known = 0 <= node < graph.n_nodes
            if not is_known or rank_of[node] >= 0:
                where = "twice" if is_known else f"not in {graph.name}"
                rule = "every node of the graph is on one rank."
                raise ParameterError(f"Node {node} of rank {rank} is {where}; {rule}")
            rank_of[node] = rank
    if (rank_of < 0).any():
        raise ParameterError(
            f"Node {int(np.argmin(rank_of))} of {graph.name} is on no rank; give its shard to one."
        )
    return rank_of

"""Communication between nodes: the only access that a node has to the data of another node.

`Network` has all nodes in one process. `adfs.mpi.mpi_network.MpiNetwork` has the same methods
between ranks; `connect` imports it for ``engine="mpi"``. Compiled code calls the same methods
through ``links`` (`adfs.kernels.node_sums`).
"""

import ctypes
import functools
import importlib
import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from adfs.agreement import Peers
from adfs.checks import choice
from adfs.errors import ParameterError
from adfs.graphs.topology import Topology
from adfs.kernels import node_sums as kernel

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Numbers = NDArray[np.int64]
T = TypeVar("T")

ENGINES = ("local", "mpi")
NUMBERS_AT_ONCE = 1 << 18  # of rows that are made to be added
NO_VALUES = np.empty((1, 0))


class Part(NamedTuple):
    """What some nodes contribute, one line each: rows to be added, numbers for every process."""

    rows: Matrix
    values: Matrix


class Ask(NamedTuple):
    """A request for a sum: parts of the nodes here, in their order, with lines of these sizes."""

    width: int
    n_values: int
    parts: Iterable[Part]


def ask_values(values: Matrix) -> Ask:
    """A request for numbers alone; one line per node here."""
    return Ask(0, values.shape[1], [Part(np.empty((len(values), 0)), values)])


def node_blocks(n_nodes: int, numbers: int) -> list[slice]:
    """So many nodes cut into blocks, if each has so many numbers: memory for few rows at once."""
    size = max(1, NUMBERS_AT_ONCE // max(1, numbers))
    return [slice(first, min(n_nodes, first + size)) for first in range(0, n_nodes, size)]


class Answer(NamedTuple):
    """Sum of the rows of all nodes, and their numbers, one row per node."""

    total: Vector
    values: Matrix


Steps = Generator[Ask, Answer, T]  # work that needs sums: yields requests, receives answers


def pair_up(blocks: Numbers, n_nodes: int) -> tuple[Numbers, Numbers]:
    """How to add rows along the fixed binary tree over node numbers (`adfs.kernels.node_sums`).

    A block of the tree is a pair: its first node, and the one after its last. Rows of ``blocks``,
    shape (k, 2), are put on a stack in node order. Returns how many additions follow each of
    them, and the blocks that remain: those whose siblings are not among ``blocks``.

    Examples
    --------
    >>> pair_up(np.array([(0, 1), (1, 2), (2, 3)]), n_nodes=3)
    (array([0, 1, 1]), array([[0, 3]]))
    >>> pair_up(np.array([(1, 2), (2, 3), (3, 4)]), n_nodes=4)
    (array([0, 0, 1]), array([[1, 2],
           [2, 4]]))
    """
    merges, stack = np.zeros(len(blocks), np.int64), np.array(blocks, np.int64)
    return merges, stack[: kernel.pair_up(n_nodes, merges, stack)]


def leaves(nodes: Numbers) -> Numbers:
    """The blocks of single nodes."""
    return np.column_stack([nodes, nodes + 1])


def n_levels(merges: Numbers) -> int:
    """Rows that a stack needs for these additions."""
    return int((np.cumsum(1 - merges) + merges).max())


class Network:
    """A graph whose nodes are all in this process; the base of those with nodes elsewhere.

    ``rank`` is the number of this process of ``size``, and ``rank_of[i]`` that of node ``i``.
    ``nodes`` are those of this process, ascending, with the local numbers 0, 1, ...; ``here`` has
    the local number of each node, -1 where it is elsewhere, and ``ends`` those of both ends of each
    edge. ``beyond`` are the nodes elsewhere that have a neighbour here, ``row_of[i]`` is the row of
    node ``i`` in a matrix that `neighbours` fills, and ``peer_of[e]`` is the rank at the far end of
    an edge that leaves this process, -1 for all other edges.

    Examples
    --------
    >>> network = Network(Topology.ring(4))
    >>> network.sum_rows(iter(np.eye(4)), 4)
    array([1., 1., 1., 1.])
    """

    keep_waits = False  # whether to record when this process waited
    waited = 0.0  # seconds of waiting inside rounds
    bytes_sent = 0
    clock = staticmethod(time.perf_counter)

    def __init__(
        self, topology: Topology, rank_of: Numbers | None = None, peers: Peers | None = None
    ) -> None:
        n = topology.n_nodes
        self.topology, self.peers = topology, Peers() if peers is None else peers
        self.rank = rank = self.peers.rank
        self.rank_of = np.zeros(n, np.int64) if rank_of is None else rank_of
        self.size = int(self.rank_of.max()) + 1
        self.nodes: Numbers = np.flatnonzero(self.rank_of == rank)
        self.here: Numbers = np.full(n, -1, np.int64)
        self.here[self.nodes] = np.arange(len(self.nodes))
        self.ends = self.here[topology.edges].astype(np.int32).reshape(-1, 2)
        owners = self.rank_of[topology.edges].reshape(-1, 2)
        leaving = (owners == rank).sum(axis=1) == 1
        far_rank = np.where(owners[:, 0] == rank, owners[:, 1], owners[:, 0])
        self.peer_of = np.where(leaving, far_rank, -1).astype(np.int32)
        far = topology.edges[leaving][self.ends[leaving] < 0]
        self.beyond: Numbers = np.unique(far).astype(np.int64)
        self.row_of = self.here.copy()
        self.row_of[self.beyond] = len(self.nodes) + np.arange(len(self.beyond))

    @functools.cached_property
    def links(self) -> kernel.Links:
        """The same for compiled code."""
        starts, neighbours, _ = self.topology.incidence
        degrees = np.diff(starts)
        own = neighbours[np.repeat(self.here >= 0, degrees)]
        edges = self.topology.edges[(self.ends >= 0).any(axis=1)]
        merges, _ = pair_up(leaves(self.nodes), self.topology.n_nodes)
        return kernel.Links(
            self._callback_address(), merges,
            self.row_of[edges].astype(edges.dtype),
            np.append(0, np.cumsum(degrees[self.nodes])), self.row_of[own].astype(own.dtype),
        )  # fmt: skip

    def _callback_address(self) -> int:
        """The function by which compiled code gets other processes' numbers; 0 if not needed."""
        return 0

    @property
    def n_rows(self) -> int:
        """Rows of a matrix that `neighbours` fills: own nodes, then neighbours elsewhere."""
        return len(self.nodes) + len(self.beyond)

    @functools.cached_property
    def n_levels(self) -> int:
        """Rows that a stack of `adfs.kernels.node_sums` needs."""
        return n_levels(self.links.merges)

    @property
    def is_whole(self) -> bool:
        """Whether all nodes are in this process."""
        return self.size == 1

    def gather(self, item: Any) -> list[Any]:
        """For set-up: the items of all processes in order; all have to call it."""
        return self.peers.gather(item)

    def facts(self, own: NDArray[Any]) -> NDArray[Any]:
        """For set-up: one entry (or row) per node of the graph, from those of the nodes here."""
        if self.is_whole:
            return own
        whole = np.empty((len(self.here), *own.shape[1:]), own.dtype)
        for rank, part in enumerate(self.gather(np.ascontiguousarray(own).reshape(-1))):
            nodes = np.flatnonzero(self.rank_of == rank)
            whole[nodes] = part.reshape(len(nodes), *own.shape[1:])
        return whole

    def answers(self, ask: Ask) -> Iterator[Answer | None]:
        """Yields None while a request is under way, then its answer."""
        merges, stack = self.links.merges, np.empty((self.n_levels, ask.width))
        values = np.empty((len(self.nodes), ask.n_values))
        first = depth = 0
        for rows, numbers in ask.parts:
            last = first + len(rows)
            values[first:last] = numbers
            depth = kernel.push_rows(stack, depth, rows, merges[first:last])
            first = last
        yield from self._combined(stack[:depth], values)

    def _combined(self, blocks: Matrix, values: Matrix) -> Iterator[Answer | None]:
        """The answer from this process's blocks of the tree and its nodes' numbers."""
        yield Answer(blocks[0].copy(), values)

    def ask(self, ask: Ask) -> Answer:
        return self._awaited(self.answers(ask))

    def _awaited(self, polls: Iterator[T | None]) -> T:
        found = Poll(polls)
        self._await(found.done, "the other ranks' part of a sum")
        return found.result

    def _await(self, there: Callable[[], bool], what: str) -> None:
        """Wait inside a round; the time of the first poll is this process's own work."""
        if not there():
            started = time.perf_counter()
            self.peers.wait(there, lambda: what)
            self.waited += time.perf_counter() - started

    def run(self, steps: Steps[T]) -> T:
        """The result of work that needs sums; waits for each."""
        return self._awaited(self.polls(steps))

    def polls(self, steps: Steps[T]) -> Iterator[T | None]:
        """Yields None while work that needs sums is under way, then its result."""
        try:
            ask = next(steps)
            while True:
                answers = self.answers(ask)
                while (answer := next(answers)) is None:
                    yield None
                ask = steps.send(answer)
        except StopIteration as end:
            yield end.value

    def sum_rows(self, rows: Iterable[Vector], width: int) -> Vector:
        """Sum over all nodes of one row per node; ``rows`` are those of the nodes here."""
        if isinstance(rows, np.ndarray):
            return self.ask(Ask(width, 0, [Part(np.ascontiguousarray(rows), NO_VALUES)])).total
        one_by_one = (Part(np.ascontiguousarray(row)[None], NO_VALUES) for row in rows)
        return self.ask(Ask(width, 0, one_by_one)).total

    def neighbours(self, rows: Matrix) -> None:
        """Fill the rows of neighbours elsewhere, which follow the rows of the nodes here."""

    def exchange(self, edge: int, outgoing: Vector) -> Vector:
        """Send ``outgoing`` to the far end of an edge that leaves this process; returns its row."""
        raise ParameterError(f"Both ends of edge {edge} are in this process.")

    def begin_max(self, own: Numbers, largest: Numbers) -> Callable[[], bool]:
        """Begin to compute ``largest``, entry by entry over all processes; returns whether done."""
        largest[:] = own
        return lambda: True

    def collect(self, own: Matrix) -> Matrix:
        """The rows of all nodes in the first process; in the others, their own."""
        return own

    def carrier(self, stepper: Any) -> Any:
        """What moves the messages of a `QueueStepper`; between ranks only."""
        raise NotImplementedError


class Poll(Generic[T]):
    """An iterator that yields None until it yields its ``result``."""

    result: T

    def __init__(self, steps: Iterator[T | None]) -> None:
        self._steps = steps

    def done(self) -> bool:
        """Take one more step, unless the result is there; whether it is."""
        if not hasattr(self, "result") and (found := next(self._steps)) is not None:
            self.result = found
        return hasattr(self, "result")


class Callback:
    """A Python function as an address that compiled code can call."""

    TYPE = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.c_int64, ctypes.c_size_t, ctypes.c_int64, ctypes.c_int64
    )

    def __init__(self, function: Callable[[int, Matrix], None]) -> None:
        def answer(kind: int, address: int, *shape: int) -> int:
            numbers = (ctypes.c_double * math.prod(shape)).from_address(address)
            function(kind, np.ctypeslib.as_array(numbers).reshape(shape))
            return 0

        self._function = self.TYPE(answer)  # must exist as long as the address is in use
        self.address = int(ctypes.cast(self._function, ctypes.c_void_p).value or 0)


def connect(
    engine: str, topology: Topology | None, n_own: int, nodes: Sequence[int] | None = None
) -> Network:
    """The network of an engine: ``local`` has all nodes here, ``mpi`` spreads them over ranks.

    ``n_own`` shards are in this process; ``nodes`` are their numbers, consecutive over the ranks by
    default. Without a topology it is the most square grid.
    """
    if choice("engine", engine, ENGINES) == "mpi":
        module = importlib.import_module("adfs.mpi.mpi_network")
        return module.connect(topology, n_own, nodes)  # type: ignore[no-any-return]
    if nodes is not None and sorted(nodes) != list(range(n_own)):
        raise ParameterError(
            f"nodes={list(nodes)[:8]} must be all nodes from 0 to {n_own - 1} in one process; "
            "leave them out, or give engine='mpi'."
        )
    return Network(topology or Topology.parse("grid", n_nodes=max(1, n_own)))

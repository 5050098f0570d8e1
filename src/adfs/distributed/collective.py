"""Sums over the nodes of all ranks, in node order, without stopping anybody.

Columns are split between the ranks: each gets its columns of every node's row, adds them in node
order, and tells the result to all. So a rank holds its own rows and a part of the others', and the
sums have the bits that one process alone would get.
"""

import itertools
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from adfs.distributed.mapping import Mapping
from adfs.problems.sums import Answer, Ask, Steps

T = TypeVar("T")
Matrix = NDArray[np.float64]


class Sums:
    """Answers what ranks ask together; one ask at a time, each in the same order on all ranks."""

    def __init__(self, mpi: Any, comm: Any, mapping: Mapping) -> None:
        self._mpi, self._comm = mpi, comm
        self._rank, self._size = comm.Get_rank(), comm.Get_size()
        self._nodes = [mapping.nodes(rank) for rank in range(self._size)]
        self._order = np.argsort(np.concatenate(self._nodes))

    def answer(self, ask: Ask) -> Iterator[Answer | None]:
        """None while under way; the last one is the answer."""
        own = list(ask.parts)
        values = np.array([part.values for part in own], dtype=np.float64)
        every = yield from self._told(values.reshape(len(own), ask.n_values))
        total = np.zeros(0)
        if ask.width:
            rows = np.array([part.row for part in own])
            del own
            total = yield from self._added(rows)
        yield Answer(total, every)

    def _told(self, own: Matrix) -> Any:
        """Rows of all nodes in node order; for a few numbers a node."""
        width = own.shape[1]
        counts = [len(nodes) * width for nodes in self._nodes]
        every = np.empty(sum(counts))
        yield from self._until(self._comm.Iallgatherv(own.ravel(), [every, counts]))
        return every.reshape(len(self._order), width)[self._order]

    def _added(self, rows: Matrix) -> Any:
        """Sum of the rows of all nodes, in node order."""
        cuts = np.linspace(0, rows.shape[1], self._size + 1).astype(np.int64)
        widths = np.diff(cuts)
        pieces = [rows[:, a:b].ravel() for a, b in itertools.pairwise(cuts)]
        outgoing = np.concatenate(pieces)
        mine = int(widths[self._rank])
        received = [len(nodes) * mine for nodes in self._nodes]
        incoming = np.empty(sum(received))
        sent = [len(rows) * int(width) for width in widths]
        yield from self._until(
            self._comm.Ialltoallv([outgoing, sent], [incoming, received])
        )  # fmt: skip
        by_node = incoming.reshape(len(self._order), mine)
        part = np.zeros(mine)
        for place in self._order:
            part += by_node[place]
        total = np.empty(rows.shape[1])
        yield from self._until(self._comm.Iallgatherv(part, [total, widths.tolist()]))
        return total

    def _until(self, request: Any) -> Iterator[None]:
        while not request.Test():
            yield None


class Underway(Generic[T]):
    """Steps that ranks take together while they go on with other work."""

    def __init__(self, sums: Sums, steps: Steps[T]) -> None:
        self._sums, self._steps = sums, steps
        self._answers = sums.answer(next(steps))
        self.done = False
        self.result: T

    def poll(self) -> bool:
        """Go as far as possible without waiting; whether the result is there."""
        while not self.done:
            answer = next(self._answers)
            if answer is None:
                return False
            try:
                self._answers = self._sums.answer(self._steps.send(answer))
            except StopIteration as end:
                self.result, self.done = end.value, True
        return True

"""Sums over nodes that may live in other processes, added in node order: the same bits anywhere.

Work that needs such sums is a generator: it asks, is sent the answer, and returns its result. One
process alone answers at once; ranks answer through collectives while they go on with other work.
"""

from collections.abc import Generator, Iterator
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
T = TypeVar("T")


class Part(NamedTuple):
    """What one node gives: a row to be added, and numbers that everybody wants to see."""

    row: Vector
    values: tuple[float, ...]


class Ask(NamedTuple):
    """Parts of this process's nodes in order; all rows have ``width`` numbers, all asks alike."""

    width: int
    n_values: int
    parts: Iterator[Part]


class Answer(NamedTuple):
    """Sum of the rows of all nodes, and their numbers, one row a node."""

    total: Vector
    values: NDArray[np.float64]


Steps = Generator[Ask, Answer, T]


def alone(steps: Steps[T]) -> T:
    """Result of steps where all nodes are in this process."""
    try:
        ask = next(steps)
        while True:
            ask = steps.send(_answer(ask))
    except StopIteration as end:
        result: T = end.value
        return result


def _answer(ask: Ask) -> Answer:
    total, values = np.zeros(ask.width), []
    for part in ask.parts:
        total += part.row
        values.append(part.values)
    return Answer(total, np.array(values, dtype=np.float64).reshape(-1, ask.n_values))

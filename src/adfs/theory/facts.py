"""How parameters describe themselves: one list of facts for ``str`` and for report pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class Place(NamedTuple):
    """What limits the rate: ``kind`` is edge, or node for the samples of a node."""

    kind: str
    number: int

    def words(self, edges: NDArray[np.int32]) -> str:
        """The place for people; ``edges`` are those of the graph."""
        if self.kind == "edge":
            k, l = edges[self.number]
            return f"edge {self.number} between nodes {k} and {l}"
        return f"the samples of node {self.number}"


def tightest(edge_limits: Vector, node_limits: Vector) -> Place:
    """Where the least of these limits is; a node where both kinds are equal.

    Examples
    --------
    >>> tightest(np.array([3.0, 1.0]), np.array([2.0, 4.0]))
    Place(kind='edge', number=1)
    """
    if np.min(edge_limits, initial=np.inf) < np.min(node_limits):
        return Place("edge", int(np.argmin(edge_limits)))
    return Place("node", int(np.argmin(node_limits)))


class Fact(NamedTuple):
    """One number of a method's parameters, and what it is.

    ``name``, ``value`` and ``what`` make a line of ``str(parameters)``, and a row of a report. A
    report has room for more: ``symbol`` and ``meaning`` stand there in the place of ``name`` and
    ``what``, with the ``formula`` that gave the number. A fact without a name is for reports only.
    ``value`` may be the least and the largest of several numbers; the text has the least.
    """

    name: str
    value: float | tuple[float, float] | None
    what: str
    formula: str = ""
    symbol: str = ""
    meaning: str = ""
    digits: int = 6

    @property
    def text(self) -> str:
        """The value as ``str(parameters)`` writes it."""
        value = self.value[0] if isinstance(self.value, tuple) else self.value
        if value is None:
            return ""
        return str(value) if isinstance(value, Integral) else f"{value:.{self.digits}g}"


@dataclass(frozen=True)
class Description:
    """What parameters say about themselves; ``str`` is a short table for people.

    Attributes
    ----------
    title : str
    facts : sequence of Fact
        In the order in which they follow from each other.
    closing : sequence of str and float
        Parts of a sentence for the end of a report's table.
    symbols : sequence of (str, str)
        Letters of the formulas, and what they stand for.
    width : int
        Characters of the column of names in the text.

    Examples
    --------
    >>> print(Description("Gradient descent", [Fact("eta", 0.25, "step, 1 / L")]))
    Gradient descent
      eta       0.25         step, 1 / L
    """

    title: str
    facts: Sequence[Fact]
    closing: Sequence[str | float] = ()
    symbols: Sequence[tuple[str, str]] = ()
    width: int = 9

    def __str__(self) -> str:
        lines = (
            f"  {fact.name:<{self.width}} {fact.text:<12} {fact.what}"
            for fact in self.facts
            if fact.name
        )
        return "\n".join([self.title, *lines])

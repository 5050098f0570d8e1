"""Times of methods of which some did not arrive, and what can be decided from them.

A method that had not arrived when its run ended took longer than that. So a time, or a multiple of
another time, is known, or bounded from below, or unknown. A question about it is answered by True,
False, or None for not known.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

from adfs.study.comparison import ACCURACIES, Comparison

JUDGED = 1e-6  # accuracy


class AtLeast(NamedTuple):
    """A number that is ``value``, or more than that unless ``exact``; None if it is unknown.

    Examples
    --------
    >>> slow = AtLeast(50.0, exact=False).over(AtLeast(10.0))
    >>> str(slow), slow.at_least(2.0), slow.at_least(9.0), slow.at_most(2.0)
    ('more than 5 times', True, None, False)
    """

    value: float | None
    exact: bool = True

    @property
    def known(self) -> float | None:
        """The value if it is exact, else None."""
        return self.value if self.exact else None

    def at_least(self, threshold: float) -> bool | None:
        """Whether it is."""
        if self.value is None:
            return None
        return self.value >= threshold if self.exact or self.value >= threshold else None

    def at_most(self, threshold: float) -> bool | None:
        """Whether it is."""
        if self.value is None:
            return None
        return self.value <= threshold if self.exact or self.value > threshold else None

    def within(self, factor: float) -> bool | None:
        """Whether it lies between ``1 / factor`` and ``factor``."""
        return every((self.at_least(1.0 / factor), self.at_most(factor)))

    def over(self, other: "AtLeast") -> "AtLeast":
        """This time as a multiple of another one, which has to be known."""
        if self.value is None or not other.known:
            return UNKNOWN
        return AtLeast(self.value / other.known, self.exact)

    def later_than(self, other: "AtLeast") -> bool | None:
        """Whether this time comes after another one; not known if neither arrived."""
        if self.value is None or other.value is None or not (self.exact or other.exact):
            return None
        if self.exact and other.exact:
            return self.value > other.value
        if other.exact:
            return True if self.value >= other.value else None
        return False if other.value >= self.value else None

    def __str__(self) -> str:
        if self.value is None:
            return "an unknown number of times"
        if math.isinf(self.value):
            return "infinitely many times (it diverged)"
        return f"{'' if self.exact else 'more than '}{self.value:.2g} times"


UNKNOWN = AtLeast(None, exact=False)


class Times:
    """Idealized times of a comparison's methods to one accuracy."""

    def __init__(self, comparison: Comparison, accuracy: float = JUDGED) -> None:
        self.comparison, self.accuracy = comparison, accuracy

    @property
    def n_nodes(self) -> int:
        """Nodes of the network."""
        return int(self.comparison.config["problem"]["n_nodes"])

    def of(self, label: str, accuracy: float | None = None) -> AtLeast:
        """A method's time to the accuracy in question, unless another one is given."""
        if label not in self.comparison.labels:
            return UNKNOWN
        found = self.comparison.time_to(label, accuracy or self.accuracy)
        if found is not None:
            return AtLeast(found)
        if {record.status for record in self.comparison.runs(label)} == {"diverged"}:
            return AtLeast(math.inf, exact=False)
        return AtLeast(self.comparison.end_of(label), exact=False)

    def multiple(self, label: str, reference: str) -> AtLeast:
        """How many times longer ``label`` takes than ``reference``."""
        return self.of(label).over(self.of(reference))

    def later(self, label: str, other: str) -> bool | None:
        """Whether ``label`` arrives after ``other``.

        Where neither arrived at the accuracy in question, the strictest one of the table that one
        of them reached decides.
        """
        for accuracy in sorted({self.accuracy, *(a for a in ACCURACIES if a > self.accuracy)}):
            one, two = self.of(label, accuracy), self.of(other, accuracy)
            if one.exact or two.exact:
                return one.later_than(two)
        return None


def every(cases: Iterable[bool | None]) -> bool | None:
    """Whether all cases hold: one that fails decides it, one that is not known leaves it open."""
    found = set(cases)
    return False if False in found else True if found == {True} else None

"""When methods arrive, where some do not: what is known of a multiple, and what it decides.

A method that had not arrived when its run ended took longer than that. So a multiple is either
known, or bounded from below, or unknown; a question about it is answered yes, no, or not at all.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

from adfs.bench.comparison import Comparison
from adfs.reproduce.report import verdict

JUDGED = 1e-6


class Multiple(NamedTuple):
    """How many times longer: ``value``, or more than that; None if nothing is known.

    Examples
    --------
    >>> slow = Multiple(5.0, exact=False)
    >>> str(slow), slow.at_least(2.0), slow.at_least(9.0), slow.at_most(2.0)
    ('more than 5 times', True, None, False)
    """

    value: float | None
    exact: bool = True

    def at_least(self, threshold: float) -> bool | None:
        """Whether it is; None if that is not known."""
        if self.value is None:
            return None
        return self.value >= threshold if self.exact or self.value >= threshold else None

    def at_most(self, threshold: float) -> bool | None:
        """Whether it is; None if that is not known."""
        if self.value is None:
            return None
        return self.value <= threshold if self.exact or self.value > threshold else None

    def within(self, factor: float) -> bool | None:
        """Whether it lies between ``1 / factor`` and ``factor``; None if that is not known."""
        checks = (self.at_least(1.0 / factor), self.at_most(factor))
        return False if False in checks else None if None in checks else True

    def __str__(self) -> str:
        if self.value is None:
            return "an unknown number of times"
        if math.isinf(self.value):
            return "infinitely many times (it diverged)"
        return f"{'' if self.exact else 'more than '}{self.value:.2g} times"


UNKNOWN = Multiple(None)


class Time(NamedTuple):
    """When a method arrived, or when its run ended before that; None if there was no run."""

    value: float | None
    arrived: bool = True

    def over(self, other: "Time") -> Multiple:
        """This time as a multiple of another one, which has to be known."""
        if self.value is None or other.value is None or not other.arrived or other.value == 0.0:
            return UNKNOWN
        return Multiple(self.value / other.value, self.arrived)

    def later_than(self, other: "Time") -> bool | None:
        """Whether this one comes after; None where that is not known, as if neither arrived."""
        if self.value is None or other.value is None or not (self.arrived or other.arrived):
            return None
        if self.arrived and other.arrived:
            return self.value > other.value
        if other.arrived:
            return True if self.value >= other.value else None
        return False if other.value >= self.value else None


NEVER = Time(None, arrived=False)


class Times:
    """Idealized times of a comparison's methods to one accuracy."""

    def __init__(self, comparison: Comparison, accuracy: float = JUDGED) -> None:
        self.comparison, self.accuracy = comparison, accuracy

    @property
    def n_nodes(self) -> int:
        """Nodes of the network."""
        return int(self.comparison.config["problem"]["n_nodes"])

    def of(self, label: str) -> Time:
        """What is known of a method's time."""
        if label not in self.comparison.labels:
            return NEVER
        found = self.comparison.time_to(label, self.accuracy)
        if found is not None:
            return Time(found)
        if {record.status for record in self.comparison.runs(label)} == {"diverged"}:
            return Time(math.inf, arrived=False)
        return Time(self.comparison.end_of(label), arrived=False)

    def multiple(self, label: str, reference: str) -> Multiple:
        """How many times longer ``label`` takes than ``reference``."""
        return self.of(label).over(self.of(reference))

    def later(self, label: str, other: str) -> bool | None:
        """Whether ``label`` arrives after ``other``; None where neither is known to have."""
        return self.of(label).later_than(self.of(other))


def decided(cases: Iterable[bool | None]) -> str:
    """The verdict over the cases that are decided."""
    return verdict(case for case in cases if case is not None)

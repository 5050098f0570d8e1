"""What follows from measurements: whether a claim holds, also where a method did not arrive.

A method that had not arrived when its run ended took longer than that. So a time, or a multiple of
another time, is known or bounded from below; one of which nothing is known is at least zero. A
question about it is answered by True, False, or None for not known. Whether a claim holds is
decided from the answers by `verdict`, never written down beforehand.
"""

import math
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from adfs.study.comparison import ACCURACIES, Comparison
from adfs.study.contenders import CLOCK_LIMIT_FACTOR

JUDGED = 1e-6  # accuracy
WIDTH = 96
YES, NO, PARTLY, OPEN = "yes", "no", "partly", "not decided"
NOTHING = "Not decided: nothing was measured that decides it."
Key = TypeVar("Key")
Value = TypeVar("Value")


class AtLeast(NamedTuple):
    """A number that is ``value``, or more than that unless ``exact``.

    Examples
    --------
    >>> slow = AtLeast(50.0, exact=False).over(AtLeast(10.0))
    >>> str(slow), slow.at_least(2.0), slow.at_least(9.0), slow.at_most(2.0)
    ('more than 5 times', True, None, False)
    """

    value: float
    exact: bool = True

    @property
    def known(self) -> float | None:
        return self.value if self.exact else None

    def at_least(self, threshold: float) -> bool | None:
        return True if self.value >= threshold else False if self.exact else None

    def at_most(self, threshold: float) -> bool | None:
        return False if self.value > threshold else True if self.exact else None

    def within(self, factor: float) -> bool | None:
        """Whether it lies between ``1 / factor`` and ``factor``."""
        return self.at_least(1.0 / factor) and self.at_most(factor)

    def over(self, other: "AtLeast") -> "AtLeast":
        """This time as a multiple of another one, which has to be known."""
        return AtLeast(self.value / other.known, self.exact) if other.known else UNKNOWN

    def later_than(self, other: "AtLeast") -> bool | None:
        """Whether this time comes after another one; not known if neither arrived."""
        if other.exact:
            return self.value > other.value if self.exact else self.at_least(other.value)
        return False if self.exact and other.at_least(self.value) else None

    def __str__(self) -> str:
        if self == UNKNOWN:
            return "an unknown number of times"
        if math.isinf(self.value):
            return "infinitely many times (it diverged)"
        return f"{'' if self.exact else 'more than '}{self.value:.2g} times"


UNKNOWN = AtLeast(0.0, exact=False)


def median_time(times: Sequence[float]) -> AtLeast:
    """Median over seeds, those that did not arrive being infinite; unknown without any."""
    median = float(np.median(times)) if times else 0.0
    return AtLeast(median, exact=bool(times) and math.isfinite(median))


class Times:
    """Idealized times of a comparison's methods, to ``JUDGED`` unless another accuracy is given."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison, self.labels = comparison, comparison.labels
        self.n_nodes: int = comparison.config["problem"]["n_nodes"]

    def of(self, label: str, accuracy: float = JUDGED) -> AtLeast:
        if label not in self.labels:
            return UNKNOWN
        found = self.comparison.time_to(label, accuracy)
        if found is not None:
            return AtLeast(found)
        diverged = self._statuses(label) == {"diverged"}
        return AtLeast(math.inf if diverged else self.comparison.end_of(label), exact=False)

    def cell(self, label: str, accuracy: float = JUDGED) -> str | float | None:
        """A time, or why there is none, for a table."""
        if self.comparison.refusal(accuracy) is not None:
            return "n/a"
        time = self.of(label, accuracy)
        if time.exact or time == UNKNOWN:
            return time.known
        if math.isinf(time.value):
            return "diverged"
        return f"> {CLOCK_LIMIT_FACTOR:g}x" if self._statuses(label) == {"time_limit"} else None

    def _statuses(self, label: str) -> set[str]:
        return {record.status for record in self.comparison.runs(label)}

    def multiple(self, label: str, reference: str) -> AtLeast:
        return self.of(label).over(self.of(reference))

    def later(self, label: str, other: str) -> bool | None:
        """Whether ``label`` arrives after ``other``: to the strictest accuracy that one reached."""
        for accuracy in sorted(each for each in ACCURACIES if each >= JUDGED):
            one, two = self.of(label, accuracy), self.of(other, accuracy)
            if one.exact or two.exact:
                return one.later_than(two)
        return None


def verdict(cases: Iterable[bool | None]) -> str:
    """``yes`` if all cases hold, ``no`` if none does, else ``partly``.

    Cases that are not known (None) do not count, but without them nothing is ``yes``.

    Examples
    --------
    >>> verdict([True, True]), verdict([False]), verdict([True, False]), verdict([])
    ('yes', 'no', 'partly', 'not decided')
    >>> verdict([True, False, None]), verdict([False, None]), verdict([True, None])
    ('partly', 'no', 'not decided')
    """
    found = {None if case is None else bool(case) for case in cases}
    if {True, False} <= found:
        return PARTLY
    if False in found:
        return NO
    return YES if found == {True} else OPEN


def paragraph(text: str, heading: str = "") -> str:
    """Text broken into lines, beside its heading."""
    return textwrap.fill(
        text, WIDTH, initial_indent=heading, subsequent_indent=" " * len(heading),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """What the paper claims, what was measured, and whether it holds (see `verdict`)."""

    paper: str
    measured: str
    holds: str

    def __str__(self) -> str:
        paper = paragraph(self.paper, "The paper:  ")
        measured = paragraph(self.measured, "Measured:   ")
        return f"{paper}\n{measured}\nHolds:      {self.holds}"


def judge(paper: str, measured: str, cases: Sequence[bool | None]) -> Claim:
    """A claim decided by its cases; without any, ``measured`` does not count."""
    return Claim(paper, measured if cases else NOTHING, verdict(cases))


def spread(values: Sequence[float], digits: str) -> str:
    """Smallest and largest of some numbers, in the format ``digits``; empty if there are none."""
    return f"{min(values):{digits}} to {max(values):{digits}}" if values else ""


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Values by key, both in the order in which they come."""
    groups: dict[Key, list[Value]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return dict(groups)

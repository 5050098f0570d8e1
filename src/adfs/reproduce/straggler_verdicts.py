"""What stragglers do, in words: claims, and where ADFS is the one to pick; all from the numbers."""

from typing import NamedTuple

from adfs.bench.comparison import Comparison
from adfs.reproduce.panels import YARDSTICKS
from adfs.reproduce.report import Claim
from adfs.reproduce.times import NEVER, Multiple, Time, Times, decided
from adfs.reproduce.words import listing

TOL = 1e-6
SLOW = 10.0
CONSTANT, SLOW_NODE = "constant", "one slow node"
RANDOM = ("exponential", "Pareto 1.5")
SYNCHRONOUS = ("msda", "ssda", "dsba", "katyusha", "l-katyusha", *YARDSTICKS)


class Found(NamedTuple):
    """Times to 1e-6 of every method in every world, for one problem."""

    name: str
    words: str
    comparisons: dict[str, Comparison]
    left_out: str = ""

    def time(self, world: str, label: str) -> Time:
        """Idealized time of a method in a world."""
        comparison = self.comparisons.get(world)
        return NEVER if comparison is None else Times(comparison, TOL).of(label)

    def slowdown(self, world: str, label: str) -> Multiple:
        """How many times longer than with constant delays."""
        return self.time(world, label).over(self.time(CONSTANT, label))

    @property
    def labels(self) -> list[str]:
        """Methods that ran."""
        seen = (label for found in self.comparisons.values() for label in found.labels)
        return list(dict.fromkeys(seen))


def stochastic_claim(found: list[Found]) -> Claim:
    """Synchronous against pairwise, where all delays are random."""
    cases, words = _against_adfs(found, RANDOM)
    return Claim(
        "methods that synchronise all nodes are very sensitive to stochastic delays; ADFS waits "
        "only for neighbours.",
        f"multiples of the time under constant delays: {words}.",
        decided(cases),
    )


def slow_claim(found: list[Found]) -> Claim:
    """The same with one slow node."""
    cases, words = _against_adfs(found, (SLOW_NODE,))
    return Claim(
        "... and to slow nodes; randomized pairwise methods let fast nodes perform more updates.",
        f"with one node {SLOW:g} times slower, multiples of the time without: {words}.",
        decided(cases),
    )


def _against_adfs(found: list[Found], worlds: tuple[str, ...]) -> tuple[list[bool | None], str]:
    """Whether each synchronous method loses more than ADFS, and by how much."""
    cases: list[bool | None] = []
    words = []
    for one in found:
        for world in worlds:
            mine = one.slowdown(world, "adfs")
            theirs = {label: one.slowdown(world, label) for label in SYNCHRONOUS}
            if mine.value is None or not mine.exact:
                continue
            cases += [each.at_least(mine.value) for each in theirs.values()]
            known = [f"{label} {each}" for label, each in theirs.items() if each.value is not None]
            words.append(f"{one.name}, {world}: ADFS {mine}, {listing(known)}")
    return cases, "; ".join(words) or "nothing was finished"


def advice(found: list[Found]) -> list[str]:
    """Where ADFS is the one to pick, and where it is not: from the numbers."""
    remarks = [_advice_in(one, world) for one in found for world in one.comparisons]
    return remarks + [one.left_out for one in found if one.left_out]


def _advice_in(one: Found, world: str) -> str:
    times = {label: one.time(world, label) for label in one.labels}
    arrived = {label: time.value for label, time in times.items() if time.arrived and time.value}
    if "adfs" not in arrived:
        return f"{one.name}, {world}: ADFS did not arrive, so there is nothing to compare with."
    order = sorted(arrived, key=lambda label: arrived[label])
    mine = arrived["adfs"]
    if order[0] == "adfs":
        tail = f", {arrived[order[1]] / mine:.2g} times before {order[1]}" if order[1:] else ""
        return f"{one.name}, {world}: ADFS is the one to pick{tail}."
    best = order[0]
    spread = next(name for name in order if name not in (*YARDSTICKS, "point-saga"))
    first = "ADFS is" if spread == "adfs" else f"{spread} is"
    return (
        f"{one.name}, {world}: pick {best}, {mine / arrived[best]:.2g} times before ADFS; among "
        f"the methods of the paper on many nodes {first} first."
    )

"""What stragglers do, in words: claims, and where ADFS is the one to pick; all from the numbers."""

from typing import NamedTuple

import numpy as np

from adfs.bench.comparison import Comparison
from adfs.reproduce.panels import YARDSTICKS, Times
from adfs.reproduce.report import Claim, verdict
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

    def time(self, world: str, label: str) -> float:
        """Idealized time; infinite where it did not arrive, NaN where it does not apply."""
        comparison = self.comparisons.get(world)
        if comparison is None or label not in comparison.labels:
            return float("nan")
        return Times(comparison, TOL).of(label)

    def slowdown(self, world: str, label: str) -> float:
        """How many times longer than with constant delays."""
        return self.time(world, label) / self.time(CONSTANT, label)

    @property
    def labels(self) -> list[str]:
        """Methods that ran."""
        seen = (label for found in self.comparisons.values() for label in found.labels)
        return list(dict.fromkeys(seen))


def stochastic_claim(found: list[Found]) -> Claim:
    """Synchronous against pairwise, where all delays are random."""
    cases: list[bool] = []
    words: list[str] = []
    for one in found:
        for world in RANDOM:
            mine = one.slowdown(world, "adfs")
            theirs = {
                label: one.slowdown(world, label)
                for label in SYNCHRONOUS
                if np.isfinite(one.slowdown(world, label))
            }
            if not np.isfinite(mine) or not theirs:
                continue
            cases.extend(value > mine for value in theirs.values())
            less = [label for label, value in theirs.items() if value <= mine]
            words.append(
                f"{one.name}, {world}: ADFS {mine:.2g} times its constant time, the "
                f"synchronous ones {min(theirs.values()):.2g} to {max(theirs.values()):.2g}"
                + (f" ({listing(less)} not more than ADFS)" if less else "")
            )
    return Claim(
        "synchronous and centralized methods are very sensitive to stochastic delays; ADFS waits "
        "only for neighbours.",
        "; ".join(words) + ".",
        verdict(cases),
    )


def slow_claim(found: list[Found]) -> Claim:
    cases: list[bool] = []
    words: list[str] = []
    for one in found:
        mine = one.slowdown(SLOW_NODE, "adfs")
        theirs = [one.slowdown(SLOW_NODE, label) for label in SYNCHRONOUS]
        known = [value for value in theirs if np.isfinite(value)]
        if np.isfinite(mine) and known:
            cases.extend(value > mine for value in known)
            words.append(
                f"{one.name}: ADFS {mine:.2g} times, the synchronous ones "
                f"{min(known):.2g} to {max(known):.2g}"
            )
    return Claim(
        "pairwise updates let fast nodes go on while a slow one works.",
        f"with one node {SLOW:g} times slower, multiples of the time without: {'; '.join(words)}.",
        verdict(cases),
    )


def advice(found: list[Found]) -> list[str]:
    """Where ADFS is the one to pick, and where it is not: from the numbers."""
    return [_advice_in(one, world) for one in found for world in one.comparisons]


def _advice_in(one: Found, world: str) -> str:
    times = {label: one.time(world, label) for label in one.labels}
    arrived = {label: time for label, time in times.items() if np.isfinite(time)}
    if not arrived:
        return f"{one.name}, {world}: nobody arrived."
    best = min(arrived, key=lambda label: arrived[label])
    mine = times.get("adfs", float("nan"))
    if best == "adfs":
        others = {label: time for label, time in arrived.items() if label != "adfs"}
        second = min(others, key=lambda label: others[label]) if others else None
        tail = f", {others[second] / mine:.2g} times before {second}" if second else ""
        return f"{one.name}, {world}: ADFS is the one to pick{tail}."
    free = {k: v for k, v in arrived.items() if k not in YARDSTICKS and k != "point-saga"}
    first = min(free, key=lambda label: free[label]) if free else best
    decentralized = "ADFS is" if first == "adfs" else f"{first} is"
    return (
        f"{one.name}, {world}: pick {best}, {mine / arrived[best]:.2g} times before ADFS; "
        f"among the methods of the paper on many nodes {decentralized} first."
    )

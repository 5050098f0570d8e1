"""Stragglers: how much random delays and a slow node hurt whom, yardsticks included."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from adfs.bench.comparison import Comparison
from adfs.bench.contenders import PATIENCE
from adfs.errors import ParameterError
from adfs.graphs.topology import Topology
from adfs.plots.stragglers import draw_slowdowns
from adfs.problems.finite_sum import Problem
from adfs.problems.partition import partition
from adfs.reproduce.order import Order
from adfs.reproduce.report import Picture, Report, Table
from adfs.reproduce.samples import Pool, higgs, text
from adfs.reproduce.straggler_verdicts import (
    CONSTANT,
    RANDOM,
    SLOW,
    SLOW_NODE,
    SYNCHRONOUS,
    TOL,
    Found,
    advice,
    slow_claim,
    stochastic_claim,
)
from adfs.reproduce.words import Cell
from adfs.schedule.delays import Delays

TAU = 5.0
CONTENDERS = ("adfs", "esdacd", "point-saga", *SYNCHRONOUS)


@dataclass(frozen=True)
class Setting:
    """A problem on a grid."""

    name: str
    pool: Callable[[], Pool]
    side: int
    m: int
    sigma: float

    def problem(self) -> tuple[Problem, Pool]:
        """The problem, and where its rows come from."""
        pool = self.pool()
        topology = Topology.grid(self.side, self.side)
        shards = partition(pool.X, pool.y, topology.n_nodes, how="draw", m=self.m, seed=0)
        return Problem(shards, "logistic", self.sigma, topology), pool


SETTINGS = (Setting("few features", higgs, 4, 1000, 1.0), Setting("text", text, 4, 400, 0.1))
QUICK = (Setting("few features", higgs, 3, 80, 1.0),)


def worlds(n_nodes: int) -> dict[str, Delays]:
    """The delays under which everything is run; all have the same mean but the last."""
    slow = tuple(SLOW if node == n_nodes // 2 else 1.0 for node in range(n_nodes))
    return {
        CONSTANT: Delays(tau=TAU),
        RANDOM[0]: Delays(tau=TAU, law="exponential"),
        RANDOM[1]: Delays(tau=TAU, law="pareto", shape=1.5),
        SLOW_NODE: Delays(tau=TAU, speed=slow),
    }


def stragglers(order: Order) -> Report:
    """Run every method in every world."""
    settings = QUICK if order.quick else SETTINGS
    found = []
    for k, setting in enumerate(settings):
        if not order.interrupted:
            found.append(_measure(setting, order, (k, len(settings))))
    return Report(
        "stragglers", "who is hurt by random delays and by a slow node",
        [one.words for one in found] + _SETTING, [stochastic_claim(found), slow_claim(found)],
        [_table(one) for one in found], advice(found), [_picture(found)],
        order.quick, order.interrupted,
    )  # fmt: skip


_SETTING = [
    f"tau = {TAU:g}, non-blocking clock. Under a random law each elementary step and each message "
    "has its own factor of mean 1; a synchronous round ends when its slowest node and then its "
    "slowest edge does; pairwise methods follow their schedule. The slow node's steps take "
    f"{SLOW:g} times as long; Point-SAGA runs on a machine that is not slow.",
    f"Time is to a suboptimality of {TOL:g}; a method ends at {PATIENCE:g} times the clock of ADFS "
    "in the same world.",
]


def _measure(setting: Setting, order: Order, part: tuple[int, int]) -> Found:
    problem, pool = setting.problem()
    every = worlds(problem.n_nodes)
    found: dict[str, Comparison] = {}
    for k, (world, delays) in enumerate(every.items()):
        place = f"{setting.name} {world} {setting.m}".replace(" ", "-")
        found[world] = order.compare(
            problem, _contenders(problem), place, tol=TOL, tau=TAU, delays=delays
        )  # fmt: skip
        order.progress((part[0] + (k + 1) / len(every)) / part[1])
        if found[world].interrupted:
            break
    words = (
        f"Problem '{setting.name}': {pool.words}, {problem.n_features:,} features; {setting.m:,} "
        f"rows drawn for each node of {problem.topology.name}, sigma = {setting.sigma:g}."
    )
    return Found(setting.name, words, found)


def _contenders(problem: Problem) -> list[str]:
    """All but Newton where its d x d sums are too large for it."""
    from adfs.algorithms.base import Setting as Told
    from adfs.algorithms.base import get_algorithm

    try:
        get_algorithm("newton")(problem, Told())
    except ParameterError:
        return [name for name in CONTENDERS if name != "newton"]
    return list(CONTENDERS)


def _table(found: Found) -> Table:
    names = list(found.comparisons)
    rows: list[tuple[Cell, ...]] = []
    for label in found.labels:
        times = [_cell(found.time(world, label)) for world in names]
        slow = [_factor(found.slowdown(world, label)) for world in names[1:]]
        rows.append((label, *times, *slow))
    headers = ("algorithm", *names, *(f"x {name}" for name in names[1:]))
    title = f"'{found.name}': idealized time to {TOL:g}, and multiples of the constant one."
    return Table(found.name.replace(" ", "-"), title, headers, rows)


def _cell(time: float) -> Cell:
    return f"> {PATIENCE:g}x" if np.isinf(time) else None if np.isnan(time) else time


def _factor(value: float) -> Cell:
    return float(value) if np.isfinite(value) else None


def _picture(found: list[Found]) -> Picture:
    def draw(figure: Any) -> None:
        axes = np.atleast_1d(figure.subplots(1, max(1, len(found)), sharey=True))
        for ax, one in zip(axes, found, strict=False):
            names = [world for world in one.comparisons if world != CONSTANT]
            values = {
                label: [one.slowdown(world, label) for world in names] for label in one.labels
            }
            draw_slowdowns(values, names, ax, one.name)

    return Picture("stragglers", (11.0, 5.0), draw)

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
from adfs.reproduce.panels import cell_of
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
    drawn = [one for one in found if len(one.comparisons) > 1 and one.labels]
    return Report(
        "stragglers", "who is hurt by random delays and by a slow node",
        [one.words for one in found] + _SETTING, [stochastic_claim(found), slow_claim(found)],
        [_table(one) for one in found], advice(found), [_picture(drawn)] if drawn else [],
        order.quick, order.interrupted,
    )  # fmt: skip


_SETTING = [
    f"tau = {TAU:g}, non-blocking clock. Under a random law each elementary step and each message "
    "has its own factor of mean 1; a synchronous round ends when its slowest node and then its "
    "slowest edge does; pairwise methods follow their schedule. The slow node's steps take "
    f"{SLOW:g} times as long; Point-SAGA runs on a machine that is not slow.",
    f"Time is to a suboptimality of {TOL:g}, one seed, all at the best parameters that theory "
    f"allows; a method ends at {PATIENCE:g} times the clock of ADFS in the same world.",
]


def _measure(setting: Setting, order: Order, part: tuple[int, int]) -> Found:
    problem, pool = setting.problem()
    every = worlds(problem.n_nodes)
    missing = _without_newton(problem)
    contenders = [name for name in CONTENDERS if not (missing and name == "newton")]
    found: dict[str, Comparison] = {}
    for k, (world, delays) in enumerate(every.items()):
        place = f"{setting.name} {world} {setting.m}".replace(" ", "-")
        found[world] = order.compare(
            problem, contenders, place, tol=TOL, tau=TAU, delays=delays
        )  # fmt: skip
        order.progress((part[0] + (k + 1) / len(every)) / part[1])
        if found[world].interrupted:
            break
    words = (
        f"Problem '{setting.name}': {pool.words}, {problem.n_features:,} features; {setting.m:,} "
        f"rows drawn for each node of {problem.topology.name}, sigma = {setting.sigma:g}."
    )
    return Found(setting.name, words, found, f"{setting.name}: {missing}" if missing else "")


def _without_newton(problem: Problem) -> str:
    """Why Newton does not take part, if it does not: its d x d sums."""
    from adfs.algorithms.all_reduce import matrix_rounds
    from adfs.algorithms.base import Setting as Told
    from adfs.algorithms.base import get_algorithm

    try:
        get_algorithm("newton")(problem, Told())
    except ParameterError as error:
        price = TAU * matrix_rounds(problem.topology, problem.n_features)
        return (
            f"newton is left out where d = {problem.n_features:,}: {error} One of its all-reduces "
            f"alone would take {price:,.0f}."
        )
    return ""


def _table(found: Found) -> Table:
    names = list(found.comparisons)
    rows: list[tuple[Cell, ...]] = []
    for label in found.labels:
        times = [_cell(found, world, label) for world in names]
        slow = [found.slowdown(world, label) for world in names[1:]]
        rows.append((label, *times, *(each.value if each.exact else None for each in slow)))
    headers = ("algorithm", *names, *(f"x {name}" for name in names[1:]))
    title = f"'{found.name}': idealized time to {TOL:g}, and multiples of the constant one."
    return Table(found.name.replace(" ", "-"), title, headers, rows)


def _cell(found: Found, world: str, label: str) -> Cell:
    comparison = found.comparisons[world]
    return cell_of(comparison, label, TOL) if label in comparison.labels else None


def _picture(found: list[Found]) -> Picture:
    def draw(figure: Any) -> None:
        axes = np.atleast_1d(figure.subplots(1, len(found), sharey=True))
        for ax, one in zip(axes, found, strict=True):
            names = [world for world in one.comparisons if world != CONSTANT]
            slow = {label: [one.slowdown(each, label) for each in names] for label in one.labels}
            values = {
                label: [each.value if each.exact and each.value else np.nan for each in multiples]
                for label, multiples in slow.items()
            }
            draw_slowdowns(values, names, ax, one.name)

    return Picture("stragglers", (11.0, 5.0), draw)

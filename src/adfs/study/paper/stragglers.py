"""Stragglers: how much random delays and a slow node cost each method, second-order ones too."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from adfs.algorithms.base import MethodSetting, get_algorithm
from adfs.algorithms.descent import matrix_rounds
from adfs.data.partition import partition
from adfs.errors import ParameterError
from adfs.graphs.topology import Topology
from adfs.problem.finite_sum import Problem
from adfs.schedule.delays import Delays
from adfs.study.comparison import Comparison
from adfs.study.contenders import CLOCK_LIMIT_FACTOR
from adfs.study.numbers import listing
from adfs.study.paper.bounded_times import UNKNOWN, AtLeast, Times
from adfs.study.paper.figures import SECOND_ORDER, cell_of
from adfs.study.paper.paper_report import Claim, Picture, Report, ResultTable, Rows, verdict
from adfs.study.paper.samples import Pool, higgs, text
from adfs.study.paper.study_context import StudyContext
from adfs.study.plots.paper_plots import draw_slowdowns

TAU, TOL = 5.0, 1e-6
SLOW = 10.0
CONSTANT, SLOW_NODE = "constant", "one slow node"
RANDOM = ("exponential", "Pareto 1.5")
SYNCHRONOUS = ("msda", "ssda", "dsba", "katyusha", "l-katyusha", *SECOND_ORDER)
CONTENDERS = ("adfs", "esdacd", "point-saga", *SYNCHRONOUS)


class StragglerCase(NamedTuple):
    """A problem on a grid."""

    name: str
    pool: Callable[[], Pool]
    side: int
    m: int
    sigma: float


FULL = (
    StragglerCase("few features", higgs, 4, 1000, 1.0),
    StragglerCase("text", text, 4, 400, 0.1),
)
QUICK = (StragglerCase("few features", higgs, 3, 80, 1.0),)


class StragglerTimes(NamedTuple):
    """Times to 1e-6 of every method under every law of delays, for one problem."""

    name: str
    setting: str
    comparisons: dict[str, Comparison]
    left_out: str = ""

    def time(self, delays: str, label: str) -> AtLeast:
        """Idealized time of a method under a law of delays."""
        comparison = self.comparisons.get(delays)
        return UNKNOWN if comparison is None else Times(comparison, TOL).of(label)

    def slowdown(self, delays: str, label: str) -> AtLeast:
        """How many times longer than with constant delays."""
        return self.time(delays, label).over(self.time(CONSTANT, label))

    @property
    def labels(self) -> list[str]:
        """Methods that ran."""
        seen = (label for found in self.comparisons.values() for label in found.labels)
        return list(dict.fromkeys(seen))


def delay_laws(n_nodes: int) -> dict[str, Delays]:
    """The delays under which everything is run; all have the same mean but the last."""
    slow = tuple(SLOW if node == n_nodes // 2 else 1.0 for node in range(n_nodes))
    return {
        CONSTANT: Delays(tau=TAU),
        RANDOM[0]: Delays(tau=TAU, law="exponential"),
        RANDOM[1]: Delays(tau=TAU, law="pareto", shape=1.5),
        SLOW_NODE: Delays(tau=TAU, speed=slow),
    }


def stragglers(context: StudyContext) -> Report:
    """Run every method under every law of delays, then judge."""
    cases = QUICK if context.quick else FULL
    found: list[StragglerTimes] = []
    for k, case in enumerate(cases):
        if not context.interrupted:
            found.append(_measure(case, context, (k, len(cases))))
    setting = [
        f"tau = {TAU:g}, non-blocking clock. Under a random law each elementary step and each "
        "message has its own factor of mean 1; a synchronous round ends when its slowest node and "
        "then its slowest edge does; pairwise methods follow their schedule. The slow node's steps "
        f"take {SLOW:g} times as long; Point-SAGA runs on a machine that is not slow.",
        f"Time is to a suboptimality of {TOL:g}, one seed, all methods tuned; a method ends at "
        f"{CLOCK_LIMIT_FACTOR:g} times the clock of ADFS under the same delays.",
    ]
    drawn = [one for one in found if len(one.comparisons) > 1 and one.labels]
    return Report(
        "stragglers", "what random delays and a slow node cost each method",
        [one.setting for one in found] + setting, [stochastic_claim(found), slow_claim(found)],
        [_table(one) for one in found], advice(found), [_picture(drawn)] if drawn else [],
        context.quick, context.interrupted,
    )  # fmt: skip


def _measure(case: StragglerCase, context: StudyContext, part: tuple[int, int]) -> StragglerTimes:
    pool, topology = case.pool(), Topology.grid(case.side, case.side)
    shards = partition(pool.X, pool.y, topology.n_nodes, how="draw", m=case.m, seed=0)
    problem = Problem(shards, "logistic", case.sigma, topology)
    left_out = _why_no_newton(problem)
    contenders = [name for name in CONTENDERS if not (left_out and name == "newton")]
    laws = delay_laws(topology.n_nodes)
    found: dict[str, Comparison] = {}
    for k, (name, delays) in enumerate(laws.items()):
        label = f"{case.name} {name} {case.m}".replace(" ", "-")
        found[name] = context.compare(problem, contenders, label, tol=TOL, tau=TAU, delays=delays)
        context.progress((part[0] + (k + 1) / len(laws)) / part[1])
        if found[name].interrupted:
            break
    setting = (
        f"Problem '{case.name}': {pool.source}, {problem.n_features:,} features; {case.m:,} "
        f"rows drawn for each node of {topology.name}, sigma = {case.sigma:g}."
    )
    return StragglerTimes(case.name, setting, found, left_out and f"{case.name}: {left_out}")


def _why_no_newton(problem: Problem) -> str:
    """Why Newton does not take part, if it does not: its d x d sums."""
    try:
        get_algorithm("newton")(problem, MethodSetting())
    except ParameterError as error:
        price = TAU * matrix_rounds(problem.topology, problem.n_features)
        return (
            f"newton is left out where d = {problem.n_features:,}: {error} One of its all-reduces "
            f"alone would take {price:,.0f}."
        )
    return ""


def stochastic_claim(found: list[StragglerTimes]) -> Claim:
    """Synchronous against pairwise, where all delays are random."""
    cases, multiples = _against_adfs(found, RANDOM)
    return Claim(
        "methods that synchronise all nodes are very sensitive to stochastic delays; ADFS waits "
        "only for neighbours.",
        f"multiples of the time under constant delays: {multiples}.",
        verdict(cases),
    )


def slow_claim(found: list[StragglerTimes]) -> Claim:
    """The same with one slow node."""
    cases, multiples = _against_adfs(found, (SLOW_NODE,))
    return Claim(
        "... and to slow nodes; randomized pairwise methods let fast nodes perform more updates.",
        f"with one node {SLOW:g} times slower, multiples of the time without: {multiples}.",
        verdict(cases),
    )


def _against_adfs(
    found: list[StragglerTimes], laws: tuple[str, ...]
) -> tuple[list[bool | None], str]:
    """Whether each synchronous method loses more than ADFS, and by how much."""
    cases: list[bool | None] = []
    parts = []
    for one in found:
        for law in laws:
            mine = one.slowdown(law, "adfs")
            if mine.known is None:
                continue
            theirs = {name: one.slowdown(law, name) for name in SYNCHRONOUS if name in one.labels}
            cases += [each.at_least(mine.known) for each in theirs.values()]
            known = [f"{label} {each}" for label, each in theirs.items() if each.value is not None]
            parts.append(f"{one.name}, {law}: ADFS {mine}, {listing(known)}")
    return cases, "; ".join(parts) or "nothing was finished"


def advice(found: list[StragglerTimes]) -> list[str]:
    """Where ADFS is the one to pick, and where it is not: from the numbers."""
    remarks = [_advice_under(one, law) for one in found for law in one.comparisons]
    return remarks + [one.left_out for one in found if one.left_out]


def _advice_under(one: StragglerTimes, law: str) -> str:
    times = {label: one.time(law, label).known for label in one.labels}
    arrived = {label: time for label, time in times.items() if time}
    if "adfs" not in arrived:
        return f"{one.name}, {law}: ADFS did not arrive, so there is nothing to compare with."
    order = sorted(arrived, key=lambda label: arrived[label])
    mine, best = arrived["adfs"], order[0]
    if best == "adfs":
        tail = f", {arrived[order[1]] / mine:.2g} times before {order[1]}" if order[1:] else ""
        return f"{one.name}, {law}: ADFS is the one to pick{tail}."
    first = next(name for name in order if name not in (*SECOND_ORDER, "point-saga"))
    return (
        f"{one.name}, {law}: pick {best}, {mine / arrived[best]:.2g} times before ADFS; among the "
        f"methods of the paper on many nodes {'ADFS' if first == 'adfs' else first} is first."
    )


def _table(found: StragglerTimes) -> ResultTable:
    names = list(found.comparisons)
    rows: Rows = [
        (label, *(cell_of(found.comparisons[name], label, TOL) for name in names),
         *(found.slowdown(name, label).known for name in names[1:]))
        for label in found.labels
    ]  # fmt: skip
    headers = ("algorithm", *names, *(f"x {name}" for name in names[1:]))
    title = f"'{found.name}': idealized time to {TOL:g}, and multiples of the constant one."
    return ResultTable(found.name.replace(" ", "-"), title, headers, rows)


def _picture(found: list[StragglerTimes]) -> Picture:
    def draw(figure: Any) -> None:
        axes = np.atleast_1d(figure.subplots(1, len(found), sharey=True))
        for ax, one in zip(axes, found, strict=True):
            laws = [name for name in one.comparisons if name != CONSTANT]
            values = {
                label: [one.slowdown(law, label).known or np.nan for law in laws]
                for label in one.labels
            }
            draw_slowdowns(values, laws, ax, one.name)

    return Picture("stragglers", (11.0, 5.0), draw)

"""Stragglers: how much random delays and a slow node cost each method, second-order ones too."""

import itertools
from functools import partial
from typing import NamedTuple

from adfs.algorithms.base import MethodSetting, get_algorithm
from adfs.algorithms.descent import matrix_rounds
from adfs.errors import ParameterError
from adfs.graphs.topology import Topology
from adfs.schedule.delays import Delays
from adfs.study.contenders import CLOCK_LIMIT_FACTOR
from adfs.study.numbers import listing
from adfs.study.paper import TEXT, StudyCase
from adfs.study.paper.claims import JUDGED, UNKNOWN, AtLeast, Claim, Times, judge
from adfs.study.paper.figures import SECOND_ORDER
from adfs.study.paper.study_context import Picture, Pool, Report, ResultTable, Rows, StudyContext
from adfs.study.plots.paper_plots import draw_slowdowns

TAU = 5.0
SLOW = 10.0
CONSTANT, SLOW_NODE = "constant", "one slow node"
RANDOM = ("exponential", "Pareto 1.5")
SYNCHRONOUS = ("msda", "ssda", "dsba", "katyusha", "l-katyusha", *SECOND_ORDER)
CONTENDERS = ("adfs", "esdacd", "point-saga", *SYNCHRONOUS)
CLAIMS = (
    (
        RANDOM,
        "methods that synchronise all nodes are very sensitive to stochastic delays; ADFS waits "
        "only for neighbours.",
        "multiples of the time under constant delays",
    ),
    (
        (SLOW_NODE,),
        "... and to slow nodes; randomized pairwise methods let fast nodes perform more updates.",
        f"with one node {SLOW:g} times slower, multiples of the time without",
    ),
)


FULL = (
    StudyCase("few features", "grid:4x4", 1000),
    StudyCase("text", "grid:4x4", 400, sigma=0.1, data=TEXT),
)
QUICK = (StudyCase("few features", "grid:3x3", 80),)


class StragglerTimes(NamedTuple):
    """Times to 1e-6 of every method under every law of delays, for one problem."""

    name: str
    setting: str
    times: dict[str, Times]
    left_out: str = ""

    @property
    def labels(self) -> list[str]:
        return self.times[CONSTANT].labels

    def slowdown(self, law: str, label: str) -> AtLeast:
        if law not in self.times:
            return UNKNOWN
        return self.times[law].of(label).over(self.times[CONSTANT].of(label))

    def slowdowns(self, label: str) -> dict[str, float | None]:
        """Those that are known, by law of delays."""
        return {law: self.slowdown(law, label).known for law in self.times if law != CONSTANT}


def delay_laws(n_nodes: int) -> dict[str, Delays]:
    """The delays under which everything is run; all have the same mean but the last."""
    slow = tuple(SLOW if node == n_nodes // 2 else 1.0 for node in range(n_nodes))
    return {
        CONSTANT: Delays(tau=TAU),
        RANDOM[0]: Delays(tau=TAU, law="exponential"),
        RANDOM[1]: Delays(tau=TAU, law="pareto", shape=1.5),
        SLOW_NODE: Delays(tau=TAU, speed=slow),
    }


def reproduce(context: StudyContext) -> Report:
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
        f"Time is to a suboptimality of {JUDGED:g}, one seed, all methods tuned; a method ends at "
        f"{CLOCK_LIMIT_FACTOR:g} times the clock of ADFS under the same delays.",
    ]
    drawn = {
        one.name: {label: one.slowdowns(label) for label in one.labels}
        for one in found
        if len(one.times) > 1 and one.labels
    }
    picture = Picture("stragglers", (11.0, 5.0), partial(draw_slowdowns, drawn))
    return Report(
        "stragglers", "what random delays and a slow node cost each method",
        [one.setting for one in found] + setting, [judge_laws(found, *each) for each in CLAIMS],
        [_table(one) for one in found], advice(found), [picture] if drawn else [], context.quick,
        context.interrupted,
    )  # fmt: skip


def _measure(case: StudyCase, context: StudyContext, part: tuple[int, int]) -> StragglerTimes:
    pool, topology = Pool.load(case.data), Topology.parse(case.graph)
    problem = pool.problem(topology, case.m, case.sigma)
    contenders, left_out = list(CONTENDERS), ""
    try:
        get_algorithm("newton")(problem, MethodSetting())
    except ParameterError as error:
        contenders.remove("newton")
        price = TAU * matrix_rounds(topology, problem.n_features)
        left_out = (
            f"{case.name}: newton is left out where d = {problem.n_features:,}: {error} One of its "
            f"all-reduces alone would take {price:,.0f}."
        )
    laws = delay_laws(topology.n_nodes)
    times: dict[str, Times] = {}
    for k, (law, delays) in enumerate(laws.items()):
        label = f"{case.name} {law} {case.m}".replace(" ", "-")
        found = context.compare(problem, contenders, label, tol=JUDGED, tau=TAU, delays=delays)
        times[law] = Times(found)
        context.progress((part[0] + (k + 1) / len(laws)) / part[1])
        if found.interrupted:
            break
    setting = (
        f"Problem '{case.name}': {pool.source}, {problem.n_features:,} features; {case.m:,} "
        f"rows drawn for each node of {topology.name}, sigma = {case.sigma:g}."
    )
    return StragglerTimes(case.name, setting, times, left_out)


def judge_laws(found: list[StragglerTimes], laws: tuple[str, ...], paper: str, what: str) -> Claim:
    """Whether each synchronous method loses more than ADFS, and by how much."""
    cases: list[bool | None] = []
    parts = []
    for one, law in itertools.product(found, laws):
        mine = one.slowdown(law, "adfs")
        if mine.exact:
            theirs = {name: one.slowdown(law, name) for name in SYNCHRONOUS if name in one.labels}
            cases += [each.at_least(mine.value) for each in theirs.values()]
            known = [f"{label} {each}" for label, each in theirs.items() if each != UNKNOWN]
            parts.append(f"{one.name}, {law}: ADFS {mine}, {listing(known)}")
    return judge(paper, f"{what}: {'; '.join(parts)}.", cases)


def advice(found: list[StragglerTimes]) -> list[str]:
    """Where ADFS is the one to pick, and where it is not: from the numbers."""
    remarks = [
        f"{one.name}, {law}: {_pick(times)}" for one in found for law, times in one.times.items()
    ]
    return remarks + [one.left_out for one in found if one.left_out]


def _pick(times: Times) -> str:
    arrived = {label: time for label in times.labels if (time := times.of(label)).known}
    order = sorted(arrived, key=lambda label: arrived[label])
    if "adfs" not in arrived:
        return "ADFS did not arrive, so there is nothing to compare with."
    best = order[0]
    if best == "adfs":
        tail = f", {times.multiple(order[1], best)} before {order[1]}" if order[1:] else ""
        return f"ADFS is the one to pick{tail}."
    first = next(name for name in order if name not in (*SECOND_ORDER, "point-saga"))
    return (
        f"pick {best}, {times.multiple('adfs', best)} before ADFS; among the methods of the paper "
        f"on many nodes {'ADFS' if first == 'adfs' else first} is first."
    )


def _table(found: StragglerTimes) -> ResultTable:
    rows: Rows = []
    for label in found.labels:
        cells = [times.cell(label) for times in found.times.values()]
        rows.append((label, *cells, *found.slowdowns(label).values()))
    laws = list(found.times)
    headers = ("algorithm", *laws, *(f"x {law}" for law in laws[1:]))
    title = f"'{found.name}': idealized time to {JUDGED:g}, and multiples of the constant one."
    return ResultTable(found.name.replace(" ", "-"), title, headers, rows)

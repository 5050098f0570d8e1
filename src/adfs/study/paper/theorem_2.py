"""`theorem-2`: the constant of Theorem 2 on several graphs, for several tau, under both clocks.

Theorem 2: if every node computes with probability p_comp / n, and p_comp > p_comm^max or tau > 1,
then T(t) / t <= C / n (p_comp + 2 tau p_comm^max) for large t with some C < 24, where
p_comm^max = n / 2 max_k sum_l p_kl. Measured is C = T(t) n / (t (p_comp + 2 tau p_comm^max)).

Deviation: the proof's lemma needs more than the theorem says. Its p_comm-bar is the chance
max_k sum_l p_kl = 2 p_comm^max / n that a node communicates, so "p_comp-bar >= p_comm-bar" reads
p_comp >= 2 p_comm^max, and its p_c = 4 p_comm-bar must be at most 1/2 where the text has "at
least". The alternative tau > 1 has no proof there. `hypothesis` separates the cases.
"""

import itertools
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.graphs.topology import Topology
from adfs.problem.finite_sum import Problem
from adfs.randomness import generator
from adfs.schedule.clock import CLOCKS, Clock
from adfs.schedule.delays import Delays
from adfs.schedule.sampling_law import Drawer
from adfs.study.paper.claims import Claim, grouped, judge, spread
from adfs.study.paper.study_context import Picture, Report, ResultTable, Rows, StudyContext
from adfs.study.plots.paper_plots import draw_constants
from adfs.theory.parameters import Parameters

STAGES = (1, 4, 16)
BLOCK = 1 << 16
PROVEN, BY_SHARE, BY_TAU, OUTSIDE = "proven", "p_comp", "tau", "outside"
BOUND = 24.0
GRAPHS = (
    "grid:3x3", "grid:10x10", "grid:32x32", "torus:10x10", "ring:100", "random_regular:100,k=4",
    "complete:100", "star:100",
)  # fmt: skip
QUICK_GRAPHS = (
    "grid:3x3", "grid:10x10", "grid:20x20", "torus:6x6", "ring:36", "random_regular:36,k=4",
    "complete:100", "star:36",
)  # fmt: skip
FAMILY = slice(1, 3)  # two grids: between them the speed should grow like the number of nodes
TAUS = (0.1, 1.0, 5.0, 50.0)
SHARES = (None, 0.5, 0.9)  # of communications: what `exact` finds best, its cap, beyond it
# Appendix C.1: the cost blows up where communications are many and short.
TINY_TAU, CROWDED = 1e-6, (0.5, 0.9, 0.99, 0.999)
ENOUGH_NODES = 36  # on fewer, there are not many to wait for
SETTLED, MUCH_SMALLER, NEARLY_LINEAR, EVEN = 0.05, BOUND / 4, 0.8, 1.2
MARKS = {PROVEN: "", BY_SHARE: " p", BY_TAU: " t", OUTSIDE: " o"}


class WaitingCase(NamedTuple):
    """Probabilities on a graph, a tau and a clock; the constant after t, 4 t and 16 t events."""

    graph: str
    rule: str
    n: int
    p_comm: float
    p_comm_max: float
    tau: float
    clock: str
    constants: tuple[float, ...]
    hypothesis: str

    @property
    def constant(self) -> float:
        return self.constants[-1]


def hypothesis(n: int, p_comp: float, p_comm_max: float, tau: float) -> str:
    """Which hypotheses a case meets, nodes computing equally often in all of them.

    ``proven``: the lemma's; ``p_comp`` or ``tau``: only that one of the theorem's statement;
    ``outside``: none.

    Examples
    --------
    >>> hypothesis(100, 0.9, 0.1, tau=0.5), hypothesis(100, 0.6, 0.4, 5.0)
    ('proven', 'p_comp')
    >>> hypothesis(100, 0.5, 0.5, tau=5.0), hypothesis(100, 0.5, 0.5, tau=0.5)
    ('tau', 'outside')
    """
    if p_comp >= 2.0 * p_comm_max and 8.0 * p_comm_max / n <= 0.5:
        return PROVEN
    if p_comp > p_comm_max:
        return BY_SHARE
    return BY_TAU if tau > 1.0 else OUTSIDE


def homogeneous(topology: Topology, m: int) -> Problem:
    """``m`` samples of one norm at each node: all nodes compute equally often."""
    n = topology.n_nodes
    X = generator(0, "reproduce/theorem-2").standard_normal((n * m, 2))
    X *= 4.0 / np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(np.arange(n * m) % 2, 1.0, -1.0)
    return Problem([(X[k : k + m], y[k : k + m]) for k in range(0, n * m, m)], topology=topology)


def p_comm_max(chosen: Parameters) -> float:
    """``n / 2 max_k sum_l p_kl``: ``p_comm`` if all nodes communicated as often as the busiest."""
    n = chosen.topology.n_nodes
    load = np.bincount(chosen.edges.ravel(), np.repeat(chosen.p_edge, 2), minlength=n)
    return float(n * load.max() / 2.0)


def measure(
    graph: str, share: float | None, taus: Sequence[float], m: int, events: int, n_seeds: int
) -> list[WaitingCase]:
    """Medians over seeds of the constant, for each tau and clock; ``events`` are per node."""
    problem = homogeneous(Topology.parse(graph), m)
    chosen = Parameters.choose(problem, "exact", p_comm=share)
    n, most = problem.n_nodes, p_comm_max(chosen)
    found = [constants(chosen, taus, events * n, seed) for seed in range(n_seeds)]
    medians = np.median(found, axis=0)
    rule = "exact" if share is None else f"{share:g}"
    return [
        WaitingCase(
            graph, rule, n, chosen.p_comm, most, tau, clock, tuple(medians[i, j].tolist()),
            hypothesis(n, chosen.p_comp, most, tau),
        )
        for i, tau in enumerate(taus) for j, clock in enumerate(CLOCKS)
    ]  # fmt: skip


def constants(
    chosen: Parameters, taus: Sequence[float], first: int, seed: int
) -> NDArray[np.float64]:
    """The constant for each tau, clock and stage; one schedule, drawn once for all of them."""
    n = chosen.topology.n_nodes
    cases = list(itertools.product(taus, CLOCKS))
    clocks = [Clock(chosen.edges, n, Delays(tau=tau), kind) for tau, kind in cases]
    bounds = [chosen.p_comp + 2.0 * tau * p_comm_max(chosen) for tau, _ in cases]
    drawer = Drawer(chosen, seed, with_samples=False)
    found, start = [], 0
    for stop in (first * stage for stage in STAGES):
        for at in range(start, stop, BLOCK):
            events = drawer.draw(at, min(stop, at + BLOCK))
            for clock in clocks:
                clock.advance(events)
        start = stop
        pairs = zip(clocks, bounds, strict=True)
        found.append([clock.time * n / (stop * bound) for clock, bound in pairs])
    return np.transpose(found).reshape(len(taus), len(CLOCKS), len(STAGES))


def reproduce(context: StudyContext) -> Report:
    graphs = QUICK_GRAPHS if context.quick else GRAPHS
    m, events, n_seeds = (100, 50, 2) if context.quick else (1000, 200, 5)
    laws: list[tuple[str, float | None, tuple[float, ...]]]
    laws = [(graph, share, TAUS) for graph in graphs for share in SHARES]
    laws += [(graph, share, (TINY_TAU,)) for graph in graphs for share in CROWDED]
    costs = [Topology.parse(graph).n_nodes * (2.0 + len(taus)) for graph, _, taus in laws]
    measured = context.map(lambda law: measure(*law, m, events, n_seeds), laws, costs)
    found = list(itertools.chain.from_iterable(measured))
    main = [case for case in found if case.tau != TINY_TAU]
    crowded = [case for case in found if case.tau == TINY_TAU]
    stages = ", ".join(f"{events * stage:,}" for stage in STAGES)
    setting = [
        f"A homogeneous problem, {m:,} samples of one norm at each node, with `exact` parameters: "
        "every node computes with probability p_comp / n. The share of communications p_comm is "
        "what `exact` finds best, then its cap 1/2, then 0.9.",
        f"C = T(t) n / (t (p_comp + 2 tau p_comm^max)), where T is when the last node is done, "
        f"after {stages} events per node; tables show the last. Medians of {n_seeds} schedules. "
        "Rendezvous is the theorem's clock, nonblocking the experiments'.",
    ]
    claims = [*main_claims(main), _growth_claim(main, graphs[FAMILY]), _crowded_claim(crowded)]
    half = [case for case in main if case.rule == "0.5"]
    odds = [case._replace(p_comm=case.p_comm / (1.0 - case.p_comm)) for case in crowded]
    inside, outside = _by_graph(half, "tau"), _by_graph(odds, "p_comm")
    draw = partial(draw_constants, inside, outside, BOUND, TINY_TAU)
    pictures = [Picture("theorem-2", (11.0, 4.6), draw)] if found else []
    return Report(
        "theorem-2", "the constant of Theorem 2, beside its bound 24", setting, claims,
        _tables(main, crowded), _remarks(main), pictures, context.quick, context.interrupted,
    )  # fmt: skip


def _largest(cases: list[WaitingCase]) -> str:
    if not cases:
        return ""
    worst = max(cases, key=lambda case: case.constant)
    return (
        f"their largest C is {worst.constant:.2f} ({worst.graph}, p_comm = {worst.p_comm:.3g}, "
        f"tau = {worst.tau:g}, {worst.clock})."
    )


def main_claims(main: list[WaitingCase]) -> list[Claim]:
    """The bound, where it is far away, and whether there is a limit."""
    covered = [case for case in main if case.hypothesis != OUTSIDE]
    even = [case for case in covered if case.p_comm_max <= EVEN * case.p_comm]
    changes = [abs(case.constants[2] / case.constants[1] - 1.0) for case in main]
    middle, most = np.median(changes or [0.0]), max(changes, default=0.0)
    return [
        judge(
            "T(t) / t <= C / n (p_comp + 2 tau p_comm^max) with C < 24 (Theorem 2).",
            f"{len(covered)} cases meet the theorem's hypotheses; {_largest(covered)}",
            [case.constant < BOUND for case in covered],
        ),
        judge(
            "C is much smaller for homogeneous communication probabilities (section 4).",
            f"In {len(even)} of these cases the busiest node communicates at most 20% more often "
            f"than the mean; {_largest(even)} Counted as much smaller: below {MUCH_SMALLER:g}.",
            [case.constant < MUCH_SMALLER for case in even],
        ),
        judge(
            "The average time per iteration exists for any fixed probabilities (section 4).",
            f"From 4 t to 16 t events T(t) / t changes by {100 * middle:.2g}% in the median and by "
            f"{100 * most:.2g}% at most. Counted as settled: below {100 * SETTLED:g}%.",
            [change < SETTLED for change in changes],
        ),
    ]


def _growth_claim(main: list[WaitingCase], family: Sequence[str]) -> Claim:
    """At one share of communications, iterations per unit of time are n / C times a constant."""
    small, large = (
        {(case.tau, case.clock): case for case in main if case[:2] == (graph, "0.5")}
        for graph in family
    )
    pairs = [(small[key], large[key]) for key in small.keys() & large.keys()]
    kept = [few.constant / many.constant for few, many in pairs]
    growth = max((many.n / few.n for few, many in pairs), default=1.0)
    return judge(
        "The iterations per unit of time increase linearly with the size of the network.",
        f"From {family[0]} to {family[1]}, {growth:.3g} times as many nodes, at p_comm = 1/2: "
        f"{spread([growth * share for share in kept], '.3g')} times as many iterations "
        f"per unit of time. Counted as linear: at least {NEARLY_LINEAR:g} of the growth.",
        [share >= NEARLY_LINEAR for share in kept],
    )


def _by_graph(cases: list[WaitingCase], x: str) -> dict[str, list[tuple[float, float]]]:
    """Points (x, constant) under the rendezvous clock, by graph."""
    return grouped(
        (case.graph, (getattr(case, x), case.constant))
        for case in cases
        if case.clock == "rendezvous"
    )


def _crowded_claim(crowded: list[WaitingCase]) -> Claim:
    """Where p_comm > p_comp and tau < 1, the constant has no bound."""
    many = [case for case in crowded if case.n >= ENOUGH_NODES]
    curves = [[constant for _, constant in line] for line in _by_graph(many, "p_comm").values()]
    rising = [bool(np.all(np.diff(values) > 0.0)) for values in curves]
    beyond = [max(values) > BOUND for values in curves]
    return judge(
        "Beyond the hypotheses, p_comm > p_comp and tau < 1, the synchronization cost blows up "
        "(Appendix C.1).",
        f"At tau = {TINY_TAU:g} and p_comm from {CROWDED[0]:g} to {CROWDED[-1]:g}, on graphs of "
        f"{ENOUGH_NODES} nodes or more: C rises with every step on {sum(rising)} of {len(rising)}, "
        f"and passes 24 on {sum(beyond)}; {_largest(crowded)}",
        [*rising, any(beyond)] if beyond else [],
    )


def _remarks(main: list[WaitingCase]) -> list[str]:
    counts = {kind: sum(case.hypothesis == kind for case in main) for kind in MARKS}
    remarks = [
        "The lemma behind the theorem needs p_comp >= 2 p_comm^max (its p_comm is the chance of "
        f"one node, 2 p_comm^max / n) and 8 p_comm^max / n <= 1/2. {counts[PROVEN]} cases meet "
        f"that; {counts[BY_SHARE]} (marked p) only the statement's p_comp > p_comm^max; "
        f"{counts[BY_TAU]} (t) only its tau > 1, for which the lemma has no proof; "
        f"{counts[OUTSIDE]} (o) neither.",
    ]
    hub = grouped((case.clock, case.constant) for case in main if "star" in case.graph)
    if hub:
        ranges = [f"{spread(hub[clock], '.2f')} under {clock}" for clock in reversed(CLOCKS)]
        remarks.append(
            "On a star all communications pass through the hub, so p_comm^max = n p_comm / 2 and "
            f"the right-hand side is about the hub's own time: C is {' and '.join(ranges)}, where "
            "a message is posted and the hub need not be held by each."
        )
    return remarks


def _tables(main: list[WaitingCase], crowded: list[WaitingCase]) -> list[ResultTable]:
    tables = []
    for clock in reversed(CLOCKS):
        groups = grouped(
            ((case.graph, case.rule, f"{case.p_comm:.3f}", f"{case.p_comm_max:.3f}"),
             f"{case.constant:5.2f}{MARKS[case.hypothesis]}")
            for case in main if case.clock == clock
        )  # fmt: skip
        title = f"C under the {clock} clock; p, t: only one hypothesis of the statement, o: neither"
        taus = (f"tau {tau:g}" for tau in TAUS)
        headers = ("graph", "p_comm by", "p_comm", "p_comm^max", *taus)
        rows: Rows = [(*key, *values) for key, values in groups.items()]
        tables.append(ResultTable(f"constants-{clock}", title, headers, rows))
    title = f"C under the rendezvous clock at tau = {TINY_TAU:g}, outside the hypotheses beyond 1/2"
    headers = ("graph", *(f"p_comm {share:g}" for share in CROWDED))
    rows = [
        (graph, *(constant for _, constant in points))
        for graph, points in _by_graph(crowded, "p_comm").items()
        if len(points) == len(CROWDED)
    ]
    tables.append(ResultTable("crowded", title, headers, rows))
    stages = (f"C at {stage} t" for stage in STAGES)
    headers = (*WaitingCase._fields[:7], *stages, "hypothesis", "below 24")
    rows = [
        (*case[:7], *case.constants, case.hypothesis, case.constant < BOUND)
        for case in [*main, *crowded]
    ]
    return [*tables, ResultTable("cases", "Every case.", headers, rows, shown=False)]

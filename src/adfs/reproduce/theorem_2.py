"""`theorem-2`: the constant of Theorem 2 on several graphs, for several tau, under both clocks."""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from adfs.graphs.topology import Topology
from adfs.plots.synchrony import draw_constants
from adfs.reproduce.order import Order
from adfs.reproduce.report import Claim, Picture, Report, Table, verdict
from adfs.reproduce.synchrony import (
    BY_SHARE,
    BY_TAU,
    OUTSIDE,
    PROVEN,
    STAGES,
    Case,
    Law,
    measure,
)
from adfs.reproduce.words import Cell
from adfs.schedule.clock import CLOCKS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


def theorem_2(order: Order) -> Report:
    """Measure, then judge."""
    graphs = QUICK_GRAPHS if order.quick else GRAPHS
    m, events, n_seeds = (100, 50, 2) if order.quick else (1000, 200, 5)
    laws = [Law(graph, share, TAUS) for graph in graphs for share in SHARES]
    laws += [Law(graph, share, (TINY_TAU,)) for graph in graphs for share in CROWDED]
    costs = [Topology.parse(law.graph).n_nodes * (2.0 + len(law.taus)) for law in laws]

    def work(law: Law) -> list[Case]:
        return measure(law, m, events, range(n_seeds))

    found = list(itertools.chain.from_iterable(order.map(work, laws, costs)))
    main = [case for case in found if case.tau != TINY_TAU]
    crowded = [case for case in found if case.tau == TINY_TAU]
    return Report(
        "theorem-2", "the constant of Theorem 2, beside its bound 24",
        _setting(m, events, n_seeds), _claims(main, crowded, graphs[FAMILY]),
        _tables(main, crowded), _remarks(main), [_picture(main, crowded)] if found else [],
        order.quick, order.interrupted,
    )  # fmt: skip


def _setting(m: int, events: int, n_seeds: int) -> list[str]:
    stages = ", ".join(f"{events * stage:,}" for stage in STAGES)
    return [
        f"A homogeneous problem, {m:,} samples of one norm at each node, with `exact` parameters: "
        "every node computes with probability p_comp / n. The share of communications p_comm is "
        "what `exact` finds best, then its cap 1/2, then 0.9.",
        f"C = T(t) n / (t (p_comp + 2 tau p_comm^max)), T being when the last node is done, after "
        f"{stages} events a node; tables show the last. Medians of {n_seeds} schedules. Rendezvous "
        "is the theorem's clock, nonblocking the experiments'.",
    ]


def _claims(main: list[Case], crowded: list[Case], family: Sequence[str]) -> list[Claim]:
    covered = [case for case in main if case.hypothesis != OUTSIDE]
    even = [case for case in covered if case.p_comm_max <= EVEN * case.p_comm]
    return [
        Claim(
            "T(t) / t <= C / n (p_comp + 2 tau p_comm^max) with C < 24 (Theorem 2).",
            f"{len(covered)} cases meet the theorem's hypotheses; {_largest(covered)}",
            verdict(case.constant < BOUND for case in covered),
        ),
        Claim(
            "C is much smaller for homogeneous communication probabilities (section 4).",
            f"In {len(even)} of these cases the busiest node communicates at most 20% more often "
            f"than the mean; {_largest(even)} Counted as much smaller: below {MUCH_SMALLER:g}.",
            verdict(case.constant < MUCH_SMALLER for case in even),
        ),
        _limit_claim(main),
        _growth_claim(main, family),
        _crowded_claim(crowded),
    ]


def _largest(cases: list[Case]) -> str:
    if not cases:
        return "nothing was measured yet."
    worst = max(cases, key=lambda case: case.constant)
    return (
        f"their largest C is {worst.constant:.2f} ({worst.graph}, p_comm = {worst.p_comm:.3g}, "
        f"tau = {worst.tau:g}, {worst.clock})."
    )


def _limit_claim(main: list[Case]) -> Claim:
    changes = [abs(case.constants[2] / case.constants[1] - 1.0) for case in main]
    most, middle = max(changes, default=0.0), float(np.median(changes or [0.0]))
    return Claim(
        "The average time per iteration exists for any fixed probabilities (section 4).",
        f"From 4 t to 16 t events T(t) / t changes by {100 * middle:.2g}% in the median and by "
        f"{100 * most:.2g}% at most. Counted as settled: below {100 * SETTLED:g}%.",
        verdict(change < SETTLED for change in changes),
    )


def _growth_claim(main: list[Case], family: Sequence[str]) -> Claim:
    """At one share of communications, iterations a unit of time are n / C times a constant."""
    small, large = (
        {(case.tau, case.clock): case for case in main if case[:2] == (graph, "0.5")}
        for graph in family
    )
    pairs = [(small[key], large[key]) for key in small.keys() & large.keys()]
    kept = [few.constant / many.constant for few, many in pairs]
    measured = "nothing yet."
    if pairs:
        growth = pairs[0][1].n / pairs[0][0].n
        measured = (
            f"From {family[0]} to {family[1]}, {growth:.3g} times as many nodes, at p_comm = 1/2: "
            f"{growth * min(kept):.3g} to {growth * max(kept):.3g} times as many iterations a unit "
            f"of time. Counted as linear: at least {NEARLY_LINEAR:g} of the growth."
        )
    return Claim(
        "The iterations per unit of time increase linearly with the size of the network.",
        measured,
        verdict(share >= NEARLY_LINEAR for share in kept),
    )


def _crowded_claim(crowded: list[Case]) -> Claim:
    """Where p_comm > p_comp and tau < 1, the constant has no bound."""
    curves: dict[str, list[float]] = {}
    for case in crowded:
        if case.clock == "rendezvous" and case.n >= ENOUGH_NODES:
            curves.setdefault(case.graph, []).append(case.constant)
    rising = [bool(np.all(np.diff(values) > 0.0)) for values in curves.values()]
    beyond = [max(values) > BOUND for values in curves.values()]
    return Claim(
        "Beyond the hypotheses, p_comm > p_comp and tau < 1, the synchronization cost blows up "
        "(Appendix C.1).",
        f"At tau = {TINY_TAU:g} and p_comm from {CROWDED[0]:g} to {CROWDED[-1]:g}, on graphs of "
        f"{ENOUGH_NODES} nodes or more: C rises with every step on {sum(rising)} of {len(rising)}, "
        f"and passes 24 on {sum(beyond)}; {_largest(crowded)}",
        verdict([*rising, any(beyond)] if beyond else []),
    )


def _remarks(main: list[Case]) -> list[str]:
    counts = {kind: sum(case.hypothesis == kind for case in main) for kind in MARKS}
    remarks = [
        "The lemma behind the theorem needs p_comp >= 2 p_comm^max (its p_comm is the chance of "
        f"one node, 2 p_comm^max / n) and 8 p_comm^max / n <= 1/2. {counts[PROVEN]} cases meet "
        f"that; {counts[BY_SHARE]} (marked p) only the statement's p_comp > p_comm^max; "
        f"{counts[BY_TAU]} (t) only its tau > 1, for which the lemma has no proof; "
        f"{counts[OUTSIDE]} (o) neither.",
    ]
    ranges = []
    for clock in reversed(CLOCKS):
        hub = [case.constant for case in main if "star" in case.graph and case.clock == clock]
        if hub:
            ranges.append(f"{min(hub):.2f} to {max(hub):.2f} under {clock}")
    if ranges:
        remarks.append(
            "On a star all communications pass through the hub, so p_comm^max = n p_comm / 2 and "
            f"the right-hand side is about the hub's own time: C is {' and '.join(ranges)}, where "
            "a message is posted and the hub need not be held by each."
        )
    return remarks


def _tables(main: list[Case], crowded: list[Case]) -> list[Table]:
    headers = ("graph", "rule", "n", "p_comm", "p_comm_max", "tau", "clock",
               *(f"C at {stage} t" for stage in STAGES), "hypothesis", "below 24")  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (*case[:7], *case.constants, case.hypothesis, case.constant < BOUND)
        for case in [*main, *crowded]
    ]
    return [
        *(_by_tau(main, clock) for clock in reversed(CLOCKS)),
        _by_share(crowded),
        Table("cases", "Every case.", headers, rows, shown=False),
    ]


def _by_tau(main: list[Case], clock: str) -> Table:
    groups: dict[tuple[Cell, ...], list[Cell]] = {}
    for case in main:
        if case.clock == clock:
            key = (case.graph, case.rule, f"{case.p_comm:.3f}", f"{case.p_comm_max:.3f}")
            groups.setdefault(key, []).append(f"{case.constant:5.2f}{MARKS[case.hypothesis]}")
    return Table(
        f"constants-{clock}",
        f"C under the {clock} clock; p, t: only one hypothesis of the statement, o: neither",
        ("graph", "p_comm by", "p_comm", "p_comm^max", *(f"tau {tau:g}" for tau in TAUS)),
        [(*key, *values) for key, values in groups.items()],
    )


def _by_share(crowded: list[Case]) -> Table:
    groups: dict[str, list[Cell]] = {}
    for case in crowded:
        if case.clock == "rendezvous":
            groups.setdefault(case.graph, []).append(case.constant)
    full = {graph: values for graph, values in groups.items() if len(values) == len(CROWDED)}
    return Table(
        "crowded",
        f"C under the rendezvous clock at tau = {TINY_TAU:g}, outside the hypotheses beyond 1/2",
        ("graph", *(f"p_comm {share:g}" for share in CROWDED)),
        [(graph, *values) for graph, values in full.items()],
    )


def _picture(main: list[Case], crowded: list[Case]) -> Picture:
    def lines(cases: list[Case], x: str) -> dict[str, list[tuple[float, float]]]:
        found: dict[str, list[tuple[float, float]]] = {}
        for case in cases:
            found.setdefault(case.graph.partition(",")[0], []).append(
                (getattr(case, x), case.constant)
            )
        return found

    half = [case for case in main if case.rule == "0.5" and case.clock == "rendezvous"]
    waiting = [case for case in crowded if case.clock == "rendezvous"]

    def draw(figure: "Figure") -> None:
        left, right = figure.subplots(1, 2, sharey=True)
        draw_constants(lines(half, "tau"), left, "tau", BOUND)
        left.set_title("within reach of the theorem: p_comm = 1/2", loc="left")
        odds = [case._replace(p_comm=case.p_comm / (1.0 - case.p_comm)) for case in waiting]
        draw_constants(lines(odds, "p_comm"), right, "p_comm / p_comp", BOUND)
        right.set_title(f"outside of it: tau = {TINY_TAU:g}", loc="left")
        left.set_ylabel("C, rendezvous clock")
        right.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)

    return Picture("theorem-2", (11.0, 4.6), draw)

"""`scaling`: do n machines learn from n m samples in the time that one machine needs for m?

Table 1 gives ADFS the time m + sqrt(m kappa_s) + (1 + tau) sqrt(kappa_s / gamma) for a factor e of
the error. At the critical network size the last term, the network's, equals the rest.

Every node draws its own m samples. ADFS on families of graphs, and Point-SAGA on one machine with
all samples, are run to the same relative suboptimality.
"""

import itertools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from adfs.algorithms import registered  # noqa: F401  (fills the registry)
from adfs.algorithms.base import REGISTRY, MethodSetting
from adfs.graphs.topology import Topology
from adfs.schedule.delays import Delays
from adfs.study.numbers import listing
from adfs.study.paper.large_networks import draw_network, time_to
from adfs.study.paper.paper_report import Claim, Picture, Report, ResultTable, Rows, verdict
from adfs.study.paper.samples import Pool, higgs
from adfs.study.paper.study_context import StudyContext
from adfs.study.paper.table_1 import TABLE_1, Sizes
from adfs.study.plots.paper_plots import Points, draw_scaling

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TAU, SIGMA = 5.0, 1.0
ONE_MACHINE = "point-saga"
SAME = 2.0  # times within this factor count as the same
FAR = 4.0  # so many critical sizes are well beyond it
NOTHING = "Not decided: no network has a time to compare with one node's"


def _grid(n: int, seed: int) -> Topology:
    side = math.isqrt(n)
    return Topology.grid(side, side)


def _hypercube(n: int, seed: int) -> Topology:
    return Topology.hypercube(n.bit_length() - 1)


def _random_regular(n: int, seed: int) -> Topology:
    return Topology.complete(n) if n < 6 else Topology.random_regular(n, 4, seed)


FAMILIES: dict[str, Callable[[int, int], Topology]] = {
    "2D grid": _grid,
    "hypercube": _hypercube,
    "random 4-regular graph": _random_regular,
}
FIRST = next(iter(FAMILIES))


class DrawnNetwork(NamedTuple):
    """A graph of a family, with the seed of its samples, schedule and edges."""

    family: str
    n: int
    seed: int

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Point-SAGA has no network: once per size and seed is enough."""
        return ("adfs", ONE_MACHINE) if self.family == FIRST else ("adfs",)


class GrowthPlan(NamedTuple):
    """How large the study is."""

    m: int
    sizes: tuple[int, ...]
    tol: float
    most_seeds: int

    def seeds(self, n: int) -> range:
        """Large networks average over their nodes already, and cost more."""
        return range(max(1, min(self.most_seeds, self.sizes[-1] // n)))

    def networks(self) -> list[DrawnNetwork]:
        """Every network, small ones first; one node has no graph, so it is measured once."""
        return [
            DrawnNetwork(family, n, seed)
            for n in self.sizes for family in FAMILIES for seed in self.seeds(n)
            if n > 1 or family == FIRST
        ]  # fmt: skip


FULL = GrowthPlan(1000, (1, 4, 16, 64, 256, 1024), 1e-6, 5)
QUICK = GrowthPlan(100, (1, 4, 16, 64), 1e-4, 2)


class GrowthTime(NamedTuple):
    """What an algorithm needed there, None if it did not arrive, beside what theory says."""

    algorithm: str
    network: DrawnNetwork
    time: float | None
    sizes: Sizes


class GrowthLine(NamedTuple):
    """Medians over seeds for one algorithm on one family, by number of nodes.

    Sizes without a time are those at which it did not arrive. ``critical`` is the critical size,
    None if it is beyond all sizes.
    """

    times: dict[int, float]
    sizes: dict[int, Sizes]
    critical: float | None = None


def scaling(context: StudyContext) -> Report:
    """Measure, then judge."""
    plan, pool = (QUICK if context.quick else FULL), higgs()
    networks = plan.networks()
    costs = [each.n * (1.2 if ONE_MACHINE in each.algorithms else 1.0) for each in networks]
    measured = context.map(lambda each: measure(each, plan, pool, context), networks, costs)
    found = [time for times in measured for time in times]
    lines = {family: line_of(found, "adfs", family) for family in FAMILIES}
    single = line_of(found, ONE_MACHINE, FIRST)
    setting = [
        f"Data: {pool.source}.",
        f"Logistic regression, {plan.m:,} samples per node drawn from them with overlap, "
        f"sigma = {SIGMA:g} per node, tau = {TAU:g}, nonblocking clock, ADFS with tuned "
        "parameters.",
        f"Time is idealized, until the mean over nodes of F(theta_i) - F* falls to {plan.tol:g} of "
        f"F*; medians of {plan.most_seeds} draws of data, schedule and graph, fewer on large "
        f"networks ({len(plan.seeds(plan.sizes[-1]))} at n = {plan.sizes[-1]:,}).",
        "The critical size is where the network's term (1 + tau) sqrt(kappa_s / gamma) of Table 1 "
        "equals m + sqrt(m kappa_s), both computed from the problem.",
    ]
    return Report(
        "scaling", "n machines and n m samples in the time of one machine and m samples",
        setting, _claims(lines, single), [_table(lines, single)], _remarks(lines, single),
        _pictures(lines, single), context.quick, context.interrupted,
    )  # fmt: skip


def measure(
    network: DrawnNetwork, plan: GrowthPlan, pool: Pool, context: StudyContext
) -> list[GrowthTime]:
    """Times of ADFS and, on the first family, of one machine with all samples.

    Without those that a signal interrupted.
    """
    topology = FAMILIES[network.family](network.n, network.seed)
    drawn = draw_network(pool, topology, plan.m, SIGMA, network.seed)
    setting = MethodSetting(tau=TAU, delays=Delays(tau=TAU), seed=network.seed)
    found = []
    for name in network.algorithms:
        method = REGISTRY[name](drawn.problem, setting)
        time = time_to(drawn, method, plan.tol, context.interrupts)
        if time is None and context.interrupted:
            break
        found.append(GrowthTime(name, network, time, Sizes.of(drawn.problem, TAU)))
    return found


def line_of(found: list[GrowthTime], algorithm: str, family: str) -> GrowthLine:
    """The one node belongs to every family; a size has a time if more than half arrived."""
    groups: dict[int, list[GrowthTime]] = {}
    for time in found:
        if time.algorithm == algorithm and (time.network.family == family or time.network.n == 1):
            groups.setdefault(time.network.n, []).append(time)
    sizes = {n: groups[n][0].sizes for n in sorted(groups)}
    medians = {
        n: float(np.median([math.inf if each.time is None else each.time for each in groups[n]]))
        for n in sizes
    }
    times = {n: median for n, median in medians.items() if math.isfinite(median)}
    return GrowthLine(times, sizes, critical_size(sizes))


def critical_size(sizes: dict[int, Sizes]) -> float | None:
    """Number of nodes at which the network's term equals the rest; None if it never does.

    Between two sizes the ratio of the two is taken as a power of n.
    """
    measured = [(n, each.network / each.work) for n, each in sizes.items() if n > 1]
    for (n, low), (more, high) in itertools.pairwise(measured):
        if low < 1.0 <= high:
            share = math.log(1.0 / low) / math.log(high / low)
            return float(n * (more / n) ** share)
    return float(measured[0][0]) if measured and measured[0][1] >= 1.0 else None


def _claims(lines: dict[str, GrowthLine], single: GrowthLine) -> list[Claim]:
    return [_same_time_claim(lines), _limit_claim(lines), _speed_up_claim(lines, single)]


def _over_one_node(line: GrowthLine, largest: float = math.inf) -> dict[int, float]:
    """Time over that of one node, by size; none where one node did not arrive."""
    one = line.times.get(1)
    return {n: time / one for n, time in line.times.items() if one and 1 < n <= largest}


def _same_time_claim(lines: dict[str, GrowthLine]) -> Claim:
    parts, cases = [], []
    for family, line in lines.items():
        ratios = _over_one_node(line, line.critical or math.inf)
        if not ratios:
            continue
        cases += [ratio <= SAME for ratio in ratios.values()]
        critical = "beyond what was run" if line.critical is None else f"{line.critical:,.0f}"
        parts.append(
            f"{max(ratios.values()):.2f} times one node's time at most up to n = "
            f"{max(ratios):,} on the {family} (critical size {critical})"
        )
    return Claim(
        "On n machines, ADFS learns from nm samples in the same time it takes optimal algorithms "
        "to learn from m samples on one machine, until a critical network size.",
        f"{'; '.join(parts) or NOTHING}. Counted as the same: within a factor {SAME:g}.",
        verdict(cases),
    )


def _limit_claim(lines: dict[str, GrowthLine]) -> Claim:
    """Well beyond the critical size the time must have grown; without one it must not."""
    parts, cases = [], []
    for family, line in lines.items():
        ratios = _over_one_node(line)
        if not ratios:
            continue
        last, ratio = max(ratios.items())
        if line.critical is None:
            cases.append(ratio <= SAME)
        elif last >= FAR * line.critical:
            cases.append(ratio > SAME)
        parts.append(f"{ratio:.2f} times at n = {last:,} on the {family}")
    return Claim(
        "This scaling holds until a critical network size, which depends on communication delays, "
        "on m, and on the topology.",
        f"{'; '.join(parts) or NOTHING}. Expected: more than {SAME:g} times at {FAR:g} "
        f"critical sizes or more, and not more than {SAME:g} times without a critical size.",
        verdict(cases),
    )


def _speed_up_claim(lines: dict[str, GrowthLine], single: GrowthLine) -> Claim:
    """Speed-up over one machine, against the ratio of two rows of Table 1."""
    parts, shares = [], []
    for family, line in lines.items():
        common = sorted(line.times.keys() & single.times.keys() - {1})
        speed_ups = {n: single.times[n] / line.times[n] for n in common}
        shares += [speed_ups[n] / _theory_speed_up(line.sizes[n]) for n in common]
        if common:
            parts.append(f"{speed_ups[common[-1]]:.3g} times on the {family} of {common[-1]:,}")
    spread = f"from {min(shares):.2f} to {max(shares):.2f}" if shares else "not decided"
    return Claim(
        "ADFS can process n times more data in the same amount of time on a network of size n, "
        "where Point-SAGA on one machine needs nm + sqrt(nm kappa_s) (Table 1).",
        f"ADFS is faster than Point-SAGA on one machine with all samples: "
        f"{listing(parts) or 'not decided'}. Measured over predicted speed-up: {spread} over all "
        f"networks. Counted as predicted: the same constant within a factor {SAME:g}, since Table "
        "1 leaves constants out.",
        verdict([max(shares) <= SAME * min(shares)] if shares else []),
    )


def _theory_speed_up(sizes: Sizes) -> float:
    return TABLE_1[ONE_MACHINE].time(sizes) / TABLE_1["adfs"].time(sizes)


def _remarks(lines: dict[str, GrowthLine], single: GrowthLine) -> list[str]:
    remarks = [
        "Table 1 leaves constants out. Theorem 3 has them: its network's term is sqrt(2) (1 + 4 "
        "tau) sqrt(kappa_s / gamma~), and on more than one node the bound on sigma_A costs a "
        "factor sqrt(2) that one node does not pay. So the time begins to rise before the critical "
        "size, and passes it without a corner; at the critical size Table 1 itself says twice one "
        "node's time."
    ]
    late = [
        f"ADFS on {f'the {family} of {n:,}' if n > 1 else 'one node'}"
        for family, line in lines.items() for n in line.sizes.keys() - line.times.keys()
    ]  # fmt: skip
    late += [f"Point-SAGA with {n:,} m samples" for n in single.sizes.keys() - single.times.keys()]
    if late:
        remarks.append(
            "Did not arrive, though by theory it arrives long before, and is left out of the "
            f"verdicts: {listing(sorted(set(late)))}."
        )
    one = lines[FIRST].times.get(1)
    if one is not None and 1 in single.times:
        remarks.append(
            f"On one machine with m samples Point-SAGA needs {single.times[1]:,.0f} and ADFS "
            f"{one:,.0f}: the times over that of one node are against ADFS itself; against "
            f"Point-SAGA they are {one / single.times[1]:.2f} times as large."
        )
    return remarks


def _table(lines: dict[str, GrowthLine], single: GrowthLine) -> ResultTable:
    rows: Rows = []
    for family, line in lines.items():
        for n, sizes in line.sizes.items():
            time, one, alone = line.times.get(n), line.times.get(1), single.times.get(n)
            rows.append((
                family if n > 1 else "one node", n, round(n * sizes.m), sizes.gamma,
                sizes.network / sizes.work, time, time / one if time and one else None, alone,
                alone / time if alone and time else None, _theory_speed_up(sizes),
            ))  # fmt: skip
    headers = ("graph", "n", "samples", "gamma", "network/work", "ADFS time", "over n = 1",
               "one machine", "speed-up", "Table 1's")  # fmt: skip
    title = (
        "Idealized time. network/work: the two parts of ADFS's time in Table 1, 1 at the critical "
        "size. one machine: Point-SAGA with all samples."
    )
    return ResultTable("scaling", title, headers, list(dict.fromkeys(rows)))


def _pictures(lines: dict[str, GrowthLine], single: GrowthLine) -> list[Picture]:
    """Everything is drawn beside one node's time; without that there is no picture."""
    one = next((line.times[1] for line in lines.values() if 1 in line.times), None)
    if one is None:
        return []
    drawn = {f"ADFS, {family}": (line, "adfs") for family, line in lines.items()}
    if 1 in single.times:
        drawn["Point-SAGA, one machine with all samples"] = (single, ONE_MACHINE)
    measured: dict[str, Points] = {
        label: list(line.times.items()) for label, (line, _) in drawn.items()
    }
    theory = {label: _scaled_theory(*each) for label, each in drawn.items()}
    marks = {f"ADFS, {family}": line.critical for family, line in lines.items() if line.critical}

    def draw(figure: "Figure") -> None:
        draw_scaling(measured, figure.add_subplot(), theory, marks, SAME * one)

    return [Picture("scaling", (10.0, 5.0), draw)]


def _scaled_theory(line: GrowthLine, algorithm: str) -> Points:
    """Table 1's times, scaled to what was measured at one node."""
    scale = line.times[1] / TABLE_1[algorithm].time(line.sizes[1])
    return [(n, scale * TABLE_1[algorithm].time(sizes)) for n, sizes in line.sizes.items()]

"""`scaling`: do n machines learn from n m samples in the time that one machine needs for m?

Table 1 gives ADFS the time m + sqrt(m kappa_s) + (1 + tau) sqrt(kappa_s / gamma) for a factor e of
the error. At the critical network size the last term, the network's, equals the rest.

Every node draws its own m samples. ADFS on families of graphs, and Point-SAGA on one machine with
all samples, are run to the same relative suboptimality.
"""

import itertools
import math
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms import registered  # noqa: F401  (fills the registry)
from adfs.algorithms.base import REGISTRY, Method, MethodSetting
from adfs.data.partition import partition_rows
from adfs.engine.evaluation import objectives
from adfs.engine.interrupts import Interrupts
from adfs.engine.steppers import BlockStepper
from adfs.graphs.topology import Topology
from adfs.plan.sizes import Sizes
from adfs.problem.finite_sum import Problem
from adfs.schedule.delays import Delays
from adfs.study.comparison import Curve
from adfs.study.numbers import listing
from adfs.study.paper.claims import UNKNOWN, AtLeast, Claim, grouped, judge, median_time, spread
from adfs.study.paper.study_context import Picture, Pool, Report, ResultTable, Rows, StudyContext
from adfs.study.plots.paper_plots import draw_scaling

Matrix = NDArray[np.float64]
TAU, SIGMA = 5.0, 1.0
ONE_NODE, ONE_MACHINE = "one node", "one machine"  # ADFS, and Point-SAGA with all samples
GRID, CUBE, RANDOM = FAMILIES = ("2D grid", "hypercube", "random 4-regular graph")
WITH_ONE_MACHINE = (ONE_NODE, GRID)  # it has no network: once per size and seed is enough
SAME = 2.0  # times within this factor count as the same
FAR = 4.0  # so many critical sizes are well beyond it
MOST_FACTORS_E = 100.0  # theory's; practice needs half of them
NEAR = 4.0  # within this factor of tol, the error is computed by F itself


def draw_graph(family: str, n: int, seed: int) -> Topology:
    if family == CUBE:
        return Topology.hypercube(n.bit_length() - 1)
    if family == RANDOM:
        return Topology.complete(n) if n < 6 else Topology.random_regular(n, 4, seed)
    return Topology.grid(math.isqrt(n), math.isqrt(n))


class GrowthPlan(NamedTuple):
    """How large the study is."""

    m: int
    sizes: tuple[int, ...]
    tol: float
    most_seeds: int

    def seeds(self, n: int) -> range:
        """Large networks average over their nodes already, and cost more."""
        return range(max(1, min(self.most_seeds, self.sizes[-1] // n)))

    def networks(self) -> list[tuple[str, int, int]]:
        """Family, size and seed, small ones first; one node has no graph: it is measured once."""
        return [
            (family, n, seed)
            for n in self.sizes
            for family in (FAMILIES if n > 1 else [ONE_NODE])
            for seed in self.seeds(n)
        ]


FULL = GrowthPlan(1000, (1, 4, 16, 64, 256, 1024), 1e-6, 5)
QUICK = GrowthPlan(100, (1, 4, 16, 64), 1e-4, 2)


class GrowthTime(NamedTuple):
    """A time measured on a family or on one machine, infinite if it did not arrive."""

    line: str
    n: int
    time: float
    sizes: Sizes


class GrowthRow(NamedTuple):
    """A family at one size: medians over seeds."""

    family: str
    n: int
    sizes: Sizes
    critical: float  # size of the family, infinite if it is beyond all that were run
    time: AtLeast  # ADFS's
    ratio: AtLeast  # to that of one node
    alone: AtLeast  # time of one machine with all samples
    speed_up: AtLeast  # over that machine
    predicted: float  # speed-up by two rows of Table 1


class LargeNetwork:
    """A problem on a network, and F at its many models without as many passes over n m samples.

    Nodes draw their samples from one pool, with overlap (Appendix E). So F is a weighted sum over
    the pool, the weight of a row being how many nodes drew it: exact, and far fewer rows than n m.
    """

    def __init__(self, pool: Pool, topology: Topology, m: int, sigma: float, seed: int) -> None:
        n = topology.n_nodes
        self.problem = pool.problem(topology, m, sigma, seed)
        rows = np.concatenate(partition_rows(len(pool.y), n, "draw", seed, m))
        times = np.bincount(rows, minlength=len(pool.y))
        drawn = times > 0
        self.pooled = Problem([(pool.X[drawn], pool.y[drawn], times[drawn])], "logistic", n * sigma)

    def error(self, thetas: Matrix) -> float:
        """Mean over nodes of ``F(theta_i) - F*``, relative to ``|F*|``."""
        if (thetas == thetas[0]).all():  # one machine, whose model all nodes have
            thetas = thetas[:1]
        best = self.pooled.optimum().objective
        return float(np.mean(objectives(self.pooled, thetas)) - best) / abs(best)

    def rough_error(self, thetas: Matrix) -> float:
        """The same by Taylor's formula at the optimum: cheap, and good near it."""
        best = self.pooled.optimum()
        away = thetas - best.theta
        error = float(0.5 * np.mean(np.sum(away @ self._hessian * away, axis=1)))
        return error / abs(best.objective)

    @cached_property
    def _hessian(self) -> Matrix:
        """Of F at the optimum, by differences of gradients: two passes per feature."""
        best = self.pooled.optimum().theta
        step = 1e-4 * (float(np.linalg.norm(best)) or 1.0)
        shifts = step * np.eye(len(best))
        rows = [self.pooled.gradient(best + h) - self.pooled.gradient(best - h) for h in shifts]
        return np.array(rows) / (2.0 * step)

    def time_to(self, tol: float, method: Method, interrupts: Interrupts) -> float | None:
        """Idealized time until the error falls to ``tol``, log-linear between evaluations.

        An evaluation comes every quarter of theory's factors e, about half a factor e in practice;
        far from ``tol`` it is a rough one. Infinite where the error does not fall as theory says,
        None where a signal came first.
        """
        stepper = BlockStepper(self.problem, method)
        interval = max(1, round(0.25 / method.rho))
        times, errors = [0.0], [self.error(method.algorithm.output(stepper.state))]
        while errors[-1] > tol:
            if stepper.position * method.rho > MOST_FACTORS_E:
                return math.inf
            stop = stepper.position + interval
            while stepper.position < stop:
                if interrupts.received is not None:
                    return None
                stepper.load(min(stop, stepper.position + method.block))
                stepper.serve()
            thetas = method.algorithm.output(stepper.state)
            rough = self.rough_error(thetas)
            times.append(stepper.clock.time)
            errors.append(rough if rough > NEAR * tol else self.error(thetas))
        return Curve(np.array(times), np.array(errors)).first_reach(tol)


def reproduce(context: StudyContext) -> Report:
    plan, pool = (QUICK if context.quick else FULL), Pool.load("higgs")
    networks = plan.networks()
    costs = [n * (1.2 if family in WITH_ONE_MACHINE else 1.0) for family, n, _ in networks]
    measured = context.map(lambda each: measure(*each, plan, pool, context), networks, costs)
    rows = rows_of(list(itertools.chain.from_iterable(measured)))
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
        "scaling", "n machines and n m samples in the time of one machine and m samples", setting,
        [*growth_claims(rows), speed_up_claim(rows)], [_table(rows)], _remarks(rows),
        _pictures(rows), context.quick, context.interrupted,
    )  # fmt: skip


def measure(
    family: str, n: int, seed: int, plan: GrowthPlan, pool: Pool, context: StudyContext
) -> list[GrowthTime]:
    """Times on a network, without those that a signal interrupted."""
    drawn = LargeNetwork(pool, draw_graph(family, n, seed), plan.m, SIGMA, seed)
    setting = MethodSetting(tau=TAU, delays=Delays(tau=TAU), seed=seed)
    lines, found = {"adfs": family}, []
    if family in WITH_ONE_MACHINE:
        lines["point-saga"] = ONE_MACHINE
    for algorithm, line in lines.items():
        method = REGISTRY[algorithm](drawn.problem, setting)
        time = drawn.time_to(plan.tol, method, context.interrupts)
        if time is None:
            break
        found.append(GrowthTime(line, n, time, Sizes.of(drawn.problem, TAU)))
    return found


def rows_of(found: list[GrowthTime]) -> list[GrowthRow]:
    groups = grouped(((each.line, each.n), each) for each in found)
    times = {key: median_time([each.time for each in group]) for key, group in groups.items()}
    one, rows = times.get((ONE_NODE, 1), UNKNOWN), []
    for family in (ONE_NODE, *FAMILIES):
        sizes = {n: group[0].sizes for (line, n), group in groups.items() if line == family}
        critical = critical_size(sizes)
        for n, each in sizes.items():
            time, alone = times[family, n], times.get((ONE_MACHINE, n), UNKNOWN)
            multiples = time.over(one), alone, alone.over(time)
            predicted = each.times["point-saga"] / each.times["adfs"]
            rows.append(GrowthRow(family, n, each, critical, time, *multiples, predicted))
    return rows


def critical_size(sizes: dict[int, Sizes]) -> float:
    """Number of nodes at which the network's term equals the rest; infinite if it never does.

    Between two sizes the ratio of the two is taken as a power of n.
    """
    measured = [(n, each.network / each.work) for n, each in sizes.items()]
    for (n, low), (more, high) in itertools.pairwise(measured):
        if low < 1.0 <= high:
            share = math.log(1.0 / low) / math.log(high / low)
            return float(n * (more / n) ** share)
    return float(measured[0][0]) if measured and measured[0][1] >= 1.0 else math.inf


def growth_claims(rows: list[GrowthRow]) -> list[Claim]:
    """Up to the critical size the time must not grow; well beyond it must, without one it must not.

    What did not arrive has no vote.
    """
    networks = grouped((row.family, row) for row in rows if row.n > 1 and row.ratio.exact)
    same, limit, same_cases, limit_cases = [], [], [], []
    for family, group in networks.items():
        last, critical = group[-1], group[0].critical
        within = {row.n: row.ratio.value for row in group if row.n <= critical}
        if within:
            size = "beyond what was run" if math.isinf(critical) else f"{critical:,.0f}"
            same.append(
                f"{max(within.values()):.2f} times one node's time at most up to n = "
                f"{max(within):,} on the {family} (critical size {size})"
            )
            same_cases += [ratio <= SAME for ratio in within.values()]
        limit.append(f"{last.ratio.value:.2f} times at n = {last.n:,} on the {family}")
        if math.isinf(critical):
            limit_cases.append(last.ratio.at_most(SAME))
        elif last.n >= FAR * critical:
            limit_cases.append(last.ratio.value > SAME)
    return [
        judge(
            "On n machines, ADFS learns from nm samples in the same time it takes optimal "
            "algorithms to learn from m samples on one machine, until a critical network size.",
            f"{'; '.join(same)}. Counted as the same: within a factor {SAME:g}.",
            same_cases,
        ),
        judge(
            "This scaling holds until a critical network size, which depends on communication "
            "delays, on m, and on the topology.",
            f"{'; '.join(limit)}. Expected: more than {SAME:g} times at {FAR:g} critical sizes or "
            f"more, and not more than {SAME:g} times without a critical size.",
            limit_cases or [None for _ in limit],
        ),
    ]


def speed_up_claim(rows: list[GrowthRow]) -> Claim:
    """Speed-up over one machine, against the ratio of two rows of Table 1."""
    known = [row for row in rows if row.n > 1 and row.speed_up.exact]
    largest = {row.family: row for row in known}.values()
    parts = [f"{row.speed_up.value:.3g} times on the {row.family} of {row.n:,}" for row in largest]
    shares = [row.speed_up.value / row.predicted for row in known]
    return judge(
        "ADFS can process n times more data in the same amount of time on a network of size n, "
        "where Point-SAGA on one machine needs nm + sqrt(nm kappa_s) (Table 1).",
        f"ADFS is faster than Point-SAGA on one machine with all samples: {listing(parts)}. "
        f"Measured over predicted speed-up: from {spread(shares, '.2f')} over all networks. "
        f"Counted as predicted: the same constant within a factor {SAME:g}, since Table 1 leaves "
        "constants out.",
        [max(shares) <= SAME * min(shares)] if shares else [],
    )


def _remarks(rows: list[GrowthRow]) -> list[str]:
    remarks = [
        "Table 1 leaves constants out. Theorem 3 has them: its network's term is sqrt(2) (1 + 4 "
        "tau) sqrt(kappa_s / gamma~), and on more than one node the bound on sigma_A costs a "
        "factor sqrt(2) that one node does not pay. So the time begins to rise before the critical "
        "size, and passes it without a corner; at the critical size Table 1 itself says twice one "
        "node's time."
    ]
    late = {f"Point-SAGA with {row.n:,} m samples" for row in rows if math.isinf(row.alone.value)}
    for row in rows:
        if not row.time.exact:
            late.add(f"ADFS on {f'the {row.family} of {row.n:,}' if row.n > 1 else ONE_NODE}")
    if late:
        remarks.append(
            "Did not arrive, though by theory it arrives long before, and is left out of the "
            f"verdicts: {listing(sorted(late))}."
        )
    for row in rows:
        if row.n == 1 and row.speed_up.exact:
            one, alone = row.time.value, row.alone.value
            remarks.append(
                f"On one machine with m samples Point-SAGA needs {alone:,.0f} and ADFS {one:,.0f}: "
                "the times over that of one node are against ADFS itself; against Point-SAGA they "
                f"are {one / alone:.2f} times as large."
            )
    return remarks


def _table(rows: list[GrowthRow]) -> ResultTable:
    headers = ("graph", "n", "samples", "gamma", "network/work", "ADFS time", "over n = 1",
               "one machine", "speed-up", "Table 1's")  # fmt: skip
    cells: Rows = [
        (row.family, row.n, round(row.n * row.sizes.m), row.sizes.gamma,
         row.sizes.network / row.sizes.work, row.time.known, row.ratio.known, row.alone.known,
         row.speed_up.known, row.predicted)
        for row in rows
    ]  # fmt: skip
    title = (
        "Idealized time. network/work: the two parts of ADFS's time in Table 1, 1 at the critical "
        "size. one machine: Point-SAGA with all samples."
    )
    return ResultTable("scaling", title, headers, cells)


def _pictures(rows: list[GrowthRow]) -> list[Picture]:
    """Everything is drawn beside one node's time; without that there is no picture."""
    if not (rows and rows[0].ratio.exact):
        return []
    lines = {
        f"ADFS, {family}": [row for row in rows if row.family in (ONE_NODE, family)]
        for family in FAMILIES
    }
    alone = "Point-SAGA, one machine with all samples"
    if rows[0].alone.exact:
        lines[alone] = [row._replace(time=row.alone) for row in lines[f"ADFS, {GRID}"]]
    measured, theory = {}, {}
    for label, line in lines.items():
        algorithm = "point-saga" if label == alone else "adfs"
        # Table 1's times, scaled to what was measured at one node.
        scale = line[0].time.value / line[0].sizes.times[algorithm]
        measured[label] = [(row.n, row.time.value) for row in line if row.time.exact]
        theory[label] = [(row.n, scale * row.sizes.times[algorithm]) for row in line]
    critical = {f"ADFS, {row.family}": row.critical for row in rows if row.critical < math.inf}
    draw = partial(draw_scaling, measured, theory, critical, SAME * rows[0].time.value)
    return [Picture("scaling", (10.0, 5.0), draw)]

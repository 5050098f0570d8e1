"""`table-1`: theory's times for a factor e of the error beside measured ones, for all methods.

Table 1 leaves constants out, so a method's measured time over theory's should be one number of
moderate size, whatever the graph, the delays, the samples and the conditioning.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from adfs.data.partition import partition
from adfs.graphs.topology import Topology
from adfs.problem.finite_sum import Problem
from adfs.study.comparison import Comparison
from adfs.study.convergence_curves import FLOOR, Curve, first_reach
from adfs.study.numbers import listing
from adfs.study.paper.bounded_times import UNKNOWN, AtLeast
from adfs.study.paper.figures import SECOND_ORDER
from adfs.study.paper.paper_report import (
    Claim,
    Picture,
    Report,
    ResultTable,
    Rows,
    TableCell,
    show,
    verdict,
)
from adfs.study.paper.samples import Pool, higgs
from adfs.study.paper.study_context import StudyContext
from adfs.study.plots.paper_plots import draw_rates

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Sizes(NamedTuple):
    """What the times of Table 1 depend on."""

    n: int
    m: float
    tau: float
    kappa_s: float
    kappa_b: float
    gamma: float

    @classmethod
    def of(cls, problem: Problem, tau: float) -> "Sizes":
        """Sizes of a problem; ``m`` is the mean number of samples per node."""
        conditioning = problem.conditioning
        return cls(
            problem.n_nodes, problem.n_samples / problem.n_nodes, tau, conditioning.kappa_s,
            conditioning.kappa_b(), problem.topology.spectrum.gamma,
        )  # fmt: skip

    @property
    def work(self) -> float:
        """What one machine needs for its own ``m`` samples: ``m + sqrt(m kappa_s)``."""
        return self.m + math.sqrt(self.m * self.kappa_s)

    @property
    def network(self) -> float:
        """What the network adds: ``(1 + tau) sqrt(kappa_s / gamma)``, nothing for one machine."""
        return (1.0 + self.tau) * math.sqrt(self.kappa_s / self.gamma) if self.n > 1 else 0.0


class Table1Row(NamedTuple):
    """A row of Table 1: its time as the paper writes it, and as a number."""

    formula: str
    time: Callable[[Sizes], float]


TABLE_1 = {
    "point-saga": Table1Row(
        "nm + sqrt(nm kappa_s)", lambda s: s.n * s.m + math.sqrt(s.n * s.m * s.kappa_s)
    ),
    "msda": Table1Row(
        "sqrt(kappa_b) (m + tau / sqrt(gamma))",
        lambda s: math.sqrt(s.kappa_b) * (s.m + s.tau / math.sqrt(s.gamma)),
    ),
    "esdacd": Table1Row(
        "(m + tau) sqrt(kappa_b / gamma)", lambda s: (s.m + s.tau) * math.sqrt(s.kappa_b / s.gamma)
    ),
    "dsba": Table1Row(
        "(m + kappa_s + 1 / gamma) (1 + tau)",
        lambda s: (s.m + s.kappa_s + 1.0 / s.gamma) * (1.0 + s.tau),
    ),
    "adfs": Table1Row(
        "m + sqrt(m kappa_s) + (1 + tau) sqrt(kappa_s / gamma)", lambda s: s.work + s.network
    ),
}
METHODS = (
    "adfs", "point-saga", "msda", "esdacd", "dsba", "ssda", "katyusha", "l-katyusha", "newton",
    "lbfgs",
)  # fmt: skip
TOL = 1e-8
FEWEST_FACTORS = 2.0  # factors e that an error must fall for a rate to be measured
MOST_FACTORS = 30.0  # clock limit of a run, in factors e of the slowest row of Table 1
STEADY = 4.0  # ratios within this factor count as one constant
CLEAR = 3.0  # times further apart than this are a prediction of which method is faster


class RateCase(NamedTuple):
    """A setting, named by what sets it apart."""

    name: str
    graph: str
    m: int
    tau: float
    sigma: float


FULL = (
    RateCase("base", "grid:3x3", 200, 5.0, 1.0),
    RateCase("10x10", "grid:10x10", 200, 5.0, 1.0),
    RateCase("tau = 50", "grid:3x3", 200, 50.0, 1.0),
    RateCase("tau = 0.5", "grid:6x6", 200, 0.5, 1.0),
    RateCase("m = 1,000", "grid:3x3", 1000, 5.0, 1.0),
    RateCase("sigma = 0.1", "grid:3x3", 200, 5.0, 0.1),
)
QUICK = (
    RateCase("base", "grid:3x3", 40, 5.0, 1.0),
    RateCase("large graph", "grid:4x4", 40, 5.0, 1.0),
    RateCase("tau = 50", "grid:3x3", 40, 50.0, 1.0),
)


class Rate(NamedTuple):
    """A method in a setting: idealized time for a factor e, by theory and measured.

    The measured time is a lower bound if the method was too slow to be measured, and unknown if its
    runs were interrupted.
    """

    case: RateCase
    method: str
    theory: float | None
    time: AtLeast

    @property
    def ratio(self) -> float | None:
        """Measured over theory."""
        if self.theory is None or self.time.known is None:
            return None
        return self.time.known / self.theory

    def __str__(self) -> str:
        return f"{self.method} ({self.case.name})"


def table_1(context: StudyContext) -> Report:
    """Measure, then judge."""
    cases, seeds = (QUICK, 1) if context.quick else (FULL, 3)
    pool, rates = higgs(), []
    for case in cases:
        if not context.interrupted:
            rates += measure(case, pool, seeds, context)
    settings = "; ".join(
        f"{case.name}: {case.graph}, m = {case.m:,}, tau = {case.tau:g}, sigma = {case.sigma:g}"
        for case in cases
    )
    setting = [
        f"Data: {pool.source}.",
        f"Logistic regression on samples drawn from them, nonblocking clock; {settings}.",
        "Every method is tuned, within its theorem if it has one. Measured is the idealized time "
        "in which the mean over nodes of F(theta_i) - F* falls by a factor e, over the later half "
        f"of the decades down to {TOL:g}; "
        + ("one seed." if seeds == 1 else f"medians of {seeds} seeds."),
    ]
    return Report(
        "table-1", "theory's times beside measured ones", setting,
        [_constant_claim(rates), _order_claim(rates), _winner_claim(rates)],
        _tables(rates), _remarks(rates), _pictures(rates), context.quick, context.interrupted,
    )  # fmt: skip


def measure(case: RateCase, pool: Pool, seeds: int, context: StudyContext) -> list[Rate]:
    """All methods in one setting."""
    topology = Topology.parse(case.graph)
    shards = partition(pool.X, pool.y, topology.n_nodes, how="draw", m=case.m)
    problem = Problem(shards, "logistic", case.sigma, topology)
    sizes = Sizes.of(problem, case.tau)
    theory = {name: row.time(sizes) for name, row in TABLE_1.items()}
    found = context.compare(
        problem, METHODS, f"{case.name} {'quick' if context.quick else 'full'}", tol=TOL,
        tau=case.tau, seeds=seeds, clock_limit=MOST_FACTORS * max(theory.values()),
    )  # fmt: skip
    return [
        Rate(case, name, theory.get(name), time_per_factor_e(found, name)) for name in found.labels
    ]


def time_per_factor_e(comparison: Comparison, label: str) -> AtLeast:
    """Median over seeds of `late_slope`, without the runs that a signal interrupted.

    Runs that were too slow to be measured count as later than all others. If the median is one of
    them, the method needs at least the clock limit over the factors e that its error did not fall.
    """
    pairs = zip(comparison.runs(label), comparison.curves(label), strict=True)
    slopes = [late_slope(curve) for run, curve in pairs if run.status != "interrupted"]
    if not slopes:
        return UNKNOWN
    median = float(np.median([math.inf if slope is None else slope for slope in slopes]))
    if math.isfinite(median):
        return AtLeast(median)
    limit = comparison.clock_limit
    return UNKNOWN if limit is None else AtLeast(limit / FEWEST_FACTORS, exact=False)


def late_slope(curve: Curve) -> float | None:
    """Time for a factor e from the middle of the curve to its end; None if it hardly fell.

    The middle is the geometric mean of the first and the last error: the start, where methods
    differ by more than their rate, is left out.

    Examples
    --------
    >>> late_slope(Curve(np.array([0.0, 10.0, 20.0]), np.exp([0.0, -1.0, -6.0])))
    2.0
    """
    first, last = curve.error[0], max(curve.error[-1], FLOOR)
    if not last < first / math.e**FEWEST_FACTORS:
        return None
    # A slope needs the point between iterations: no rounding up to the end of one.
    start = first_reach(curve._replace(iteration=None), math.sqrt(first * last))
    assert start is not None  # the last error is below the middle
    return float((curve.x[-1] - start) / (0.5 * math.log(first / last)))


def _constant_claim(rates: list[Rate]) -> Claim:
    ratios: dict[str, list[float]] = {}
    for rate in rates:
        if rate.ratio is not None:
            ratios.setdefault(rate.method, []).append(rate.ratio)
    parts = [f"{name} {min(each):.2g} to {max(each):.2g}" for name, each in ratios.items()]
    return Claim(
        "Time to a factor e as in Table 1, constant factors omitted.",
        f"Measured over theory, range over the settings: {listing(parts) or 'not decided'}. "
        f"Counted as a constant: within a factor {STEADY:g}.",
        verdict(max(each) <= STEADY * min(each) for each in ratios.values()),
    )


def _pairs(rates: list[Rate]) -> Iterator[tuple[Rate, Rate, bool]]:
    """Two methods in one setting, the first clearly faster in theory, and whether it is."""
    for one, other in itertools.permutations(rates, 2):
        if one.case != other.case or one.theory is None or other.theory is None:
            continue
        faster = other.time.later_than(one.time)
        if CLEAR * one.theory < other.theory and faster is not None:
            yield one, other, faster


def _order_claim(rates: list[Rate]) -> Claim:
    pairs = list(_pairs(rates))
    wrong = [f"{slow.method} before {fast}" for fast, slow, holds in pairs if not holds]
    measured = f"Not decided: no two methods more than a factor {CLEAR:g} apart were measured."
    if pairs:
        measured = (
            f"{len(pairs)} pairs of methods are more than a factor {CLEAR:g} apart in theory; "
            f"{len(pairs) - len(wrong)} of them are in that order when measured."
        ) + (f" Not so: {listing(wrong)}." if wrong else "")
    return Claim(
        "The methods' order follows from their times in Table 1.",
        measured,
        verdict(holds for _, _, holds in pairs),
    )


def _beside_adfs(rates: list[Rate], method: str) -> list[tuple[Rate, Rate]]:
    """The rates of ADFS and of a method in the settings that have both."""
    ours = {rate.case: rate for rate in rates if rate.method == "adfs"}
    return [
        (ours[rate.case], rate) for rate in rates if rate.method == method and rate.case in ours
    ]


def _winner_claim(rates: list[Rate]) -> Claim:
    """Settings in which one of the two was interrupted do not count."""
    cases, parts = [], []
    for rival in ("msda", "dsba"):
        pairs = []
        for mine, theirs in _beside_adfs(rates, rival):
            later = theirs.time.later_than(mine.time)
            if later is not None:
                cases.append(later)
                pairs.append((mine, theirs))
        parts += _multiples_of_adfs(rival, pairs)
    measured = "Not decided: in no setting were ADFS and one of the two both measured."
    return Claim(
        "ADFS outperforms MSDA and DSBA in most standard machine learning settings.",
        f"Over the settings {listing(parts)}." if parts else measured,
        verdict(cases),
    )


def _multiples_of_adfs(rival: str, pairs: list[tuple[Rate, Rate]]) -> list[str]:
    """How long a rival takes, in multiples of ADFS's time; what has no number apart."""
    multiples = [theirs.time.over(mine.time) for mine, theirs in pairs]
    exact = [each.value for each in multiples if each.value and each.exact]
    least = [each.value for each in multiples if each.value and not each.exact]
    lost = [mine.case.name for mine, _ in pairs if not mine.time.exact]
    parts = []
    if exact:
        parts.append(f"{rival} takes {min(exact):.2g} to {max(exact):.2g} times as long")
    if least:
        parts.append(
            f"{rival} takes more than {min(least):.2g} times as long where it was too slow to be "
            f"measured ({len(least)} of {len(pairs)})"
        )
    if lost:
        parts.append(f"ADFS was too slow to be measured and {rival} was not ({listing(lost)})")
    return parts


def _remarks(rates: list[Rate]) -> list[str]:
    absent = [rate for rate in rates if not rate.time.exact]
    slow = [str(rate) for rate in absent if rate.time.value is not None]
    interrupted = [str(rate) for rate in absent if rate.time.value is None]
    remarks = [
        "Methods without a row in Table 1 are measured only. Newton and L-BFGS are faster than "
        f"linear: theirs is the mean over the later decades.{_second_order(rates)}",
        "Theory bounds the slowest case; a method whose bound is loose has a ratio below one, and "
        "one whose bound is looser on some problems than on others has ratios that spread.",
    ]
    if slow:
        remarks.append(f"Too slow to be measured within the limit: {listing(slow)}.")
    if interrupted:
        remarks.append(f"Interrupted, and left out of the verdicts: {listing(interrupted)}.")
    return remarks


def _second_order(rates: list[Rate]) -> str:
    """How the second-order methods compare, where they were measured."""
    parts = []
    for name in SECOND_ORDER:
        multiples = [mine.time.over(other.time) for mine, other in _beside_adfs(rates, name)]
        factors = [each.known for each in multiples if each.known]
        if factors:
            parts.append(f"{name} {min(factors):.2g} to {max(factors):.2g} times faster than ADFS")
    if not parts:
        return ""
    return (
        f" Here, with few features, {listing(parts)} (below 1: slower); Newton sends d x d numbers "
        "and needs d to be small."
    )


def _tables(rates: list[Rate]) -> list[ResultTable]:
    cases = list(dict.fromkeys(rate.case for rate in rates))
    methods = list(dict.fromkeys(rate.method for rate in rates))
    cells = {(rate.method, rate.case): rate for rate in rates}
    absent = Rate(QUICK[0], "", None, UNKNOWN)

    def row(method: str, cell: Callable[[Rate], TableCell]) -> tuple[TableCell, ...]:
        return tuple(cell(cells.get((method, case), absent)) for case in cases)

    formulas: Rows = [
        (name, found.formula, *row(name, lambda rate: rate.theory))
        for name, found in TABLE_1.items()
        if name in methods
    ]
    measured: Rows = [(method, *row(method, _cell)) for method in methods]
    every: Rows = [
        (*rate.case, rate.method, rate.theory, rate.time.known, rate.ratio) for rate in rates
    ]
    names = tuple(case.name for case in cases)
    title = "Idealized time for a factor e, measured; in brackets over theory's"
    headers = ("setting", "graph", "m", "tau", "sigma", "method", "theory", "measured", "ratio")
    return [
        ResultTable("theory", "Table 1, in numbers", ("method", "time", *names), formulas),
        ResultTable("measured", title, ("method", *names), measured),
        ResultTable("table-1", "Every method in every setting.", headers, every, shown=False),
    ]


def _cell(rate: Rate) -> TableCell:
    if rate.time.value is None:
        return None
    if not rate.time.exact:
        return f"> {show(float(f'{rate.time.value:.2g}'))}"
    text = show(float(f"{rate.time.value:.3g}"))
    return text if rate.ratio is None else f"{text} ({rate.ratio:.2f})"


def _pictures(rates: list[Rate]) -> list[Picture]:
    points: dict[str, list[tuple[float, float]]] = {}
    for rate in rates:
        if rate.theory is not None and rate.time.known is not None:
            points.setdefault(rate.method, []).append((rate.theory, rate.time.known))

    def draw(figure: "Figure") -> None:
        draw_rates(points, figure.add_subplot())

    return [Picture("table-1", (7.5, 5.5), draw)] if points else []

"""`table-1`: theory's times for a factor e of the error beside measured ones, for all methods.

Table 1 leaves constants out, so a method's measured time over theory's should be one number of
moderate size, whatever the graph, the delays, the samples and the conditioning.
"""

import itertools
import math
from functools import partial
from typing import NamedTuple

from adfs.graphs.topology import Topology
from adfs.plan.sizes import Sizes
from adfs.study.comparison import FLOOR, Comparison, Curve
from adfs.study.numbers import listing, number
from adfs.study.paper import StudyCase
from adfs.study.paper.claims import UNKNOWN, AtLeast, Claim, grouped, judge, median_time, spread
from adfs.study.paper.figures import SECOND_ORDER
from adfs.study.paper.study_context import Picture, Pool, Report, ResultTable, Rows, StudyContext
from adfs.study.plots.paper_plots import draw_rates

FORMULAS = {
    "point-saga": "nm + sqrt(nm kappa_s)",
    "msda": "sqrt(kappa_b) (m + tau / sqrt(gamma))",
    "esdacd": "(m + tau) sqrt(kappa_b / gamma)",
    "dsba:paper": "(m + kappa_s + 1 / gamma) (1 + tau)",
    "adfs": "m + sqrt(m kappa_s) + (1 + tau) sqrt(kappa_s / gamma)",
}
METHODS = (
    "adfs", "point-saga", "msda", "esdacd", "dsba:paper", "dsba", "ssda", "katyusha",
    "l-katyusha", *SECOND_ORDER,
)  # fmt: skip
TOL = 1e-8
FEWEST_FACTORS = 2.0  # factors e that an error must fall for a rate to be measured
MOST_FACTORS = 30.0  # clock limit of a run, in factors e of the slowest row of Table 1
STEADY = 4.0  # ratios within this factor count as one constant
CLEAR = 3.0  # times further apart than this are a prediction of which method is faster


FULL = (
    StudyCase("base", "grid:3x3", 200),
    StudyCase("10x10", "grid:10x10", 200),
    StudyCase("tau = 50", "grid:3x3", 200, 50.0),
    StudyCase("tau = 0.5", "grid:6x6", 200, 0.5),
    StudyCase("m = 1,000", "grid:3x3", 1000),
    StudyCase("sigma = 0.1", "grid:3x3", 200, 5.0, 0.1),
)
QUICK = (
    StudyCase("base", "grid:3x3", 40),
    StudyCase("large graph", "grid:4x4", 40),
    StudyCase("tau = 50", "grid:3x3", 40, 50.0),
)


class Rate(NamedTuple):
    """A method in a setting: idealized time for a factor e, by theory and measured.

    The measured time is a lower bound if the method was too slow to be measured, and unknown if its
    runs were interrupted.
    """

    case: StudyCase
    method: str
    theory: float  # NaN without a row in Table 1
    time: AtLeast

    @property
    def ratio(self) -> float:
        """Measured over theory; NaN if one of them is not known."""
        return self.time.value / self.theory if self.time.exact else math.nan

    def __str__(self) -> str:
        return f"{self.method} ({self.case.name})"

    @property
    def cell(self) -> str | None:
        """The measured time in a table, and how many times theory's it is."""
        if self.time == UNKNOWN:
            return None
        if not self.time.exact:
            return f"> {number(float(f'{self.time.value:.2g}'))}"
        text = number(float(f"{self.time.value:.3g}"))
        return text if math.isnan(self.ratio) else f"{text} ({self.ratio:.2f})"


def reproduce(context: StudyContext) -> Report:
    cases, seeds = (QUICK, 1) if context.quick else (FULL, 3)
    pool, rates = Pool.load("higgs"), []
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
    claims = [constant_claim(rates), order_claim(rates), winner_claim(rates)]
    known = [rate for rate in rates if math.isfinite(rate.ratio)]
    points = grouped((rate.method, (rate.theory, rate.time.value)) for rate in known)
    picture = Picture("table-1", (7.5, 5.5), partial(draw_rates, points))
    return Report(
        "table-1", "theory's times beside measured ones", setting, claims, _tables(rates),
        _remarks(rates), [picture] if points else [], context.quick, context.interrupted,
    )  # fmt: skip


def measure(case: StudyCase, pool: Pool, seeds: int, context: StudyContext) -> list[Rate]:
    problem = pool.problem(Topology.parse(case.graph), case.m, case.sigma)
    theory = Sizes.of(problem, case.tau).times
    theory["dsba:paper"] = theory.pop("dsba")  # of the published step, not of the tuned one
    found = context.compare(
        problem, METHODS, f"{case.name} {'quick' if context.quick else 'full'}", tol=TOL,
        tau=case.tau, seeds=seeds, clock_limit=MOST_FACTORS * max(theory.values()),
    )  # fmt: skip
    return [
        Rate(case, name, theory.get(name, math.nan), time_per_factor_e(found, name))
        for name in found.labels
    ]


def time_per_factor_e(comparison: Comparison, label: str) -> AtLeast:
    """Median over seeds of `late_slope`, without the runs that a signal interrupted.

    Runs that were too slow to be measured count as later than all others. If the median is one of
    them, the method needs at least the clock limit over the factors e that its error did not fall.
    """
    pairs = zip(comparison.runs(label), comparison.curves(label), strict=True)
    slopes = [late_slope(curve) for run, curve in pairs if run.status != "interrupted"]
    median = median_time(slopes)
    if median.exact or median == UNKNOWN:
        return median
    return AtLeast((comparison.clock_limit or 0.0) / FEWEST_FACTORS, exact=False)


def late_slope(curve: Curve) -> float:
    """Time for a factor e from the middle of the curve to its end; infinite if it hardly fell.

    The middle is the geometric mean of the first and the last error: the start, where methods
    differ by more than their rate, is left out.

    Examples
    --------
    >>> import numpy as np
    >>> late_slope(Curve(np.array([0.0, 10.0, 20.0]), np.exp([0.0, -1.0, -6.0])))
    2.0
    """
    first, last = curve.error[0], max(curve.error[-1], FLOOR)
    if not last < first / math.e**FEWEST_FACTORS:
        return math.inf
    # A slope needs the point between iterations: no rounding up to the end of one.
    start = curve._replace(iteration=None).first_reach(math.sqrt(first * last))
    assert start is not None  # the last error is below the middle
    return float((curve.x[-1] - start) / (0.5 * math.log(first / last)))


def constant_claim(rates: list[Rate]) -> Claim:
    ratios = grouped((rate.method, rate.ratio) for rate in rates if math.isfinite(rate.ratio))
    parts = [f"{name} {spread(each, '.2g')}" for name, each in ratios.items()]
    return judge(
        "Time to a factor e as in Table 1, constant factors omitted.",
        f"Measured over theory, range over the settings: {listing(parts)}. "
        f"Counted as a constant: within a factor {STEADY:g}.",
        [max(each) <= STEADY * min(each) for each in ratios.values()],
    )


def judged_pairs(rates: list[Rate]) -> list[tuple[Rate, Rate, bool]]:
    """Two methods in one setting, and whether the second is slower, where that is known."""
    return [
        (one, other, slower)
        for one, other in itertools.permutations(rates, 2)
        if one.case == other.case and (slower := other.time.later_than(one.time)) is not None
    ]


def order_claim(rates: list[Rate]) -> Claim:
    """The order of methods that are far apart in theory."""
    pairs = [each for each in judged_pairs(rates) if CLEAR * each[0].theory < each[1].theory]
    wrong = [f"{slow.method} before {fast}" for fast, slow, holds in pairs if not holds]
    return judge(
        "The methods' order follows from their times in Table 1.",
        f"{len(pairs)} pairs of methods are more than a factor {CLEAR:g} apart in theory; "
        f"{len(pairs) - len(wrong)} of them are in that order when measured."
        + (f" Not so: {listing(wrong)}." if wrong else ""),
        [holds for _, _, holds in pairs],
    )


def _beside_adfs(rates: list[Rate], method: str) -> list[tuple[Rate, Rate, bool]]:
    own = [rate for rate in rates if rate.method in ("adfs", method)]
    return [pair for pair in judged_pairs(own) if pair[0].method == "adfs"]


def winner_claim(rates: list[Rate]) -> Claim:
    """ADFS ahead of two others; a setting in which a run was interrupted does not count."""
    cases, parts = [], []
    for rival in ("msda", "dsba"):
        pairs = _beside_adfs(rates, rival)
        cases += [slower for _, _, slower in pairs]
        multiples = [theirs.time.over(mine.time) for mine, theirs, _ in pairs]
        exact = [each.value for each in multiples if each.exact]
        least = [each.value for each in multiples if not each.exact and each != UNKNOWN]
        lost = [mine.case.name for mine, _, _ in pairs if not mine.time.exact]
        if exact:
            parts.append(f"{rival} takes {spread(exact, '.2g')} times as long")
        if least:
            parts.append(
                f"{rival} takes more than {min(least):.2g} times as long where it was too slow to "
                f"be measured ({len(least)} of {len(pairs)})"
            )
        if lost:
            parts.append(f"ADFS was too slow to be measured and {rival} was not ({listing(lost)})")
    return judge(
        "ADFS outperforms MSDA and DSBA in most standard machine learning settings.",
        f"Over the settings {listing(parts)}.",
        cases,
    )


def _remarks(rates: list[Rate]) -> list[str]:
    slow = [str(rate) for rate in rates if not rate.time.exact and rate.time != UNKNOWN]
    interrupted = [str(rate) for rate in rates if rate.time == UNKNOWN]
    faster = []
    for name in SECOND_ORDER:
        multiples = [mine.time.over(other.time) for mine, other, _ in _beside_adfs(rates, name)]
        if factors := [each.value for each in multiples if each.exact]:
            faster.append(f"{name} {spread(factors, '.2g')} times faster than ADFS")
    few = (
        f" Here, with few features, {listing(faster)} (below 1: slower); Newton sends d x d "
        "numbers and needs d to be small."
    )
    remarks = [
        "Methods without a row in Table 1 are measured only. Newton and L-BFGS are faster than "
        f"linear: theirs is the mean over the later decades.{few if faster else ''}",
        "Theory bounds the slowest case; a method whose bound is loose has a ratio below one, and "
        "one whose bound is looser on some problems than on others has ratios that spread.",
    ]
    if slow:
        remarks.append(f"Too slow to be measured within the limit: {listing(slow)}.")
    if interrupted:
        remarks.append(f"Interrupted, and left out of the verdicts: {listing(interrupted)}.")
    return remarks


def _tables(rates: list[Rate]) -> list[ResultTable]:
    cases = list(dict.fromkeys(rate.case for rate in rates))
    methods = list(dict.fromkeys(rate.method for rate in rates))
    theory = {(rate.method, rate.case): rate.theory for rate in rates}
    measured = {(rate.method, rate.case): rate.cell for rate in rates}
    formulas: Rows = [
        (name, formula, *(theory.get((name, case)) for case in cases))
        for name, formula in FORMULAS.items()
        if name in methods
    ]
    cells: Rows = [(name, *(measured.get((name, case)) for case in cases)) for name in methods]
    every: Rows = [
        (*rate.case[:5], rate.method, rate.theory, rate.time.known, rate.ratio) for rate in rates
    ]
    names = [case.name for case in cases]
    title = "Idealized time for a factor e, measured; in brackets over theory's"
    headers = ("setting", "graph", "m", "tau", "sigma", "method", "theory", "measured", "ratio")
    return [
        ResultTable("theory", "Table 1, in numbers", ("method", "time", *names), formulas),
        ResultTable("measured", title, ("method", *names), cells),
        ResultTable("table-1", "Every method in every setting.", headers, every, shown=False),
    ]

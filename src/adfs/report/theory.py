"""Theory beside measurement: the rate that is proven, and the one that was seen."""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from adfs.report.markup import Markup, formula, join, table
from adfs.report.page import paragraph
from adfs.report.words import UNKNOWN, number, percent
from adfs.runtime.solve import Result
from adfs.runtime.trace import Value

FLOOR = 1e-14  # relative errors below are rounding
HEADERS = ("quantity", "theory", "measured", "measured / theory")


class Fit(NamedTuple):
    """How fast an error fell: per iteration, idealized time for a factor e, and the exponent.

    ``power`` is the slope of log error against log iteration.
    """

    rate: float
    time: float
    power: float
    n_rows: int


def fit(columns: Mapping[str, Sequence[Value]], error: str) -> Fit | None:
    """Least squares through the second half of the evaluations; None if fewer than two count.

    The first half is left out because constants, not rates, rule there; with few evaluations all
    are taken.

    Examples
    --------
    >>> t = [0, 100, 200, 300]
    >>> gaps = [math.exp(-0.01 * k) for k in t]
    >>> found = fit({"iteration": t, "idealized_time": t, "gap": gaps}, "gap")
    >>> round(found.rate, 6), round(found.time, 6)
    (0.00995, 100.0)
    """
    rows = [
        (float(t), float(s or 0.0), math.log(float(e)))
        for t, s, e in zip(
            columns["iteration"], columns["idealized_time"], columns[error], strict=True
        )
        if t is not None and e is not None and math.isfinite(e) and e > FLOOR
    ]
    tail = rows[len(rows) // 2 :] if len(rows) >= 6 else rows
    if len(tail) < 2 or tail[-1][0] <= tail[0][0]:
        return None
    t, s, log_error = np.array(tail).T
    slope = float(np.polyfit(t - t[0], log_error, 1)[0])
    span = float(s[-1] - s[0])
    pace = float(np.polyfit(s - s[0], log_error, 1)[0]) if span > 0.0 else 0.0
    positive = t > 0
    power = math.nan
    if np.count_nonzero(positive) >= 2:
        power = float(np.polyfit(np.log(t[positive]), log_error[positive], 1)[0])
    return Fit(-math.expm1(slope), -1.0 / pace if pace < 0.0 else math.inf, power, len(tail))


def of_run(
    result: Result,
    columns: Mapping[str, Sequence[Value]],
    idle: tuple[float, float] | None = None,
) -> Markup:
    """The table of one run, and what to make of it.

    ``idle`` is the share of idle time of the nodes in the model, and of the ranks as measured.
    """
    found = fit(columns, "relative_gap")
    rows: list[tuple[str, ...]] = []
    chosen, words = result.parameters, "contraction an iteration: ρ in (1 − ρ)^t"
    rate, time, power = (None, None, None) if found is None else found[:3]
    if result.proven_rate is not None:
        rows.append(_compared(words, result.proven_rate, rate))
    if hasattr(chosen, "gap_exponent"):
        rows.append(_compared("exponent of the gap, in t^k", chosen.gap_exponent, power))
    if math.isfinite(getattr(chosen, "time_per_efold", math.nan)):
        words = "idealized time for a factor e of the error"
        rows.append(_compared(words, chosen.time_per_efold, time))
    rows += _communications(chosen, columns)
    if idle is not None:
        words = "idle share: of nodes in idealized time, of ranks as measured"
        ratio = number(idle[1] / idle[0], 3) if idle[0] > 0.0 else UNKNOWN
        rows.append((words, percent(idle[0]), percent(idle[1]), ratio))
    if not rows:
        return paragraph(_theorem(result))
    return join([table("Rates and shares of this run", HEADERS, rows), _remark(result, found)])


def _compared(name: str, theory: float, seen: float | None) -> tuple[str, ...]:
    ratio = UNKNOWN if seen is None else number(seen / theory, 3)
    return formula(name), number(theory), _rate(seen), ratio


def _rate(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return "none: the error did not fall" if math.isinf(value) else number(value)


def _communications(parameters: Any, columns: Mapping[str, Sequence[Value]]) -> list[Any]:
    """The share of events that were exchanges; one is two messages."""
    p_comm = getattr(parameters, "p_comm", None)
    iterations = columns["iteration"][-1] if columns["iteration"] else 0
    if p_comm is None or not iterations:
        return []
    share = float(columns["n_comm"][-1] or 0) / 2.0 / float(iterations)
    if p_comm <= 0.0:
        return []
    return [_compared("share of communications among events", float(p_comm), share)]


def _theorem(result: Result) -> str:
    if result.theorem:
        return result.theorem
    if result.proven_rate is not None:
        return "A proven rate is a bound: runs may be faster."
    return f"There is no theorem about the rate of {result.algorithm}."


def _remark(result: Result, found: Fit | None) -> Markup:
    words = _theorem(result)
    if result.schedule == "poisson":
        words += " Under Poisson clocks t is a time, of which a unit holds about one event."
    how = (
        " Too few evaluations to measure a rate; give --evaluate-every."
        if found is None
        else f" Measured by least squares through the last {found.n_rows} evaluations."
    )
    return paragraph(formula(words), how)


def of_contenders(rows: Sequence[tuple[str, float | None, list[Fit], float | None]]) -> Markup:
    """One row a contender: label, proven rate, fits of its runs, idle share."""
    headers = (
        "algorithm", "proven rate an iteration", "measured", "measured / proven",
        "idealized time for a factor e, measured", "idle share",
    )  # fmt: skip
    cells = []
    for label, proven, fits, idle in rows:
        rate = median(each.rate for each in fits) if fits else None
        time = median(each.time for each in fits) if fits else None
        ratio = UNKNOWN if rate is None or proven is None else number(rate / proven, 3)
        known = "no theorem" if proven is None else number(proven)
        share = UNKNOWN if idle is None else percent(idle)
        cells.append((label, known, _rate(rate), ratio, _rate(time), share))
    note = paragraph(
        "An iteration is what each method calls one, so rates of different methods do not compare; "
        "idealized times do. Rates are of the suboptimality, by least squares through the second "
        "half of each run's evaluations, medians over seeds. A proven rate is a bound: runs may be "
        "faster."
    )
    return join([table("Rates of each algorithm", headers, cells), note])

"""Theory beside measurement: rates fitted to traces, and the tables that compare them."""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from adfs.engine.trace import Value
from adfs.solver import Result
from adfs.study.comparison import RunRecord
from adfs.study.numbers import UNKNOWN, number, percent
from adfs.study.report.render import Table, formula

FLOOR = 1e-14  # relative errors below it are rounding
Columns = Mapping[str, Sequence[Value]]


class Fit(NamedTuple):
    """How fast an error fell.

    ``rate`` is per iteration, ``time`` the idealized time for a factor e, ``power`` the slope of
    log error against log iteration.
    """

    rate: float
    time: float
    power: float
    n_rows: int


def fit(columns: Columns, error: str) -> Fit | None:
    """Least squares through the second half of the evaluations; None if fewer than two count.

    The first half is left out because it shows the constants in front of a rate; with fewer than
    six evaluations all are used.

    Examples
    --------
    >>> t = [0, 100, 200, 300]
    >>> gaps = [math.exp(-0.01 * k) for k in t]
    >>> found = fit({"iteration": t, "idealized_time": t, "gap": gaps}, "gap")
    >>> round(found.rate, 6), round(found.time, 6)
    (0.00995, 100.0)
    """
    wanted = (columns[name] for name in ("iteration", "idealized_time", error))
    rows = [
        (float(t), float(s or 0.0), math.log(float(e)))
        for t, s, e in zip(*wanted, strict=True)
        if t is not None and e is not None and math.isfinite(e) and e > FLOOR
    ]
    tail = rows[len(rows) // 2 :] if len(rows) >= 6 else rows
    if len(tail) < 2 or tail[-1][0] <= tail[0][0]:
        return None
    t, s, log_error = np.array(tail).T
    rate = -math.expm1(_slope(t - t[0], log_error))
    per_time = _slope(s - s[0], log_error) if s[-1] > s[0] else 0.0
    later = t > 0
    power = math.nan
    if np.count_nonzero(later) >= 2:
        power = _slope(np.log(t[later]), log_error[later])
    return Fit(rate, -1.0 / per_time if per_time < 0.0 else math.inf, power, len(tail))


def _slope(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.polyfit(x, y, 1)[0])


def rates_of_run(
    result: Result, columns: Columns, idle: tuple[float, float] | None = None
) -> tuple[Table | None, str]:
    """The rates of one run, if there is one to compare, and a remark.

    ``idle`` is the idle share of the nodes in idealized time, and of the ranks as measured.
    """
    found = fit(columns, "relative_gap")
    rate, time, power = (None, None, None) if found is None else found[:3]
    chosen, rows = result.parameters, []
    if result.proven_rate is not None:
        name = "contraction per iteration: ρ in (1 − ρ)^t"
        rows.append(_compared(name, result.proven_rate, rate))
    if hasattr(chosen, "gap_exponent"):
        rows.append(_compared("exponent of the gap, in t^k", chosen.gap_exponent, power))
    predicted = getattr(chosen, "time_per_efold", math.nan)
    if math.isfinite(predicted):
        rows.append(_compared("idealized time for a factor e of the error", predicted, time))
    share = _communication_share(columns)
    if share is not None and getattr(chosen, "p_comm", 0.0) > 0.0:
        name = "share of communications among events"
        rows.append(_compared(name, float(chosen.p_comm), share))
    if idle is not None:
        name = "idle share: of nodes in idealized time, of ranks as measured"
        ratio = number(idle[1] / idle[0], 3) if idle[0] > 0.0 else UNKNOWN
        rows.append((name, percent(idle[0]), percent(idle[1]), ratio))
    if not rows:
        return None, _theorem(result)
    headers = ("quantity", "theory", "measured", "measured / theory")
    return Table("Rates and shares of this run", headers, rows), _remark(result, found)


def _compared(name: str, theory: float, measured: float | None) -> tuple[object, ...]:
    ratio = UNKNOWN if measured is None else number(measured / theory, 3)
    return formula(name), number(theory), _rate(measured), ratio


def _rate(value: float | None) -> str:
    return "none: the error did not fall" if value == math.inf else number(value)


def _communication_share(columns: Columns) -> float | None:
    """The share of events that were exchanges, of two messages each."""
    iterations = columns["iteration"][-1] if columns["iteration"] else 0
    return float(columns["n_comm"][-1] or 0) / 2.0 / float(iterations) if iterations else None


def _theorem(result: Result) -> str:
    if result.theorem:
        return result.theorem
    if result.proven_rate is not None:
        return "A proven rate is a bound: runs may be faster."
    return f"No theorem about the rate of {result.algorithm} is known."


def _remark(result: Result, found: Fit | None) -> str:
    text = _theorem(result)
    if result.schedule == "poisson":
        text += " Under Poisson clocks t is a time; a unit of it has about one event."
    if found is None:
        return f"{text} Too few evaluations to measure a rate; give --evaluate-every."
    return f"{text} Measured by least squares through the last {found.n_rows} evaluations."


def rates_of_contenders(rows: Sequence[tuple[RunRecord, list[Fit], float | None]]) -> Table:
    """One row per contender, from one of its runs, the fits of all of them, and the idle share."""
    headers = (
        "algorithm", "proven rate per iteration", "measured", "measured / proven",
        "idealized time for a factor e, measured", "idle share",
    )  # fmt: skip
    cells: list[tuple[Any, ...]] = []
    for run, fits, idle in rows:
        rate = median(each.rate for each in fits) if fits else None
        time = median(each.time for each in fits) if fits else None
        proven = run.proven_rate
        ratio = None if rate is None or proven is None else rate / proven
        cells.append((
            run.label, "no theorem" if proven is None else number(proven), _rate(rate),
            number(ratio, 3), _rate(time), UNKNOWN if idle is None else percent(idle),
        ))  # fmt: skip
    return Table("Rates of each algorithm", headers, cells)

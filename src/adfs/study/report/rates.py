"""Theory beside measurement: rates fitted to traces, and the tables that compare them."""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np

from adfs.solver import Result
from adfs.study.comparison import Comparison
from adfs.study.numbers import UNKNOWN, number, percent
from adfs.study.report.convergence_chart import Columns, PageCurve
from adfs.study.report.node_timeline import Activity
from adfs.study.report.render import Table, formula

FLOOR = 1e-14  # relative errors below it are rounding


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
    t, s, errors = (
        np.array(columns[name], dtype=float) for name in ("iteration", "idealized_time", error)
    )
    used = np.flatnonzero(np.isfinite(errors) & (errors > FLOOR))
    used = used[len(used) // 2 :] if len(used) >= 6 else used
    if len(used) < 2 or t[used[-1]] <= t[used[0]]:
        return None
    t, s, log_error = t[used], s[used], np.log(errors[used])
    rate = -math.expm1(np.polyfit(t - t[0], log_error, 1)[0])
    per_time = float(np.polyfit(s - s[0], log_error, 1)[0]) if s[-1] > s[0] else 0.0
    later = t > 0
    power = math.nan
    if np.count_nonzero(later) >= 2:
        power = float(np.polyfit(np.log(t[later]), log_error[later], 1)[0])
    return Fit(rate, -1.0 / per_time if per_time < 0.0 else math.inf, power, len(used))


def rates_of_run(
    result: Result, columns: Columns, found: Fit | None, idle: tuple[float, float] | None
) -> Table | None:
    """Theory and measurement of one run; None if there is nothing to compare.

    ``idle`` is the idle share of the nodes in idealized time, and of the ranks as measured.
    """
    rate, time, power = (None, None, None) if found is None else found[:3]
    chosen, events = result.parameters, float(columns["iteration"][-1] or 0)
    share = float(columns["n_comm"][-1] or 0) / 2.0 / events if events else None  # two messages
    p_comm = getattr(chosen, "p_comm", None) if events else None
    compared = (
        ("contraction per iteration: ρ in (1 − ρ)^t", result.proven_rate, rate),
        ("exponent of the gap, in t^k", getattr(chosen, "gap_exponent", None), power),
        ("idealized time for a factor e of the error",
         getattr(chosen, "time_per_efold", None), time),
        ("share of communications among events", p_comm, share),
    )  # fmt: skip
    rows: list[tuple[object, ...]] = [
        (formula(name), number(theory), _rate(measured),
         UNKNOWN if measured is None else number(measured / theory, 3))
        for name, theory, measured in compared if theory and math.isfinite(theory)
    ]  # fmt: skip
    if idle is not None:
        name = "idle share: of nodes in idealized time, of ranks as measured"
        ratio = number(idle[1] / idle[0], 3) if idle[0] > 0.0 else UNKNOWN
        rows.append((name, percent(idle[0]), percent(idle[1]), ratio))
    headers = ("quantity", "theory", "measured", "measured / theory")
    return ("Rates and shares of this run", headers, rows) if rows else None


def _rate(value: float | None) -> str:
    return "none: the error did not fall" if value == math.inf else number(value)


def rates_of_contenders(
    comparison: Comparison, curves: Sequence[PageCurve], activities: Mapping[str, Activity | None]
) -> Table:
    """One row per label: medians over the curves of its runs, and the idle share of the nodes."""
    headers = (
        "algorithm", "proven rate per iteration", "measured", "measured / proven",
        "idealized time for a factor e, measured", "idle share",
    )  # fmt: skip
    rows = []
    for label, activity in activities.items():
        found = (fit(each.columns, "suboptimality") for each in curves if each.label == label)
        fits = [each for each in found if each is not None]
        rate = median(each.rate for each in fits) if fits else None
        time = median(each.time for each in fits) if fits else None
        proven = comparison.runs(label)[0].proven_rate
        ratio = None if rate is None or proven is None else rate / proven
        rows.append((
            label, "no theorem" if proven is None else number(proven), _rate(rate),
            number(ratio, 3), _rate(time),
            UNKNOWN if activity is None else percent(activity.mean_idle),
        ))  # fmt: skip
    return "Rates of each algorithm", headers, rows

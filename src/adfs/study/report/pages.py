"""`train_page`, the report of one run, and `compare_page`, that of several algorithms.

Both begin with the result, and end with theory beside measurement: rates are fitted to traces.
"""

import dataclasses
import math
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from adfs.algorithms.base import MethodSetting, Source, get_algorithm
from adfs.costs import Costs
from adfs.engine.execution import Execution
from adfs.engine.run_identity import data_fingerprint
from adfs.errors import AdfsError
from adfs.model import Model, worst
from adfs.problem.certificate import certified_text
from adfs.problem.finite_sum import Problem
from adfs.quality import Quality
from adfs.run import Result
from adfs.schedule.delays import Delays
from adfs.schedule.poisson import PoissonSource
from adfs.schedule.sampling_law import Drawer
from adfs.study.comparison import AXES, Comparison
from adfs.study.numbers import number
from adfs.study.plots.timeline_plot import used_kinds
from adfs.study.report import node_timeline
from adfs.study.report.convergence_chart import ROWS, Columns, PageCurve, make_chart, page_curve
from adfs.study.report.graph_picture import draw_graph
from adfs.study.report.model_pictures import describe_model
from adfs.study.report.node_timeline import Activity, activity_of
from adfs.study.report.render import render
from adfs.study.run_folder import describe_machine

LONGEST_SETUP = 3.0  # seconds of set-up that a page may spend again, for a timeline
MOST_SEEDS = 10  # drawn per algorithm
MOST_CLASSES = 8  # whose curves are drawn
FEWEST = 100  # rows of a trace, however many runs a page has
CHEAP = 2e9  # multiplications for a condition number that the run did not need: about a second
FLOOR = 1e-14  # relative errors below it are rounding
LARGEST_GRAPH = 3_000  # nodes for which eigenvalues and diameter are computed for a page


def train_page(
    problem: Problem,
    result: Result | Sequence[Result],
    *,
    tol: float | None = None,
    data: str = "",
    command: str = "",
    measures: Mapping[str, str] | None = None,
    delays: Delays | None = None,
    ranks: Sequence[Execution] = (),
    model: Model | None = None,
    quality: Mapping[str, Quality | None] | None = None,
    fingerprint: str = "",
) -> str:
    """One HTML page about a run: self-contained, it loads nothing from anywhere.

    Parameters
    ----------
    problem : Problem
        What was minimised; of several classes, the problem of the worst one.
    result : Result, or one per class
        From `adfs.solve`, however the run ended.
    tol : float, optional
        The relative duality gap that was requested.
    data, command : str
        The source of the samples and the command line, as text of the page.
    measures : mapping of str, optional
        More numbers for the top of the page, such as ``{"accuracy": "0.93"}``.
    delays : Delays, optional
        The time model where it is more than the result's ``tau``.
    ranks : sequence of Execution
        What each rank did, for a run over MPI.
    model : Model, optional
        What was trained, with the names of features and classes; by default that of the result.
    quality : mapping of dict, optional
        Measures of its predictions, as ``adfs train --json`` has them, by the name of the data;
        the last one is for the top of the page.
    fingerprint : str
        Digest of the samples, computed if they are all in this process.

    Returns
    -------
    str
        The document; write it with encoding UTF-8.

    Examples
    --------
    >>> import adfs
    >>> X, y = adfs.generators.two_gaussians(200, 5, seed=0)
    >>> problem = adfs.Problem(adfs.partition(X, y, 4), sigma=0.1)
    >>> page = adfs.report.train_page(problem, adfs.solve(problem, tol=1e-6), tol=1e-6)
    >>> page.startswith("<!DOCTYPE html>")
    True
    """
    results = [result] if isinstance(result, Result) else list(result)
    result, model = worst(results), model or Model.from_result(results, problem)
    classes = model.meta["classes"] if len(results) > 1 else [result.algorithm]
    # The worst one comes first: what the page says of theory is about it.
    named = sorted(zip(classes, results, strict=True), key=lambda pair: pair[1] is not result)
    activity = _run_activity(problem, result, delays or Delays(tau=result.tau))
    n_samples, length = problem.n_samples, len(result.trace)
    curves = [
        page_curve(f"{'class ' * (len(results) > 1)}{label}", each.seed, each.trace, n_samples,
                   ROWS // 10)
        for label, each in named[:MOST_CLASSES]
    ]  # fmt: skip
    if result.proven_rate is not None:
        curves.append(curves[0].proven(result.proven_rate))
    fitted = fit(curves[0].columns, "relative_gap")
    binding = getattr(result.parameters, "binding_place", None)
    return render(
        "train.html",
        result=result,
        results=dict(named),
        most_classes=MOST_CLASSES,
        totals=_totals(results),
        gap=certified_text(result.duality_gap, result.duality_gap, result.objective_at_zero),
        tol=tol,
        measures_given=[(name, value, "") for name, value in (measures or {}).items()],
        chart=make_chart(curves, "iteration", "relative_gap", tol, length),
        curve=curves[0],
        fit=fitted,
        rates=rates_of_run(result, curves[0].columns, fitted),
        waiting_share=node_timeline.waiting_share(ranks),
        activity=activity,
        ranks=ranks,
        rank_timeline=node_timeline.draw_ranks(ranks),
        rank_kinds=used_kinds(ranks),
        most_ranks=node_timeline.MOST_LINES,
        **describe_model(model, quality or {}),
        **_both_pages(problem, data, command, binding),
        fingerprint=fingerprint or (data_fingerprint(problem) if problem.network.is_whole else ""),
    )


def _totals(results: Sequence[Result]) -> dict[str, Any]:
    """Costs of all classes together."""
    last = [each.trace.last() for each in results]
    names = ("iteration", "idealized_time", "wall_time", "n_prox", "n_grad", "n_comm", "bytes")
    found: dict[str, Any] = {name: sum(each[name] or 0 for each in last) for name in names}
    return {**found, "setup_time": sum(each.setup_time for each in results)}


def _both_pages(problem: Problem, data: str, command: str, binding: Any = None) -> dict[str, Any]:
    """What both pages say of the problem, with numbers that cost little or that the run knows."""
    topology = problem.topology
    is_small = topology.n_nodes <= LARGEST_GRAPH
    is_known = problem.loss.smooth and (
        problem.conditioning.batches_are_known
        or (problem.n_samples * problem.n_features**2 <= CHEAP and problem.network.is_whole)
    )
    computed = {
        "kappa_b": problem.conditioning.kappa_b() if is_known else None,
        "gamma": topology.spectrum.gamma if is_small or "spectrum" in vars(topology) else None,
        "diameter": topology.diameter if is_small and topology.n_nodes > 1 else None,
    }
    machine = {
        **describe_machine(), "host": platform.node(),
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
    }  # fmt: skip
    if not problem.network.is_whole and (mpi := sys.modules.get("mpi4py.MPI")) is not None:
        machine["versions"]["MPI"] = mpi.Get_library_version().partition("\n")[0].strip("\0 ")
    return {
        "problem": problem, "data": data, "command": command, "machine": machine,
        "graph": draw_graph(topology, binding), "computed": computed,
    }  # fmt: skip


def _run_activity(problem: Problem, result: Result, delays: Delays) -> Activity | None:
    chosen = result.parameters
    if hasattr(chosen, "make_clock"):  # a law of events, which every rank has
        kind = PoissonSource if result.schedule == "poisson" else Drawer
        source: Source = kind(chosen, result.seed, with_samples=False)
        clock = chosen.make_clock(delays, result.clock)
        return activity_of(source, clock, chosen, result.iterations)
    if not problem.network.is_whole:
        return None
    setting = MethodSetting(
        result.rule, result.tau, result.clock, delays, result.seed, costs=result.costs
    )
    return _again(problem, result.algorithm, setting, result.setup_time, result.iterations)[1]


def _again(
    problem: Problem, name: str, setting: MethodSetting, setup_time: float, n_events: int
) -> tuple[Any, Activity | None]:
    """Parameters and first events of a method as it ran.

    None for both if its set-up takes long, or no rule makes its parameters.
    """
    if setup_time > LONGEST_SETUP:
        return None, None
    try:
        method = get_algorithm(name)(problem, setting)
    except AdfsError:
        return None, None
    chosen = method.parameters
    activity = activity_of(method.source, method.clock, chosen, n_events)
    if activity is not None and hasattr(method.algorithm, "executed"):
        activity = dataclasses.replace(activity, expected=True)
    return chosen, activity


def compare_page(
    problem: Problem,
    comparison: Comparison,
    *,
    data: str = "",
    command: str = "",
    axis: str = "idealized_time",
) -> str:
    """One HTML page about a comparison: self-contained, it loads nothing from anywhere.

    Parameters
    ----------
    problem : Problem
        What was minimised.
    comparison : Comparison
        From `adfs.compare`, whole or interrupted.
    data, command : str
        The source of the samples and the command line, as text of the page.
    axis : str
        The axis of the table that is open, and of the chart at first.

    Returns
    -------
    str
        The document; write it with encoding UTF-8.

    Examples
    --------
    >>> import adfs
    >>> X, y = adfs.generators.two_gaussians(80, 3, seed=0)
    >>> problem = adfs.Problem(adfs.partition(X, y, 4), sigma=0.5)
    >>> page = adfs.report.compare_page(problem, adfs.compare(problem, ["adfs", "newton"]))
    >>> page.startswith("<!DOCTYPE html>")
    True
    """
    config = comparison.config
    labels = {label: comparison.runs(label) for label in comparison.labels}
    shown = [run for runs in labels.values() for run in runs[:MOST_SEEDS]]
    most, n_samples = max(FEWEST, ROWS // max(1, len(shown))), problem.n_samples
    curves = [page_curve(run.label, run.seed, run.trace, n_samples, most) for run in shown]
    chart = None
    if shown:
        longest = max(len(run.trace) for run in shown)
        chart = make_chart(curves, axis, "suboptimality", config["tol"], longest)
    delays, model = Delays(**config["delays"]), (config["tau"], config["clock"])
    activities, parameters, costs = {}, {}, Costs.read(config["costs"])
    for label, runs in labels.items():
        run = runs[:MOST_SEEDS][-1]
        events = max(int(each.trace.last()["iteration"] or 0) for each in runs)
        setting = MethodSetting(run.rule, *model, delays, run.seed, costs=costs)
        # The comparison keeps only the text of the parameters.
        chosen, activities[label] = _again(problem, run.algorithm, setting, run.setup_time, events)
        parameters[label] = (run.parameters if chosen is None else chosen), run.rule
    return render(
        "compare.html",
        comparison=comparison,
        ranking=rank(comparison, axis),
        axis=AXES[axis],
        tables=[comparison.table(axis=name) for name in sorted(AXES, key=axis.__ne__)],
        titles_of_axes=AXES,
        chart=chart,
        most_seeds=MOST_SEEDS if len(shown) < len(comparison.records) else 0,
        curves=curves,
        rates={label: median_rate(curves, label) for label in labels},
        activities=activities,
        parameters=parameters,
        **_both_pages(problem, data, command),
    )


def rank(comparison: Comparison, axis: str) -> dict[str, Any]:
    """The algorithms in the order in which they reach ``tol``: bars with remarks, and a verdict."""
    tol = comparison.config["tol"]
    refusal = comparison.refusal(tol) or ""
    # Those that did not arrive come last, with where their runs ended.
    rows = [
        (value is None, row.end if value is None else value, row)
        for row in comparison.table([tol], axis)
        for value in [row.cells[0].value]
    ]
    rows.sort(key=lambda each: each[:2])
    longest = max((length for _, length, _ in rows if math.isfinite(length)), default=1.0) or 1.0
    arrived = [(length, row.label) for is_late, length, row in rows if not is_late]
    best = arrived[0][0] if arrived else 0.0
    next_one = next(((length, label) for length, label in arrived if length > best > 0.0), None)
    word, bars = "fastest" if "time" in axis else "first", []
    for is_late, length, row in rows:
        kind, remark = "up", f"{number(length / best, 3)} times as much" if best else ""
        if is_late:
            kind, remark = "late", f"not reached: {row.status.replace('_', ' ')}"
        elif length == best:
            kind, remark = "best", word
        bar = (0.0, 100.0 * min(length, longest) / longest)
        bars.append((row.label, bar, kind, [(row.cells[0].text, "" if refusal else remark)]))
    return {
        "bars": bars, "word": word, "best": best, "refusal": refusal, "next": next_one,
        "first": [label for length, label in arrived if length == best],
        "late": [row.label for is_late, _, row in rows if is_late],
    }  # fmt: skip


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
    names = ("iteration", "idealized_time", error)
    t, s, errors = (np.array(columns[name], dtype=float) for name in names)
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
    result: Result, columns: Columns, fitted: Fit | None
) -> list[tuple[str, float, float | None]]:
    """What theory says about one run: its name, by theory, and as measured where that is known."""
    rate, time, power = (None, None, None) if fitted is None else fitted[:3]
    chosen, events = result.parameters, float(columns["iteration"][-1] or 0)
    share = float(columns["n_comm"][-1] or 0) / 2.0 / events if events else None  # two messages
    p_comm = getattr(chosen, "p_comm", None) if events else None
    time_per_efold = getattr(chosen, "time_per_efold", None)
    compared = (
        ("contraction per iteration: ρ in (1 − ρ)^t", result.proven_rate, rate),
        ("exponent of the gap, in t^k", getattr(chosen, "gap_exponent", None), power),
        ("idealized time for a factor e of the error", time_per_efold, time),
        ("share of communications among events", p_comm, share),
    )
    return [(name, by, found) for name, by, found in compared if by and math.isfinite(by)]


def median_rate(curves: Sequence[PageCurve], label: str) -> tuple[float | None, float | None]:
    """Rate and time for a factor e, medians over the curves of a label."""
    found = (fit(each.columns, "suboptimality") for each in curves if each.label == label)
    if not (fits := [each for each in found if each is not None]):
        return None, None
    return median(each.rate for each in fits), median(each.time for each in fits)

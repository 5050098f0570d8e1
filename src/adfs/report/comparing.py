"""`compare_page`: the report of several algorithms on one problem."""

from typing import Any

import adfs
from adfs.algorithms.base import Method, Setting, get_algorithm
from adfs.bench.comparison import Comparison, RunRecord
from adfs.errors import AdfsError
from adfs.plots.comparison import AXES
from adfs.problems.finite_sum import Problem
from adfs.report import curves, parameters, theory, timeline
from adfs.report.activity import Activity, of_method
from adfs.report.graph import draw_graph
from adfs.report.making import making
from adfs.report.markup import Markup, join, table, tag
from adfs.report.page import Section, page, paragraph, tiles
from adfs.report.problem import describe as describe_problem
from adfs.report.words import count, number
from adfs.schedule.delays import Delays

PATIENCE = 3.0  # seconds of set-up that may be spent again for a timeline
MOST_SEEDS = 10  # drawn for each algorithm


def compare_page(
    problem: Problem,
    comparison: Comparison,
    *,
    data: str = "",
    command: str = "",
    axis: str = "idealized_time",
) -> str:
    """One HTML page about a comparison: self-contained, nothing is loaded from anywhere.

    Parameters
    ----------
    problem : Problem
        What was minimised.
    comparison : Comparison
        From `adfs.compare`, whole or interrupted.
    data, command : str
        Where the samples came from and the command line, as words of the page.
    axis : str
        The axis of the table that is open, and of the chart at first.

    Returns
    -------
    str
        The document; write it with encoding UTF-8.

    Examples
    --------
    >>> import adfs
    >>> from adfs.report import compare_page
    >>> X, y = adfs.generators.two_gaussians(80, 3, seed=0)
    >>> problem = adfs.Problem(adfs.partition(X, y, 4), sigma=0.5)
    >>> page = compare_page(problem, adfs.compare(problem, ["adfs", "newton"]))
    >>> page.startswith("<!DOCTYPE html>")
    True
    """
    shown = [
        record for label in comparison.labels for record in comparison.runs(label)[:MOST_SEEDS]
    ]
    figure, chart_data, drawn = _convergence(problem, comparison, shown, axis)
    prepared = {record.label: _prepare(problem, comparison, record) for record in shown}
    activities = {
        label: None if method is None else of_method(method, _longest(comparison, label))
        for label, method in prepared.items()
    }
    described = describe_problem(problem, None, data)
    sections = [
        Section("times", "Time to accuracy", _tables(comparison, axis)),
        Section("convergence", "Convergence", figure),
        Section("theory", "Theory beside measurement",
                _theory(comparison, drawn, activities)),
        Section("schedule", "Schedules", _schedules(activities)),
        Section("parameters", "Parameters", _parameters(comparison, prepared)),
        Section("problem", "Problem and graph",
                join([described, draw_graph(problem.topology)])),
        Section("making", "How it was made", making(command, _facts(comparison))),
    ]  # fmt: skip
    title = f"adfs: {len(comparison.labels)} algorithms on {data or problem.topology.name}"
    header = _header(problem, comparison, data)
    return page(title, header, sections, {"chart": chart_data, "adfs": adfs.__version__})


def _header(of: Problem, comparison: Comparison, data: str) -> Markup:
    config = comparison.config
    total = len(config["algorithms"]) * len(config["seeds"])
    finished = sum(record.status != "interrupted" for record in comparison.records)
    ended = f"{count(len(comparison.labels), 'algorithm')}, {count(total, 'run')}."
    if comparison.interrupted:
        ended = f"Interrupted with {finished} of {total} runs finished."
    facts = [
        ("optimum F*", number(comparison.optimum, 10),
         f"certified to {number(comparison.relative_optimum_gap, 2)} relative"),
        ("asked for", number(config["tol"]), "suboptimality"),
        ("time model", f"τ = {number(config['tau'])}", config["clock"]),
        ("limit of a run", number(comparison.clock_limit), "idealized time"),
    ]  # fmt: skip
    look = "status interrupted" if comparison.interrupted else None
    return join([
        tag("p", "adfs comparison report", class_="kicker"),
        tag("h1", data or "A comparison"),
        tag("p", tag("strong", ended, class_=look), class_="lead"),
        tag("p", f"{of.loss.name} loss on {of.topology.name}: {count(of.n_samples, 'sample')}, "
            f"{count(of.n_features, 'feature')}, {count(of.n_nodes, 'node')}.", class_="lead"),
        tiles(facts),
    ])  # fmt: skip


def _tables(comparison: Comparison, axis: str) -> Markup:
    """The table of the axis in use, the others folded away."""
    if not comparison.records:
        return paragraph("No run was started.")
    others = [
        tag("details", tag("summary", AXES[name]), _table(comparison, name))
        for name in AXES
        if name != axis
    ]
    notes = [tag("p", note, class_="note") for note in comparison.table(axis=axis).notes]
    more = tag("p", "The same along the other axes:")
    return join([_table(comparison, axis), *notes, more, *others])


def _table(comparison: Comparison, axis: str) -> Markup:
    found = comparison.table(axis=axis)
    headers = ("algorithm", *(number(accuracy) for accuracy in found.accuracies), "status")
    rows = [(row.label, *(cell.text for cell in row.cells), row.status) for row in found]
    title = AXES[axis][:1].upper() + AXES[axis][1:]
    return table(f"{title}, until the suboptimality is", headers, rows)


def _convergence(
    of: Problem, comparison: Comparison, shown: list[RunRecord], axis: str
) -> tuple[Markup, dict[str, Any], list[curves.Curve]]:
    if not shown:
        return paragraph("No run was started, so there is nothing to draw."), {}, []
    most = curves.rows_for(len(shown))
    drawn = [
        curves.Curve(record.label, curves.columns_of(record.trace, of.n_samples, most), record.seed)
        for record in shown
    ]
    longest = max(len(record.trace) for record in shown)
    tol = comparison.config["tol"]
    whole = longest if longest > most else 0
    figure, data = curves.chart(drawn, axis, "suboptimality", tol, whole)
    more = len(comparison.records) - len(shown)
    left = [paragraph(f"The first {MOST_SEEDS} seeds of each algorithm are drawn.")] if more else []
    numbers = [tag("div", tag("h3", _name(c, comparison)), curves.trace_table(c)) for c in drawn]
    inside = tag("details", tag("summary", "The numbers of every run"), *numbers)
    return join([curves.legend(drawn), figure, *left, inside]), data, drawn


def _name(curve: curves.Curve, comparison: Comparison) -> str:
    many = len(comparison.config["seeds"]) > 1
    return f"{curve.label}, seed {curve.seed}" if many else curve.label


def _longest(comparison: Comparison, label: str) -> int:
    return max(int(run.trace.last()["iteration"] or 0) for run in comparison.runs(label))


def _prepare(of: Problem, comparison: Comparison, record: RunRecord) -> Method | None:
    """The method as it ran, made once more: a record keeps its words only."""
    if record.setup_time > PATIENCE:
        return None
    config = comparison.config
    try:
        setting = Setting(
            record.rule, config["tau"], config["clock"], Delays(**config["delays"]), record.seed
        )
        return get_algorithm(record.algorithm)(of, setting)
    except AdfsError:
        return None


def _theory(
    comparison: Comparison, drawn: list[curves.Curve], activities: dict[str, Activity | None]
) -> Markup:
    if not drawn:
        return paragraph("No run was started.")
    rows = []
    for label in comparison.labels:
        rate, activity = comparison.runs(label)[0].proven_rate, activities[label]
        fits = [theory.fit(c.columns, "suboptimality") for c in drawn if c.label == label]
        idle = None if activity is None else timeline.mean_idle(activity)
        rows.append((label, rate, [each for each in fits if each is not None], idle))
    return theory.of_contenders(rows)


def _schedules(activities: dict[str, Activity | None]) -> Markup:
    parts: list[Markup] = []
    for label, activity in activities.items():
        if activity is None:
            words = f"{label}: its schedule was not followed again for this page."
            parts.append(tag("p", words, class_="note"))
            continue
        inside = [timeline.draw_nodes(activity, label), timeline.node_shares(activity)]
        parts.append(tag("details", tag("summary", label), *inside, open=not parts))
    return join(parts) if parts else paragraph("No run was started.")


def _parameters(comparison: Comparison, prepared: dict[str, Method | None]) -> Markup:
    parts: list[Markup] = []
    for label in comparison.labels:
        run, method = comparison.runs(label)[0], prepared[label]
        inside = (
            tag("pre", run.parameters)
            if method is None
            else parameters.section(method.parameters, run.rule)
        )
        parts.append(tag("details", tag("summary", label), inside, open=not parts))
    return join(parts) if parts else paragraph("No run was started.")


def _facts(comparison: Comparison) -> list[tuple[str, str]]:
    config = comparison.config
    seeds = config["seeds"]
    return [
        ("seeds", f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])),
        ("runs at a time", str(config["jobs"])),
        ("runs taken from a folder", str(sum(record.reused for record in comparison.records))),
    ]

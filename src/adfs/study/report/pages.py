"""`train_page`, the report of one run, and `compare_page`, that of several algorithms."""

from collections.abc import Mapping, Sequence
from typing import Any

from adfs.algorithms.base import Method, MethodSetting, get_algorithm
from adfs.engine.execution import Execution
from adfs.errors import AdfsError
from adfs.problem.certificate import certified_text
from adfs.problem.finite_sum import Problem
from adfs.schedule.delays import Delays
from adfs.solver import Result
from adfs.study.comparison import Comparison, RunRecord
from adfs.study.numbers import count, number, percent, seconds
from adfs.study.plots.comparison_plot import AXES
from adfs.study.report import convergence_chart, node_timeline, rates
from adfs.study.report.convergence_chart import PageCurve
from adfs.study.report.facts import condition_facts, machine_facts, parameter_facts, problem_facts
from adfs.study.report.graph_picture import draw_graph
from adfs.study.report.node_timeline import Activity, law_activity, method_activity
from adfs.study.report.render import Table, render

LONGEST_SETUP = 3.0  # seconds of set-up that a page may spend again, for a timeline
MOST_SEEDS = 10  # drawn per algorithm
FEW_ROWS = 8  # of a trace: fewer make a coarse curve
ENDINGS = {
    "converged": "Converged",
    "max_iter": "Stopped at the limit of iterations",
    "time_limit": "Stopped at the limit of time",
    "interrupted": "Interrupted",
    "diverged": "Diverged",
}


def train_page(
    problem: Problem,
    result: Result,
    *,
    tol: float | None = None,
    data: str = "",
    command: str = "",
    measures: Mapping[str, str] | None = None,
    delays: Delays | None = None,
    ranks: Sequence[Execution] = (),
) -> str:
    """One HTML page about a run: self-contained, it loads nothing from anywhere.

    Parameters
    ----------
    problem : Problem
        What was minimised.
    result : Result
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
    activity = _run_activity(problem, result, delays or Delays(tau=result.tau))
    rows = convergence_chart.rows_per_run(1) // 10
    columns = convergence_chart.columns_of(result.trace, problem.n_samples, rows)
    curves = [PageCurve(result.algorithm, columns, result.seed)]
    if result.proven_rate is not None:
        curves.append(convergence_chart.theory_curve(curves[0], result.proven_rate))
    length = len(result.trace)
    chart = convergence_chart.make_chart(curves, "iteration", "relative_gap", tol, length)
    idle = None if activity is None else node_timeline.mean_idle(activity)
    both = None if idle is None or not ranks else (idle, node_timeline.waiting_share(ranks))
    table, remark = rates.rates_of_run(result, columns, both)
    facts = [
        ("seed", str(result.seed)),
        ("schedule", result.schedule),
        ("set-up", seconds(result.setup_time)),
        ("processes", f"{count(len(ranks), 'rank')} over MPI" if ranks else "one"),
    ]
    return render(
        "train.html",
        **_train_header(result, tol, measures or {}),
        heading=data or "A run",
        title=f"adfs: {result.algorithm} on {data or problem.topology.name}",
        about=f"{result.algorithm} with {_about(problem)}",
        chart=chart,
        numbers=[("", convergence_chart.trace_table(curves[0]))],
        proven=result.proven_rate is not None,
        coarse=count(length, "row") if length < FEW_ROWS else "",
        rates=table,
        remark=remark,
        parameters=parameter_facts(result.parameters, result.rule),
        schedules=[_timeline(result.algorithm, activity)],
        idle=None if idle is None else percent(idle),
        ranks=node_timeline.draw_ranks(ranks) if ranks else None,
        rank_shares=node_timeline.rank_shares(ranks) if ranks else None,
        **_problem(problem, data, getattr(result.parameters, "binding_place", None)),
        command=command,
        making_facts=facts + machine_facts(),
    )


def _train_header(result: Result, tol: float | None, measures: Mapping[str, str]) -> dict[str, Any]:
    gap = certified_text(result.duality_gap, result.duality_gap, result.objective_at_zero)
    last = result.trace.last()
    work = "sample gradients" if last["n_grad"] and not last["n_prox"] else "proximal steps"
    amount = number(last["n_prox"] or last["n_grad"])
    model = f"proximal steps, τ = {number(result.tau)}, {result.clock}"
    tiles = [
        ("objective F(θ)", number(result.objective, 8), ""),
        ("duality gap", gap, "no model is better by more"),
        ("iterations", number(result.iterations), f"{amount} {work}"),
        ("idealized time", number(result.idealized_time, 6), model),
        ("wall time", seconds(result.wall_time), "without set-up and evaluation"),
        ("messages", number(last["n_comm"]), f"{number(last['bytes'])} bytes"),
    ]
    requested = "" if tol is None else f", requested {number(tol)}"
    return {
        "status": result.status,
        "ending": f"{ENDINGS.get(result.status, result.status)}:",
        "proof": f"relative duality gap {result.gap_text}{requested}.",
        "tiles": [*tiles, *((name, value, "") for name, value in measures.items())],
    }


def _about(problem: Problem) -> str:
    return (
        f"{problem.loss.name} loss on {problem.topology.name}: "
        f"{count(problem.n_samples, 'sample')}, {count(problem.n_features, 'feature')}, "
        f"{count(problem.n_nodes, 'node')}."
    )


def _problem(problem: Problem, data: str, binding: Any = None) -> dict[str, Any]:
    return {
        "loss_formula": problem.loss.formula,
        "problem_facts": problem_facts(problem, data),
        "condition_facts": condition_facts(problem),
        "graph": draw_graph(problem.topology, binding),
    }


def _timeline(label: str, activity: Activity | None, name: str = "") -> tuple[Any, ...]:
    """Label, picture and table; the last two are None without an activity."""
    if activity is None:
        return label, None, None
    return label, node_timeline.draw_nodes(activity, name), node_timeline.node_shares(activity)


def _run_activity(problem: Problem, result: Result, delays: Delays) -> Activity | None:
    chosen = result.parameters
    if hasattr(chosen, "make_clock"):  # a law of events, which every rank has
        return law_activity(
            chosen, result.seed, result.schedule, delays, result.clock, result.iterations
        )
    if not problem.network.is_whole:
        return None
    setting = MethodSetting(result.rule, result.tau, result.clock, delays, result.seed)
    method = _method_again(problem, result.algorithm, setting, result.setup_time)
    return None if method is None else method_activity(method, result.iterations)


def _method_again(
    problem: Problem, name: str, setting: MethodSetting, setup_time: float
) -> Method | None:
    """The method as it ran; None if its set-up takes long, or no rule makes its parameters."""
    if setup_time > LONGEST_SETUP:
        return None
    try:
        return get_algorithm(name)(problem, setting)
    except AdfsError:
        return None


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
    labels, config = comparison.labels, comparison.config
    shown = [record for label in labels for record in comparison.runs(label)[:MOST_SEEDS]]
    most = convergence_chart.rows_per_run(len(shown))
    columns = [convergence_chart.columns_of(run.trace, problem.n_samples, most) for run in shown]
    curves = [
        PageCurve(run.label, found, run.seed) for run, found in zip(shown, columns, strict=True)
    ]
    chart = None
    if shown:
        longest = max(len(record.trace) for record in shown)
        chart = convergence_chart.make_chart(curves, axis, "suboptimality", config["tol"], longest)
    methods = {record.label: _contender_again(problem, comparison, record) for record in shown}
    activities = {
        label: None if method is None else method_activity(method, _longest(comparison, label))
        for label, method in methods.items()
    }
    return render(
        "compare.html",
        **_compare_header(comparison),
        heading=data or "A comparison",
        title=f"adfs: {len(labels)} algorithms on {data or problem.topology.name}",
        about=_about(problem),
        chart=chart,
        tables=[(AXES[name], _times(comparison, name)) for name in sorted(AXES, key=axis.__ne__)],
        notes=comparison.table(axis=axis).notes if shown else [],
        most_seeds=MOST_SEEDS if len(shown) < len(comparison.records) else 0,
        numbers=[
            (f"{each.label}, seed {each.seed}", convergence_chart.trace_table(each))
            for each in curves
        ],
        rates=_rates(comparison, curves, activities) if shown else None,
        schedules=[_timeline(label, each, label) for label, each in activities.items()],
        parameters=[
            (label, _parameters(comparison.runs(label)[0], methods[label])) for label in labels
        ],
        **_problem(problem, data),
        command=command,
        making_facts=_compare_facts(comparison) + machine_facts(),
    )


def _compare_header(comparison: Comparison) -> dict[str, Any]:
    config = comparison.config
    total = len(config["algorithms"]) * len(config["seeds"])
    finished = sum(record.status != "interrupted" for record in comparison.records)
    ending = f"{count(len(comparison.labels), 'algorithm')}, {count(total, 'run')}."
    if comparison.interrupted:
        ending = f"Interrupted with {finished} of {total} runs finished."
    return {
        "status": "interrupted" if comparison.interrupted else "",
        "ending": ending,
        "proof": "",
        "tiles": [
            (
                "optimum F*",
                number(comparison.optimum, 10),
                f"certified: relative gap {comparison.gap_text}",
            ),
            ("requested", number(config["tol"]), "suboptimality"),
            ("time model", f"τ = {number(config['tau'])}", config["clock"]),
            ("limit per run", number(comparison.clock_limit), "idealized time"),
        ],
    }


def _times(comparison: Comparison, axis: str) -> Table:
    found = comparison.table(axis=axis)
    headers = ("algorithm", *(number(accuracy) for accuracy in found.accuracies), "status")
    rows = [(row.label, *(cell.text for cell in row.cells), row.status) for row in found]
    title = AXES[axis][:1].upper() + AXES[axis][1:]
    return Table(f"{title}, until the suboptimality is", headers, rows)


def _longest(comparison: Comparison, label: str) -> int:
    return max(int(run.trace.last()["iteration"] or 0) for run in comparison.runs(label))


def _contender_again(problem: Problem, comparison: Comparison, run: RunRecord) -> Method | None:
    """The method of a run, of which the comparison keeps only the text of its parameters."""
    config = comparison.config
    delays = Delays(**config["delays"])
    setting = MethodSetting(run.rule, config["tau"], config["clock"], delays, run.seed)
    return _method_again(problem, run.algorithm, setting, run.setup_time)


def _rates(
    comparison: Comparison, curves: list[PageCurve], activities: dict[str, Activity | None]
) -> Table:
    rows = []
    for label, activity in activities.items():
        found = [rates.fit(c.columns, "suboptimality") for c in curves if c.label == label]
        idle = None if activity is None else node_timeline.mean_idle(activity)
        rows.append((comparison.runs(label)[0], [each for each in found if each], idle))
    return rates.rates_of_contenders(rows)


def _parameters(run: RunRecord, method: Method | None) -> dict[str, Any]:
    return parameter_facts(run.parameters if method is None else method.parameters, run.rule)


def _compare_facts(comparison: Comparison) -> list[tuple[str, str]]:
    config = comparison.config
    seeds = config["seeds"]
    return [
        ("seeds", f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])),
        ("runs at a time", str(config["jobs"])),
        ("runs taken from a folder", str(sum(record.reused for record in comparison.records))),
    ]

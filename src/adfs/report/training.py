"""`train_page`: the report of one run."""

from collections.abc import Mapping, Sequence
from typing import Any

import adfs
from adfs.algorithms.base import Setting, get_algorithm
from adfs.errors import AdfsError
from adfs.problems.finite_sum import Problem
from adfs.report import curves, parameters, theory, timeline
from adfs.report.activity import Activity, of_law, of_method
from adfs.report.graph import draw_graph
from adfs.report.making import making
from adfs.report.markup import Markup, join, tag
from adfs.report.page import Section, page, paragraph, tiles
from adfs.report.problem import describe as describe_problem
from adfs.report.words import count, number, percent, seconds
from adfs.runtime.execution import Execution
from adfs.runtime.solve import Result
from adfs.schedule.delays import Delays

PATIENCE = 3.0  # seconds of set-up that may be spent again for a timeline
STATUS = {
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
    """One HTML page about a run: self-contained, nothing is loaded from anywhere.

    Parameters
    ----------
    problem : Problem
        What was minimised.
    result : Result
        From `adfs.solve`, however the run ended.
    tol : float, optional
        The relative duality gap that was asked for.
    data, command : str
        Where the samples came from and the command line, as words of the page.
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
    >>> from adfs.report import train_page
    >>> X, y = adfs.generators.two_gaussians(200, 5, seed=0)
    >>> problem = adfs.Problem(adfs.partition(X, y, 4), sigma=0.1)
    >>> page = train_page(problem, adfs.solve(problem, tol=1e-6), tol=1e-6)
    >>> page.startswith("<!DOCTYPE html>")
    True
    """
    chosen = result.parameters
    activity = _activity(problem, result, delays or Delays(tau=result.tau))
    figure, columns, chart_data = _convergence(problem, result, tol)
    idle = None
    if activity is not None and ranks:
        idle = timeline.mean_idle(activity), timeline.waiting_share(ranks)
    beside = theory.of_run(result, columns, idle)
    graph = draw_graph(problem.topology, parameters.binding_place(chosen))
    described = describe_problem(problem, chosen, data)
    sections = [
        Section("convergence", "Convergence", figure),
        Section("theory", "Theory beside measurement", beside),
        Section("problem", "Problem and graph", join([described, graph])),
        Section("parameters", "Parameters", parameters.section(chosen, result.rule)),
        Section("schedule", "Schedule", _schedule(result, activity)),
    ]
    if ranks:
        measured = join([timeline.draw_ranks(ranks), timeline.rank_shares(ranks)])
        sections.append(Section("ranks", "Ranks, measured", measured))
    facts = [("seed", str(result.seed)), ("schedule", result.schedule),
             ("set-up", seconds(result.setup_time)), ("processes", _processes(ranks))]  # fmt: skip
    sections.append(Section("making", "How it was made", making(command, facts)))
    title = f"adfs: {result.algorithm} on {data or problem.topology.name}"
    header = _header(problem, result, tol, data, measures or {})
    return page(title, header, sections, {"chart": chart_data, "adfs": adfs.__version__})


def _processes(ranks: Sequence[Execution]) -> str:
    return f"{count(len(ranks), 'rank')} over MPI" if ranks else "one"


def _header(
    of: Problem, result: Result, tol: float | None, data: str, measures: Mapping[str, str]
) -> Markup:
    asked = "" if tol is None else f", asked for {number(tol)}"
    ended = f"{STATUS.get(result.status, result.status)}: "
    proof = f"relative duality gap {number(result.relative_gap, 3)}{asked}."
    last = result.trace.last()
    work = "sample gradients" if last["n_grad"] and not last["n_prox"] else "proximal steps"
    facts = [
        ("objective F(θ)", number(result.objective, 8), ""),
        ("duality gap", number(result.duality_gap, 3), "no model is better by more"),
        ("iterations", number(result.iterations),
         f"{number(last['n_prox'] or last['n_grad'])} {work}"),
        ("idealized time", number(result.idealized_time, 6),
         f"proximal steps, τ = {number(result.tau)}, {result.clock}"),
        ("wall time", seconds(result.wall_time), "without set-up and evaluation"),
        ("messages", number(last["n_comm"]), f"{number(last['bytes'])} bytes"),
    ]  # fmt: skip
    facts += [(name, value, "") for name, value in measures.items()]
    return join([
        tag("p", "adfs training report", class_="kicker"),
        tag("h1", data or "A run"),
        tag("p", tag("strong", ended, class_=f"status {result.status}"), proof, class_="lead"),
        tag("p", f"{result.algorithm} with {of.loss.name} loss on {of.topology.name}: "
            f"{count(of.n_samples, 'sample')}, {count(of.n_features, 'feature')}, "
            f"{count(of.n_nodes, 'node')}.", class_="lead"),
        tiles(facts),
    ])  # fmt: skip


def _convergence(
    of: Problem, result: Result, tol: float | None
) -> tuple[Markup, dict[str, list[Any]], dict[str, Any]]:
    length = len(result.trace)
    columns = curves.columns_of(result.trace, of.n_samples, curves.rows_for(1) // 10)
    run = curves.Curve(result.algorithm, columns, result.seed)
    shown = [run]
    proven = result.proven_rate
    if proven is not None:
        shown.append(curves.theory_curve(run, proven))
    kept = len(columns["iteration"])
    whole = length if kept < length else 0
    figure, data = curves.chart(shown, "iteration", "relative_gap", tol, whole)
    remarks = []
    if proven is not None:
        remarks.append(
            "The dotted line falls by 1 − ρ an iteration from the first gap on: it shows the slope "
            "that is proven, not the constant in front of it."
        )
    if length < 8:
        remarks.append(
            f"The trace has {count(length, 'row')}: the run was evaluated as rarely as its stop "
            "allows. --evaluate-every N makes a finer curve."
        )
    parts = [curves.legend(shown), figure, *map(paragraph, remarks), curves.trace_table(run)]
    return join(parts), columns, data


def _activity(of: Problem, result: Result, delays: Delays) -> Activity | None:
    chosen = result.parameters
    if hasattr(chosen, "make_clock"):  # a law of events, which is known on every rank
        return of_law(chosen, result.seed, result.schedule, delays, result.clock,
                      result.iterations)  # fmt: skip
    if not of.network.is_whole or result.setup_time > PATIENCE:
        return None
    try:
        setting = Setting(result.rule, result.tau, result.clock, delays, result.seed)
        return of_method(get_algorithm(result.algorithm)(of, setting), result.iterations)
    except AdfsError:  # parameters that no rule makes: the page goes without a timeline
        return None


def _schedule(result: Result, activity: Activity | None) -> Markup:
    if activity is None:
        return paragraph(
            f"No timeline: the schedule of {result.algorithm} was not followed again for this page."
        )
    mean = percent(timeline.mean_idle(activity))
    words = paragraph(f"Nodes are idle {mean} of the idealized time, in the mean.")
    return join([words, timeline.draw_nodes(activity), timeline.node_shares(activity)])

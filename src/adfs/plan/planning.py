"""Plans: predicted times of all methods on a problem or for given sizes, and a recommendation."""

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from adfs import checks
from adfs.algorithms import registered  # noqa: F401  (fills the registry)
from adfs.algorithms.base import MethodSetting
from adfs.algorithms.newton import MOST_FEATURES
from adfs.costs import Costs, agreed_costs
from adfs.errors import GraphError, ParameterError
from adfs.graphs.closed_forms import FamilyFacts, family_facts
from adfs.plan.pilot import refine
from adfs.plan.prediction import Prediction, predict_all, predict_likely, reason_against
from adfs.plan.sizes import Parts, Sizes
from adfs.plan.timing import with_seconds
from adfs.problem.finite_sum import Problem
from adfs.schedule.clock import CLOCKS
from adfs.schedule.delays import Delays

TAUS = (0.1, 1.0, 10.0, 100.0)
NODES = tuple(4**k for k in range(1, 11))  # numbers that are both square and powers of two
GRAPHS = ("ring", "star", "grid", "hypercube", "random_regular:k=4", "complete")
ADVICE = {
    "computing": "its nodes' computing; more nodes would help",
    "visits": "how often samples are visited; more nodes would help",
    "conditioning": "conditioning; more regularisation or scaled columns would help",
    "network": "the network; a smaller tau, a better graph or fewer nodes would help",
}

WAITING = "waiting for busy neighbours; a better graph or fewer nodes would help"  # tau = 0


class PlanPoint(NamedTuple):
    """Predicted idealized times of methods on a graph of ``n`` nodes at ``tau``."""

    graph: str
    n: int
    tau: float
    times: dict[str, float]

    def fastest(self, label: object) -> str:
        """A few words: the method that is fastest there, and its time."""
        best = min(self.times, key=self.times.__getitem__)
        return f"{label}: {best} {number(self.times[best])}"


@dataclass(frozen=True)
class Plan:
    """Predictions for a problem or for given sizes; ``str`` is a table and a recommendation.

    Attributes
    ----------
    predictions : list of Prediction
        Of all methods that take the problem, the fastest first.
    tol : float
    sizes : Sizes
        What the predictions depend on.
    graph : str
    refused : dict
        Methods that do not take the problem, and why.
    pilot_time : float
        Idealized time of pilot runs.
    over_nodes, over_tau, over_graphs : list of PlanPoint
        How times change with the number of nodes, for the same rows and regularisation in total,
        with ``tau``, and on other graphs.
    critical : dict
        Nodes at which the network takes as long as computing, for each method; None if that is
        outside 4 to 1,048,576.
    """

    predictions: list[Prediction]
    tol: float
    sizes: Sizes
    graph: str
    refused: dict[str, str] = field(default_factory=dict)
    pilot_time: float = 0.0
    over_nodes: list[PlanPoint] = field(default_factory=list)
    over_tau: list[PlanPoint] = field(default_factory=list)
    over_graphs: list[PlanPoint] = field(default_factory=list)
    critical: dict[str, float | None] = field(default_factory=dict)

    @property
    def best(self) -> Prediction:
        """The method that is predicted to be the fastest."""
        return self.predictions[0]

    @property
    def recommendation(self) -> str:
        """Which method, how much faster than the next one, and what limits it."""
        best = self.best
        text = f"{best.algorithm} is expected to be the fastest: {number(best.idealized_time)}"
        if len(self.predictions) > 1:
            second = self.predictions[1]
            ratio = second.idealized_time / best.idealized_time
            times = f"{ratio:.2g} times" if f"{ratio:.2g}" != "1" else "about"
            text += f", {second.algorithm} takes {times} as long"
        advice = ADVICE[best.limit]
        if best.limit == "network" and self.sizes.tau == 0.0:
            advice = WAITING
        return f"{text}. It is limited by {advice}."

    def to_dict(self) -> dict[str, Any]:
        """All numbers as plain values, for JSON."""
        return {
            "algorithm": self.best.algorithm,
            "recommendation": self.recommendation,
            "tol": self.tol,
            "graph": self.graph,
            "pilot_time": self.pilot_time,
            "sizes": self.sizes._asdict(),
            "predictions": [each._asdict() for each in self.predictions],
            "refused": self.refused,
            "critical_nodes": self.critical,
            "over_nodes": [each._asdict() for each in self.over_nodes],
            "over_tau": [each._asdict() for each in self.over_tau],
            "over_graphs": [each._asdict() for each in self.over_graphs],
        }

    def __str__(self) -> str:
        rows = [HEADERS, *table_rows(self)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if k in LEFT else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, "", self.recommendation, *self.outlook()])

    def outlook(self) -> list[str]:
        """Which method is fastest with other nodes, other ``tau`` and other graphs; a line each."""
        taus = self.over_tau if self.sizes.n > 1 else []  # one node waits for nobody
        lines = (
            ("nodes", [point.fastest(f"{point.n:,}") for point in self.over_nodes]),
            ("tau", [point.fastest(f"{point.tau:g}") for point in taus]),
            ("graphs", [point.fastest(point.graph) for point in self.over_graphs]),
        )
        return [f"other {name:6}  {'; '.join(parts)}" for name, parts in lines if parts]

    def plot(self, axes: Any = None) -> Any:
        """Draw times against the number of nodes and against ``tau``; the matplotlib axes."""
        module = importlib.import_module("adfs.study.plots.plan_plot")
        return module.draw_plan(self, axes)


HEADERS = (
    "algorithm", "idealized time", "seconds", "iterations", "messages", "bytes", "limited by",
    "critical n", "from",
)  # fmt: skip
LEFT = (0, 6, 8)


def number(value: float | None) -> str:
    """Three digits, with commas; ``-`` for what is not known."""
    if value is None or math.isnan(value):
        return "-"
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if rounded >= 100.0 else f"{rounded:g}"


def table_rows(plan: Plan) -> list[tuple[str, ...]]:
    """Cells below `HEADERS`, one row per method."""
    return [
        (
            each.algorithm, number(each.idealized_time), number(each.seconds),
            number(each.iterations), number(each.n_comm), number(each.bytes), each.limit,
            number(plan.critical.get(each.algorithm)), each.basis,
        )
        for each in plan.predictions
    ]  # fmt: skip


def plan(
    problem: Problem,
    tau: float = 5.0,
    tol: float = 1e-6,
    clock: str = "nonblocking",
    delays: Delays | None = None,
    seed: int = 0,
    algorithms: Sequence[str] | None = None,
    pilot: bool = True,
    costs: str | Costs = "paper",
    ranks: int | None = None,
    time_steps: bool = False,
) -> Plan:
    """Predict what every method takes on a problem, and recommend one.

    No run is timed, unless ``time_steps`` says so, and then for the column of seconds only: the
    same problem and costs give the same recommendation. ``adfs`` and ``ns-adfs`` are
    predicted with the draws that ``auto`` and ``best`` use (docs/algorithms/stratified.md).

    Parameters
    ----------
    problem : Problem
    tau, clock, delays
        The time model, as for `adfs.solve`.
    tol : float
        Relative duality gap of the runs that are predicted.
    seed : int
        Of the schedules over which clocks are run.
    algorithms : sequence of str, optional
        Only these; by default all that take the problem.
    pilot : bool
        Whether to run methods without a theorem (Newton, L-BFGS) on a part of the rows, where that
        takes at most 5 % of the predicted time.
    costs : {"paper", "measured"} or Costs
        What elementary steps take, as for `adfs.solve`. Seconds are predicted where they are known:
        with ``measured``, or with ``adfs.Costs(seconds=...)``. They leave out what caches and
        messages cost on a certain machine.
    ranks : int, optional
        Processes for which seconds are predicted, each with a core of its own; by default one per
        node, or those over which the problem is spread.
    time_steps : bool
        Whether to predict seconds from a few steps of every method on these rows and these ranks.

    Examples
    --------
    >>> import adfs
    >>> X, y = adfs.generators.two_gaussians(400, 5, seed=0)
    >>> problem = adfs.Problem(adfs.partition(X, y, 4), sigma=0.1)
    >>> adfs.plan(problem, tau=5.0).best.algorithm
    'newton'
    """
    checks.positive("tol", tol, "try 1e-6")
    checks.choice("clock", clock, CLOCKS)
    setting = MethodSetting("tuned", tau, clock, delays or Delays(tau=tau), seed, "auto")
    setting = setting._replace(costs=agreed_costs(problem.network.peers, costs))
    if ranks is not None:
        checks.whole("ranks", ranks, 1)
    names = None if algorithms is None else list(algorithms)
    found = plan_with(problem, setting, tol, names, pilot, ranks)
    if not time_steps:
        return found
    return replace(found, predictions=with_seconds(problem, setting, found.predictions, tol))


def plan_with(
    problem: Problem, setting: MethodSetting, tol: float, names: list[str] | None = None,
    pilot: bool = True, ranks: int | None = None,
) -> Plan:  # fmt: skip
    """The plan for a method's settings; with ranks, all call it."""
    found, refused = predict_all(problem, setting, tol, names, ranks)
    plan = _planned(problem, setting, tol, found, refused, pilot)
    curves = Curves(plan.sizes, tol, plan.predictions, plan.graph.partition(":")[0])
    return replace(plan, **curves.all())


def plan_choice(problem: Problem, setting: MethodSetting, tol: float) -> Plan:
    """A plan for choosing a method and no more: without other networks and unlikely methods."""
    return _planned(problem, setting, tol, *predict_likely(problem, setting, tol), pilot=True)


def _planned(
    problem: Problem, setting: MethodSetting, tol: float, found: list[Prediction],
    refused: dict[str, str], pilot: bool,
) -> Plan:  # fmt: skip
    if not found:
        raise ParameterError(next(iter(refused.values()), "There is no algorithm to plan with."))
    found, spent = refine(problem, setting, tol, found) if pilot else (found, 0.0)
    sizes = Sizes.of(problem, setting.tau, setting.costs)
    return Plan(found, tol, sizes, problem.topology.name, refused, spent)


class Curves:
    """How predicted times change with the network, by the formulas of `Sizes`.

    The parts of each time, computing and network, are scaled so that they agree with the
    prediction for the network that is there.
    """

    def __init__(self, sizes: Sizes, tol: float, found: Sequence[Prediction], graph: str) -> None:
        self.sizes, self.tol, self.graph = sizes, tol, graph
        here = sizes.runs(tol)
        self.scales = {
            each.algorithm: _scales(each, here[each.algorithm])
            for each in found
            if each.algorithm in here
        }

    def parts(self, sizes: Sizes) -> dict[str, Parts]:
        runs = sizes.runs(self.tol)
        return {
            name: Parts(c * runs[name].computing, w * runs[name].network, runs[name].vectors)
            for name, (c, w) in self.scales.items()
        }

    def moved(self, facts: FamilyFacts) -> Sizes:
        """The sizes on another graph, with the same rows and regularisation in total."""
        n, sizes = facts.n_nodes, self.sizes
        return sizes._replace(
            n=n, m=sizes.n * sizes.m / n, gamma=facts.gamma, n_edges=facts.n_edges,
            diameter=facts.diameter,
        )  # fmt: skip

    def all(self) -> dict[str, Any]:
        """What a `Plan` says about other networks; nothing where no method has a formula."""
        here = self.sizes.n
        if not self.scales:
            return {}
        return {
            "over_nodes": [self._point(self.graph, facts) for facts in self._sizes_of_graph()],
            "over_tau": [self._at(self.graph, self.sizes._replace(tau=tau)) for tau in TAUS],
            "over_graphs": [
                self._point(graph, facts)
                for graph in GRAPHS
                if here > 1 and (facts := _facts(graph, here)) is not None
            ],
            "critical": self.critical(),
        }

    def _point(self, graph: str, facts: FamilyFacts) -> PlanPoint:
        return self._at(graph, self.moved(facts))

    def _at(self, graph: str, sizes: Sizes) -> PlanPoint:
        times = {name: each.time for name, each in self.parts(sizes).items()}
        return PlanPoint(graph, sizes.n, sizes.tau, times)

    def critical(self) -> dict[str, float | None]:
        """Nodes at which the network takes as long as computing, interpolated."""
        found: dict[str, float | None] = dict.fromkeys(self.scales)
        before: dict[str, float] = {}
        for facts in self._sizes_of_graph():
            for name, parts in self.parts(self.moved(facts)).items():
                ratio = math.log(max(parts.network, 1e-300) / parts.computing)
                if found[name] is None and name in before and before[name] < 0.0 <= ratio:
                    share = ratio / (ratio - before[name])
                    found[name] = facts.n_nodes * 4.0**-share
                before[name] = ratio
        return found

    def _sizes_of_graph(self) -> list[FamilyFacts]:
        """The graph with other numbers of nodes, at most one node per row."""
        n_rows = self.sizes.n * self.sizes.m
        found = [_facts(self.graph, n) for n in NODES if n <= n_rows]
        return [facts for facts in found if facts is not None]


def _facts(graph: str, n: int) -> FamilyFacts | None:
    """Facts of a family of graphs, None where it has no such size or no closed form."""
    try:
        return family_facts(graph, n)
    except GraphError:
        return None


def _scales(each: Prediction, parts: Parts) -> tuple[float, float]:
    """By what to multiply the parts; one that is not there now keeps the scale of the other."""
    computing = each.computing / parts.computing
    waiting = each.idealized_time - each.computing
    if parts.network <= 0.0 or waiting <= 0.0:
        return computing, computing
    return computing, waiting / parts.network


def plan_sizes(
    n_samples: int, n_features: int, kappa: float, graphs: Sequence[str], nodes: Sequence[int],
    tau: float = 5.0, tol: float = 1e-6, costs: str | Costs = "paper",
) -> list[Plan]:  # fmt: skip
    """Plans without data, one per graph and number of nodes.

    ``kappa`` is the condition number of the whole problem, ``1 + L / sigma`` with the smoothness of
    the sum of all losses; each node's part of it is taken to have the same one.

    Examples
    --------
    >>> [one] = plan_sizes(10_000_000, 1000, 1e5, ["hypercube"], [1024], tau=20.0)
    >>> one.best.algorithm
    'adfs'
    """
    found, each_step = [], Costs.read(costs).of_dense(n_features)
    prices, seconds = each_step.largest(), float(each_step.seconds[0])
    for graph in graphs:
        for n in nodes:
            facts = family_facts(graph, n)
            sizes = Sizes(
                n, n_samples / n, tau, kappa, kappa, facts.gamma, facts.n_edges, facts.diameter,
                n_features, **prices,
            )  # fmt: skip
            found.append(_plan_of(sizes, tol, graph, seconds))
    return found


def _plan_of(sizes: Sizes, tol: float, graph: str, seconds: float) -> Plan:
    every = [
        _from_parts(name, parts, sizes, seconds)
        for name, parts in sizes.runs(tol).items()
        if reason_against(name, sizes.n) is None
        if sizes.n_features <= MOST_FEATURES or name != "newton"
    ]
    every.sort(key=lambda each: each.idealized_time)
    curves = Curves(sizes, tol, every, graph)
    return Plan(every, tol, sizes, f"{graph}:{sizes.n}", **curves.all())


def _from_parts(name: str, parts: Parts, sizes: Sizes, seconds: float) -> Prediction:
    n_comm = sizes.n_messages(name, parts.vectors)
    limit = "network" if parts.computing < parts.network else "computing"
    work = parts.computing * sizes.n
    return Prediction(
        name, math.nan, parts.time, parts.computing, work, n_comm,
        8.0 * sizes.n_features * n_comm, limit, "sizes",
        None if math.isnan(seconds) else seconds * parts.time,
    )  # fmt: skip

"""`regularization_path`: models for a grid of C, and the best one by cross-validation.

``C`` is scikit-learn's: the regularisation of all nodes together is ``1 / (2 C) |theta|^2``, so
``sigma_i = 1 / (n C)``. The grid is solved from strong to weak regularisation, and each run starts
from the duals of the one before it. The rows are in memory once: a fold is left out by weights 0.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adfs.agreement import attempt, require_same
from adfs.algorithms.base import MethodSetting
from adfs.checks import positive, whole
from adfs.display import data_frame, html_table, plot_function
from adfs.engine.interrupts import Interrupts
from adfs.engine.progress import named, run_display
from adfs.engine.stopping import Stopping
from adfs.errors import ParameterError
from adfs.model import Model, worst
from adfs.problem.finite_sum import Problem
from adfs.quality import Quality, quality_of_rows
from adfs.randomness import generator
from adfs.run import Result, RunOptions, automatic
from adfs.schedule.delays import Delays
from adfs.solver import run_named as run

DEFAULT_RANGE = (-4.0, 4.0)  # powers of ten, as in scikit-learn
RMSE = "root_mean_squared_error"
STATUSES = ("interrupted", "diverged", "time_limit", "max_iter", "converged")  # the worst first
Vector = NDArray[np.float64]


class PathPoint(NamedTuple):
    """The model of one C on all rows.

    With several classes ``objective`` and ``iterations`` are sums over the classes, and
    ``relative_gap`` is the largest. ``status`` is the worst one of all runs at this C, those
    without a fold included. ``train`` has measures on all rows; ``folds`` has one entry per fold,
    with measures on its rows of the model without them.
    """

    C: float
    model: Model
    objective: float
    relative_gap: float
    iterations: int
    status: str
    train: Quality
    folds: tuple[Quality, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class RegularizationPath:
    """Models for a grid of C, from strong to weak regularisation.

    Attributes
    ----------
    points : tuple of PathPoint
        One per C, with its ``model``, ``objective``, ``relative_gap``, ``iterations``, ``status``,
        measures on the training data and on the folds.
    cv : int or None
        Number of folds, if cross-validation was asked for and is complete.
    measure : str
        What decides: ``log_loss``, or ``accuracy`` for classes without probabilities, or
        ``root_mean_squared_error``.
    """

    points: tuple[PathPoint, ...]
    cv: int | None
    measure: str
    signal: int | None = None

    @property
    def C(self) -> Vector:
        """The grid, ascending."""
        return np.array([point.C for point in self.points])

    @property
    def coef(self) -> Vector:
        """Coefficients in the units of the data, one row (or matrix, with classes) per C."""
        return np.stack([point.model.coef for point in self.points])

    @property
    def status(self) -> str:
        """The worst status of all runs."""
        return min((point.status for point in self.points), key=STATUSES.index)

    @property
    def measures(self) -> list[str]:
        """Names of what is computed on the folds."""
        return ["log_loss", "accuracy"] if self.measure == "log_loss" else [self.measure]

    def scores(self, measure: str | None = None) -> Vector:
        """A measure on every fold, of shape (number of C, number of folds)."""
        name = measure or self.measure
        found = [[fold[name] for fold in point.folds] for point in self.points]
        return np.array([[math.inf if x is None else x for x in row] for row in found])

    def mean(self, measure: str | None = None) -> Vector:
        """Mean of a measure over the folds, one per C."""
        return np.asarray(self.scores(measure).mean(axis=1))

    def standard_error(self, measure: str | None = None) -> Vector:
        """Standard error of that mean."""
        scores = self.scores(measure)
        with np.errstate(invalid="ignore"):
            return np.asarray(scores.std(axis=1, ddof=1) / math.sqrt(scores.shape[1]))

    @property
    def best(self) -> int | None:
        """Number of the point with the best mean; of equal ones, the most regularised."""
        if self.cv is None:
            return None
        sign = -1.0 if self.measure == "accuracy" else 1.0
        return int(np.argmin(sign * self.mean()))

    @property
    def best_C(self) -> float | None:
        """The C with the best mean over the folds; None without cross-validation."""
        return None if self.best is None else self.points[self.best].C

    @property
    def model(self) -> Model:
        """The model of the best C, trained on all rows; of the last C without cross-validation."""
        return self.points[-1 if self.best is None else self.best].model

    def table(self) -> dict[str, list[Any]]:
        """One entry per C under each column."""
        names = ("C", "objective", "relative_gap", "iterations", "status")
        found = {name: [getattr(point, name) for point in self.points] for name in names}
        for name in self.measures:
            found[f"train_{name}"] = [point.train[name] for point in self.points]
        if self.cv is not None:
            for name in self.measures:
                found[f"cv_{name}"] = self.mean(name).tolist()
                found[f"cv_{name}_se"] = self.standard_error(name).tolist()
            found["best"] = [k == self.best for k in range(len(self.points))]
        return found

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame."""
        return data_frame(self.table())

    def plot(self, axes: Any = None) -> Any:
        """Draw the measures and the coefficients against C; the two matplotlib axes."""
        return plot_function("path_plot", "draw_path")(self, axes)

    def _repr_html_(self) -> str:
        table = self.table()
        rows = [
            [f"{v:.6g}" if isinstance(v, float) else v for v in row]
            for row in zip(*table.values(), strict=True)
        ]
        return html_table(rows, repr(self), list(table))

    def __repr__(self) -> str:
        grid = f"{len(self.points)} values of C from {self.C[0]:.3g} to {self.C[-1]:.3g}"
        best = "" if self.best_C is None else f", best C={self.best_C:.3g}"
        return f"RegularizationPath({self.status}, {grid}{best})"


def regularization_path(
    problem: Problem,
    Cs: int | ArrayLike = 10,
    algorithm: str = "auto",
    tol: float = 1e-6,
    max_iter: int | None = None,
    tau: float = 5.0,
    clock: str = "nonblocking",
    parameters: str = "tuned",
    seed: int = 0,
    cv: int | None = None,
    progress: bool | None = None,
    schedule: str = "auto",
    timeout: float = 60.0,
) -> RegularizationPath:
    """Minimise the problem for each C of a grid, and find the best C by cross-validation.

    The problem's own ``sigma`` does not matter. With ``engine="mpi"`` all ranks call it, and have
    the same result with the bits of one process.

    Parameters
    ----------
    problem : Problem
    Cs : int or sequence of float
        Values of scikit-learn's C, for any number of nodes; a number of them stands for a
        geometric grid from 1e-4 to 1e4.
    cv : int, optional
        Number of folds. Every node deals its own rows to the folds, classes evenly, from the seed
        alone; so folds are the same on any number of ranks, and no row moves. Measures count every
        row once, whatever its weight.
    algorithm, tol, max_iter, tau, clock, parameters, seed, progress, schedule, timeout
        As for `adfs.solve`; limits are those of one run. There are ``(cv + 1)`` runs per C.

    Examples
    --------
    >>> import adfs
    >>> X, y = adfs.generators.two_gaussians(200, 5, seed=0)
    >>> problem = adfs.Problem(adfs.partition(X, y, 4))
    >>> path = adfs.regularization_path(problem, [0.01, 0.1, 1.0, 10.0], cv=5)
    >>> path
    RegularizationPath(converged, 4 values of C from 0.01 to 10, best C=1)
    >>> path.scores("accuracy").shape, path.model.coef.shape
    ((4, 5), (5,))
    """
    peers = problem.network.peers
    peers.timeout = None

    def checked() -> tuple[Vector, MethodSetting, Stopping]:
        setting = MethodSetting(parameters, tau, clock, Delays(tau=tau), seed, schedule)
        return grid_of(Cs), setting, Stopping(tol, max_iter)

    grid, setting, stopping = attempt(peers, checked)
    wanted = progress if peers.rank == 0 else False
    with Interrupts() as interrupts:
        return follow(
            samples_of(problem), grid, cv, algorithm, setting, stopping,
            RunOptions(timeout=timeout), interrupts, wanted,
        )  # fmt: skip


def grid_of(Cs: Any) -> Vector:
    """The values in ascending order, each once.

    Examples
    --------
    >>> grid_of(3).tolist(), grid_of([2, 1, 2]).tolist()
    ([0.0001, 1.0, 10000.0], [1.0, 2.0])
    """
    if np.ndim(Cs) == 0:
        return np.logspace(*DEFAULT_RANGE, whole("Cs", Cs, 1, hint="or give a list of values"))
    values = [positive("C", C, "try 1") for C in np.asarray(Cs).ravel().tolist()]
    if not values:
        raise ParameterError("Cs=[] must have at least one value; try Cs=10.")
    return np.unique(values)


class PathSamples(NamedTuple):
    """Samples for which a path is computed.

    ``problem_of`` makes the problem of one class against the others, if there are more than two,
    or the only one. ``labels`` has those of the rows here as the data had them, and ``to_model``
    makes a model of the results of all classes.
    """

    problem_of: Callable[[int], Problem]
    n_problems: int
    labels: NDArray[Any]
    to_model: Callable[[Sequence[Result], Problem], Model]


def samples_of(problem: Problem) -> PathSamples:
    labels: NDArray[Any] = problem.labels
    if problem.classes is not None:
        labels = problem.classes[(labels > 0).astype(int)]
    return PathSamples(lambda number: problem, 1, labels, Model.from_result)


def follow(
    samples: PathSamples, Cs: Vector, cv: int | None, algorithm: str, setting: MethodSetting,
    stopping: Stopping, options: RunOptions, interrupts: Interrupts, progress: bool | None = None,
) -> RegularizationPath:  # fmt: skip
    """Solve for all C on all rows, then without each fold; called on all ranks.

    After a signal it ends with what there is.
    """
    problem = samples.problem_of(0)
    network, measure = problem.network, _measure_of(problem)
    require_same(network.peers, {"Cs": Cs, "cv": cv})
    fold_of = deal_folds(problem, samples.labels, cv, setting.seed)
    n_runs = len(Cs) * (1 + (cv or 0)) * samples.n_problems
    points: list[PathPoint] = []
    with run_display(progress, n_runs, has_bars=network.is_whole) as watcher:
        runs = PathRuns(samples, algorithm, setting, stopping, options, interrupts, watcher)
        for C, results in runs.along(Cs):
            points.append(runs.point(C, results))
        for fold in range(cv or 0):
            mine = fold_of == fold
            along = runs.along(Cs[: len(points)], ~mine, f", fold {fold + 1} of {cv}")
            for k, (_, results) in enumerate(along):
                points[k] = runs.with_fold(points[k], results, mine)
    is_complete = not runs.is_over and len(points) == len(Cs)
    return RegularizationPath(tuple(points), cv if is_complete else None, measure, runs.signal)


def _status_of(results: Sequence[Result]) -> str:
    return min((each.status for each in results), key=STATUSES.index)


def _measure_of(problem: Problem) -> str:
    if not problem.loss.binary:
        return RMSE
    return "log_loss" if problem.loss.name == "logistic" else "accuracy"


def deal_folds(
    problem: Problem, labels: NDArray[Any], cv: int | None, seed: int
) -> NDArray[np.int64]:
    """The fold of each row here; every node deals its own rows, classes one after another."""
    if cv is None:
        return np.zeros(problem.n_rows, np.int64)
    network = problem.network
    too_many = (
        f"cv={cv} folds of {problem.n_samples} rows on {problem.n_nodes} nodes leave a fold "
        "without rows; lower it."
    )
    attempt(network.peers, lambda: whole("cv", cv, 2, hint="or leave it out"))
    if cv > problem.n_samples:
        raise ParameterError(too_many)
    found, counts = np.empty(problem.n_rows, np.int64), []
    for node in problem.nodes.tolist():
        part = problem.node_rows(node)
        order = generator(seed, f"folds/{node}").permutation(part.stop - part.start)
        if problem.loss.binary:
            order = order[np.argsort(labels[part][order], kind="stable")]
        found[part.start + order] = (node + np.arange(len(order))) % cv
        counts.append(np.bincount(found[part], minlength=cv).astype(np.float64))
    if not network.sum_rows(counts, cv).all():
        raise ParameterError(too_many)
    return found


class PathRuns:
    """The runs of a path, one after another."""

    def __init__(
        self, samples: PathSamples, algorithm: str, setting: MethodSetting, stopping: Stopping,
        options: RunOptions, interrupts: Interrupts, watcher: Any,
    ) -> None:  # fmt: skip
        self.samples, self.algorithm, self.setting = samples, algorithm, setting
        self.stopping, self.options, self.interrupts = stopping, options, interrupts
        self.watcher = watcher
        self.is_over = False
        self.signal: int | None = None

    def along(
        self, Cs: Vector, kept: NDArray[np.bool_] | None = None, where: str = ""
    ) -> Iterator[tuple[float, list[Result]]]:
        """Each C and its results, one per class; ``kept`` are the rows to train on."""
        starts: list[Any] = [None] * self.samples.n_problems
        for C in Cs.tolist():
            if self.is_over:
                return
            results = self._solve(C, kept, starts, f"C={C:.3g}{where}")
            starts = [None if each.status == "diverged" else each for each in results]
            yield C, results

    def _solve(self, C: float, kept: Any, starts: list[Any], label: str) -> list[Result]:
        results: list[Result] = []
        self.problem = self._problem(0, kept)
        self.problem = self.problem.with_sigma(1.0 / (self.problem.n_nodes * C))
        for number, start in enumerate(starts):
            problem, setting = self.problem, self.setting
            if kept is not None and setting.rule == "tuned" and self._is_adfs:
                # Choosing tuned parameters would take longer than most runs without a fold.
                setting = setting._replace(rule="exact")
            if number > 0:
                one = self._problem(number, kept)
                problem = problem.with_targets(one.labels, one.weights)
                # Problems that differ in their labels only have the same parameters.
                last = results[-1].parameters
                if hasattr(last, "belongs_to") and last.belongs_to(problem):
                    setting = setting._replace(rule=last)
            name = label if len(starts) == 1 else f"{label}, class {number + 1} of {len(starts)}"
            results.append(self._run(problem, setting, start, name))
        return results

    @property
    def _is_adfs(self) -> bool:
        return (automatic(self.problem) if self.algorithm == "auto" else self.algorithm) == "adfs"

    def _problem(self, number: int, kept: Any) -> Problem:
        problem = self.samples.problem_of(number)
        if kept is None:
            return problem
        return problem.with_targets(problem.labels, np.where(kept, problem.weights, 0.0))

    def _run(self, problem: Problem, setting: MethodSetting, start: Any, name: str) -> Result:
        stopping, seed = self.stopping, self.setting.seed
        if self.is_over:  # the other classes stay at their start
            stopping = Stopping(stopping.tol, max_iter=0)
        watcher = named(self.watcher, name, seed)
        options = self.options._replace(warm_start=start, watcher=watcher)
        result = run(problem, self.algorithm, setting, stopping, options, self.interrupts)
        if self.watcher is not None:
            self.watcher.finish((name, seed))
        if result.status == "interrupted":
            self.is_over, self.signal = True, result.signal
        return result

    def point(self, C: float, results: list[Result]) -> PathPoint:
        model = self.samples.to_model(results, self.problem)
        train = self._quality(model, results)
        return PathPoint(
            C, model, sum(each.objective for each in results), worst(results).relative_gap,
            sum(each.iterations for each in results), _status_of(results), train,
        )  # fmt: skip

    def with_fold(self, point: PathPoint, results: list[Result], chosen: Any) -> PathPoint:
        found = self._quality(point.model, results, chosen)
        status = min(point.status, _status_of(results), key=STATUSES.index)
        return point._replace(status=status, folds=(*point.folds, found))

    def _quality(self, model: Model, results: list[Result], chosen: Any = None) -> Quality:
        return quality_of_rows(model, self.problem, results, self.samples.labels, chosen)

"""What elementary steps take on this machine: `adfs.Costs` from measured times.

Every step is timed with the code that runs use, on logistic regression with one node: a proximal
step is the mean local update of ADFS on a run from zero to a relative gap of 1e-6, because warm
starts make updates cheaper along a run. Processor time of one thread, the least of several turns in
which the steps take turns: a neighbour on the machine only ever adds to it. The times are fitted as
functions of a row's size by least squares of relative errors.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import nnls

from adfs.algorithms.adfs import Adfs
from adfs.algorithms.katyusha import make_batches
from adfs.costs import Costs, Price, Vector
from adfs.kernels import certificate, katyusha
from adfs.problem.certificate import certify
from adfs.problem.finite_sum import Problem
from adfs.problem.optimum import add_outer_products
from adfs.randomness import generator
from adfs.schedule.sampling_law import Drawer
from adfs.theory.parameters import Parameters
from adfs.threads import one_blas_thread

GAP = 1e-6
TURNS = 4
LEAST = 0.01  # of the shortest proximal step that was measured, at an empty row
# Gradients of a sample in a dual gradient: medians of benchmarks/costs.py, of five settings (1.8 to
# 5.2) and of two on text (55 and 68).
DUAL_PASSES = {"dual_gradient": 3.5, "iterative_dual_gradient": 61.0}


class StepShape(NamedTuple):
    """A problem to time: its rows, features, and non-zeros per row if they are sparse."""

    n_rows: int
    n_features: int
    n_nonzeros: int | None = None


SHAPES = (
    StepShape(10_000, 4), StepShape(10_000, 28), StepShape(5_000, 120), StepShape(1_500, 500),
    StepShape(10_000, 300, 5), StepShape(10_000, 300, 30), StepShape(5_000, 1_000, 100),
)  # fmt: skip
MATRICES = (10, 30, 100, 300)  # features of factorisations


def make_problem(shape: StepShape) -> Problem:
    """Logistic regression on one node, rows of norm about 1."""
    random = generator(0, "calibration")
    n, d, k = shape
    if k is None:
        X: Any = random.standard_normal((n, d)) / np.sqrt(d)
    else:
        X = sp.random(n, d, k / d, format="csr", random_state=random)
        X.data /= np.sqrt(k / 3.0)
    scores = X @ random.standard_normal(d)
    return Problem([(X, np.where(scores + random.logistic(size=n) > 0.0, 1, -1))])


class StepTimes(NamedTuple):
    """Seconds of one sample's steps, at rows of ``size`` features that make ``pairs`` pairs."""

    size: float
    pairs: float
    prox: float
    gradient: float
    sampled_gradient: float
    product: float
    hessian: float


class TimedSteps:
    """The steps of one problem; each method runs one of them, and returns seconds per sample."""

    def __init__(self, shape: StepShape) -> None:
        problem = self.problem = make_problem(shape)
        parameters = Parameters.choose(problem, "exact")
        self.adfs, self.drawer = Adfs(problem, parameters), Drawer(parameters, 0)
        d, n = problem.n_features, problem.n_rows
        self.theta = generator(0, "calibration theta").standard_normal(d) / np.sqrt(d)
        self.bends, self.total = np.full(n, 0.2), np.zeros((d, d))
        self.stack = np.empty((problem.network.n_levels, d + 1))
        self.batches = make_batches(problem, n, 0, "calibration")
        self.samples = katyusha.AllSamples(
            problem.loss.code, problem.labels, problem.weights, 1.0 / n
        )
        vectors = [self.theta, *np.zeros((4, d)), np.zeros(n), *np.zeros((2, d)), np.zeros(1)]
        self.vectors = katyusha.Vectors(*vectors)

    def prox(self) -> float:
        """Over a whole run; draws and evaluations are not counted."""
        problem, state, spent = self.problem, self.adfs.init(), 0.0
        while True:
            events = self.drawer.draw(state.t, state.t + problem.n_rows)
            spent += seconds(self.adfs.step, state, events)
            theta, duals = self.adfs.output(state)[0], self.adfs.duals(state, 0)
            if certify(problem, theta, duals).relative_gap <= GAP:
                return spent / state.t

    def gradient(self) -> float:
        offsets, links = self.problem.offsets, self.problem.network.links
        place = (offsets, self.theta, links, self.stack)
        return self._per_row(certificate.objective_gradients, *self.problem.samples, *place)

    def sampled_gradient(self) -> float:
        batch = (self.problem.rows, self.samples, self.batches, self.vectors)
        return self._per_row(katyusha.estimate_gradient, 0, *batch)

    def product(self) -> float:
        problem = self.problem
        place = (problem.offsets, self.theta, problem.network.links, self.stack)
        return self._per_row(certificate.hessian_products, problem.rows, self.bends, *place)

    def hessian(self) -> float:
        rows = slice(0, self.problem.n_rows)
        return self._per_row(add_outer_products, self.problem, self.bends, rows, self.total)

    def _per_row(self, work: Callable[..., Any], *arguments: Any) -> float:
        return seconds(work, *arguments) / self.problem.n_rows

    def turn(self) -> list[float]:
        """Seconds of all steps, in the order of `StepTimes`."""
        return [float(getattr(self, name)()) for name in StepTimes._fields[2:]]


def seconds(work: Callable[..., Any], *arguments: Any) -> float:
    """Processor time of a call in this thread."""
    start = time.thread_time()
    work(*arguments)
    return time.thread_time() - start


def times_of(shapes: Sequence[StepShape], turns: int) -> list[StepTimes]:
    """The least times of each shape over some turns, after one that loads the kernels."""
    every = [TimedSteps(shape) for shape in shapes]
    with one_blas_thread():
        for steps in every:
            steps.turn()
        found = np.array([[steps.turn() for steps in every] for _ in range(turns)]).min(axis=0)
    sizes = [steps.problem.row_sizes for steps in every]
    return [
        StepTimes(float(size[0]), float(pairs[0]), *row.tolist())
        for (size, pairs), row in zip(sizes, found, strict=True)
    ]


def factorisation_seconds(turns: int) -> Vector:
    """Of a Cholesky factorisation and one solution, for each of `MATRICES`."""
    found = []
    with one_blas_thread():
        for d in MATRICES:
            matrix, right = np.eye(d) + 0.1 / d, np.ones(d)
            found.append(min(seconds(_solve, matrix, right) for _ in range(turns)))
    return np.array(found)


def _solve(matrix: NDArray[np.float64], right: Vector) -> None:
    cho_solve(cho_factor(matrix, lower=True), right)


def fit(columns: Any, values: Any) -> Vector:
    """Coefficients >= 0 of least squares of relative errors."""
    relative = np.column_stack(columns) / np.asarray(values)[:, None]
    return np.asarray(nnls(relative, np.ones(len(relative)))[0])


def prices(times: Sequence[StepTimes]) -> dict[str, tuple[float, ...]]:
    """``(a, b, c, e)`` of each step at rows of one kind; ``seconds`` are of a proximal step."""
    size, pairs, prox, *others = np.array(times).T
    ones = np.ones(len(size))
    constant, slope = fit([ones, size], prox)
    constant = max(constant, LEAST * float(prox.min()))  # zero where neighbours disturb too much
    e = slope / constant
    found = {"seconds": (constant, slope, 0.0, 0.0)}
    for name, each in zip(StepTimes._fields[3:], others, strict=True):
        columns = [ones, size, pairs] if name == "hessian" else [ones, size]
        a, b, *c = fit([column / (1.0 + e * size) for column in columns], each / prox)
        found[name] = (a, b, *(c or [0.0]), e)
    return {name: tuple(map(float, each)) for name, each in found.items()}


def measure() -> Costs:
    """What the steps take, in two or three seconds once their kernels are compiled."""
    times, matrices = times_of(SHAPES, TURNS), factorisation_seconds(10 * TURNS)
    cubes = np.array(MATRICES, dtype=np.float64) ** 3
    constant, cubic = fit([np.ones(len(cubes)), cubes], matrices)
    dense, sparse = (
        prices([each for each, shape in zip(times, SHAPES, strict=True)
                if (shape.n_nonzeros is None) == is_dense])
        for is_dense in (True, False)
    )  # fmt: skip
    for kind in (dense, sparse):
        a, b, c, e = kind["gradient"]
        kind |= {name: (n * a, n * b, c, e) for name, n in DUAL_PASSES.items()}
        prox = kind["seconds"][0]
        kind["factorisation"] = (float(constant / prox), 0.0, float(cubic / prox), e)
    return Costs(**{name: Price(dense[name], sparse[name]) for name in dense}, name="measured")

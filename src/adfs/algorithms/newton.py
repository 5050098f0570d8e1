"""Newton's method over an all-reduce: a baseline outside the paper.

One event is one evaluation: every node computes losses, gradient and Hessian of its samples at the
trial point, an all-reduce adds them in node order, and every node, holding the same numbers, takes
the point if F fell enough there (`descent.sufficient`). The next trial is

    theta - (H + damping I)^-1 gradient,   H = sum_ij w l'' x x^T + sum_i sigma_i I,

with damping 0 as long as steps succeed. One that fails is tried again with more damping (Levenberg,
1944), which costs as much as any other. The paper's costs (`adfs.Costs`) leave out the
factorisation of the d x d matrix: it does not grow with the samples. Why damped and not shorter
steps: docs/algorithms/newton.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from adfs.algorithms import base
from adfs.algorithms.base import Matrix, Vector
from adfs.algorithms.descent import Descent, DescentState, matrix_rounds
from adfs.algorithms.nested_samples import sample_sizes
from adfs.costs import NodeCosts
from adfs.errors import ParameterError
from adfs.problem.finite_sum import Problem
from adfs.problem.optimum import add_hessian
from adfs.schedule.rounds import Cost
from adfs.theory.description import Description, Fact, SelfDescribing
from adfs.threads import one_blas_thread

MOST_FEATURES = 2000
BLOCK = 4  # evaluations between two checks of limits and signals
MORE, LESS = 8.0, 4.0  # damping after a step that failed, and after one that did not
EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class NewtonParameters(SelfDescribing):
    """What Newton's method runs with; there is nothing to tune."""

    rho: ClassVar[float] = 0.1  # only sets the default iteration limit: far away there is no rate

    n_features: int
    hessian_cost: Vector
    rounds: int
    numbers: int
    shares: tuple[float, ...] = (1.0,)  # of the rows, in the samples that it begins with

    def description(self) -> Description:
        least, most = float(self.hessian_cost.min()), float(self.hessian_cost.max())
        part = f"a sample's part of the Hessian in proximal steps; least {least:.3g}"
        facts = [
            Fact("d", self.n_features, "features"),
            Fact("h", most, part),
            Fact("rounds", self.rounds, "of communication per evaluation: diameter + d + 3"),
            Fact("numbers", self.numbers, "summed: d (d + 1) / 2 + d + 1"),
            Fact("rho", self.rho, "heuristic: only sets the default iteration limit"),
        ]
        if len(self.shares) > 1:
            of_rows = "of the rows in the first of the growing samples"
            facts.append(Fact("share", self.shares[0], of_rows))
            facts.append(Fact("samples", len(self.shares), "the last of them all rows"))
        return Description("Newton's method over an all-reduce", facts)


@dataclass
class NewtonState(DescentState):
    """State of a run: beside that of any descent, the Hessian and its damping."""

    hessian: Matrix = field(default_factory=lambda: np.zeros((0, 0)))
    damping: float = 0.0
    trusted: bool = False  # the last step was tried undamped, and taken


N = TypeVar("N", bound=NewtonState)


class Newton(Descent[N]):
    """Newton's method on the sum of all nodes, one evaluation per event."""

    new_state: type[Any] = NewtonState
    numbers: ClassVar[tuple[str, ...]] = ("objective", "slope", "damping", "trusted")

    def __init__(self, problem: Problem, parameters: NewtonParameters) -> None:
        super().__init__(problem, parameters, parameters.numbers)
        self._lower, zero = np.tril_indices(problem.n_features), np.zeros(problem.n_features)
        # Loads the compiled kernels, which belongs to set-up.
        add_hessian(problem, zero, slice(0, 0), zero[:, None])

    def _evaluate(self, state: N) -> None:
        objective, gradient = self.problem.objective_and_gradient(state.trial)
        if self._is_good(state, 1.0, objective, float(state.direction @ gradient)):
            state.trusted = bool(np.isfinite(state.objective)) and state.damping == 0.0
            self._take(state, objective, gradient)
            state.hessian = self._hessian(state.theta)
        else:
            self._refuse(state)
        self._aim(state)

    def _take(self, state: N, objective: float, gradient: Vector) -> None:
        """Take the trial point, and trust the next step more."""
        less = state.damping / LESS
        state.damping = less if less >= self.problem.total_sigma else 0.0
        state.theta, state.objective, state.gradient = state.trial, objective, gradient

    def _refuse(self, state: N) -> None:
        """Stay, and damp the next step more."""
        state.trusted = False
        state.damping = max(MORE * state.damping, self.problem.total_sigma)

    def _aim(self, state: N) -> None:
        """The next step."""
        damped = state.hessian + state.damping * np.eye(len(state.hessian))
        state.direction = -cho_solve(cho_factor(damped, lower=True), state.gradient)
        state.slope = float(state.direction @ state.gradient)
        state.trial = state.theta + state.direction

    def _hessian(self, theta: Vector) -> Matrix:
        def add(node: int, total: Matrix) -> None:
            add_hessian(self.problem, theta, self.problem.node_rows(node), total)

        return self._sum_of_hessians(add)

    def _sum_of_hessians(self, add: Callable[[int, Matrix], None]) -> Matrix:
        """Sum of the nodes' Hessians at and below the diagonal, plus what Cholesky may lose."""
        d = self.problem.n_features

        def part(node: int) -> Vector:
            own = np.zeros((d, d))
            add(node, own)
            return own[self._lower]

        parts = (part(node) for node in self.problem.nodes.tolist())
        total = np.zeros((d, d))
        total[self._lower] = self.problem.network.sum_rows(parts, d * (d + 1) // 2)
        diagonal = np.diag_indices_from(total)
        rounding = len(total) * EPSILON * float(np.max(total[diagonal]))
        total[diagonal] += self.problem.total_sigma + rounding
        return total

    def output(self, state: N) -> Matrix:
        """The point taken last, at every node; after a full step the one that follows from it.

        Newton's iterate is the point behind the evaluation, but far from the optimum it can be
        worse by any factor: there the point is shown once it has been seen to be better.
        """
        theta = state.trial if state.trusted else state.theta
        return np.tile(theta, (len(self.problem.nodes), 1))

    def restore(self, state: N, shared: base.Named) -> None:
        super().restore(state, shared)
        if np.isfinite(state.objective):  # something was evaluated
            with one_blas_thread():
                state.hessian = self._hessian(state.theta)


def usual_steps(kappa: float, tol: float) -> float:
    """Evaluations that runs took; fitted by ``benchmarks/plan.py``, off by up to a factor 1.8.

    From 3 to 9 for ``tol = 1e-6``; a smaller one costs little more.
    """
    return max(3.0, 0.64 + 0.5 * math.log(kappa)) + 0.2 * math.log10(1e-6 / min(tol, 1e-6))


def evaluation_costs(
    problem: Problem, costs: NodeCosts, share: float = 1.0, of_hessian: float | None = None
) -> list[Cost]:
    """Of an evaluation on a share of each node's rows, with a Hessian and without.

    The Hessian may be of another share of the rows.
    """
    shares = (share, share if of_hessian is None else of_hessian)
    (sizes, bent), topology = sample_sizes(problem.sizes, shares), problem.topology
    gradient = sizes * (costs.gradient if share == 1.0 else costs.sampled_gradient)
    whole = gradient + bent * costs.hessian + costs.factorisation
    rounds = matrix_rounds(topology, problem.n_features)
    return [Cost(whole, rounds), Cost(gradient, topology.diameter)]


@base.register("newton", smooth=True, rules=("theory", "tuned"))
def prepare(problem: Problem, setting: base.MethodSetting) -> base.Method:
    """Newton's method with its clock: m_i (1 + h) steps, then an all-reduce of a d x d matrix.

    ``tuned`` begins on samples of the rows where that is expected to take less time.
    """
    # Growing samples are built on the class above.
    from adfs.algorithms.growing_newton import prepare_growing

    d = problem.n_features
    if d > MOST_FEATURES:
        raise ParameterError(
            f"Algorithm 'newton' sums a d x d matrix and d={d} is more than {MOST_FEATURES}; take "
            "lbfgs or tron, which sum vectors."
        )
    costs, rounds = setting.costs.of(problem), matrix_rounds(problem.topology, d)
    chosen = NewtonParameters(d, costs.hessian, rounds, d * (d + 1) // 2 + d + 1)
    if setting.rule == "tuned" and (growing := prepare_growing(problem, chosen, costs, setting)):
        return growing
    return base.method_in_rounds(
        Newton(problem, chosen), setting, evaluation_costs(problem, costs)[:1],
        block=BLOCK, shortest=1, work=problem.n_samples,
        typical=lambda tol: usual_steps(problem.conditioning.kappa_b(), tol),
    )  # fmt: skip

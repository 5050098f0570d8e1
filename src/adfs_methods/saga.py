"""SAGA and SAG on one machine: gradient steps of one sample with a table of slopes.

In mean form ``F / N = (1/N) sum_j f_j + mu/2 |.|^2`` with ``f_j = w_j l(x_j .)``, ``L_j``-smooth,
and ``mu = sum_i sigma_i / N``. The table has ``c_j = w_j l'`` of every sample, ``m`` is the mean of
``c_j x_j``. A step draws ``j`` with probability ``p_j`` and computes ``c' = w_j l'(x_j . x)``:

    x+ = x - eta (b_j (c' - c_j) x_j + m + mu x),   m+ = m + (c' - c_j) x_j / N,   c_j = c'.

SAGA (Defazio, Bach, Lacoste-Julien 2014) has ``b_j = 1 / (N p_j)``, SAG (Le Roux, Schmidt, Bach
2012) has ``b_j = 1 / N`` and uniform draws. A round is a pass of N steps, at most 65,536.

Theorem for SAGA. Let ``rho = 2 eta mu (1 - eta mu)`` with ``eta mu < 1/2`` and, for every sample,
``eta L_j / N (1 / p_j + 1 / (p_j - rho)) <= 1 - 2 eta mu``. Then a step contracts, by ``1 - rho``
in expectation,

    V = |x - x*|^2 + sum_j a_j |c_j x_j - grad f_j(x*)|^2,   a_j = 2 eta^2 / (N^2 p_j (p_j - rho)).

Proof: with e = x - x*, A_j = b_j (grad f_j(x) - grad f_j(x*)) and B_j the same of the table, the
step is along (A_j + mu e) - (B_j - E B). Its mean square is at most 2 E|A + mu e|^2 + 2 E|B|^2, and
<e, grad f_j(x) - grad f_j(x*)> is at least |grad f_j(x) - grad f_j(x*)|^2 / L_j. Collect terms.

The inequality holds with equality for ``p_j = rho/2 + k_j + sqrt(rho^2/4 + k_j^2)``, where ``k_j =
eta L_j / (N (1 - 2 eta mu))``. The step is the one where these sum up to 1. It comes near to
1 / (2 mean L_j) where ``mu`` is small; the published theorem has 1 / (3 max L_j).

Deviation: the table holds gradients without the ridge, which is exact: N numbers instead of N d.
SAG's theorem (step 1/(16 L), rate min(mu/(16 L), 1/(8 N))) is for a table with it.
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def"

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import adfs
from adfs.plugins import (
    Fact,
    Nodes,
    PerNode,
    PerSample,
    RoundMethod,
    Shared,
    Uses,
    axpy,
    derivative,
    dot,
    njit,
    whole,
)
from adfs_methods import steps

Vector = NDArray[np.float64]
TINY = 1e-100  # u is multiplied out before its factor gets smaller


@dataclass
class SagaState:
    """The table, and the point ``s u + r mean`` with ``scales = (s, r)``."""

    table: PerSample
    u: Shared
    mean: Shared
    scales: Shared


@adfs.register("saga", by_name=True)
class Saga(RoundMethod[SagaState]):
    """SAGA or SAG on one machine: gradient steps of one sample, with a table of slopes."""

    rules = ("saga", "sag")
    one_machine = True
    dual = "table"

    def __init__(self, nodes: Nodes, batch: int | None = None) -> None:
        super().__init__(nodes)
        n, smoothness = nodes.problem.n_samples, nodes.problem.conditioning.smoothness(0)
        self.batch = min(n, steps.LONGEST) if batch is None else whole("batch", batch, least=1)
        self.ridge = nodes.problem.total_sigma / n
        self.proven = self.rule == "saga"
        if self.proven:
            self.step_size, p, rate = best_step(smoothness, n * self.ridge)
            self.boost = np.divide(1.0, n * p, out=np.zeros(n), where=p > 0.0)
            why = "largest step for which the theorem has probabilities p_j"
        else:
            largest = float(smoothness.max()) + self.ridge
            self.step_size, p = 1.0 / (16.0 * largest), np.full(n, 1.0 / n)
            self.boost = p
            rate = min(self.ridge * self.step_size, 1.0 / (8.0 * n))
            why = "1 / (16 L), L = max L_j + mu"
        self.sampler = nodes.sampler(p, "saga")
        self.uses = Uses(samples=self.batch)
        self.rho = min(float(-np.expm1(self.batch * np.log1p(-rate))), 0.999)
        self.facts = [
            Fact("mu", self.ridge, "sum of sigma_i / N"),
            Fact("eta", self.step_size, why),
            Fact("rate", rate, "per sample drawn"),
            Fact("batch", self.batch, "samples in a round"),
        ]

    def start(self, theta: PerNode) -> SagaState:
        """The table at ``theta``: one pass, counted nowhere, as set-up."""
        table = self.nodes.slopes(theta)
        mean = self.nodes.row_sums(table)[0] / self.problem.n_samples
        return SagaState(table, theta[0].copy(), mean, np.array([1.0, 0.0]))

    def round(self, state: SagaState, t: int, kind: int) -> None:
        """``batch`` steps."""
        self.nodes.asked["samples"] += self.batch
        run(
            *self.problem.samples, self.sampler.draw(t, self.batch)[0], self.boost, self.step_size,
            self.ridge, state.table, state.u, state.mean, state.scales,
        )  # fmt: skip

    def output(self, state: SagaState) -> Any:
        s, r = state.scales
        return np.tile(s * state.u + r * state.mean, (self._whole.n_nodes, 1))


def best_step(smoothness: Vector, ridge: float) -> tuple[float, Vector, float]:
    """The step, the probabilities and the rate of the theorem; ``ridge`` is N mu.

    Rows without smoothness are never drawn: their entries of the table are exact from the start.
    """
    relative = smoothness / ridge

    def law(t: float) -> tuple[Vector, float]:
        rate, k = 2.0 * t * (1.0 - t), relative * t / (1.0 - 2.0 * t)
        return steps.least_probabilities(rate, k, smoothness > 0.0), rate

    t = steps.largest_with_sum(lambda t: law(t)[0].sum(), 0.5 - 1e-9)
    p, rate = law(t)
    return float(t * len(p) / ridge), p / p.sum(), rate


@njit(cache=True, nogil=True)
def run(code, rows, labels, weights, places, boost, eta, ridge, table, u, mean, scales):
    """Steps on the rows ``places``, each in the time of its non-zeros."""
    n, keep = table.size, 1.0 - eta * ridge
    s, r = scales
    for row in places:
        score = s * dot(rows, row, u) + r * dot(rows, row, mean)
        new = weights[row] * derivative(code, score, labels[row])
        change, table[row] = new - table[row], new
        s, r = keep * s, keep * r - eta
        axpy(rows, row, -change * (eta * boost[row] + r / n) / s, u)
        axpy(rows, row, change / n, mean)
        if s < TINY:
            for k in range(u.size):
                u[k] *= s
            s = 1.0
    scales[0], scales[1] = s, r

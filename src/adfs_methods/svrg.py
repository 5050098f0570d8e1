"""SVRG on one machine: epochs of sampled steps, each around the full gradient at a snapshot.

In mean form ``F / N = (1/N) sum_j f_j + mu/2 |.|^2`` with ``f_j = w_j l(x_j .)``, ``L_j``-smooth,
and ``mu = sum_i sigma_i / N``. An epoch takes ``g = (1/N) sum_j grad f_j(w)`` at the snapshot
``w``, then from ``x_0 = w`` on, ``m`` times, ``j`` with probability ``p_j = L_j / sum L``:

    x_{t+1} = x_t - eta ((grad f_j(x_t) - grad f_j(w)) / (N p_j) + g + mu x_t).

The next snapshot is the mean of ``x_0, ..., x_{m-1}`` with weights ``q^(m-1-t)``, ``q = 1 - eta
mu``. Johnson and Zhang (2013) draw it uniformly; Konecny and Richtarik (2013) with these weights.

Theorem. With ``L`` the mean of ``L_j``, the error of ``F`` at snapshots falls in expectation by

    alpha = max(q^m / (1 - q^m), 2 L eta) / (1 - 2 eta mu) < 1   per epoch.

Proof: let D be the Bregman distance of the mean of all f_j to x*. As for SAGA, with |grad f_j(w) -
grad f_j(x*)|^2 <= 2 L_j D_j(w), and with half of the inner product kept as D, a step has

    E|x+ - x*|^2 <= (1 - 2 eta mu (1 - eta mu)) |x - x*|^2 - 2 eta (1 - 2 eta mu) D(x)
                    + 4 L eta^2 D(w).

Half of the first term's decrease completes D(x) to the error of F / N; sum up with the weights, use
convexity, and compare |w - x*|^2 and D(w) with the error at w. The published theorem has alpha =
1 / (mu eta (1 - 2 L eta) m) + 2 L eta / (1 - 2 L eta): with its best eta and m, ten times the work.

Rule ``free`` (Sebbouh et al. 2019) goes on from ``x_0 = x_m`` of the last epoch, with ``q = 1 - 2
eta mu (1 - eta mu)``: then ``alpha = max(q^m, 2 L eta / (1 - 2 eta mu))`` for |x_0 - x*|^2 + 2 eta
(1 - 2 eta mu) (1 - q^m) / (1 - q) D(w), by the same inequality: a third of the work.

``eta`` and ``m`` are those with the least work per factor e. Kinds of rounds: 0 are inner steps, a
pass at most; 1 ends an epoch, if there was one, and takes the gradient at the new snapshot. Shown
are the snapshots; with ``free``, the newest point.
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def"

from dataclasses import dataclass
from typing import Any

import numpy as np

import adfs
from adfs.plugins import (
    Fact,
    Nodes,
    PerNode,
    PerSample,
    RoundMethod,
    Rounds,
    Shared,
    Uses,
    axpy,
    derivative,
    dot,
    njit,
)
from adfs_methods import steps


@dataclass
class SvrgState:
    """The snapshot, its slopes and gradient, and an epoch's point ``x_t = s u + r g``.

    ``sums`` are s, r, the weight of ``x_t``, and sums of weights, of weights times s and times r
    over the epoch. ``late`` is the third times ``u``, less the weighted sum of all ``s u``.
    """

    theta: PerNode
    slopes: PerSample
    g: Shared
    u: Shared
    late: Shared
    sums: Shared


@adfs.register("svrg", by_name=True)
class Svrg(RoundMethod[SvrgState]):
    """SVRG on one machine: epochs of sampled steps around full gradients at snapshots."""

    rules = ("svrg", "free")
    proven = True
    one_machine = True
    dual = "slopes"

    def __init__(self, nodes: Nodes) -> None:
        super().__init__(nodes)
        problem, is_free = nodes.problem, self.rule == "free"
        n, each = problem.n_samples, problem.conditioning.smoothness(0)
        self.ridge, mean = problem.total_sigma / n, float(each.mean())
        costs = nodes.setting.costs.of(problem)
        pass_work = n * float(costs.gradient[0] / costs.sampled_gradient[0])
        self.step_size, wanted = best_epoch(mean, self.ridge, pass_work, is_free)
        rounds, self.batch = steps.in_rounds(wanted, n, "an epoch of svrg")
        self.keep, alpha = contraction(
            self.step_size, rounds * self.batch, mean, self.ridge, is_free
        )
        self.sampler = nodes.sampler(each / each.sum(), "svrg")
        drawn = each > 1e-300 * mean  # others never are
        self.boost = np.divide(mean, each, out=np.zeros(n), where=drawn)
        self.uses = [Uses(samples=self.batch), Uses(gradients=1)]
        self.source = Rounds([1, *[0] * rounds])
        self.rho = min(float(1.0 - alpha ** (1.0 / (rounds + 1))), 0.999)
        self.facts = [
            Fact("L", mean, "mean of L_j"),
            Fact("mu", self.ridge, "sum of sigma_i / N"),
            Fact("eta", self.step_size, "step with the least work per factor e"),
            Fact("m", rounds * self.batch, "inner steps of an epoch, in rounds of a pass at most"),
            Fact("alpha", float(alpha), "per epoch"),
        ]

    def start(self, theta: PerNode) -> SvrgState:
        """The first snapshot; its gradient is taken in round 0."""
        zero = np.zeros(self.nodes.d)
        slopes, sums = np.zeros(self.problem.n_rows), np.array([1.0, 0.0, 1.0, 0.0, 0.0, 0.0])
        return SvrgState(theta, slopes, zero, theta[0].copy(), zero.copy(), sums)

    def round(self, state: SvrgState, t: int, kind: int) -> None:
        """Inner steps, or the next snapshot and its gradient."""
        if kind == 0:
            self.nodes.asked["samples"] += self.batch
            run(
                *self.problem.samples, self.sampler.draw(t, self.batch)[0], self.boost,
                self.step_size, self.ridge, self.keep, state.slopes, state.g, state.u, state.late,
                state.sums,
            )  # fmt: skip
            return
        newest = self._newest(state)
        _, _, _, weights, along_u, along_g = state.sums
        if weights > 0.0:
            mean = (along_u * state.u - state.late + along_g * state.g) / weights
            state.theta = mean[None]
        state.u = newest if self.rule == "free" else state.theta[0].copy()
        state.slopes[:] = self.nodes.slopes(state.theta)
        state.g = self.nodes.row_sums(state.slopes)[0] / self.problem.n_samples
        state.late = np.zeros(self.nodes.d)
        state.sums = np.array([1.0, 0.0, 1.0, 0.0, 0.0, 0.0])

    def _newest(self, state: SvrgState) -> Any:
        return state.sums[0] * state.u + state.sums[1] * state.g

    def output(self, state: SvrgState) -> Any:
        shown = self._newest(state) if self.rule == "free" else state.theta[0]
        return np.tile(shown, (self._whole.n_nodes, 1))


def contraction(step, length, smoothness, ridge, is_free):
    """``q`` and ``alpha``."""
    relative = step * ridge
    decrease = 2.0 * relative * (1.0 - relative) if is_free else relative
    left = np.exp(length * np.log1p(-decrease))  # q^m
    noise = 2.0 * smoothness * step / (1.0 - 2.0 * relative)
    start = left if is_free else left / (1.0 - left) / (1.0 - 2.0 * relative)
    return 1.0 - decrease, np.maximum(start, noise)


def best_epoch(smoothness, ridge, pass_work, is_free) -> tuple[float, float]:
    """The step and the length of an epoch with the least work per factor e."""
    tried = np.geomspace(1e-4, 0.999, 400)[:, None] / (2.0 * (smoothness + ridge))
    length = np.ceil(np.geomspace(0.02, 20.0, 400) / (tried * ridge))
    _, alpha = contraction(tried, length, smoothness, ridge, is_free)
    gain = np.where(alpha < 1.0, -np.log(alpha) / (pass_work + length), 0.0)
    row, column = np.unravel_index(np.argmax(gain), gain.shape)
    return float(tried[row, 0]), float(length[row, column])


@njit(cache=True, nogil=True)
def run(code, rows, labels, weights, places, boost, eta, ridge, keep, slopes, g, u, late, sums):
    """Inner steps on the rows ``places``, each in the time of its non-zeros."""
    s, r, weight, total, along_u, along_g = sums
    for row in places:
        total, along_u, along_g = total + weight, along_u + weight * s, along_g + weight * r
        score = s * dot(rows, row, u) + r * dot(rows, row, g)
        change = weights[row] * derivative(code, score, labels[row]) - slopes[row]
        s, r = (1.0 - eta * ridge) * s, (1.0 - eta * ridge) * r - eta
        weight /= keep
        move = -eta * boost[row] * change / s
        axpy(rows, row, move, u)
        axpy(rows, row, along_u * move, late)
    sums[:] = s, r, weight, total, along_u, along_g

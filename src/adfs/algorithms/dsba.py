"""DSBA (Shen et al. 2018): EXTRA, with SAGA's gradient estimate taken at the point it leads to.

Mean form. With ``mbar = N / n`` node i holds ``F_i = (1/m_i) sum_j B_ij + lam_i/2 |.|^2``, where
``B_ij = (m_i / mbar) f_ij`` and ``lam_i = sigma_i / mbar``; then ``sum_i F_i = F / mbar`` whatever
the sizes of the shards. (Without the factor ``m_i / mbar`` it is another problem that is solved.)
``W = I - Lap / lambda_max``, ``Wt = (I + W) / 2``, rows of ``z`` are the nodes' iterates.

Derivation. EXTRA is ``z_1 = W z_0 - alpha g_0``, ``z_{t+1} = Wt (2 z_t - z_{t-1}) - alpha (g_t -
g_{t-1})`` with ``g_t = grad F(z_t)``. DSBA takes for ``g_t`` SAGA's estimate, and at ``z_{t+1}``:

    g_t = delta_t + phibar_t + lam z_{t+1},    delta_t = grad B_ij(z_{t+1}) - phi_ij,

with j uniform at each node, and a table ``phi_ij`` of gradients of mean ``phibar``. Its entry j
becomes ``grad B_ij(z_{t+1})``, so ``phibar_{t+1} = phibar_t + delta_t / m``, and ``phibar`` drops
out of the difference: ``g_t - g_{t-1} = delta_t - (1 - 1/m) delta_{t-1} + lam (z_{t+1} - z_t)``.
Everything at ``z_{t+1}`` goes to the left, and round t is one prox at each node:

    z_{t+1} + alpha (grad B_ij + lam)(z_{t+1}) = psi_t,
    psi_0 = W z_0 + alpha (phi_ij - phibar_0),
    psi_t = Wt (2 z_t - z_{t-1}) + alpha ((1 - 1/m) delta_{t-1} + phi_ij + lam z_t).

Gradients are multiples of rows, so the table is a scalar per sample. The kernel runs the same
recursion summed up, which does not collect rounding errors. At n = 1 this is Point-SAGA, table of
scalars and all.

The rate and the rules for the step are in `adfs.algorithms.dsba_parameters`.
"""

import numpy as np

from adfs.algorithms.base import (
    Algorithm,
    Arrays,
    Counts,
    Matrix,
    Method,
    MethodSetting,
    Vector,
    method_in_rounds,
    register,
    require_smooth,
    rule_of,
)
from adfs.algorithms.dsba_parameters import RULES, DsbaParameters, mean_size, shares
from adfs.algorithms.point_saga import sample_lines, table_duals
from adfs.kernels import dsba as kernel
from adfs.kernels.memory import aligned_zeros
from adfs.kernels.point_saga import NORM2, fill_table
from adfs.problem.finite_sum import Problem
from adfs.randomness import stream_keys
from adfs.schedule.events import Events
from adfs.schedule.rounds import Cost

BLOCK_WORK = 1 << 24  # multiplications in a compiled call, about 20 ms


class Dsba(Algorithm[kernel.DsbaState]):
    """DSBA on a network, a proximal step and an exchange with all neighbours a round.

    The pass over the data that fills the table before round 0 is counted nowhere, as set-up.

    Examples
    --------
    >>> import adfs
    >>> X, y = adfs.generators.two_gaussians(60, 3, seed=0)
    >>> problem = adfs.Problem(adfs.partition(X, y, 4), sigma=0.5)
    >>> method = prepare(problem, MethodSetting(rule="paper"))
    >>> state = method.algorithm.step(method.algorithm.init(), method.source.draw(0, 4000))
    >>> bool(np.allclose(method.algorithm.output(state), problem.optimum().theta, atol=1e-9))
    True
    """

    def __init__(self, problem: Problem, parameters: DsbaParameters, seed: int) -> None:
        self.problem, self.parameters = problem, parameters
        largest = problem.topology.spectrum.lambda_max
        self.constants = kernel.DsbaConstants(
            loss=problem.loss.code,
            alpha=parameters.alpha,
            ridge=problem.own_sigma / mean_size(problem),
            share=shares(problem)[problem.nodes],
            half=0.5 / largest if largest > 0.0 else 0.0,
            links=problem.network.links,
            offsets=problem.offsets,
            keys=stream_keys(seed, "dsba", problem.nodes),
        )

    def init(self, theta: Vector | None = None) -> kernel.DsbaState:
        """All nodes at ``theta``, or zero, with the table of gradients there."""
        problem = self.problem
        n, d = len(problem.nodes), problem.n_features
        start = np.zeros(d) if theta is None else problem.vector(theta)
        lines, pairs = sample_lines(problem), aligned_zeros(n, 2 * d)
        for own, node in enumerate(problem.nodes.tolist()):
            rows, total = problem.node_rows(node), np.zeros(d)
            fill_table(
                problem.loss.code, problem.rows, lines, rows.start, rows.stop, start, total
            )  # fmt: skip
            pairs[own, 1::2] = self.parameters.alpha / mean_size(problem) * total  # alpha phibar_i
        z = np.tile(start, (problem.network.n_rows, 1))
        return kernel.DsbaState(lines, z, pairs, np.empty(d))

    def step(self, state: kernel.DsbaState, events: Events) -> kernel.DsbaState:
        """Run the rounds, in place."""
        with np.errstate(over="ignore"):  # hashing wraps around 2^64
            kernel.run_rounds(
                events.start, len(events.which), self.problem.rows, state, self.constants
            )  # fmt: skip
        return state

    def output(self, state: kernel.DsbaState) -> Matrix:
        """The nodes' iterates."""
        return state.z[: len(self.problem.nodes)].copy()

    def duals(self, state: kernel.DsbaState, node: int) -> Vector:
        """The table's ``c = w l'`` of a node's samples."""
        return table_duals(state.lines[self.problem.node_rows(node)])

    def arrays(self, state: kernel.DsbaState) -> Arrays:
        """The table and where its steps began, and the nodes' rows."""
        nodes = {"z": state.z[: len(self.problem.nodes)], "pairs": state.pairs}
        return Arrays({"lines": state.lines[:, :NORM2]}, nodes, {})

    def counts(self, events: Events) -> Counts:
        """A round is a proximal step per node and a message over each edge in both directions."""
        n_rounds, n_messages = len(events.which), 2 * self.problem.topology.n_edges
        size = 8 * self.problem.n_features
        return Counts(
            n_prox=n_rounds * self.problem.n_nodes,
            n_comm=n_rounds * n_messages,
            bytes=n_rounds * n_messages * size,
        )


@register("dsba")
def prepare(problem: Problem, setting: MethodSetting) -> Method:
    """DSBA with its clock: a round takes one proximal step and one communication."""
    require_smooth("dsba", problem)
    chosen = DsbaParameters.of(problem, rule_of("dsba", setting, RULES))
    n = problem.n_nodes
    work = (n + 2 * problem.topology.n_edges) * problem.n_features
    return method_in_rounds(
        problem, setting, Dsba(problem, chosen, setting.seed), chosen, Cost(np.ones(n), rounds=1),
        block=min(1 << 14, max(16, BLOCK_WORK // work)), shortest=min(2_000, chosen.n_samples),
        work=n, proven=True,
    )  # fmt: skip

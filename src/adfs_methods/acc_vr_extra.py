"""Acc-VR-EXTRA: EXTRA with Katyusha's momentum, sampled gradients, and Chebyshev gossip.

Node i has ``f_i = sum_j f_ij + sigma_i/2 |.|^2``, with ``f_ij`` convex and ``L_ij``-smooth; ``mu =
min sigma_i``, ``L = max_i (sigma_i + lambda_max(B_i))``, ``Lb = max_i sum_j L_ij``. ``U^2 = s (I -
C)`` with C = K rounds of Chebyshev gossip. In a round every node draws b rows with ``p_ij = L_ij /
sum_j L_ij``:

    y = q z + r w + (1 - q - r) x
    g = grad f(w) + sigma (y - w) + (1/b) sum_drawn (grad f_ij(y) - grad f_ij(w)) / p_ij
    q (z+ - z) + mu a (z+ - y) + a g + e + q U^2 z = 0,    e+ = e + q U^2 z+
    x+ = y + q (z+ - z),    w+ = x with probability p, for all nodes at once, else w.

A new ``w`` takes a pass, and its slopes are kept. Shown is x. Li, Lin, Fang: Variance reduced EXTRA
and DIGing and their optimal acceleration (2022), with parameters and a proof of our own:

Theorem (proof: docs/algorithms/acc-vr-extra.md). Let C contract by c, ``l = s (1 - c)``, ``u = s
(1 + c)``, ``d = mu a / q``, ``q + r <= 1``. For ``rho < p`` and ``v = rho / (1 - rho)`` let

    v <= d,    rho + r rho / (p - rho) <= q,
    a (Lb/b) (1 + d + a L + (1 + v) u/2) <= r (1 + d)^2,
    v (a (L - mu) / (q l) + max_{k = l, u} (1 - k)^2 / (k (1 - 3k/4 - a L))) <= 1 - 2 d^2 / l^2,

with ``3u/4 + a L < 1``. Then a round contracts by ``1 - rho`` in expectation

    V = h(x) + r h(w) / (p - rho) + (1 + v) / (2 a) (q^2 <z, (I - U^2/2) z> + |n|^2),

where ``e = U n``, letters are differences to the optimum, and ``h`` is the sum of all f_i less its
linear part there. With one node ``u = 0``, and ``a L <= 1`` stands for the last line.

The parameters are those with the least predicted time per factor e. A node without smoothness draws
uniformly. Kinds of rounds: 1 takes a new w at its end.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import adfs
from adfs.plugins import CoinRounds, Fact, Nodes, PerNode, PerSample, RoundMethod, Uses, whole
from adfs_methods import steps

TRIED = 21  # values of each of three parameters, several times, ever finer
MOST = 1 << 20  # rows per node and round
ROUNDING = 1e-9  # of r, above what the theorem needs
FASTEST = 0.999


class Sizes(NamedTuple):
    """What the theorem depends on: L, mu and Lb."""

    smoothness: float
    convexity: float
    total: float


def excess(q: Any, a: Any, low: Any, high: Any, sizes: Sizes) -> Any:
    """The largest ``v`` of the theorem but for noise and snapshots; not positive if none is."""
    L, mu, _ = sizes
    d = mu * a / q
    with np.errstate(divide="ignore", invalid="ignore"):
        if np.all(high == 0.0):
            return np.where(a * L <= 1.0, d, 0.0)
        ends = [(1.0 - k) ** 2 / (k * (1.0 - 0.75 * k - a * L)) for k in (low, high)]
        dual = (1.0 - 2.0 * (d / low) ** 2) / (a * (L - mu) / (q * low) + np.maximum(*ends))
    return np.where(1.0 - 0.75 * high - a * L > 0.0, np.minimum(d, dual), 0.0)


def noise(q: Any, a: Any, v: Any, high: Any, sizes: Sizes) -> Any:
    """The least ``r b``."""
    d = sizes.convexity * a / q
    return (
        a * sizes.total * (1.0 + d + a * sizes.smoothness + 0.5 * (1.0 + v) * high) / (1.0 + d) ** 2
    )


class Parameters(NamedTuple):
    """Those of the page; ``low`` and ``high`` are l and u."""

    low: float
    high: float
    q: float
    r: float
    a: float
    b: int
    p: float

    def rate(self, sizes: Sizes) -> float:
        """The largest ``rho`` of the theorem, 0 if there is none."""
        q, r, a, p = self.q, self.r, self.a, self.p
        v = float(excess(q, a, self.low, self.high, sizes))
        first, then = (float(noise(q, a, at, self.high, sizes)) for at in (0.0, 1.0))  # linear
        if q + r > 1.0 or r * self.b < first or v <= 0.0:
            return 0.0
        v = min(v, (r * self.b - first) / (then - first)) if then > first else v
        half = 0.5 * (p + q + r)
        snapshots = p * q / (half + math.sqrt(half * half - p * q))
        return min(v / (1.0 + v), snapshots, FASTEST)


def fastest(
    contraction: float | None, sizes: Sizes, work: tuple[float, float, float], batch: int | None
) -> tuple[float, Parameters]:
    """The least time per factor e, and its parameters; ``contraction`` is None without edges.

    ``work`` is the time of a sample, of a pass, and of a round's gossip. Tried are ``a L``, ``q``
    relative to ``sqrt(mu a (1 + (L + mu / l) a / l))``, and ``u``; the others follow from these.
    """
    L, mu, _ = sizes
    sample, a_pass, gossip = work
    least = 0.01 * min(1.0, L / max(sizes.total, L)) * (1.0 - (contraction or 0.0))
    ranges = [(least, 1.0), (0.5, 60.0), (2.0 * least, 1.3)]
    axes = [np.geomspace(*each, TRIED) for each in ranges]
    best = math.inf, Parameters(0.0, 0.0, 1.0, 0.0, 0.0, 1, 1.0)
    for _ in range(4):
        a, q, high = (each.ravel() for each in np.meshgrid(*axes, indexing="ij"))
        a, low = a / L, high
        if contraction is None:
            low, high = np.ones_like(a), np.zeros_like(a)
        else:
            low = high * (1.0 - contraction) / (1.0 + contraction)
        q = q * np.sqrt(mu * a * (1.0 + a / low * (L + mu / low)))
        v = excess(q, a, low, high, sizes)
        ok = (v > 0.0) & (q < 1.0)
        v = np.where(ok, v, 1.0)
        rho = np.minimum(v / (1.0 + v), FASTEST)
        ok &= rho < q
        slack = np.where(ok, q - rho, 1.0)
        need = noise(q, a, v, high, sizes) * (1.0 + ROUNDING)
        least = need / np.where(ok, np.minimum(1.0 - q, slack * (1.0 - rho) / rho), 1.0)
        wanted = np.sqrt(rho * need * a_pass / (slack * sample)) if batch is None else batch
        b = np.ceil(np.maximum(np.maximum(least, wanted), 1.0))
        ok &= b <= (MOST if batch is None else batch)
        r = need / b
        p = np.minimum(rho * (1.0 + r / slack), 1.0)
        time = np.where(ok, (b * sample + p * a_pass + gossip) / rho, math.inf)
        k = int(np.argmin(time))
        if not ok[k]:
            break
        ends = low.item(k), high.item(k)
        chosen = Parameters(*ends, q.item(k), r.item(k), a.item(k), int(b[k]), p.item(k))
        best = min(best, (time.item(k), chosen))
        near = np.unravel_index(k, [TRIED] * 3)
        axes = [
            np.geomspace(axis[max(int(j) - 1, 0)], axis[min(int(j) + 1, TRIED - 1)], TRIED)
            for axis, j in zip(axes, near, strict=True)
        ]
    return best


@dataclass
class AccVrExtraState:
    """The points of the page, the slopes and gradients at w, and ``q U^2 z``."""

    theta: PerNode  # x
    z: PerNode
    w: PerNode
    e: PerNode
    pull: PerNode
    gradient: PerNode
    slopes: PerSample


@adfs.register("acc-vr-extra", by_name=True)
class AccVrExtra(RoundMethod[AccVrExtraState]):
    """Acc-VR-EXTRA: accelerated EXTRA with sampled gradients and Chebyshev gossip."""

    proven = True
    seen = 0.5  # runs are seen to have about twice the proven rate
    dual = "slopes"

    def __init__(self, nodes: Nodes, rounds: int | None = None, batch: int | None = None) -> None:
        super().__init__(nodes)
        problem, known = nodes.problem, nodes.problem.conditioning
        sizes = Sizes(
            steps.smoothness(nodes), steps.convexity(nodes), float(known.total_smoothness.max())
        )
        if batch is not None:
            batch = whole("batch", batch, least=1, most=MOST)
        setting, alone = nodes.setting, problem.n_nodes == 1
        costs, speed = setting.costs.of(problem), np.asarray(setting.delays.speed)
        sample = max(float(np.max(speed * costs.sampled_gradient)), 1e-9)
        a_pass = float(np.max(speed * costs.gradient * problem.sizes))
        tau = float(np.max(setting.delays.tau))
        tried = gossip_rounds(nodes) if rounds is None else [whole("rounds", rounds, least=1)]
        found = []
        for k in tried:
            contraction = None if alone else nodes.chebyshev(k).contraction
            found.append((*fastest(contraction, sizes, (sample, a_pass, k * tau), batch), k))
        _, self.chosen, self.rounds = min(found)
        self.sizes, chosen = sizes, self.chosen
        self.strength = 0.5 * (chosen.low + chosen.high)  # s
        self.gossip, self.rho = nodes.chebyshev(self.rounds), chosen.rate(sizes)
        parts = [known.smoothness(node) for node in nodes.numbers.tolist()]
        laws = [L / L.sum() if L.any() else np.full(len(L), 1.0 / len(L)) for L in parts]
        self.sampler = nodes.sampler(np.concatenate(laws), "acc-vr-extra")
        self.source = CoinRounds(chosen.p, setting.seed, "acc-vr-extra/coin")
        each = Uses(samples=chosen.b, gossips=self.rounds)
        self.uses = [each, each._replace(gradients=1)]
        self.facts = [
            *steps.problem_facts(nodes),
            Fact("Lb", sizes.total, "max_i sum_j L_ij"),
            Fact("K", self.rounds, "rounds of gossip in a round"),
            Fact("s", self.strength, "U^2 = s (I - C)"),
            Fact("a", chosen.a, "step"),
            Fact("q", chosen.q, "momentum: weight of z"),
            Fact("r", chosen.r, "weight of the snapshot w"),
            Fact("b", chosen.b, "rows per node and round"),
            Fact("p", chosen.p, "probability of a new snapshot"),
        ]

    def start(self, theta: PerNode) -> AccVrExtraState:
        """All nodes at one model: one pass, counted nowhere, as set-up."""
        zero, slopes = np.zeros_like(theta), self.nodes.slopes(theta)
        gradient = self.nodes.row_sums(slopes) + self.nodes.sigma * theta
        return AccVrExtraState(
            theta, theta.copy(), theta.copy(), zero, zero.copy(), gradient, slopes
        )

    def round(self, state: AccVrExtraState, t: int, kind: int) -> None:
        """Some samples per node, so many rounds of gossip, and for kind 1 a pass."""
        nodes, (_, _, q, r, a, b, _) = self.nodes, self.chosen
        x, z, ridge = state.theta, state.z, self.sizes.convexity * a
        y = q * z + r * state.w + (1.0 - q - r) * x
        places = self.sampler.draw(t, b)
        change = nodes.sample_slopes(y, places) - state.slopes[places]
        g = state.gradient + nodes.sigma * (y - state.w)
        nodes.add_rows(change / (b * self.sampler.p[places]), places, g)
        state.z = (q * z + ridge * y - a * g - state.e - state.pull) / (q + ridge)
        state.pull = q * self.strength * (state.z - self.gossip(state.z))
        state.e = state.e + state.pull
        state.theta = y + q * (state.z - z)
        if kind == 1:
            state.w, state.slopes[:] = x, nodes.slopes(x)
            state.gradient = nodes.row_sums(state.slopes) + nodes.sigma * x


def gossip_rounds(nodes: Nodes) -> list[int]:
    """Numbers of rounds to try, up to where disagreement falls to about a hundredth."""
    spectrum = nodes.problem.topology.spectrum
    if nodes.problem.n_nodes == 1:
        return [0]
    root = math.sqrt(spectrum.lambda_min / spectrum.lambda_max)
    left = (1.0 - root) / (1.0 + root)
    most = math.ceil(math.log(0.005) / math.log(left)) if left > 0.005 else 1
    return sorted({round(each) for each in np.geomspace(1, most, 24)})

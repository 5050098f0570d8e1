"""The parameters of ADFS and NS-ADFS: each number, the formula that gave it, and what binds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.graphs.spectrum import Spectrum

if TYPE_CHECKING:
    from adfs.theory.non_smooth_parameters import NonSmoothParameters
    from adfs.theory.parameters import PairwiseParameters, Parameters

Vector = NDArray[np.float64]


class BindingPlace(NamedTuple):
    """What limits the rate: ``kind`` is edge, or node for the samples of a node."""

    kind: str
    number: int

    def words(self, edges: NDArray[np.int32]) -> str:
        """The place in words; ``edges`` are those of the graph."""
        if self.kind == "edge":
            k, l = edges[self.number]
            return f"edge {self.number} between nodes {k} and {l}"
        return f"the samples of node {self.number}"


class Fact(NamedTuple):
    """One number of a method's parameters, and what it is.

    ``name``, ``value`` and ``what`` make a line of ``str(parameters)``, and a row of a report. A
    report has room for more: ``symbol`` and ``meaning`` stand there in the place of ``name`` and
    ``what``, with the ``formula`` that gave the number. A fact without a name is for reports only.
    ``value`` may be the least and the largest of several numbers; the text has the least.
    """

    name: str
    value: float | tuple[float, float] | None
    what: str
    formula: str = ""
    symbol: str = ""
    meaning: str = ""
    digits: int = 6

    @property
    def text(self) -> str:
        """The value as ``str(parameters)`` writes it."""
        value = self.value[0] if isinstance(self.value, tuple) else self.value
        if value is None:
            return ""
        return str(value) if isinstance(value, Integral) else f"{value:.{self.digits}g}"


@dataclass(frozen=True)
class Description:
    """A description of parameters; ``str`` is a short table.

    Attributes
    ----------
    title : str
    facts : sequence of Fact
        In the order in which they follow from each other.
    closing : sequence of str and float
        Parts of a sentence for the end of a report's table.
    symbols : sequence of (str, str)
        Letters of the formulas, and what they stand for.
    width : int
        Characters of the column of names in the text.

    Examples
    --------
    >>> print(Description("Gradient descent", [Fact("eta", 0.25, "step, 1 / L")]))
    Gradient descent
      eta       0.25         step, 1 / L
    """

    title: str
    facts: Sequence[Fact]
    closing: Sequence[str | float] = ()
    symbols: Sequence[tuple[str, str]] = ()
    width: int = 9

    def __str__(self) -> str:
        lines = (
            f"  {fact.name:<{self.width}} {fact.text:<12} {fact.what}"
            for fact in self.facts
            if fact.name
        )
        return "\n".join([self.title, *lines])


class SelfDescribing:
    """Parameters of a method: ``str`` explains every number."""

    def description(self) -> Description:
        """Every number, and what it is."""
        raise NotImplementedError

    def __str__(self) -> str:
        return str(self.description())


GAMMA = "λ_min⁺(Lap) / λ_max(Lap)"


def describe(chosen: "Parameters") -> Description:
    """The numbers of Algorithm 1."""
    conditioning, several = chosen.conditioning, len(chosen.p_edge) > 0
    formulas = dict.fromkeys(SINGLE, "given") | {"p_edge": "given"}
    formulas |= FORMULAS.get(chosen.how, {}) if chosen.topology.n_nodes > 1 else SINGLE
    each_edge = [
        Fact("", _span(chosen.p_edge), "", formulas["p_edge"], "p_kl",
             "probability of each communication edge")
    ] if several else []  # fmt: skip
    facts = [
        Fact("", _span(conditioning.kappa), "", "1 + Σ_j L_ij / σ_i", "κ_i",
             "condition number of each node's sum"),
        Fact("kappa_s", conditioning.kappa_s, "stochastic condition number", "max_i κ_i", "κ_s"),
        _gamma_fact(chosen.topology.spectrum),
        Fact("alpha", _span(chosen.alpha), "least mu_ij^2 / L_ij", formulas["alpha"], "α_i",
             "weight of virtual edges: μ_ij² = α_i L_ij"),
        Fact("sigma_A", chosen.sigma_A, "strong convexity of the dual", formulas["sigma_A"], "σ_A",
             "strong convexity of the dual on its subspace"),
        Fact("p_comm", chosen.p_comm, "share of communications", formulas["p_comm"],
             meaning="probability that an iteration is a communication"),
        *each_edge,
        Fact("", _span(chosen.p_node), "", formulas["p_node"], "p_i",
             "probability of a local update at each node"),
        Fact("", None, "", "p_i √(1 + L_ij / σ_i) / S_i,  S_i = Σ_j √(1 + L_ij / σ_i)", "p_ij",
             "probability of each sample"),
        Fact("rho", chosen.rho, f"rate; {chosen.binding} binds",
             "min( p_kl √(σ_A / (M_kl R_kl)),  p_i √(σ_A / α_i) / S_i )", "ρ",
             "rate: Theorem 1 proves a factor 1 − ρ per iteration"),
        Fact("time", chosen.time_per_efold, "idealized, per factor e",
             "(time of an event) / min(2 ρ, 1.2 × least visit rate)",
             meaning="predicted idealized time for a factor e of the error"),
        Fact("gain", chosen.gain, "times as fast as the better of `paper` and `exact` (predicted)",
             "time of the faster of the rules paper and exact / time of this one",
             meaning="predicted, in idealized time", digits=4),
    ]  # fmt: skip
    predicted = {"time": chosen.time_per_efold, "gain": chosen.gain}  # nan where it is not
    facts = [fact for fact in facts if math.isfinite(predicted.get(fact.name, 0.0))]
    limits: list[str | float] = [f"{_binds(chosen)}: the samples allow ρ up to "]
    limits.append(float(np.min(chosen.node_limits)))
    if several:
        limits += [", the communication edges up to ", float(np.min(chosen.edge_limits))]
    return Description(_title("ADFS", chosen), facts, [*limits, "."], SYMBOLS)


def describe_non_smooth(chosen: "NonSmoothParameters") -> Description:
    """Those of Algorithm 3, as Theorem 4 has them."""
    mu2, p_comm = "1", "0: one node has no edge"
    if len(chosen.p_edge) and chosen.how == "tuned":
        mu2, p_comm = "S² σ_i p_ij²", "least predicted time"
    elif len(chosen.p_edge):
        mu2, p_comm = "λ_min⁺ / (1 + max m_i)", "min(1/2, 1 / (1 + √(γ̃ m² / (2 (1 + m)))))"
    facts = [
        _gamma_fact(chosen.topology.spectrum),
        Fact("mu_ij^2", _span(chosen.mu2), "least, on virtual edges; 1/2 on the others", mu2,
             "μ_ij²", "weight of virtual edges; communication edges have 1/2"),
        Fact("p_comm", chosen.p_comm, "share of communications", p_comm,
             meaning="probability that an iteration is a communication"),
        Fact("p_R", chosen.p_least, "least p / R", "min p / R",
             meaning="least probability over resistance"),
        Fact("S", math.sqrt(chosen.smoothness), f"{chosen.binding} binds", "max √(M R) / p",
             meaning="what a step may be at most, on the edge that is worst"),
        Fact("A_0", chosen.start, "3 / (S p_R)^2; the dual gap falls as 1 / A_t", "3 / (S p_R)²",
             meaning="start of A_t; Theorem 4: the dual gap falls as 1 / A_t, "
             "and A_t ≥ t² / (4 S²)"),
    ]  # fmt: skip
    closing = [f"{_binds(chosen)}: this sets S."]
    return Description(_title("NS-ADFS", chosen), facts, closing, SYMBOLS_NON_SMOOTH)


def _title(name: str, chosen: "PairwiseParameters") -> str:
    on = f"({chosen.how}) on {chosen.topology.name}"
    return f"{name} parameters {on}, tau={chosen.tau:g}, {chosen.clock} clock"


def _gamma_fact(spectrum: Spectrum) -> Fact:
    words = "eigengap of the graph" + ("" if spectrum.exact else ", at least")
    return Fact("gamma", spectrum.gamma, words, GAMMA, "γ")


def _span(values: Vector) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _binds(chosen: "PairwiseParameters") -> str:
    return f"{chosen.binding} {'bind' if chosen.binding_place.kind == 'node' else 'binds'}"


ALPHA = "λ_min⁺ / (σ_max κ_i)"
EDGES = "p_comm √(M_kl R_kl) / Σ √(M R)"
EIGENVALUE = "least positive eigenvalue of the augmented Laplacian"
FORMULAS: dict[str, dict[str, str]] = {
    "paper": {
        "alpha": ALPHA, "sigma_A": "λ_min⁺ / (2 σ_max κ_s)",
        "p_comm": "min(1/2, 1 / (1 + S_comp √(γ̃ / κ_s)))", "p_edge": "p_comm / E",
        "p_node": "(1 − p_comm) S_i / Σ S_i",
    },
    "exact": {
        "alpha": ALPHA, "sigma_A": EIGENVALUE,
        "p_comm": "both kinds of edges allow the same ρ; at most 1/2", "p_edge": EDGES,
        "p_node": "(1 − p_comm) / (number of nodes with data)",
    },
    "tuned": {
        "alpha": "c λ_min⁺ / (σ_max κ_i), c by search",
        "sigma_A": f"{EIGENVALUE}, or a bound below it",
        "p_comm": "least predicted time to an accuracy, by search",
        "p_edge": f"{EDGES}, or even", "p_node": "(1 − p_comm) × (share of the node, by search)",
    },
}  # fmt: skip
FORMULAS["balanced"] = FORMULAS["paper"] | {"p_comm": "1 / (1 + τ)"}
FORMULAS["projector"] = FORMULAS["exact"] | {
    "alpha": "λ_min⁺ / (σ_max (1 + λ_max(B_i) / σ_i))",
    "sigma_A": f"{EIGENVALUE}, with λ_max(B_i) in the place of Σ_j L_ij",
}
SINGLE = {
    "alpha": "1 / (σ κ): any value gives the same iterates", "sigma_A": "α",
    "p_comm": "0: one node has no edge", "p_node": "1",
}  # fmt: skip

_COMMON = (
    ("i, j; k, l", "node i and its sample j; the two ends of a communication edge"),
    ("R_kl", "effective resistance of the edge; 1 on virtual edges"),
    ("λ_min⁺", "least positive eigenvalue of the Laplacian with weights μ_kl² = 1/2"),
    ("γ̃", "min λ_min⁺ n² / (μ_kl² R_kl E²), with n nodes and E edges"),
)
SYMBOLS = (
    *_COMMON,
    ("L_ij", "smoothness of a sample's loss, w_ij ℓ''max |x_ij|²"),
    ("B_i", "Σ_j w_ij ℓ''max x_ij x_ijᵀ"),
    ("κ_s", "max_i κ_i"),
    ("M_kl", "μ_kl² (1/σ_k + 1/σ_l)"),
    ("S_comp", "mean of S_i over nodes"),
    ("τ", "time of one communication, in units of one proximal step"),
)
SYMBOLS_NON_SMOOTH = (
    *_COMMON,
    ("M_ij, M_kl", "μ_ij² / σ_i, and μ_kl² (1/σ_k + 1/σ_l)"),
    ("m_i, m", "samples of node i, and the most of them"),
    ("p_ij", "probability of a sample: even within a node"),
)

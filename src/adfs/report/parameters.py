"""Parameters with the formula that gave each of them, and what binds."""

import math
import re
from typing import Any, NamedTuple

import numpy as np

from adfs.report.markup import Markup, formula, join, table, tag
from adfs.report.page import paragraph
from adfs.report.words import number, span
from adfs.theory.non_smooth import NonSmoothParameters
from adfs.theory.parameters import Parameters

HEADERS = ("parameter", "value", "formula", "what it is")
Row = tuple[str, str, str, str]
_LINE = re.compile(r"\s{2,}(\S+)\s+(\S+)\s+(\S.*)")


class Place(NamedTuple):
    """What limits the rate: ``kind`` is edge or node."""

    kind: str
    number: int


def binding_place(parameters: Any) -> Place | None:
    """Which edge, or which node's samples, limit the rate; None where nothing is known."""
    if isinstance(parameters, Parameters):
        edges, nodes = -parameters.edge_limits, -parameters.node_limits
    elif isinstance(parameters, NonSmoothParameters):
        edges, nodes = parameters.edge_roots, parameters.node_roots
    else:
        return None
    if np.max(edges, initial=-math.inf) > np.max(nodes):
        return Place("edge", int(np.argmax(edges)))
    return Place("node", int(np.argmax(nodes)))


def describe(parameters: Any, how: str) -> Markup:
    """The table, and the sentence that says what binds."""
    if isinstance(parameters, Parameters):
        rows, words = _smooth(parameters), _limits(parameters)
    elif isinstance(parameters, NonSmoothParameters):
        rows, words = _non_smooth(parameters), f"{_binds(parameters)}: this sets S."
    else:
        return from_text(str(parameters))
    caption = f"Parameters by the rule {how}"
    found = table(caption, HEADERS, map(_cells, rows), class_="scroll roomy")
    return join([found, paragraph(_sentence(words))])


def section(parameters: Any, how: str) -> Markup:
    """`describe`, and what the letters stand for."""
    smooth = isinstance(parameters, Parameters)
    if not smooth and not isinstance(parameters, NonSmoothParameters):
        return describe(parameters, how)
    facts = SYMBOLS if smooth else SYMBOLS_NON_SMOOTH
    letters = tag(
        "dl",
        *(join([tag("dt", formula(a)), tag("dd", formula(b))]) for a, b in facts),
        class_="symbols",
    )
    inside = tag("details", tag("summary", "What the letters stand for"), letters)
    return join([describe(parameters, how), inside])


def _cells(row: Row) -> tuple[object, ...]:
    name, value, how, what = row
    return formula(name), value, tag("span", formula(how), class_="formula"), formula(what)


def _binds(chosen: Parameters | NonSmoothParameters) -> str:
    place = binding_place(chosen)
    return f"{chosen.binding} {'bind' if place and place.kind == 'node' else 'binds'}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def from_text(text: str) -> Markup:
    """The table of an algorithm that explains its numbers in lines ``name value words``."""
    title, rows = parsed(text)
    if not rows:
        return tag("pre", text)
    return table(title, ("parameter", "value", "what it is, and its formula"), rows)


def parsed(text: str) -> tuple[str, list[tuple[str, str, str]]]:
    r"""Title and lines of ``str(parameters)``.

    Examples
    --------
    >>> parsed("L-BFGS\n  memory    10           pairs kept")
    ('L-BFGS', [('memory', '10', 'pairs kept')])
    """
    lines = text.splitlines()
    found = [match for line in lines[1:] if (match := _LINE.fullmatch(line))]
    return lines[0] if lines else "", [(m[1], m[2], m[3]) for m in found]


def _smooth(chosen: Parameters) -> list[Row]:
    """SPEC 2.1: the numbers of Algorithm 1, in the order in which they follow from each other."""
    graph, facts = chosen.topology, chosen.conditioning
    formulas = FORMULAS.get(chosen.how, {}) if graph.n_nodes > 1 else SINGLE
    rows: list[Row] = [
        ("κ_i", span(float(facts.kappa.min()), float(facts.kappa.max())),
         "1 + Σ_j L_ij / σ_i", "condition number of each node's sum"),
        ("γ", number(graph.spectrum.gamma), "λ_min⁺(Lap) / λ_max(Lap)", "eigengap of the graph"),
        ("α_i", span(float(chosen.alpha.min()), float(chosen.alpha.max())),
         formulas.get("alpha", "given"), "weight of virtual edges: μ_ij² = α_i L_ij"),
        ("σ_A", number(chosen.sigma_A), formulas.get("sigma_A", "given"),
         "strong convexity of the dual on its subspace"),
        ("p_comm", number(chosen.p_comm), formulas.get("p_comm", "given"),
         "probability that an iteration is a communication"),
    ]  # fmt: skip
    if len(chosen.p_edge):
        rows.append(
            ("p_kl", span(float(chosen.p_edge.min()), float(chosen.p_edge.max())),
             formulas.get("p_edge", "given"), "probability of each communication edge")
        )  # fmt: skip
    rows += [
        ("p_i", span(float(chosen.p_node.min()), float(chosen.p_node.max())),
         formulas.get("p_node", "given"), "probability of a local update at each node"),
        ("p_ij", "", "p_i √(1 + L_ij / σ_i) / S_i,  S_i = Σ_j √(1 + L_ij / σ_i)",
         "probability of each sample"),
        ("ρ", number(chosen.rho), "min( p_kl √(σ_A / (M_kl R_kl)),  p_i √(σ_A / α_i) / S_i )",
         "rate: Theorem 1 proves a factor 1 − ρ an iteration"),
    ]  # fmt: skip
    return rows + _predicted(chosen)


def _predicted(chosen: Parameters) -> list[Row]:
    rows: list[Row] = []
    if math.isfinite(chosen.time_per_efold):
        rows.append(("time", number(chosen.time_per_efold),
                     "(time of an event) / min(2 ρ, 1.2 × least visit rate)",
                     "predicted idealized time for a factor e of the error"))  # fmt: skip
    if math.isfinite(chosen.gain):
        rows.append(("gain", number(chosen.gain), "time of the rule paper / time of this one",
                     "predicted, in idealized time"))  # fmt: skip
    return rows


def _limits(chosen: Parameters) -> str:
    """What each kind of edge would allow, and which one binds."""
    local = float(np.min(chosen.node_limits))
    words = f"{_binds(chosen)}: the samples allow ρ up to {number(local)}"
    if len(chosen.p_edge):
        words += f", the communication edges up to {number(float(np.min(chosen.edge_limits)))}"
    return words + "."


def _non_smooth(chosen: NonSmoothParameters) -> list[Row]:
    """Those of Algorithm 3, as Theorem 4 has them."""
    tuned = chosen.how == "tuned" and len(chosen.p_edge) > 0
    rows: list[Row] = [
        ("γ", number(chosen.topology.spectrum.gamma), "λ_min⁺(Lap) / λ_max(Lap)",
         "eigengap of the graph"),
        ("μ_ij²", span(float(chosen.mu2.min()), float(chosen.mu2.max())),
         "S² σ_i p_ij²" if tuned else "λ_min⁺ / (1 + max m_i)" if len(chosen.p_edge) else "1",
         "weight of virtual edges; communication edges have 1/2"),
        ("p_comm", number(chosen.p_comm),
         "least predicted time" if tuned else "min(1/2, 1 / (1 + √(γ̃ m² / (2 (1 + m)))))"
         if len(chosen.p_edge) else "0: one node has no edge",
         "probability that an iteration is a communication"),
        ("p_R", number(chosen.p_least), "min p / R", "least probability over resistance"),
        ("S", number(math.sqrt(chosen.smoothness)), "max √(M R) / p",
         "what a step may be at most, on the edge that is worst"),
        ("A_0", number(chosen.start), "3 / (S p_R)²",
         "start of A_t; Theorem 4: the dual gap falls as 1 / A_t, and A_t ≥ t² / (4 S²)"),
    ]  # fmt: skip
    return rows


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

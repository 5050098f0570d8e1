"""Appendix D.3 and D.4 for nodes that differ: Lemma 6, S_comp and the general form of Theorem 3.

The text takes sigma_k = sigma for communication edges on its way to gamma~. Without that,
(1 / sigma_k + 1 / sigma_l)^{-1} is at least sigma r_sigma / 2, and Delta_p becomes
Delta_p sqrt(r_sigma) in every formula; r_sigma = 1 where all sigma_i are equal.
"""

import math
from typing import NamedTuple

from . import theory


class Sizes(NamedTuple):
    """What the bounds of Appendix D depend on."""

    n: int
    m: float
    kappa_s: float
    kappa_min: float
    s_comp: float
    gamma_tilde: float
    delta_p: float
    c_tau: float
    r_sigma: float

    @property
    def r_kappa(self):
        """r_kappa = min_i kappa_i / kappa_s."""
        return self.kappa_min / self.kappa_s

    @property
    def delta(self):
        """Delta_p, corrected for unequal sigma_i."""
        return self.delta_p * math.sqrt(self.r_sigma)

    @property
    def network(self):
        """sqrt(kappa_s / gamma~)."""
        return math.sqrt(self.kappa_s / self.gamma_tilde)


def sizes(l_ij, sigma, edges, mu2_edge, p_edge):
    """All of them from L_ij (one array per node), sigma, the graph and its probabilities."""
    kappas = theory.kappa(l_ij, sigma)
    n, p_comm = len(sigma), sum(p_edge)
    return Sizes(
        n,
        sum(len(l_i) for l_i in l_ij) / n,
        max(kappas),
        min(kappas),
        theory.s_comp(l_ij, sigma),
        theory.gamma_tilde(n, edges, mu2_edge),
        min(p_edge) * len(edges) / p_comm,
        theory.p_comm_max(n, edges, p_edge) / p_comm,
        min(2 / (max(sigma) * (1 / sigma[k] + 1 / sigma[l])) for k, l in edges),
    )


def lemma_6(s, p_comm):
    """(rho_comm, rho_comp), of which rho is at least the lesser.

    rho_comm = p_comm Delta_p sqrt(gamma~ / (2 kappa)) / (sqrt2 n),
    rho_comp = p_comp sqrt(r_kappa) / S_comp / (sqrt2 n).
    """
    scale = math.sqrt(2) * s.n
    comm = p_comm * s.delta * math.sqrt(s.gamma_tilde / (2 * s.kappa_s)) / scale
    return comm, (1 - p_comm) * math.sqrt(s.r_kappa) / s.s_comp / scale


def p_comm_of_the_proof(s):
    """min(1/2, p*), p* = (1 + sqrt(gamma~ / (2 kappa_min)) Delta_p S_comp)^{-1}."""
    return theory.p_comm_appendix(s.s_comp, s.gamma_tilde, s.kappa_min, s.delta)


def p_comm_of_the_statement(s):
    """min(1/2, (1 + sqrt(gamma~ / kappa_min) S_comp)^{-1})."""
    return min(0.5, 1 / (1 + math.sqrt(s.gamma_tilde / s.kappa_min) * s.s_comp))


def times(s, p_comm, tau):
    """(T_1, T_2) of the proof: (p_comp + 2 c_tau tau p_comm) / (n rho) with rho of each kind.

    The last form of T_2 in the text has lost c_tau.
    """
    work = (1 - p_comm) + 2 * s.c_tau * tau * p_comm
    return tuple(work / (s.n * rho) for rho in lemma_6(s, p_comm))


def at_the_optimum(s, tau):
    """T_1(p*): 2 (2 tau c_tau / Delta_p sqrt(kappa / gamma~) + S_comp / sqrt(2 r_kappa))."""
    return 2 * (2 * tau * s.c_tau / s.delta * s.network + s.s_comp / math.sqrt(2 * s.r_kappa))


def theorem_3(s, tau, first=1.0):
    """The general form without C and log(1 / epsilon).

    2 (first (m + sqrt(m kappa_s)) / sqrt(2 r_kappa) + (1 + 4 c_tau tau) / Delta_p sqrt(kappa_s /
    gamma~)), first = 1 as printed.
    """
    local = first * (s.m + math.sqrt(s.m * s.kappa_s)) / math.sqrt(2 * s.r_kappa)
    return 2 * (local + (1 + 4 * s.c_tau * tau) / s.delta * s.network)

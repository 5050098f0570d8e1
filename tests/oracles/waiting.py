"""Appendix C: the variables X^t(i, w) that count weighted paths, and what they bound.

A law of schedules is (n_nodes, edges, p_edge, p_node): each event is a communication on an edge or
a local update at a node. Times are those of the theory: a local update takes 1, a communication
tau, and its two nodes leave it together.
"""

import math
from collections import Counter

import numpy as np
from scipy.optimize import minimize_scalar


def paths(n_nodes, events, tau):
    """X^t(i, w) of one schedule, as one counter {w: X} per node; X^0(i, 0) = 1."""
    x = [Counter({0.0: 1}) for _ in range(n_nodes)]
    for event in events:
        if event[0] == "local":
            x[event[1]] = shifted(x[event[1]], 1.0)
        else:
            _, k, l = event
            x[k] = x[l] = shifted(x[k] + x[l], tau)
    return x


def shifted(counts, by):
    """The same counts, later by a time."""
    return Counter({w + by: count for w, count in counts.items()})


def drawn(n_nodes, edges, p_edge, p_node):
    """All events with their probabilities."""
    communications = [(("comm", k, l), p) for (k, l), p in zip(edges, p_edge, strict=True)]
    return communications + [(("local", i), p_node[i]) for i in range(n_nodes)]


def expected_paths(law, tau, n_events, unit=0.5):
    """E[X^t(i, w)] by the linear recursion of Lemma 4's proof: row i, column w / unit.

    The proof prints the sum over neighbours with p_comm in front of p_ij; the p_ij alone are the
    probabilities of the edges. 1 and tau are whole multiples of the unit.
    """
    n_nodes, edges, p_edge, p_node = law
    both = np.zeros((n_nodes, n_nodes))
    for (k, l), p in zip(edges, p_edge, strict=True):
        both[np.ix_((k, l), (k, l))] += p
    local, comm = round(1 / unit), round(tau / unit)
    p_node = np.array(p_node)[:, None]
    idle = 1 - p_node - np.diag(both)[:, None]
    x = np.zeros((n_nodes, n_events * max(local, comm) + 1))
    x[:, 0] = 1
    for _ in range(n_events):
        x = idle * x + p_node * later(x, local) + both @ later(x, comm)
    return x


def later(x, columns):
    """The same expectations at times that are later by some columns; the last are empty before."""
    moved = np.zeros_like(x)
    moved[:, columns:] = x[:, : x.shape[1] - columns]
    return moved


def tail(x, threshold, unit=0.5):
    """Sum over nodes and over w >= threshold."""
    first = math.ceil(threshold / unit - 1e-9)
    return x[:, first:].sum()


def law_of_finish_times(law, tau, n_events):
    """{(T_1, ..., T_n): probability} after n_events, every schedule counted; T_k = T_l = max + tau.

    The recursion of the proof of Lemma 3, written for times and not for paths.
    """
    found = {(0.0,) * law[0]: 1.0}
    for _ in range(n_events):
        after = Counter()
        for times, probability in found.items():
            for event, p in drawn(*law):
                after[executed(times, event, tau)] += probability * p
        found = after
    return found


def executed(times, event, tau):
    """Finish times of all nodes after one more event."""
    new = list(times)
    if event[0] == "local":
        new[event[1]] += 1.0
    else:
        _, k, l = event
        new[k] = new[l] = max(times[k], times[l]) + tau
    return tuple(new)


def generating_matrix(law, tau, s):
    """Symmetric G: sum_w e^{s w} E[X^{t+1}(i, w)] = sum_j G_ij sum_w e^{s w} E[X^t(j, w)]."""
    _, edges, p_edge, p_node = law
    g = np.diag([1 + p * (math.exp(s) - 1) for p in p_node])
    for (k, l), p in zip(edges, p_edge, strict=True):
        for i in (k, l):
            g[i, i] -= p
            g[i, k] += p * math.exp(s * tau)
            g[i, l] += p * math.exp(s * tau)
    return g


def pace(law, tau):
    """The least nu for which Lemma 3 and Chernoff's bound give P(T_max(t) >= nu t) -> 0.

    sum_{w >= nu t} sum_i E[X^t(i, w)] <= e^{-s nu t} 1^T G(s)^t 1 for every s > 0, which vanishes
    if nu > log(spectral radius of G(s)) / s. Nothing is assumed of the probabilities.
    """

    def bound(log_s):
        s = math.exp(log_s)
        radius = np.linalg.eigvalsh(generating_matrix(law, tau, s))[-1]
        return math.log(radius) / s

    largest = math.log(30.0 / max(1.0, tau))
    return minimize_scalar(bound, bounds=(largest - 9.0, largest), method="bounded").fun


def lemma_4(law, tau):
    """(nu, p_c, p_l): nu = 6 p_c tau + 9 p_l, p_c = 4 max_i p_i^comm, p_l = max_i p_i^comp."""
    n_nodes, edges, p_edge, p_node = law
    communicates = [
        sum(p for pair, p in zip(edges, p_edge, strict=True) if i in pair) for i in range(n_nodes)
    ]
    p_c, p_l = 4 * max(communicates), max(p_node)
    return 6 * p_c * tau + 9 * p_l, p_c, p_l

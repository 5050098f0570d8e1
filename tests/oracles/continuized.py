"""Continuized ADFS and NS-ADFS (Even et al. 2021), event after event, on dense n(1+m) x d matrices.

Every augmented edge has a Poisson clock; `ringing` holds (time, edge) in the order of time. Between
events all rows flow by their differential equation; at an event y = x(t-), w = v(t-), then the
update of the algorithm. Edges are indexed 0 .. E+N-1, communications first.
"""

import math

import numpy as np
from scipy.integrate import quad
from scipy.linalg import expm

from . import algorithm1, algorithm3, augmented


def strongly_convex(
    shards, sigma, edges, loss, mu2_edge, mu2_virtual, p, rho, sigma_a, ringing, wanted, start=None
):
    """Yield (x, v) of ADFS at the times `wanted`, in increasing order; an event at that very time
    has not happened yet. At time 0 it is `start`, or zero.
    """
    inverse_sigma = augmented.inverse_diagonal(augmented.sigma_matrix(shards, sigma, loss))
    samples, pairs = augmented.samples(shards), augmented.ends(shards, edges)
    r = augmented.resistances(augmented.incidence(shards, edges, mu2_edge, mu2_virtual))
    mu2 = np.concatenate([mu2_edge, mu2_virtual])

    def flow(x, v, start, stop):
        """x' = rho (v - x), v' = rho (x - v): a linear equation with constant coefficients."""
        through = expm((stop - start) * rho * np.array([[-1.0, 1.0], [1.0, -1.0]]))
        return through[0, 0] * x + through[0, 1] * v, through[1, 0] * x + through[1, 1] * v

    def jump(x, v, time, edge):
        """v+ = prox(v - eta~ W Sigma^{-1} x) and x+ = x + (rho R / p)(v+ - v)."""
        k, l = pairs[edge]
        eta = rho * mu2[edge] / (sigma_a * p[edge])
        after = v - eta * difference(len(x), k, l) @ (inverse_sigma @ x)
        if edge >= len(edges):
            both = after[k] + after[l]
            after[l] = algorithm1.prox(loss, samples[edge - len(edges)], eta, after[l])
            after[k] = both - after[l]
        return x + rho * r[edge] / p[edge] * (after - v), after

    if start is None:
        start = zeros(shards)
    return _path(start, flow, jump, ringing, wanted)


def convex(shards, sigma, edges, loss, mu2_edge, mu2_virtual, p, s, a_0, ringing, wanted):
    """Yield (x, v) of NS-ADFS at the times `wanted`, from zero."""
    samples, pairs = augmented.samples(shards), augmented.ends(shards, edges)
    r = augmented.resistances(augmented.incidence(shards, edges, mu2_edge, mu2_virtual))
    mu2 = np.concatenate([mu2_edge, mu2_virtual])
    inverse_sigma = np.diag([1 / sigma_i for sigma_i in sigma] + [0.0] * len(samples))

    def flow(x, v, start, stop):
        """x' = (A' / A)(v - x), v' = 0: x - v shrinks by exp(- integral of A' / A)."""
        integral, _ = quad(lambda t: speed(t, s, a_0) / weight(t, s, a_0), start, stop,
                           epsabs=1e-14, epsrel=1e-13)  # fmt: skip
        return v + math.exp(-integral) * (x - v), v

    def jump(x, v, time, edge):
        """Lines 7 to 12 of Algorithm 3 with a = A'(t), A = A(t) and y = x(t-)."""
        k, l = pairs[edge]
        a, big_a = speed(time, s, a_0), weight(time, s, a_0)
        eta = a * mu2[edge] / p[edge]
        after = v - eta * difference(len(x), k, l) @ (inverse_sigma @ x)
        if edge >= len(edges):
            both = after[k] + after[l]
            after[l] = algorithm3.prox(loss, samples[edge - len(edges)], eta, after[l])
            after[k] = both - after[l]
        return x + a / big_a * r[edge] / p[edge] * (after - v), after

    return _path(zeros(shards), flow, jump, ringing, wanted)


def weight(t, s, a_0):
    """A(t), the solution of A' = sqrt(A) / S from A_0, so that a^2 S^2 = A for a = A'."""
    return (math.sqrt(a_0) + t / (2 * s)) ** 2


def speed(t, s, a_0):
    """a(t) = A'(t)."""
    return math.sqrt(weight(t, s, a_0)) / s


def difference(n_rows, k, l):
    """W_kl = (e_k - e_l)(e_k - e_l)^T, without mu^2."""
    unit = np.zeros(n_rows)
    unit[k], unit[l] = 1.0, -1.0
    return np.outer(unit, unit)


def zeros(shards):
    """x = v = 0, one row per augmented node."""
    n_rows = len(shards) + len(augmented.samples(shards))
    return np.zeros((2, n_rows, np.shape(shards[0][0])[1]))


def _path(start, flow, jump, ringing, wanted):
    """From (x, v) at time 0 through all events before each wanted time, in order."""
    x, v = start
    now, events = 0.0, list(ringing)
    for reading in wanted:
        while events and events[0][0] < reading:
            time, edge = events.pop(0)
            x, v = jump(*flow(x, v, now, time), time, edge)
            now = time
        yield flow(x, v, now, reading)

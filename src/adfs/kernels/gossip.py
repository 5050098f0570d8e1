"""Gossip with a Chebyshev polynomial of the Laplacian: many rounds of messages act as one good one.

With ``N = S^{-1/2} Lap S^{-1/2}`` for weights ``S = diag(s_i)`` of the nodes, whose positive
eigenvalues lie in ``[low, high]``,

    G_K = S^{1/2} P_K(N) S^{1/2},    P_K(z) = 1 - T_K(c2 (1 - c3 z)) / T_K(c2),
    c2 = (high + low) / (high - low),    c3 = 2 / (high + low).

``S = I`` is the text's ``P_K(Lap)``. The recursion keeps the product ``g_k = G_k u`` itself:

    g_{k+1} = g_k + omega_{k+1} c3 Lap (u - S^{-1} g_k) + (omega_{k+1} - 1) (g_k - g_{k-1}),
    omega_1 = 1,   1 / omega_{k+1} = 1 - omega_k / (2 c2)^2    (with 2 for omega_1 on the right).

Derivation: docs/algorithms/msda.md.
"""

import math

import numpy as np

from adfs.kernels.compiled import njit
from adfs.kernels.node_sums import fetch_neighbours


def chebyshev_weights(low, high, rounds):
    """``omega_k c3`` and ``omega_k - 1`` of each round, (rounds, 2)."""
    inverse_c2 = (high - low) / (high + low)
    weights = np.empty((rounds, 2))
    omega = 1.0
    for k in range(rounds):
        weights[k] = omega * 2.0 / (high + low), omega - 1.0
        omega = 1.0 / (1.0 - 0.25 * inverse_c2**2 * (2.0 if k == 0 else omega))
    return weights


def polynomial(weights, z):
    """``P_K`` at numbers ``z``, by the recursion of the kernel."""
    value, before = np.zeros_like(z), np.zeros_like(z)
    for step, drift in weights:
        value, before = value + step * z * (1.0 - value) + drift * (value - before), value
    return value


def interval(low, high, rounds):
    """Smallest and largest value of ``P_K`` on ``[low, high]``: ``(1 -+ c)^2 / (1 + c^2)``."""
    root = math.sqrt(low / high)
    c = ((1.0 - root) / (1.0 + root)) ** rounds
    return (1.0 - c) ** 2 / (1.0 + c * c), (1.0 + c) ** 2 / (1.0 + c * c)


@njit(cache=True, _nrt=False, nogil=True)
def chebyshev(links, weights, inverse_scale, u, product, before, message):
    """``product = G_K u``, row by row of ``weights``; each is one round of messages of d numbers.

    Matrices have one row per node of this process; ``message``, with rows for neighbours elsewhere,
    and ``before`` are there to work in.
    """
    n, d = u.shape
    for i in range(n):
        for j in range(d):
            product[i, j] = 0.0
            before[i, j] = 0.0
    for k in range(weights.shape[0]):
        step, drift = weights[k, 0], weights[k, 1]
        for i in range(n):
            for j in range(d):
                now = product[i, j]
                message[i, j] = u[i, j] - inverse_scale[i] * now
                product[i, j] = now + drift * (now - before[i, j])
                before[i, j] = now
        fetch_neighbours(links, message)
        add_laplacian(links.edges, step, message, product)


@njit(cache=True, _nrt=False, nogil=True)
def add_laplacian(edges, step, u, out):
    """``out += step Lap u``: each edge adds to one end what it takes from the other.

    Rows of ``u`` beyond those of ``out`` are neighbours elsewhere, which add theirs themselves.
    """
    n = out.shape[0]
    for e in range(edges.shape[0]):
        k, l = edges[e, 0], edges[e, 1]
        if k < n and l < n:
            for j in range(u.shape[1]):
                flow = step * (u[k, j] - u[l, j])
                out[k, j] += flow
                out[l, j] -= flow
        else:
            own, sign = (k, 1.0) if k < n else (l, -1.0)
            for j in range(u.shape[1]):
                out[own, j] += sign * (step * (u[k, j] - u[l, j]))


@njit(cache=True, _nrt=False, nogil=True)
def mix(starts, places, values, rows, out):
    """``out = W rows``; ``W`` in compressed rows, in the order of node numbers: the same bits
    however nodes are spread over processes. ``places`` are rows of ``rows``.
    """
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0.0
        for entry in range(starts[i], starts[i + 1]):
            value, place = values[entry], places[entry]
            for j in range(out.shape[1]):
                out[i, j] += value * rows[place, j]

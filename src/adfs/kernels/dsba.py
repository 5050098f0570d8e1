"""Rounds of DSBA: at every node one sample's proximal step, then one exchange with all neighbours.

The recursion runs in its summed form (docs/algorithms/dsba.md), with
``U = (I - W) / 2 = Lap / (2 lambda_max)``:

    z_{t+1} + alpha (b grad B_ij + lam)(z_{t+1}) = z_t - U z_t - v_t + alpha b phi_ij,
    v_t = sum_{s <= t} U z_s + alpha phibar_t,

where ``b = 1 / (m_i p_ij)`` is the boost of a sample that is drawn with probability ``p_ij``.

A node keeps ``z``, which is its message, and ``v``. The right side and ``v`` lie interleaved in one
row of pairs per node, so that one pass over a sample's non-zeros serves both. The work of a round
is O((n + E) d), the numbers that are exchanged.
"""

from typing import NamedTuple

import numpy as np

from adfs.kernels.compiled import njit
from adfs.kernels.node_sums import Links, fetch_neighbours
from adfs.kernels.point_saga import BOOST, LABEL, NORM2, SLOPE, WARM, WEIGHT
from adfs.kernels.prox import slope_after
from adfs.kernels.rows import prefetch_sample, two_axpys, two_dots
from adfs.kernels.sampling import alias_draw, uniform

AHEAD = 2  # nodes between asking for a row's memory and using it


class DsbaState(NamedTuple):
    """What a round reads and writes; one row per node, one line per sample."""

    lines: np.ndarray  # as for Point-SAGA
    z: np.ndarray  # one row per node here, then one per neighbour elsewhere
    pairs: np.ndarray  # (n, 2 d): the right side and v; before round t, v lacks U z_t
    scratch: np.ndarray  # (d,)


class DsbaConstants(NamedTuple):
    """Numbers of a run that never change."""

    loss: int
    alpha: float
    ridge: np.ndarray  # lam_i = sigma_i / mbar
    share: np.ndarray  # m_i / mbar, the factor of a node's components
    half: float  # 1 / (2 lambda_max), so that U = half Lap
    links: Links
    offsets: np.ndarray  # first row of each node
    keys: np.ndarray  # each node's stream of samples
    tables: np.ndarray  # alias tables of each node's samples, one after another


@njit(cache=True, _nrt=False, nogil=True)
def run_rounds(start, count, rows, state, constants):
    """Rounds ``start, ..., start + count - 1``, in place."""
    n_nodes = state.pairs.shape[0]
    for t in range(start, start + count):
        fetch_neighbours(constants.links, state.z)
        for node in range(n_nodes):
            later = node + AHEAD
            coming = drawn(constants, later % n_nodes, t + later // n_nodes)
            prefetch_sample(rows, coming, state.lines)
            mix(node, state, constants)
            backward(node, drawn(constants, node, t), rows, state, constants)
        for node in range(n_nodes):
            publish(node, state, constants)


@njit(cache=True, _nrt=False, forceinline=True)
def drawn(constants, node, t):
    """Row of its own shard that the node draws at round ``t``."""
    first, last = constants.offsets[node], constants.offsets[node + 1]
    u = uniform(constants.keys[node], t)
    return first + alias_draw(constants.tables, first, last - first, u)


@njit(cache=True, _nrt=False, forceinline=True)
def mix(node, state, constants):
    """Add ``U z`` to ``v``; the right side becomes ``z - U z - v``.

    Both ends of an edge take the same difference, so ``v`` sums to ``alpha phibar`` over the nodes.
    """
    z, pairs, scratch = state.z, state.pairs, state.scratch
    for k in range(scratch.size):
        scratch[k] = 0.0
    links = constants.links
    for j in range(links.starts[node], links.starts[node + 1]):
        other = links.neighbours[j]
        for k in range(scratch.size):
            scratch[k] += z[node, k] - z[other, k]
    for k in range(scratch.size):
        move = constants.half * scratch[k]
        pairs[node, 2 * k + 1] += move
        pairs[node, 2 * k] = z[node, k] - move - pairs[node, 2 * k + 1]


@njit(cache=True, _nrt=False, forceinline=True)
def backward(node, row, rows, state, constants):
    """One sample's prox: the right side becomes ``(1 + alpha lam) z+``, and the table moves."""
    lines, pairs = state.lines, state.pairs
    boost = lines[row, BOOST]
    factor = constants.alpha * boost * constants.share[node] * lines[row, WEIGHT]
    inverse = 1.0 / (1.0 + constants.alpha * constants.ridge[node])
    slope, norm2 = lines[row, SLOPE], lines[row, NORM2]
    target = two_dots(rows, row, pairs, node)[0] + factor * slope * norm2
    new, lines[row, WARM] = slope_after(
        constants.loss, lines[row, LABEL], factor * inverse * norm2, target * inverse,
        lines[row, WARM], slope,
    )  # fmt: skip
    lines[row, SLOPE] = new
    delta = factor * (new - slope)
    n_samples = constants.offsets[node + 1] - constants.offsets[node]
    two_axpys(rows, row, -delta, delta / (boost * n_samples), pairs, node)


@njit(cache=True, _nrt=False, forceinline=True)
def publish(node, state, constants):
    """``z <- z+``, once all nodes have read the messages of the round."""
    inverse = 1.0 / (1.0 + constants.alpha * constants.ridge[node])
    for k in range(state.scratch.size):
        state.z[node, k] = state.pairs[node, 2 * k] * inverse

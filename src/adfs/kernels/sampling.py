"""Random draws in O(1), in any order: counter-based streams and alias tables.

Draw number ``t`` of a stream is ``hash(key, t)`` (SplitMix64 at position ``t``), so a schedule is
the same whether it is streamed, stored, or cut anywhere, and no generator state is kept.
"""

import math

import numpy as np
from numba import config

from adfs.kernels.compiled import njit
from adfs.kernels.memory import prefetch

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_A = np.uint64(0xBF58476D1CE4E5B9)
MIX_B = np.uint64(0x94D049BB133111EB)
ONE = np.uint64(1)
S11, S27, S30, S31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)

THRESHOLD_ONE = 1 << 32
FULL = 1.0 - 2.0**-34  # of a cell, up to rounding
ALIAS_BITS = 31
ALIAS_MASK = (1 << ALIAS_BITS) - 1
AHEAD = 24  # draws between asking for a table's cell and reading it


@njit(cache=True, _nrt=False, forceinline=True)
def bits(key, t):
    """Number ``t`` of the stream ``key``: 64 random bits, different ones for different ``t``."""
    z = key + (np.uint64(t) + ONE) * GOLDEN
    z = (z ^ (z >> S30)) * MIX_A
    z = (z ^ (z >> S27)) * MIX_B
    return z ^ (z >> S31)


if config.DISABLE_JIT:  # NumPy reports what wraps around 2^64 on purpose
    bits = np.errstate(over="ignore")(bits)


@njit(cache=True, _nrt=False, forceinline=True)
def uniform(key, t):
    """Number ``t`` of the stream ``key``: a uniform double in [0, 1) with 53 random bits."""
    return np.float64(bits(key, t) >> S11) * (1.0 / 9007199254740992.0)


@njit(cache=True, nogil=True)
def build_alias(weights, table):
    """Fill ``table`` (int64, one word per cell) with Walker's alias table of ``weights``, by Vose.

    A word holds the cell's threshold, in units of 2^-32, above its alias: one load a draw.
    Cells of weight zero are never drawn. Threshold and alias share a word, so at most 2^31 cells.
    A cell that is full but for rounding counts as full: equal weights often fill cells exactly,
    and the table, and with it all draws, must not depend on the last bit of a weight.
    """
    n = weights.size
    total = 0.0
    for k in range(n):
        total += weights[k]
    scaled = np.empty(n)
    small = np.empty(n, np.int64)
    large = np.empty(n, np.int64)
    n_small = n_large = 0
    heaviest = 0
    for k in range(n):
        scaled[k] = weights[k] / total * n
        if weights[k] > weights[heaviest]:
            heaviest = k
        if scaled[k] < FULL:
            small[n_small] = k
            n_small += 1
        else:
            large[n_large] = k
            n_large += 1
    while n_small > 0 and n_large > 0:
        n_small -= 1
        n_large -= 1
        low, high = small[n_small], large[n_large]
        table[low] = pack(scaled[low], high)
        scaled[high] -= 1.0 - scaled[low]
        if scaled[high] < FULL:
            small[n_small] = high
            n_small += 1
        else:
            large[n_large] = high
            n_large += 1
    # What is left over is full up to rounding; a cell of weight zero still must never be drawn.
    for k in range(n_large):
        table[large[k]] = pack(1.0, large[k])
    for k in range(n_small):
        cell = small[k]
        if weights[cell] > 0.0:
            table[cell] = pack(1.0, cell)
        else:
            table[cell] = pack(0.0, heaviest)


@njit(cache=True, nogil=True)
def build_aliases(weights, offsets, tables):
    """`build_alias` for each node; ``offsets`` says where its weights and its table are."""
    for node in range(offsets.size - 1):
        first, last = offsets[node], offsets[node + 1]
        if last > first:
            build_alias(weights[first:last], tables[first:last])


@njit(cache=True, _nrt=False, forceinline=True)
def pack(threshold, alias):
    """One word from a threshold, rounded up so that no positive weight is lost, and an alias."""
    units = min(np.int64(math.ceil(threshold * THRESHOLD_ONE)), THRESHOLD_ONE - 1)
    return (units << ALIAS_BITS) | np.int64(alias)


@njit(cache=True, _nrt=False, forceinline=True)
def alias_draw(table, start, size, u):
    """Cell in ``[0, size)`` of the alias table at ``table[start:start + size]`` from a uniform."""
    position = u * size
    cell = np.int64(position)
    word = table[start + cell]
    if (position - cell) * THRESHOLD_ONE < np.float64(word >> ALIAS_BITS):
        return cell
    return word & ALIAS_MASK


@njit(cache=True, _nrt=False, forceinline=True)
def prefetch_cell(table, start, size, u):
    """Ask for the memory that `alias_draw` will read."""
    prefetch(np.uintp(table.ctypes.data + 8 * (start + np.int64(u * size))))


@njit(cache=True, _nrt=False, nogil=True)
def draw_which(which, start, key, table):
    """The shared stream: an edge (``< E``) or ``E + node`` for each event from ``start`` on."""
    size = table.size
    for k in range(which.size):
        which[k] = alias_draw(table, 0, size, uniform(key, start + k))


@njit(cache=True, _nrt=False, nogil=True)
def draw_samples(sample, which, start, when, n_edges, keys, tables, offsets):
    """Each local event's sample, from its node's own stream at the event's index; -1 for edges.

    The indices are those from ``start`` on, or ``when`` if that is not None.
    """
    for k in range(which.size):
        soon = k + AHEAD
        if soon < which.size and which[soon] >= n_edges:
            node = which[soon] - n_edges
            first = offsets[node]
            u = uniform(keys[node], start + soon if when is None else when[soon])
            prefetch_cell(tables, first, offsets[node + 1] - first, u)
        node = which[k] - n_edges
        if node < 0:
            sample[k] = -1
        else:
            first = offsets[node]
            u = uniform(keys[node], start + k if when is None else when[k])
            sample[k] = alias_draw(tables, first, offsets[node + 1] - first, u)


@njit(cache=True, _nrt=False, nogil=True)
def draw_coins(out, start, key, p):
    """1 with probability ``p`` and 0 otherwise, from ``start`` on."""
    for k in range(out.size):
        out[k] = uniform(key, start + k) < p


@njit(cache=True, _nrt=False, nogil=True)
def keep_own(start, stop, key, table, mine, which, when, buffer):
    """Draw events ``start`` to ``stop`` of the shared stream and keep this rank's; how many.

    ``mine`` is 1 for its edges and nodes, 0 for others: no unpredictable branch. Some
    events at a time are drawn to ``buffer``, in a loop that the compiler vectorises. What
    does not fit into the arrays is counted only; they need ``buffer.size`` to spare.
    """
    used, size = 0, table.size
    for first in range(start, stop, buffer.size):
        n = min(buffer.size, stop - first)
        for k in range(n):
            buffer[k] = alias_draw(table, 0, size, uniform(key, first + k))
        if used + n <= which.size:
            for k in range(n):
                which[used], when[used] = buffer[k], first + k
                used += mine[buffer[k]]
        else:
            for k in range(n):
                used += mine[buffer[k]]
    return used

"""Edges of large random graphs, in time linear in their number."""

import numpy as np

from adfs.graphs.edges import Edges
from adfs.randomness import generator

LARGE = 20_000  # nodes, from which on these draws take the place of the older ones


def regular_edges(n: int, k: int, seed: int, attempt: int) -> Edges:
    """Edges of a random graph in which every node has ``k`` neighbours.

    Ends are paired at random; the few pairs that are no new edge (about ``(k^2 - 1) / 4`` of all,
    whatever n is) exchange an end with a random pair until none is left (McKay and Wormald 1990).
    """
    random = generator(seed, f"graph/random_regular/large/{attempt}")
    pairs = random.permutation(np.repeat(np.arange(n, dtype=np.int64), k)).reshape(-1, 2)
    while True:
        keys = pairs.min(axis=1) * n + pairs.max(axis=1)
        order = np.argsort(keys, kind="stable")
        wrong = pairs[:, 0] == pairs[:, 1]
        wrong[order[1:]] |= np.diff(keys[order]) == 0
        if not wrong.any():
            return np.column_stack(np.divmod(keys[order], n)).astype(np.int32)
        for bad in np.flatnonzero(wrong).tolist():
            other, side = (int(random.integers(size)) for size in (len(pairs), 2))
            mine, theirs = pairs[bad, 0], pairs[other, side]
            pairs[bad, 0], pairs[other, side] = theirs, mine


def pair_edges(n: int, p: float, seed: int, attempt: int) -> Edges:
    """Each of the ``n (n - 1) / 2`` pairs with probability ``p``: the gaps between chosen pairs.

    Pairs (l, k) with ``k < l`` are numbered ``l (l - 1) / 2 + k`` (Batagelj and Brandes 2005).
    """
    random = generator(seed, f"graph/erdos_renyi/large/{attempt}")
    n_pairs = n * (n - 1) // 2
    chosen, last = [], -1
    while last < n_pairs:
        wanted = (n_pairs - last) * p
        gaps = random.geometric(p, int(wanted + 6.0 * np.sqrt(wanted)) + 16)
        chosen.append(last + np.cumsum(gaps))
        last = int(chosen[-1][-1])
    numbers = np.concatenate(chosen)
    numbers = numbers[numbers < n_pairs]
    high = ((1.0 + np.sqrt(1.0 + 8.0 * numbers)) / 2.0).astype(np.int64)
    high -= high * (high - 1) // 2 > numbers  # a square root may be rounded
    high += high * (high + 1) // 2 <= numbers
    return np.column_stack([numbers - high * (high - 1) // 2, high]).astype(np.int32)

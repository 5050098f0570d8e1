"""Stratified draws as they are written down: one epoch at a time, in plain Python."""

import math

import numpy as np

from adfs.randomness import stream_key

MASK = (1 << 64) - 1


def bits(key, t):
    """SplitMix64 at position ``t`` (Steele, Lea and Flood 2014)."""
    z = (key + (t + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def shuffled(values, key):
    """Each value changes places with one before it, or with itself, as it comes."""
    found = []
    for k, value in enumerate(values):
        other = math.floor((bits(key, k) >> 11) / 2**53 * (k + 1))
        found.append(value)
        found[k], found[other] = found[other], value
    return found


def epoch_of(weights, key, epoch):
    """Samples under the points ``k + u``, those without weight left out of the line."""
    m = len(weights)
    line = [sample for sample in shuffled(range(m), bits(key, 0)) if weights[sample] > 0.0]
    ends = np.cumsum(weights[line]) / np.sum(weights) * m
    u = (bits(key, 1 + 2 * epoch) >> 11) / 2**53
    met = [line[int(np.sum(ends[:-1] <= k + u))] for k in range(m)]
    return shuffled(met, bits(key, 2 + 2 * epoch))


def local_samples(weights, seed, node, n):
    """The first ``n`` samples of a node."""
    key, found, epoch = int(stream_key(seed, f"strata/{node}")), [], 0
    while len(found) < n:
        found += epoch_of(weights, key, epoch)
        epoch += 1
    return found[:n]

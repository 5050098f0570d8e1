"""Accelerated gossip averaging: APCG on the dual of consensus."""

import numpy as np
import pytest
import scipy.sparse as sp

import adfs
from adfs.apcg.smooth import LeastSquares
from adfs.apcg.solver import apcg


def ring(n):
    """Topology, incidence matrix with a column e_k - e_l an edge."""
    topology = adfs.Topology.ring(n)
    k, l = topology.edges.T
    columns = np.arange(topology.n_edges)
    rows = np.concatenate([k, l])
    signs = np.repeat([1.0, -1.0], len(k))
    shape = (n, topology.n_edges)
    return topology, sp.csc_array((signs, (rows, np.tile(columns, 2))), shape)


def accelerated_errors(topology, incidence, values, seed, every, n_iterations):
    """Squared distance to consensus of ``c - A lambda_t``."""
    seen = []
    apcg(
        LeastSquares(incidence, values), R=topology.spectrum.resistances,
        sigma_A=topology.spectrum.lambda_min, tol=0.0, max_iter=n_iterations, check_every=every,
        seed=seed, callback=lambda r: seen.append(values - incidence @ r.x_t) and None,
    )  # fmt: skip
    return [np.sum((each - values.mean()) ** 2) for each in seen]


def plain_errors(topology, values, seed, every, n_iterations):
    """Randomized gossip: an edge drawn uniformly averages its two ends."""
    generator = np.random.default_rng(seed)
    drawn = topology.edges[generator.integers(topology.n_edges, size=n_iterations)].tolist()
    errors, now = [np.sum((values - values.mean()) ** 2)], values.tolist()
    for t, (k, l) in enumerate(drawn, start=1):
        now[k] = now[l] = (now[k] + now[l]) / 2
        if t % every == 0:
            errors.append(np.sum((np.array(now) - values.mean()) ** 2))
    return errors


def measured_rate(errors, every):
    """Slope of the log error, averaged over seeds (a typical run), its first fifth left out."""
    typical = np.mean(np.log(errors), axis=0)
    first = len(typical) // 5
    return -np.polyfit(every * np.arange(first, len(typical)), typical[first:], 1)[0]


def test_accelerated_gossip_is_five_times_as_fast_as_randomized_gossip_on_a_ring_of_30():
    topology, incidence = ring(30)
    values = np.random.default_rng(0).standard_normal(30)
    fast = [accelerated_errors(topology, incidence, values, s, 100, 3000) for s in range(16)]
    slow = [plain_errors(topology, values, s, 500, 15000) for s in range(8)]
    fast_rate, slow_rate = measured_rate(fast, 100), measured_rate(slow, 500)
    spectrum = topology.spectrum
    proven = 1 / 30 * np.sqrt(spectrum.lambda_min / (2 * spectrum.resistances.max()))
    assert fast_rate >= proven
    # A step is a projector W with E[W] = I - Lap / (2 E): the mean square falls at least by
    # 1 - lambda_min / (2 E), the mean by exactly that, so squares by at most twice as much.
    assert 1.0 <= slow_rate / (spectrum.lambda_min / 60) <= 2.1
    assert fast_rate >= 5 * slow_rate


def test_gossip_finds_resistances_and_gap_of_the_ring_by_itself():
    topology, incidence = ring(30)
    values = np.random.default_rng(0).standard_normal(30)
    result = apcg(LeastSquares(incidence, values), tol=1e-12)
    chosen = result.parameters
    np.testing.assert_allclose(chosen.R, topology.spectrum.resistances, rtol=0, atol=1e-12)
    assert chosen.sigma_A == pytest.approx(topology.spectrum.lambda_min, rel=1e-11)
    consensus = values - incidence @ result.x
    np.testing.assert_allclose(consensus, np.full(30, values.mean()), rtol=0, atol=1e-10)

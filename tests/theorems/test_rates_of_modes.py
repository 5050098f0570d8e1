"""The rates that EXTRA, DIGing and D2 share, against the circle criterion on a fine grid."""

import numpy as np
import pytest

import adfs
from adfs_methods import steps

ANGLES = np.concatenate([[0.0], np.geomspace(1e-7, np.pi, 20_001)])


def fall_on_a_grid(p, q, b):
    """The largest ``1 - r^2`` by bisection; the circle at many angles, the roots by NumPy."""
    low, high = 0.0, 1.0  # of r
    for _ in range(50):
        r = 0.5 * (low + high)
        u = r * np.exp(1j * ANGLES) - 1.0
        holds = np.all(np.abs(np.roots([1.0, p - 2.0, 1.0 - p + q])) < r)
        if holds and np.all(b * np.abs(u) <= np.abs(u * u + p * u + q)):
            high = r
        else:
            low = r
    return 1.0 - high**2


@pytest.mark.parametrize("seed", range(10))
def test_the_rate_is_that_of_the_circle(seed):
    random = np.random.default_rng(seed)
    mu, step, gap = 10.0 ** random.uniform([-3.0, -2.0, -2.0], [0.0, 0.3, 0.2])
    center, half = step * (1.0 + mu) / 2.0, step * (1.0 - mu) / 2.0
    for p, q, b in [
        (2.0 * gap + center, gap, half),
        (2.0 * gap + center, gap**2, half),
        (2.0 * gap + (1.0 - gap) * center, gap, abs(1.0 - gap) * half),
    ]:
        found = steps.fall_of_modes(np.array([p]), np.array([q]), np.array([b]))
        assert found == pytest.approx(fall_on_a_grid(p, q, b), rel=1e-3, abs=1e-9)


@pytest.mark.parametrize("name", ["extra", "diging", "d2"])
@pytest.mark.parametrize("graph", ["ring:9", "path:30", "grid:4x4", "complete:5"])
def test_no_other_step_has_a_larger_rate(graph, name):
    topology = adfs.Topology.parse(graph)
    rows = np.diag([0.0, 0.3, 0.9])
    shards = [(rows, np.ones(3)) for _ in range(topology.n_nodes)]
    problem = adfs.Problem(shards, "squared", 0.02, topology)
    chosen = adfs.prepare(problem, name)
    for step in chosen.algorithm.step_size * np.concatenate(
        [np.geomspace(0.01, 0.99, 20), [1.01, 1.1, 1.5, 2.0]]
    ):
        other = adfs.prepare(problem, name, rule=f"step={float(step)!r}")
        assert other.rho <= chosen.rho * (1.0 + 1e-9)


@pytest.mark.parametrize("graph", ["ring:9", "path:30", "star:6", "complete:5"])
def test_more_modes_change_no_rate(graph):
    """Eigenvalues of the graph are among those between the ends, of which 65 are looked at."""
    weights, step = adfs.Topology.parse(graph).weights("metropolis"), 0.3
    every = 1.0 - np.linspace(weights.least, weights.second, 2001)
    few = 1.0 - steps.eigenvalues(weights)
    falls = [
        steps.fall_of_modes(2.0 * gaps + 0.55 * step, gaps**2, np.full_like(gaps, 0.45 * step))
        for gaps in (few, every)
    ]
    assert falls[1] == pytest.approx(falls[0], rel=1e-3)

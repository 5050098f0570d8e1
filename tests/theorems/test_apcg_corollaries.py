"""Generalized APCG keeps Corollaries 1 and 2: bounds on means, rates, exact expectations."""

import functools
import itertools
import math

import numpy as np
import pytest

from adfs.apcg.apcg_parameters import choose
from adfs.apcg.penalties import Penalty
from adfs.apcg.smooth import ApcgState, Quadratic
from adfs.apcg.solver import apcg
from support.apcg import PENALTIES, SKEWED, N, only_on, quadratic


class Energy:
    """The two sides of Appendix A's theorem for a quadratic with a named penalty."""

    def __init__(self, kind, psi):
        self.H, self.b, K, _ = quadratic(kind)
        self.psi = psi
        self.projector = np.linalg.pinv(K) @ K
        self.best = self.minimiser()

    def objective(self, x):
        psi = self.psi
        return x @ self.H @ x / 2 - self.b @ x + np.sum(psi.l1 * np.abs(x) + psi.l2 * x**2 / 2)

    def minimiser(self):
        """By proximal gradient steps, far beyond what is needed."""
        step, x, psi = 1 / np.linalg.eigvalsh(self.H)[-1], np.zeros(N), self.psi
        for _ in range(20000):
            z = x - step * (self.H @ x - self.b)
            z = (z - np.clip(z, -step * psi.l1, step * psi.l1)) / (1 + step * psi.l2)
            x = np.clip(z, psi.low, psi.high)
        return x

    def above(self, x):
        return self.objective(x) - self.objective(self.best)

    def distance2(self, v, R):
        """Squared norm of v - x* in A^+ A; A = I where the run took R = 1."""
        gap = v - self.best
        return gap @ gap if (R == 1.0).all() else gap @ self.projector @ gap

    def of_corollary_1(self, x, v, chosen):
        return chosen.sigma_A * self.distance2(v, chosen.R) + 2 * self.above(x)


BOUND_CASES = [
    ("regular", "l1"), ("regular", "box"), ("regular", "zero"), ("singular", "zero"),
    ("split", "tail"), ("narrow", "l1"),
]  # fmt: skip


@functools.cache
def energy_of(kind, name):
    psi = only_on(PENALTIES["all"], np.arange(N) >= 3) if name == "tail" else PENALTIES[name]
    return Energy(kind, psi)


@pytest.mark.parametrize("p", [None, "uniform", SKEWED], ids=["best", "uniform", "skewed"])
@pytest.mark.parametrize(("kind", "name"), BOUND_CASES)
def test_corollary_1_bounds_the_mean_and_its_rate(kind, name, p):
    energy = energy_of(kind, name)
    f = Quadratic(energy.H, energy.b)
    options = {"p": p, "form": "strongly-convex"}
    chosen = apcg(f, energy.psi, tol=0.0, max_iter=0, **options).parameters
    step = math.ceil(1.5 / chosen.rho)
    energies = np.array([
        [
            energy.of_corollary_1(reading.x_t, reading.v_t, chosen)
            for reading in readings(f, energy.psi, step, 8 * step, seed=seed, **options)
        ]
        for seed in range(24)
    ])  # fmt: skip
    times = step * np.arange(9)
    mean = energies.mean(axis=0)
    bound = energy.of_corollary_1(np.zeros(N), np.zeros(N), chosen) * (1 - chosen.rho) ** times
    assert np.all(mean <= bound + 1e-13)
    slope, _ = np.polyfit(times[2:], np.log(mean[2:]), 1)
    assert -slope >= chosen.rho


def readings(f, psi, check_every, max_iter, **options):
    seen = []
    apcg(f, psi, tol=0.0, max_iter=max_iter, check_every=check_every, callback=seen.append,
         **options)  # fmt: skip
    return seen


@pytest.mark.parametrize("p", [None, "uniform", SKEWED], ids=["best", "uniform", "skewed"])
@pytest.mark.parametrize(("kind", "name"), [*BOUND_CASES, ("singular", "l1"), ("singular", "box")])
def test_corollary_2_bounds_the_mean(kind, name, p):
    energy = energy_of(kind, name)
    f = Quadratic(energy.H, energy.b)
    options = {"p": p, "form": "convex", "restart": False}
    chosen = apcg(f, energy.psi, tol=0.0, max_iter=0, **options).parameters
    runs = [readings(f, energy.psi, 50, 2000, seed=seed, **options) for seed in range(20)]
    first = 6 / chosen.p_R**2 * energy.above(np.zeros(N))
    distance2 = energy.distance2(np.zeros(N), chosen.R)
    growth = growths(chosen, 2000)
    for k, t in enumerate(range(0, 2001, 50)):
        above = np.mean([energy.above(run[k].x_t) for run in runs])
        far2 = np.mean([energy.distance2(run[k].v_t, chosen.R) for run in runs])
        # The theorem with B_0 = S^2, then the corollary with A_t >= t^2 / 4.
        start = chosen.S**2 * distance2 + first
        assert chosen.S**2 * far2 + 2 * growth[t] * above <= start * (1 + 1e-9)
        if t:
            assert above <= 2 / t**2 * start


def flat_quadratic(size=40):
    """H with eigenvalues i^-4 and ten zeros, and b in its range: hardly any curvature."""
    generator = np.random.default_rng(0)
    basis = np.linalg.qr(generator.standard_normal((size, size)))[0]
    eigenvalues = np.where(np.arange(size) < 30, np.arange(1.0, size + 1) ** -4, 0.0)
    H = basis * eigenvalues @ basis.T
    return (H + H.T) / 2, H @ generator.standard_normal(size)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["zero", "l1", "box"])
@pytest.mark.parametrize("ratio", [1, 100], ids=["uniform", "skewed"])
def test_corollary_2_falls_as_the_inverse_square_without_strong_convexity(ratio, name):
    """Slope on a log-log plot from 50 / p_R on, where A_0 no longer counts, over 1.7 decades."""
    H, b = flat_quadratic()
    f = Quadratic(H, b)
    psi = {"zero": Penalty(), "l1": Penalty(l1=1e-3), "box": Penalty(low=-0.5, high=0.5)}[name]
    size = len(b)
    p = np.geomspace(1.0, ratio, size) / np.geomspace(1.0, ratio, size).sum()
    options = {"p": p, "form": "convex", "R": np.ones(size), "sigma_A": 0.0}
    lowest = apcg(f, psi, tol=1e-13, max_iter=10**8, form="convex").objective
    separable, step = psi.on(size), math.ceil(50 / p.min())
    above = np.array([
        [
            f.value(reading.x_t) + separable.value(reading.x_t) - lowest
            for reading in readings(f, psi, step, 50 * step, restart=False, seed=seed, **options)
        ]
        for seed in range(8)
    ])  # fmt: skip
    times = np.unique(np.geomspace(1, 50, 12).astype(int))
    slope, _ = np.polyfit(np.log(times), np.log(above.mean(axis=0)[times]), 1)
    assert slope <= -1.9


def growths(chosen, n):
    """S^2 A_t / B_0 from Corollary 2's recursion."""
    values = [3 / min(p / r for p, r in zip(chosen.p, chosen.R, strict=True)) ** 2]
    for _ in range(n):
        values.append(values[-1] + (1 + math.sqrt(1 + 4 * values[-1])) / 2)
    return values


@pytest.mark.parametrize("p", [None, SKEWED], ids=["best", "skewed"])
@pytest.mark.parametrize(("kind", "name"), BOUND_CASES)
def test_corollary_1_holds_in_exact_expectation_over_the_first_two_samples(kind, name, p):
    """All pairs of coordinates, weighted: no luck with seeds."""
    energy = energy_of(kind, name)
    f, psi = Quadratic(energy.H, energy.b), energy.psi.on(N)
    chosen = choose(f, psi.active, p, form="strongly-convex")
    expectation = np.zeros(2)
    for pair in itertools.product(range(N), repeat=2):
        state = ApcgState(chosen.rule(), chosen.clock(), np.zeros(N))
        for t, i in enumerate(pair):
            f.run(np.array([i], np.int32), psi.terms, state)
            weight = chosen.p[pair[0]] * chosen.p[pair[1]]
            expectation[t] += weight * energy.of_corollary_1(state.x(), state.v(), chosen)
    bound = energy.of_corollary_1(np.zeros(N), np.zeros(N), chosen)
    ratio = expectation / bound / (1 - chosen.rho) ** np.array([1, 2])
    assert np.all(ratio <= 1 + 1e-12)
    assert np.all(ratio > 0.1)


@pytest.mark.parametrize(("kind", "name"), BOUND_CASES)
def test_default_sampling_has_the_largest_rho_of_all(kind, name):
    energy = energy_of(kind, name)
    f = Quadratic(energy.H, energy.b)
    active = energy.psi.on(N).active
    best = choose(f, active, form="strongly-convex")
    total = np.sum(np.sqrt(best.M * best.R / best.sigma_A))
    assert best.rho == pytest.approx(1 / total, rel=1e-12)
    generator = np.random.default_rng(0)
    for _ in range(20):
        p = generator.dirichlet(np.ones(N))
        assert choose(f, active, p, form="strongly-convex").rho < best.rho


@pytest.mark.parametrize("form", ["strongly-convex", "convex"])
def test_the_proven_gap_is_above_the_true_one_all_along(form):
    for kind, name in BOUND_CASES:
        energy = energy_of(kind, name)
        for reading in readings(Quadratic(energy.H, energy.b), energy.psi, 20, 1000, form=form):
            above = energy.above(reading.x)
            assert above <= reading.gap + 1e-14
            assert reading.objective <= energy.objective(reading.x_t) + 1e-14
            assert reading.objective == pytest.approx(energy.objective(reading.x), abs=1e-14)

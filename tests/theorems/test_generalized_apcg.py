"""Generalized APCG: Algorithm 2 itself, and Corollaries 1 and 2."""

import functools
import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

from adfs.coordinate.apcg import apcg
from adfs.coordinate.choices import choose
from adfs.coordinate.parameters import Sampler
from adfs.coordinate.penalties import Penalty, ProxPenalty
from adfs.coordinate.quadratics import LeastSquares, Quadratic
from adfs.coordinate.smooth import SmoothFunction
from adfs.coordinate.state import State
from oracles import apcg as oracle
from oracles import augmented

N = 7
STRENGTHS = np.array([0.0, 0.3, 0.05, 0.2, 0.0, 0.6, 0.1])
SKEWED = np.array([0.01, 0.02, 0.05, 0.07, 0.1, 0.25, 0.5])
PENALTIES = {
    "zero": Penalty(),
    "l1": Penalty(l1=STRENGTHS),
    "l2": Penalty(l2=0.4),
    "box": Penalty(low=-0.2, high=np.linspace(0.0, 0.5, N)),
    "all": Penalty(l1=0.1, l2=STRENGTHS, low=-0.1, high=0.3),
}


@functools.cache
def quadratic(kind, seed=0):
    """(H, b, K, c): H = K'K and b = K'c; "regular", "singular" (R < 1), "split" or "narrow".

    In "split" the first three coordinates share a kernel and the other four have R = 1.
    """
    generator = np.random.default_rng(seed)
    K = generator.standard_normal((9, N)) * np.linspace(0.5, 2.0, N)
    if kind == "singular":
        K = K[:5]
    if kind == "split":
        K[:, :3] = 0.0
        K[:4, 3:] = 0.0
        K[0, :3], K[1, :3] = (1.0, -1.0, 0.0), (0.0, 1.0, -1.0)
    if kind == "narrow":
        K = np.vstack([K[:3], 0.05 * K[3:]])
    c = generator.standard_normal(len(K))
    return K.T @ K, K.T @ c, K, c


def as_function(kind, storage):
    H, b, K, c = quadratic(kind)
    return {
        "dense": lambda: Quadratic(H, b),
        "sparse": lambda: Quadratic(sp.csr_array(H), b),
        "columns": lambda: LeastSquares(K, c),
        "sparse columns": lambda: LeastSquares(sp.csc_array(K), c),
        "called": lambda: SmoothFunction(lambda i, y: H[i] @ np.asarray(y) - b[i], np.diag(H)),
    }[storage]()


def literal_prox(penalty):
    """prox_i as in Algorithm 2, by what each named penalty's optimality condition says."""
    l1, l2 = np.broadcast_to(penalty.l1, N), np.broadcast_to(penalty.l2, N)
    low, high = np.broadcast_to(penalty.low, N), np.broadcast_to(penalty.high, N)

    def prox(i, eta, z):
        # 0 = (x - z) / eta + l1 s + l2 x, s in [-1, 1] and s = sign(x) where x is not zero.
        sign = np.clip(z / (eta * l1[i]), -1, 1) if l1[i] > 0 else 0.0
        return np.median([low[i], (z - eta * l1[i] * sign) / (1 + eta * l2[i]), high[i]], axis=-1)

    return lambda i, eta, z: np.array([prox(i, eta, float(z[0]))])


def literal_gradient(H, b):
    return lambda i, y: H[i] @ y - b[i]


def iterates(f, psi, n_iterations, **options):
    """All x_t and v_t, and the parameters that were used."""
    seen = []
    result = apcg(
        f, psi, tol=0.0, max_iter=n_iterations, check_every=1, restart=False,
        callback=seen.append, **options,
    )  # fmt: skip
    x = np.array([reading.x_t for reading in seen])
    return x, np.array([reading.v_t for reading in seen]), result.parameters


def literal_iterates(H, b, prox, chosen, n_iterations, b_0=1.0, sequences=False):
    """The oracle's x_t and v_t for the same samples."""
    sequence = Sampler(chosen.p, 0).draw(0, n_iterations)
    arguments = literal_gradient(H, b), prox, (N, 1), chosen.R, chosen.p
    if chosen.form == "convex":
        start = oracle.convex_start(chosen.S, chosen.R, chosen.p, b_0)
        steps = oracle.generalized(*arguments, chosen.S, 0.0, *start, sequence)
    elif sequences:
        start = oracle.strongly_convex_start(chosen.sigma_A)
        steps = oracle.generalized(*arguments, chosen.S, chosen.sigma_A, *start, sequence)
    else:
        steps = oracle.strongly_convex(*arguments, chosen.rho, chosen.sigma_A, sequence)
    return (np.array(each)[:, :, 0] for each in zip(*steps, strict=True))


def column(b):
    return b[:, None]


def assert_same(actual, literal):
    """To 1e-12, relative to the largest number that occurs, where that is above 1."""
    size = max(1.0, np.abs(literal).max())
    np.testing.assert_allclose(actual, literal, rtol=0, atol=1e-12 * size)


@pytest.mark.parametrize("p", ["uniform", SKEWED], ids=["uniform", "skewed"])
@pytest.mark.parametrize("form", ["strongly-convex", "convex"])
@pytest.mark.parametrize("storage", ["dense", "sparse", "columns", "sparse columns", "called"])
@pytest.mark.parametrize("name", PENALTIES)
def test_iterates_are_those_of_algorithm_2(name, storage, form, p):
    H, b, *_ = quadratic("regular")
    psi = PENALTIES[name]
    n = 60 if storage == "called" else 400
    given = {"sigma_A": 0.1, "R": np.ones(N)} if storage == "called" else {}
    x, v, chosen = iterates(as_function("regular", storage), psi, n, form=form, p=p, **given)
    assert chosen.form == form
    literal_x, literal_v = literal_iterates(H, column(b), literal_prox(psi), chosen, n)
    assert_same(x, literal_x)
    assert_same(v, literal_v)
    assert np.abs(x[-1]).max() > 0.02


@pytest.mark.parametrize("p", [None, "uniform", SKEWED], ids=["best", "uniform", "skewed"])
@pytest.mark.parametrize("form", ["strongly-convex", "convex"])
@pytest.mark.parametrize("storage", ["dense", "sparse", "columns", "sparse columns"])
def test_with_a_singular_matrix_they_are_those_of_algorithm_2_with_its_r(storage, form, p):
    H, b, K, _ = quadratic("singular")
    x, v, chosen = iterates(as_function("singular", storage), None, 400, form=form, p=p)
    np.testing.assert_allclose(chosen.R, np.diag(np.linalg.pinv(K) @ K), rtol=0, atol=1e-12)
    assert chosen.R.max() < 0.99
    if form == "strongly-convex":
        least = np.linalg.svd(K)[1][-1] ** 2
        assert (1 - 1e-9) * least < chosen.sigma_A <= least
    literal_x, literal_v = literal_iterates(
        H, column(b), lambda i, eta, z: z, chosen, 400, sequences=True
    )
    assert_same(x, literal_x)
    assert_same(v, literal_v)


@pytest.mark.parametrize("form", ["strongly-convex", "convex"])
@pytest.mark.parametrize("name", ["l1", "box", "all"])
def test_a_penalty_where_r_is_one_leaves_the_kernel_elsewhere(name, form):
    H, b, *_ = quadratic("split")
    psi = only_on(PENALTIES[name], np.arange(N) >= 3)
    x, v, chosen = iterates(Quadratic(H, b), psi, 400, form=form, p=SKEWED)
    np.testing.assert_allclose(chosen.R, [2 / 3] * 3 + [1.0] * 4, rtol=0, atol=1e-12)
    literal_x, literal_v = literal_iterates(H, column(b), literal_prox(psi), chosen, 400)
    assert_same(x, literal_x)
    assert_same(v, literal_v)


def only_on(penalty, where):
    """The penalty on some coordinates only."""
    each = [np.broadcast_to(a, N) for a in (penalty.l1, penalty.l2, penalty.low, penalty.high)]
    free = (0.0, 0.0, -np.inf, np.inf)
    return Penalty(*(np.where(where, a, none) for a, none in zip(each, free, strict=True)))


def shifted(H, b, prox, start):
    """The same problem in u = x - start, so that the oracle can begin at zero."""
    return H, column(b - H @ start), lambda i, eta, z: prox(i, eta, z + start[i]) - start[i]


@pytest.mark.parametrize("form", ["strongly-convex", "convex"])
@pytest.mark.parametrize("storage", ["dense", "columns"])
def test_from_another_start_it_is_algorithm_2_from_there(storage, form):
    H, b, *_ = quadratic("regular")
    psi, start = PENALTIES["all"], np.linspace(-0.1, 0.3, N)
    f = as_function("regular", storage)
    x, v, chosen = iterates(f, psi, 200, x0=start, form=form, p=SKEWED)
    problem = shifted(H, b, literal_prox(psi), start)
    literal_x, literal_v = literal_iterates(*problem, chosen, 200)
    assert_same(x, start + literal_x)
    assert_same(v, start + literal_v)


@pytest.mark.parametrize("storage", ["dense", "columns", "called"])
def test_a_restart_is_corollary_2_from_where_it_is(storage):
    H, b, *_ = quadratic("singular")
    psi, seen = PENALTIES["l1"], []
    f, given = as_function("singular", storage), {"p": SKEWED}
    chosen = apcg(f, psi, tol=0.0, max_iter=0, **given).parameters
    first = math.ceil(8 / chosen.p_R)  # then twice that, once, four times ...
    apcg(f, psi, tol=0.0, max_iter=4 * first, check_every=1, callback=seen.append, **given)
    sequence = Sampler(SKEWED, 0).draw(0, 4 * first)
    for begin, end in ((0, first), (first, 3 * first), (3 * first, 4 * first)):
        start = seen[begin].x_t
        H_, b_, prox = shifted(H, b, literal_prox(psi), start)
        steps = oracle.generalized(
            literal_gradient(H_, b_), prox, (N, 1), chosen.R, chosen.p, chosen.S, 0.0,
            *oracle.convex_start(chosen.S, chosen.R, chosen.p), sequence[begin:end],
        )  # fmt: skip
        for reading, (x, _) in zip(seen[begin : end + 1], steps, strict=True):
            assert_same(reading.x_t, start + x[:, 0])


@pytest.mark.parametrize("storage", ["dense", "columns", "called"])
def test_after_a_trial_it_is_corollary_1_from_where_the_trial_ended(storage):
    H, b, *_ = quadratic("narrow")
    psi, seen = PENALTIES["l1"], []
    least = np.linalg.eigvalsh(H)[0] * 0.99
    f, given = as_function("narrow", storage), {"p": "uniform", "sigma_A": least}
    chosen = apcg(f, psi, tol=0.0, max_iter=0, form="strongly-convex", **given).parameters
    first, last = math.ceil(2 / chosen.rho), math.ceil(2 / chosen.rho) + 100
    apcg(f, psi, tol=0.0, max_iter=last, check_every=1, callback=seen.append, **given)
    start = seen[first].x_t
    H_, b_, prox = shifted(H, b, literal_prox(psi), start)
    steps = oracle.strongly_convex(
        literal_gradient(H_, b_), prox, (N, 1), chosen.R, chosen.p, chosen.rho, chosen.sigma_A,
        Sampler(chosen.p, 0).draw(0, last)[first:],
    )  # fmt: skip
    for reading, (x, v) in zip(seen[first + 1 :], list(steps)[1:], strict=True):
        assert_same(reading.x_t, start + x[:, 0])
        assert_same(reading.v_t, start + v[:, 0])


@pytest.mark.parametrize("b_0", [0.01, 7.0])
def test_corollary_2_does_not_depend_on_b_0(b_0):
    H, b, *_ = quadratic("singular")
    x, v, chosen = iterates(Quadratic(H, b), PENALTIES["l1"], 300)
    assert chosen.form == "convex"
    assert (chosen.R == 1.0).all()
    literal_x, literal_v = literal_iterates(
        H, column(b), literal_prox(PENALTIES["l1"]), chosen, 300, b_0=b_0
    )
    assert_same(x, literal_x)
    assert_same(v, literal_v)


def test_long_after_a_coordinate_was_sampled_it_is_still_that_of_algorithm_2():
    H, b, *_ = quadratic("regular")
    p = np.array([5e-4] + [(1 - 5e-4) / (N - 1)] * (N - 1))
    x, v, chosen = iterates(Quadratic(H, b), None, 6000, p=p)
    gaps = np.diff(np.flatnonzero(Sampler(p, 0).draw(0, 6000) == 0))
    assert gaps.max() > 1000
    literal_x, literal_v = literal_iterates(H, column(b), lambda i, eta, z: z, chosen, 6000)
    assert_same(x, literal_x)
    assert_same(v, literal_v)


def test_differences_that_shrink_below_every_number_are_renewed_in_time():
    """r^3000 is 1e-800; the offsets are multiplied out before, in both kernels and in Python."""
    H, b = np.diag(np.linspace(1.0, 1.1, N)), np.ones(N)
    H[0, 1] = H[1, 0] = 0.02
    K = np.linalg.cholesky(H).T
    called = SmoothFunction(lambda i, y: H[i] @ np.asarray(y) - b[i], np.diag(H))
    for f in (Quadratic(H, b), LeastSquares(K, np.linalg.solve(K.T, b)), called):
        x, v, chosen = iterates(f, None, 3000, sigma_A=0.9)
        assert math.log10((1 - chosen.rho) / (1 + chosen.rho)) * 3000 < -340
        literal_x, literal_v = literal_iterates(H, column(b), lambda i, eta, z: z, chosen, 3000)
        assert_same(x, literal_x)
        assert_same(v, literal_v)


def dual_of_adfs(loss):
    """Problem (5) on a ring of 4 nodes with one feature: 4 edges, then one coordinate a sample."""
    generator = np.random.default_rng(5)
    labels = [np.where(generator.random(2) < 0.5, -1.0, 1.0) for _ in range(4)]
    shards = [(generator.uniform(0.5, 2.0, (2, 1)), each, np.ones(2)) for each in labels]
    edges = [(0, 1), (0, 3), (1, 2), (2, 3)]
    sigma, mu2 = np.full(4, 0.5), (np.full(4, 0.5), np.full(8, 0.2))
    arguments = shards, sigma, edges, loss, *mu2
    a = augmented.incidence(shards, edges, *mu2)
    mass = augmented.sigma_matrix(shards, sigma, loss)
    return arguments, a, mass


@pytest.mark.parametrize(("loss", "form"), [("logistic", "strongly-convex"), ("hinge", "convex")])
def test_the_dual_of_adfs_is_one_of_its_problems(loss, form):
    arguments, a, mass = dual_of_adfs(loss)
    shards, sigma = arguments[:2]
    grad_i, prox_i = oracle.dual_problem(*arguments)
    active = np.arange(12) >= 4
    psi = ProxPenalty(lambda i, eta, z: prox_i(i, eta, np.array([z]))[0], active=active)
    f = Quadratic(a.T @ augmented.inverse_diagonal(mass) @ a)
    R = augmented.resistances(a)
    sigma_a = augmented.sigma_a(a, mass) if form == "strongly-convex" else 0.0
    p = np.concatenate([np.full(4, 0.1), np.full(8, 0.075)])
    x, v, chosen = iterates(f, psi, 150, p=p, R=R, sigma_A=sigma_a)
    if form == "strongly-convex":
        found = apcg(f, psi, p=p, tol=0.0, max_iter=0).parameters
        np.testing.assert_allclose(found.R, R, rtol=0, atol=1e-12)
        assert found.sigma_A == pytest.approx(sigma_a, rel=1e-12)
    assert chosen.form == form
    np.testing.assert_allclose(chosen.S, oracle.smoothness_constant(a, mass, R, p), rtol=1e-14)
    sequence = Sampler(p, 0).draw(0, 150)
    if form == "convex":
        start = oracle.convex_start(chosen.S, R, p)
    else:
        start = oracle.strongly_convex_start(sigma_a)
    steps = oracle.generalized(grad_i, prox_i, (12, 1), R, p, chosen.S, sigma_a, *start, sequence)
    literal_x, literal_v = (np.array(each)[:, :, 0] for each in zip(*steps, strict=True))
    np.testing.assert_allclose(x, literal_x, rtol=0, atol=1e-11)
    np.testing.assert_allclose(v, literal_v, rtol=0, atol=1e-11)
    if form == "strongly-convex":
        best = apcg(f, psi, R=R, sigma_A=sigma_a, tol=1e-11).x
        theta = (a @ best)[:4] / sigma
        optimum = augmented.minimiser(shards, sigma, loss)
        np.testing.assert_allclose(theta, np.full(4, optimum[0]), rtol=0, atol=1e-8)


# Corollaries 1 and 2 ------------------------------------------------------------------------------


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
        state = State(chosen.rule(), chosen.clock(), np.zeros(N))
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

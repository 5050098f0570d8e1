"""Generalized APCG is Algorithm 2: its iterates are those of the literal oracle."""

import math

import numpy as np
import pytest

from adfs.apcg.apcg_parameters import CoordinateSampler
from adfs.apcg.penalties import ProxPenalty
from adfs.apcg.smooth import LeastSquares, Quadratic, SmoothFunction
from adfs.apcg.solver import apcg
from oracles import apcg as oracle
from oracles import augmented
from support.apcg import (
    PENALTIES,
    SKEWED,
    N,
    as_function,
    assert_same,
    column,
    iterates,
    literal_gradient,
    literal_iterates,
    literal_prox,
    only_on,
    quadratic,
)
from support.selection import covering


@covering(
    name=tuple(PENALTIES),
    storage=("dense", "sparse", "columns", "sparse columns", "called"),
    form=("strongly-convex", "convex"),
    p=("uniform", SKEWED),
)
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
    sequence = CoordinateSampler(SKEWED, 0).draw(0, 4 * first)
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
        CoordinateSampler(chosen.p, 0).draw(0, last)[first:],
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
    gaps = np.diff(np.flatnonzero(CoordinateSampler(p, 0).draw(0, 6000) == 0))
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
    sequence = CoordinateSampler(p, 0).draw(0, 150)
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

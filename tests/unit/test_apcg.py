"""The parts of APCG: prox, lazy state, cuts, geometry, limits and the result."""

import inspect
import math
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar

import adfs
from adfs.apcg import geometry, solver
from adfs.apcg.apcg_parameters import ApcgParameters, CoordinateSampler, best_sampling, choose
from adfs.apcg.penalties import Penalty, ProxPenalty
from adfs.apcg.smooth import ApcgState, LeastSquares, Quadratic, SmoothFunction
from adfs.apcg.solver import ApcgPlan, apcg
from adfs.kernels import apcg as kernel

pytestmark = pytest.mark.uncompiled


def small(m=12, n=6, seed=0):
    generator = np.random.default_rng(seed)
    return generator.standard_normal((m, n)), generator.standard_normal(m)


def chain(n):
    """Tridiagonal and positive definite: two off-diagonal entries a row."""
    return sp.diags_array([-np.ones(n - 1), np.full(n, 2.5), -np.ones(n - 1)], offsets=[-1, 0, 1])


@pytest.mark.parametrize("z", [-3.0, -0.4, 0.0, 0.2, 1.7])
@pytest.mark.parametrize("eta", [0.05, 1.0, 8.0])
@pytest.mark.parametrize(
    ("l1", "l2", "low", "high"),
    [(0.5, 0.0, -9.0, 9.0), (0.0, 2.0, -9.0, 9.0), (0.0, 0.0, -0.3, 1.0), (0.4, 1.5, 0.1, 0.6)],
)
def test_prox_is_the_minimiser_found_by_brute_force(l1, l2, low, high, eta, z):
    def cost(x):
        return (x - z) ** 2 / (2 * eta) + l1 * abs(x) + l2 * x**2 / 2

    grid = np.linspace(low, high, 2001)
    near = grid[np.argmin([cost(x) for x in grid])]
    bounds = max(low, near - 0.01), min(high, near + 0.01)
    best = minimize_scalar(cost, bounds=bounds, method="bounded", options={"xatol": 1e-12}).x
    psi = Penalty(l1, l2, low, high).on(3)
    assert psi.prox(1, eta, z) == pytest.approx(best, abs=2e-6)
    assert psi.prox_all(np.full(3, eta), np.full(3, z)).tolist() == [psi.prox(1, eta, z)] * 3


@pytest.mark.parametrize("form", ["strongly-convex", "convex"])
@pytest.mark.parametrize("sparse", [False, True])
def test_blocks_and_evaluations_change_no_bit(monkeypatch, form, sparse):
    K, c = small()
    K = sp.csc_array(K) if sparse else K
    outcomes = []
    for block, check_every in ((1 << 16, None), (7, 13), (1, 100), (1000, 1)):
        monkeypatch.setattr(solver, "BLOCK", block)
        for f in (LeastSquares(K, c), Quadratic(K.T @ K, K.T @ c)):
            seen = []
            apcg(f, Penalty(l1=0.1), form=form, tol=0.0, max_iter=1500, seed=3,
                 check_every=check_every, callback=seen.append)  # fmt: skip
            outcomes.append((type(f).__name__, seen[-1].x_t.tobytes(), seen[-1].v_t.tobytes()))
    assert len(set(outcomes)) == 2


def test_another_seed_gives_other_bits_and_the_same_answer():
    K, c = small()
    first, second = (apcg(LeastSquares(K, c), tol=1e-12, seed=seed) for seed in (0, 1))
    assert first.x.tobytes() != second.x.tobytes()
    np.testing.assert_allclose(first.x, second.x, rtol=0, atol=1e-10)


@pytest.mark.parametrize("form", ["strongly-convex", "convex"])
def test_python_loop_and_compiled_loop_take_the_same_path(form):
    K, c = small()
    H, b = K.T @ K, K.T @ c
    psi = Penalty(l1=0.3, low=-0.2)
    called = ProxPenalty(lambda i, eta, z: max(-0.2, math.copysign(max(abs(z) - 0.3 * eta, 0), z)))
    by_entry = SmoothFunction(
        lambda i, y: sum(H[i, j] * y[j] for j in range(len(y))) - b[i], np.diag(H)
    )
    least = np.linalg.eigvalsh(H)[0] * 0.9
    last = []
    for f in (Quadratic(H, b), LeastSquares(K, c), by_entry):
        for penalty in (psi, called):
            seen = []
            apcg(f, penalty, form=form, R=np.ones(6), sigma_A=least, tol=0.0, max_iter=300,
                 restart=False, p="uniform", callback=seen.append)  # fmt: skip
            last.append(np.concatenate([seen[-1].x_t, seen[-1].v_t]))
    for each in last[1:]:
        np.testing.assert_allclose(each, last[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("form", ["strongly-convex", "convex"])
def test_an_iteration_reads_and_writes_nothing_beyond_its_row_or_column(form):
    """Everything else is poisoned: a NaN that is read would spread, one that is written would go.

    So the cost of an iteration is that of the row, whatever N is.
    """
    n, i = 40, 17
    H = chain(n).tocsr()
    f, psi = Quadratic(H, np.ones(n)), Penalty(l1=0.1).on(n)
    chosen = choose(f, psi.active, form=form)
    state = ApcgState(chosen.rule(), chosen.clock(), np.ones(n))
    near = [2 * j + part for j in (i - 1, i, i + 1) for part in (0, 1)]
    far = np.setdiff1d(np.arange(2 * n), near)
    state.pairs[0, far] = np.nan
    f.run(np.array([i], np.int32), psi.terms, state)
    assert np.isfinite(state.pairs[0, near]).all()
    assert np.isnan(state.pairs[0, far]).all()
    assert state.pairs[0, 2 * i] != 1.0
    assert state.pairs[0, [2 * i - 2, 2 * i + 2]].tolist() == [1.0, 1.0]

    f = LeastSquares(H.tocsc(), np.ones(n))
    state = ApcgState(chosen.rule(), chosen.clock(), np.ones(n))
    f.refresh(state)
    before = state.images[0, near]
    state.images[0, far] = np.nan
    state.pairs[0, np.setdiff1d(np.arange(2 * n), [2 * i, 2 * i + 1])] = np.nan
    f.run(np.array([i], np.int32), psi.terms, state)
    assert np.isfinite(state.pairs[0, [2 * i, 2 * i + 1]]).all()
    assert np.isnan(state.images[0, far]).all()
    assert (state.images[0, near] != before).all()


@pytest.mark.parametrize("known", [True, False])
def test_a_stretch_that_ended_higher_is_forgotten_where_the_objective_is_known(known):
    """M is far too small, so every stretch diverges; p_R = 1/3, so the first one has 24 steps."""
    value = (lambda x: 25.0 * x @ x - x.sum()) if known else None
    wrong = SmoothFunction(lambda i, y: 50.0 * y[i] - 1.0, np.ones(3), value)
    plan = ApcgPlan(choose(wrong, np.zeros(3, bool)), restart=True)
    machine = solver.Run(wrong, Penalty().on(3), plan, np.zeros(3), 0)
    machine.advance(24)
    assert (np.abs(machine.state.x()) > 10.0).any()
    machine.advance(25)
    assert (machine.state.x() == 0.0).sum() == (2 if known else 0)


def test_images_are_renewed_from_the_coordinates():
    """Additions drift: a wrong image is right again after a fixed number of passes."""
    K, c = small()
    f, psi = LeastSquares(K, c), Penalty().on(6)
    chosen = choose(f, psi.active)
    machine = solver.Run(f, psi, ApcgPlan(chosen, restart=False), np.zeros(6), 0)
    machine.advance(5)
    machine.state.images += 1.0
    machine.advance(solver.REFRESH * 6 + 1)
    state = machine.state
    np.testing.assert_allclose(state.images[0, ::2], K @ state.anchor - c, rtol=0, atol=1e-12)
    np.testing.assert_allclose(state.images[0, 1::2], K @ state.offset, rtol=1e-10, atol=1e-12)


def test_a_view_of_y_computes_what_is_asked_for():
    rule = kernel.Rule(1.0, 0.5, 0.0, np.ones(3), np.ones(3))
    state = ApcgState(rule, np.array([0.5, 0.0, 0.1, 0.1]), np.array([1.0, 2.0, 3.0]))
    state.offset[:] = (2.0, 0.0, -2.0)
    assert len(state.y) == 3
    assert (state.y[0], state.y[-1]) == (2.0, 2.0)
    assert state.y[np.array([2, 1])].tolist() == [2.0, 2.0]
    assert np.asarray(state.y).tolist() == [2.0, 2.0, 2.0]
    assert np.array(state.y, dtype=np.float32).dtype == np.float32


# Geometry -----------------------------------------------------------------------------------------


def test_an_eigenvalue_that_may_be_rounding_is_not_trusted():
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]
    for least, sigma_A in ((1e-4, 1e-4), (1e-13, 0.0)):
        H = basis @ np.diag([least, 1.0, 2.0, 3.0, 4.0]) @ basis.T
        found = geometry.geometry_of((H + H.T) / 2)
        assert found.full
        assert found.sigma_A == pytest.approx(sigma_A, rel=1e-9, abs=1e-300)
    H = basis @ np.diag([0.0, 1.0, 2.0, 3.0, 4.0]) @ basis.T
    found = geometry.geometry_of((H + H.T) / 2)
    np.testing.assert_allclose(found.R, 1 - basis[:, 0] ** 2, rtol=0, atol=1e-12)
    assert 1 - 1e-12 < found.sigma_A <= 1.0


def test_a_penalty_in_the_kernel_takes_the_whole_space():
    K, c = small(4, 6)
    chosen = choose(LeastSquares(K, c), np.array([False] * 5 + [True]))
    assert chosen.form == "convex"
    assert (chosen.R == 1.0).all()
    assert choose(LeastSquares(K, c), np.zeros(6, bool)).R.max() < 1.0


def test_ridge_is_strong_convexity_at_every_size(monkeypatch):
    K, c = small(4, 6)
    exact = choose(LeastSquares(K, c, ridge=0.5), np.ones(6, bool))
    assert exact.sigma_A == pytest.approx(0.5, rel=1e-9)
    monkeypatch.setattr("adfs.apcg.smooth.DENSE", 3)
    assert LeastSquares(K, c, ridge=np.linspace(0.2, 1, 6)).geometry().sigma_A == 0.2
    assert LeastSquares(K, c).geometry().sigma_A == 0.0


def test_what_f_does_not_see_is_left_alone_or_left_to_its_penalty():
    K = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 1.0]])
    free = apcg(LeastSquares(K, [1.0, 1.0]), x0=[0.0, 5.0, 0.0], tol=1e-12)
    assert free.parameters.p[1] == 0.0
    np.testing.assert_allclose(free.x, [-1.0, 5.0, 1.0], rtol=0, atol=1e-10)
    held = apcg(LeastSquares(K, [1.0, 1.0]), Penalty(l2=[0, 1, 0]), x0=[0, 5, 0], tol=1e-10)
    np.testing.assert_allclose(held.x, [-1.0, 0.0, 1.0], rtol=0, atol=1e-8)
    nothing = apcg(Quadratic(np.zeros((2, 2))), x0=[1.0, 2.0])
    assert (nothing.status, nothing.x.tolist()) == ("converged", [1.0, 2.0])


def test_one_coordinate_is_solved_at_once():
    result = apcg(Quadratic([[4.0]], [2.0]), tol=1e-12)
    assert (result.status, result.iterations, result.x.tolist()) == ("converged", 0, [0.5])
    seen = []
    apcg(Quadratic([[4.0]], [2.0]), tol=0.0, max_iter=3, check_every=1, callback=seen.append)
    assert seen[1].x_t[0] == pytest.approx(0.5, rel=1e-8)


def test_default_sampling_of_the_convex_form_is_within_twice_both_bests():
    generator = np.random.default_rng(0)
    for _ in range(20):
        M, R = np.exp(generator.normal(0, 3, 9)), generator.uniform(0.05, 1.0, 9)
        p = best_sampling("convex", M, R)
        assert p.sum() == pytest.approx(1.0)
        least_s, largest_p_r = np.sqrt(M * R).sum(), 1 / R.sum()
        assert np.max(np.sqrt(M * R) / p) <= 2 * least_s * (1 + 1e-12)
        assert np.min(p / R) >= largest_p_r / 2 * (1 - 1e-12)
        assert best_sampling("strongly-convex", M, R) == pytest.approx(np.sqrt(M * R) / least_s)


def test_coordinates_are_drawn_as_p_says():
    p = np.array([0.5, 0.3, 0.0, 0.15, 0.05])
    counts = np.bincount(CoordinateSampler(p, 0).draw(0, 200_000), minlength=5)
    assert counts[2] == 0
    np.testing.assert_allclose(counts / 200_000, p, rtol=0, atol=0.005)


# Limits and the result ----------------------------------------------------------------------------


def test_statuses():
    K, c = small()
    f = LeastSquares(K, c)
    assert apcg(f, tol=1e-10).status == "converged"
    assert apcg(f, tol=1e-10, max_iter=5).status == "max_iter"
    assert apcg(f, tol=0.0, max_iter=10**12, time_limit=1e-3).status == "time_limit"
    assert apcg(f, tol=1e-10, callback=lambda reading: True).status == "interrupted"
    wrong = SmoothFunction(lambda i, y: 50.0 * y[i] - 1.0, np.ones(3))  # M is far too small
    assert apcg(wrong, tol=1e-10).status == "diverged"
    broken = SmoothFunction(lambda i, y: float("nan"), np.ones(3))
    assert apcg(broken, tol=1e-10).status == "diverged"


def test_it_stops_at_the_error_it_promises_and_tells_the_callback_when():
    K, c = small()
    seen = []
    result = apcg(LeastSquares(K, c), tol=1e-6, check_every=50, callback=seen.append)
    size = np.linalg.norm(K.T @ c)
    assert [reading.iteration for reading in seen] == list(range(0, result.iterations + 1, 50))
    assert all(reading.error > 1e-6 for reading in seen[:-1])
    assert result.error == result.residual / size <= 1e-6
    # Without a penalty the subgradient is the gradient.
    np.testing.assert_allclose(np.linalg.norm(K.T @ (K @ result.x - c)), result.residual, rtol=1e-6)


def test_the_default_budget_suffices_for_what_can_be_reached():
    for seed in range(3):
        K, c = small(8, 6, seed)
        assert apcg(LeastSquares(K, c), Penalty(l1=0.05), tol=1e-11).status == "converged"


def test_a_result_prints_what_matters():
    K, c = small()
    result = apcg(LeastSquares(K, c), tol=1e-10)
    text = repr(result)
    for word in ("converged", "objective=", "gap<=", "strongly-convex form", "rho="):
        assert word in text
    unknown = apcg(SmoothFunction(lambda i, y: y[i] - 1.0, np.ones(2)), tol=1e-6)
    assert unknown.objective is None
    assert "objective=unknown" in repr(unknown)
    assert "convex form" in str(unknown.parameters)
    assert "S=" in str(unknown.parameters)


def test_parameters_can_be_built_by_hand():
    ones = np.ones(2)
    chosen = ApcgParameters("convex", ones, ones, ones / 2, 0.0, ones > 0, S=3.0)
    assert (chosen.S, chosen.S_limit, chosen.rho, chosen.p_R) == (3.0, 2.0, None, 0.5)


def test_the_pieces_are_attributes_of_the_package_and_loaded_when_used():
    for name in adfs.apcg.__all__:
        assert getattr(adfs.apcg, name).__name__ == name
    assert adfs.apcg.Penalty is adfs.Penalty
    with pytest.raises(AttributeError, match="has no attribute 'Penalties'"):
        _ = adfs.apcg.Penalties
    code = "import sys, adfs; adfs.apcg; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_docstring_names_every_argument():
    for name in inspect.signature(apcg).parameters:
        assert name in apcg.__doc__

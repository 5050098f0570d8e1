"""The oracles are checked against each other, and against nothing of adfs."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from oracles import algorithm1, apcg, augmented, clock, losses, theory
from support.problems import homogeneous_shards, make_shards

RATIOS = (0.01, 0.999, 1.0, 1.9, 30.0)
GRAPHS = {
    "grid": (4, [(0, 1), (0, 2), (1, 3), (2, 3)]),
    "star": (5, [(0, 1), (0, 2), (0, 3), (0, 4)]),
}


def make_problem(n_nodes, loss, n_features=3, homogeneous=False):
    """Tiny shards and one sigma per node; all equal if homogeneous."""
    if homogeneous:
        return homogeneous_shards(n_nodes, 3, n_features), np.ones(n_nodes)
    sigma = np.random.default_rng(0).uniform(0.5, 1.5, n_nodes)
    return make_shards(n_nodes, loss, n_features=n_features), sigma


def split(shards, flat):
    """A flat array over samples as one array a node."""
    return np.split(flat, np.cumsum([len(labels) for _, labels, _ in shards])[:-1])


def make_parameters(shards, sigma, edges, loss, p_comm=0.4):
    """The paper's mu and p, with the dense sigma_A and the largest rho of equation (6)."""
    l_ij = split(shards, augmented.smoothness(shards, loss))
    mu2_edge = np.full(len(edges), 0.5)
    lambda_min = theory.lambda_min_plus(theory.laplacian(len(shards), edges, mu2_edge))
    mu2_virtual = theory.mu2_virtual(l_ij, sigma, lambda_min)
    p = theory.probabilities(l_ij, sigma, len(edges), p_comm)
    a = augmented.incidence(shards, edges, mu2_edge, mu2_virtual)
    sigma_mat = augmented.sigma_matrix(shards, sigma, loss)
    sigma_a = augmented.sigma_a(a, sigma_mat)
    return mu2_edge, mu2_virtual, p, augmented.max_rho(a, sigma_mat, p, sigma_a), sigma_a


def draw(p, length, seed=1):
    return np.random.default_rng(seed).choice(len(p), size=length, p=p / p.sum())


def labels_of(loss):
    return (-0.7, 0.3, 2.0) if loss in ("squared", "huber", "absolute") else (-1.0, 1.0)


@pytest.mark.parametrize("loss", losses.LOSSES)
def test_conjugate_is_the_supremum_it_is_defined_by(loss):
    for y in labels_of(loss):
        for w in (1.0, 0.4):
            low, high = losses.conjugate_domain(loss, y, w)
            low, high = max(low, -3.0), min(high, 3.0)
            for c in low + (high - low) * np.array([0.0, 0.03, 0.4, 0.81, 1.0]):
                found = minimize_scalar(
                    lambda s, c=c, y=y, w=w: losses.value(loss, s, y, w) - c * s,
                    bounds=(-60.0, 60.0),
                    method="bounded",
                    options={"xatol": 1e-10},
                )
                assert -found.fun == pytest.approx(losses.conjugate(loss, c, y, w), abs=2e-8)
            if math.isfinite(losses.conjugate_domain(loss, y, w)[1]):
                assert losses.conjugate(loss, high + 0.01, y, w) == math.inf


@pytest.mark.parametrize("loss", losses.SMOOTH)
def test_derivative_and_curvature_bound_agree_with_finite_differences(loss):
    grid = np.linspace(-4.0, 4.0, 4001) + 1e-4
    for y in labels_of(loss):
        step = grid[1] - grid[0]
        numeric = np.diff(losses.value(loss, grid, y, 1.7)) / step
        exact = losses.derivative(loss, (grid[1:] + grid[:-1]) / 2, y, 1.7)
        assert np.max(np.abs(numeric - exact)) < 2e-3
        curvature = np.max(np.diff(losses.derivative(loss, grid, y)) / step)
        assert curvature == pytest.approx(losses.curvature_bound(loss), rel=1e-5)


@pytest.mark.parametrize("loss", losses.LOSSES)
def test_conjugate_derivative_is_the_slope_of_the_conjugate(loss):
    for y in labels_of(loss):
        low, high = losses.conjugate_domain(loss, y, 0.6)
        low, high = max(low, -2.0), min(high, 2.0)
        for c in low + (high - low) * np.array([0.1, 0.35, 0.5, 0.9]):
            h = 1e-5
            upper, lower = (losses.conjugate(loss, c + e, y, 0.6) for e in (h, -h))
            exact = losses.conjugate_derivative(loss, c, y, 0.6)
            assert (upper - lower) / (2 * h) == pytest.approx(exact, abs=1e-7)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("loss", losses.SMOOTH)
def test_prox_tilde_star_is_the_minimiser_found_from_values_in_60_digits(loss, ratio):
    for y in labels_of(loss):
        for w, q, z in ((1.0, 1.0, 0.3), (0.4, 3.7, -0.9), (2.5, 0.01, 1.3), (1.0, 20.0, -40.0)):
            eta = ratio * w * losses.curvature_bound(loss) * q
            found = losses.prox_tilde_star(loss, y, w, q, eta, z)
            exact = losses.prox_by_values(loss, y, w, q, eta, z, tilde=1)
            assert found == pytest.approx(exact, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("loss", losses.LOSSES)
def test_prox_star_is_the_minimiser_found_from_values_in_60_digits(loss):
    for y in labels_of(loss):
        for w, q, eta, z in ((1.0, 1.0, 0.7, 0.3), (0.4, 3.7, 9.0, -0.9), (2.5, 0.01, 0.002, 1.3)):
            found = losses.prox_star(loss, y, w, q, eta, z)
            exact = losses.prox_by_values(loss, y, w, q, eta, z, tilde=0)
            assert found == pytest.approx(exact, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("loss", ["logistic", "squared", "smoothed_hinge"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_edge_space_apcg_times_a_is_algorithm_1(graph, loss):
    n_nodes, edges = GRAPHS[graph]
    shards, sigma = make_problem(n_nodes, loss)
    mu2_edge, mu2_virtual, p, rho, sigma_a = make_parameters(shards, sigma, edges, loss)
    # a step beyond eta~ = L must be among the events
    eta = rho * mu2_virtual / (sigma_a * p[len(edges) :])
    assert np.max(eta / augmented.smoothness(shards, loss)) > 1
    sequence = draw(p, 400)
    a = augmented.incidence(shards, edges, mu2_edge, mu2_virtual)
    grad_i, prox_i = apcg.dual_problem(shards, sigma, edges, loss, mu2_edge, mu2_virtual)
    shape = (a.shape[1], 3)
    r = augmented.resistances(a)
    node = algorithm1.iterates(
        shards, sigma, edges, loss, mu2_edge, mu2_virtual, p, rho, sigma_a, sequence
    )
    edge = apcg.strongly_convex(grad_i, prox_i, shape, r, p, rho, sigma_a, sequence)
    for (x, v, _), (edge_x, edge_v) in zip(node, edge, strict=True):
        np.testing.assert_allclose(a @ edge_x, x, rtol=0, atol=1e-12)
        np.testing.assert_allclose(a @ edge_v, v, rtol=0, atol=1e-12)
        np.testing.assert_allclose(v.sum(axis=0), 0, atol=1e-12)


@pytest.mark.parametrize("p_comm", [0.4, 0.02])  # a virtual, then a communication edge binds
def test_full_recursion_with_corollary_1_start_keeps_alpha_and_beta_at_rho(p_comm):
    n_nodes, edges = GRAPHS["grid"]
    shards, sigma = make_problem(n_nodes, "logistic")
    parameters = make_parameters(shards, sigma, edges, "logistic", p_comm)
    mu2_edge, mu2_virtual, p, rho, sigma_a = parameters
    sequence = draw(p, 300)
    a = augmented.incidence(shards, edges, mu2_edge, mu2_virtual)
    r = augmented.resistances(a)
    sigma_mat = augmented.sigma_matrix(shards, sigma, "logistic")
    s = apcg.smoothness_constant(a, sigma_mat, r, p)
    assert math.sqrt(sigma_a) / s == pytest.approx(rho, rel=1e-12)
    problem = apcg.dual_problem(shards, sigma, edges, "logistic", mu2_edge, mu2_virtual)
    shape = (a.shape[1], 3)
    start = apcg.strongly_convex_start(sigma_a)
    full = list(apcg.generalized(*problem, shape, r, p, s, sigma_a, *start, sequence))
    short = list(apcg.strongly_convex(*problem, shape, r, p, rho, sigma_a, sequence))
    np.testing.assert_allclose(full[-1], short[-1], rtol=0, atol=1e-11)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_algorithm_1_converges_to_the_minimiser_found_by_scipy(graph, loss):
    n_nodes, edges = GRAPHS[graph]
    shards, sigma = make_problem(n_nodes, loss)
    parameters = make_parameters(shards, sigma, edges, loss)
    _, _, p, rho, _ = parameters
    theta = augmented.minimiser(shards, sigma, loss)
    assert np.linalg.norm(augmented.gradient(shards, sigma, loss, theta)) < 1e-13
    sequence = draw(p, math.ceil(40 / rho))
    _, v, y = algorithm1.final(shards, sigma, edges, loss, *parameters, sequence)
    for row, sigma_i in zip(y[:n_nodes], sigma, strict=True):
        np.testing.assert_allclose(row / sigma_i, theta, rtol=0, atol=1e-11)
    np.testing.assert_allclose(
        v, augmented.optimal_rows(shards, sigma, loss, theta), rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("loss", losses.SMOOTH)
def test_dual_objective_at_the_optimal_rows_is_minus_the_primal_minimum(loss):
    shards, sigma = make_problem(4, loss)
    theta = augmented.minimiser(shards, sigma, loss)
    rows = augmented.optimal_rows(shards, sigma, loss, theta)
    np.testing.assert_allclose(rows.sum(axis=0), 0, atol=1e-13)
    minimum = augmented.objective(shards, sigma, loss, theta)
    assert augmented.dual_objective(shards, sigma, loss, rows) == pytest.approx(-minimum, rel=1e-13)


def test_theorem_1_bounds_the_mean_error_of_ten_runs():
    n_nodes, edges = GRAPHS["grid"]
    shards, sigma = make_problem(n_nodes, "logistic")
    parameters = make_parameters(shards, sigma, edges, "logistic")
    mu2_edge, mu2_virtual, p, rho, sigma_a = parameters
    theta = augmented.minimiser(shards, sigma, "logistic")
    errors = np.zeros(301)
    for seed in range(10):
        run = algorithm1.iterates(shards, sigma, edges, "logistic", *parameters, draw(p, 300, seed))
        errors += [np.sum((v[:n_nodes] / sigma[:, None] - theta) ** 2) / 10 for _, v, _ in run]
    scale = theory.c_0(shards, sigma, edges, "logistic", mu2_edge, mu2_virtual, sigma_a, theta)
    # F_A^*(0) = 0 for the logistic loss, and the minimum of F_A^* is -F(theta*)
    a = augmented.incidence(shards, edges, mu2_edge, mu2_virtual)
    theta_a = np.linalg.pinv(a) @ augmented.optimal_rows(shards, sigma, "logistic", theta)
    minimum = augmented.objective(shards, sigma, "logistic", theta)
    inverse = augmented.inverse_diagonal(augmented.sigma_matrix(shards, sigma, "logistic"))
    by_hand = np.linalg.norm(inverse @ a, 2) ** 2 * (np.sum(theta_a**2) + 2 * minimum / sigma_a)
    assert scale == pytest.approx(by_hand, rel=1e-12)
    assert np.all(errors <= scale * (1 - rho) ** np.arange(301))


def test_convex_apcg_on_the_hinge_closes_the_duality_gap_like_one_over_t_squared():
    n_nodes, edges = GRAPHS["grid"]
    shards, sigma = make_problem(n_nodes, "hinge")
    n_samples = len(augmented.samples(shards))
    mu2_edge, mu2_virtual = np.full(len(edges), 0.5), np.full(n_samples, 0.25)
    p = np.concatenate([np.full(len(edges), 0.4 / len(edges)), np.full(n_samples, 0.6 / n_samples)])
    a = augmented.incidence(shards, edges, mu2_edge, mu2_virtual)
    r = augmented.resistances(a)
    s = apcg.smoothness_constant(a, augmented.sigma_matrix(shards, sigma, "hinge"), r, p)
    problem = apcg.dual_problem(shards, sigma, edges, "hinge", mu2_edge, mu2_virtual)
    start = apcg.convex_start(s, r, p)
    run = list(apcg.generalized(*problem, (a.shape[1], 3), r, p, s, 0.0, *start, draw(p, 6000)))

    def gap(t):
        x = a @ run[t][0]
        theta = x[:n_nodes].sum(axis=0) / sigma.sum()
        primal = augmented.objective(shards, sigma, "hinge", theta)
        return primal + augmented.dual_objective(shards, sigma, "hinge", x)

    assert 0 < gap(6000) < 2e-3
    assert gap(1500) / gap(6000) == pytest.approx(16, rel=0.15)


def test_convex_recursion_is_corollary_2s_closed_form_whatever_b_0():
    for b_0 in (1.0, 7.0):
        big_a, _ = apcg.convex_start(3.0, [1.0, 0.5], [0.2, 0.3], b_0)
        closed = b_0 / (2 * 9.0) * (1 + math.sqrt(1 + 4 * 9.0 / b_0 * big_a))
        assert apcg.next_a(big_a, b_0, 3.0, 0.0) == pytest.approx(closed, rel=1e-14)
        assert closed / (big_a + closed) <= 0.2


@pytest.mark.parametrize("homogeneous", [True, False])
@pytest.mark.parametrize("graph", GRAPHS)
def test_spectral_constants_agree_with_each_other(graph, homogeneous):
    n_nodes, edges = GRAPHS[graph]
    shards, sigma = make_problem(n_nodes, "logistic", homogeneous=homogeneous)
    mu2_edge, mu2_virtual, _, _, sigma_a = make_parameters(shards, sigma, edges, "logistic")
    a = augmented.incidence(shards, edges, mu2_edge, mu2_virtual)
    sigma_mat = augmented.sigma_matrix(shards, sigma, "logistic")
    scaled = np.sqrt(augmented.inverse_diagonal(sigma_mat)) @ a
    singular = np.sort(np.linalg.svd(scaled)[1])[::-1][augmented.rank(a) - 1]
    assert sigma_a == pytest.approx(singular**2, rel=1e-11)
    r = augmented.resistances(a)
    assert np.sum(r[: len(edges)]) == pytest.approx(n_nodes - 1)
    np.testing.assert_allclose(r[len(edges) :], 1)
    np.testing.assert_allclose(
        augmented.projector(a), np.linalg.pinv(a, rcond=1e-10) @ a, atol=1e-12
    )
    # App. D.1's lemma, and the projector's spectrum can only be better
    l_ij = split(shards, augmented.smoothness(shards, "logistic"))
    lambda_min = theory.lambda_min_plus(theory.laplacian(n_nodes, edges, mu2_edge))
    bound = theory.sigma_a_lower_bound(lambda_min, sigma, theory.kappa_s(l_ij, sigma))
    assert bound <= sigma_a
    restricted = augmented.projector_sigma_a(shards, edges, mu2_edge, mu2_virtual, sigma_mat)
    assert restricted >= sigma_a * (1 - 1e-12)


def test_homogeneous_sigma_a_is_the_lemmas_smaller_root():
    n_nodes, edges = GRAPHS["grid"]
    shards, sigma = make_problem(n_nodes, "logistic", homogeneous=True)
    mu2_edge, _, _, _, sigma_a = make_parameters(shards, sigma, edges, "logistic")
    l_ij = split(shards, augmented.smoothness(shards, "logistic"))
    nu = theory.lambda_min_plus(theory.laplacian(n_nodes, edges, mu2_edge)) / sigma[0]
    kappa = theory.kappa_s(l_ij, sigma)
    alpha = theory.alpha(l_ij, sigma, nu * sigma[0])[0]
    root = (nu + alpha * kappa - math.sqrt((nu + alpha * kappa) ** 2 - 4 * nu * alpha)) / 2
    assert sigma_a == pytest.approx(root, rel=1e-12)


def test_restricted_incidence_has_rank_n_minus_1_times_d_plus_samples():
    n_nodes, edges = GRAPHS["grid"]
    shards, _ = make_problem(n_nodes, "logistic")
    n_samples = len(augmented.samples(shards))
    matrix = augmented.restricted_incidence(shards, edges, np.ones(4), np.ones(n_samples))
    assert np.linalg.matrix_rank(matrix) == (n_nodes - 1) * 3 + n_samples


def test_projector_sigma_a_is_sigma_a_when_every_row_spans_the_space():
    n_nodes, edges = GRAPHS["grid"]
    shards, sigma = make_problem(n_nodes, "logistic", n_features=1)
    mu2_edge, mu2_virtual, _, _, sigma_a = make_parameters(shards, sigma, edges, "logistic")
    sigma_mat = augmented.sigma_matrix(shards, sigma, "logistic")
    restricted = augmented.projector_sigma_a(shards, edges, mu2_edge, mu2_virtual, sigma_mat)
    assert restricted == pytest.approx(sigma_a, rel=1e-12)


def test_homogeneous_rho_is_above_the_papers_lower_bound():
    n_nodes, edges = GRAPHS["grid"]
    shards, sigma = make_problem(n_nodes, "logistic", homogeneous=True)
    _, _, _, rho, _ = make_parameters(shards, sigma, edges, "logistic")
    l_ij = split(shards, augmented.smoothness(shards, "logistic"))
    gamma_tilde = theory.gamma_tilde(n_nodes, edges, np.full(4, 0.5))
    kappas, s_comp = theory.kappa(l_ij, sigma), theory.s_comp(l_ij, sigma)
    assert rho >= theory.rho_lower_bound(n_nodes, 0.4, gamma_tilde, kappas, s_comp)


def test_theory_constants_on_the_2x2_grid_by_hand():
    # Laplacian of the 4-cycle with weights 1/2 has eigenvalues 0, 1, 1, 2; R = 3/4 on every edge.
    edges = GRAPHS["grid"][1]
    lap = theory.laplacian(4, edges, np.full(4, 0.5))
    assert theory.lambda_min_plus(lap) == pytest.approx(1)
    assert theory.gamma(lap) == pytest.approx(0.5)
    assert theory.gamma_tilde(4, edges, np.full(4, 0.5)) == pytest.approx(8 / 3)
    l_ij, sigma = [np.array([3.0, 8.0]), np.array([3.0, 0.0])], [1.0, 1.0]
    assert theory.kappa(l_ij, sigma) == [12.0, 4.0]
    assert theory.s_comp(l_ij, sigma) == pytest.approx((2 + 3 + 2 + 1) / 2)
    assert theory.alpha(l_ij, [1.0, 2.0], 6.0) == pytest.approx([6 / (2 * 12), 6 / (2 * 2.5)])
    assert theory.theorem_3_time(4, 9.0, 1.0, 2.0) == pytest.approx(10 * math.sqrt(2) + 2 * 9 * 3)
    assert theory.p_comm_theorem_3(4.0, 3.0, 12.0) == pytest.approx(1 / 3)
    assert theory.p_comm_appendix(4.0, 3.0, 6.0) == pytest.approx(1 / 3)
    assert theory.theorem_2_right_hand_side(4, edges, np.full(4, 0.1), 5.0) == pytest.approx(
        (0.6 + 2 * 5 * 0.4) / 4
    )


def test_figure_2_nodes_finish_when_the_paper_says():
    a, b, c, d = range(4)
    events = [("comm", a, c), ("comm", b, d), ("comm", a, b), ("local", d), ("comm", c, d)]
    tau = 3.0
    assert clock.rendezvous(4, events, tau) == [2 * tau, 2 * tau, 2 * tau + 1, 2 * tau + 1]
    # d reaches (c, d) at tau + 1 and c at tau: c waits for d's message, d only for its own update
    assert clock.nonblocking(4, events, tau) == [2 * tau, 2 * tau, 2 * tau + 1, 2 * tau]


def test_clocks_take_a_delay_an_edge_and_a_speed_a_node():
    events = [("local", 0), ("comm", 1, 0), ("comm", 1, 2), ("local", 2)]
    edges, tau, speed = [(0, 1), (1, 2)], [5.0, 0.5], [2.0, 1.0, 4.0]
    assert clock.rendezvous(3, events, tau, edges, speed) == [5.5, 6.0, 6.25]
    assert clock.nonblocking(3, events, tau, edges, speed) == [5.0, 5.5, 6.25]

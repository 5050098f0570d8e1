"""The literal oracles of added methods do what their publications say, on least squares."""

import itertools

import numpy as np
import pytest

from oracles import (
    acc_sdca,
    acc_vr_extra,
    choco,
    cola,
    d2,
    dgd,
    diging,
    dsa,
    dual_averaging,
    extra,
    katyusha,
    local_sgd,
    losses,
    mixing,
    msda,
    saga,
    sdca,
    svrg,
)

EDGES = [(0, 1), (1, 2), (2, 3), (1, 3)]
MATRICES = {
    "metropolis": mixing.metropolis,
    "laplacian": mixing.laplacian,
    "max-degree": mixing.max_degree,
}


def slope(z, y):
    return z - y


class Quadratic:
    """F = sum_i sum_k w_ik (x_ik . x - y_ik)^2 / 2 + sigma_i/2 |x|^2 on four unequal nodes."""

    def __init__(self, sizes=(3, 5, 2, 4), d=3, seed=0):
        rng = np.random.default_rng(seed)
        self.n, self.d = len(sizes), d
        self.rows = [rng.standard_normal((m, d)) for m in sizes]
        self.labels = [rng.standard_normal(m) for m in sizes]
        self.weights = [rng.uniform(0.5, 2.0, m) for m in sizes]
        self.sigma = rng.uniform(0.5, 2.0, self.n)
        self.hessians = [
            np.einsum("k,ka,kb->ab", w, x, x) + s * np.eye(d)
            for x, w, s in zip(self.rows, self.weights, self.sigma, strict=True)
        ]
        self.targets = [
            x.T @ (w * y) for x, y, w in zip(self.rows, self.labels, self.weights, strict=True)
        ]
        self.best = np.linalg.solve(sum(self.hessians), sum(self.targets))
        self.smoothness = max(np.linalg.eigvalsh(h)[-1] for h in self.hessians)
        self.convexity = min(np.linalg.eigvalsh(h)[0] for h in self.hessians)
        self.start = rng.standard_normal((self.n, d))
        self.p = [weights / weights.sum() for weights in self.weights]

    def grads(self, X):
        return np.array([h @ x - b for h, x, b in zip(self.hessians, X, self.targets, strict=True)])

    def objective(self, x):
        return sum(
            (w * (rows @ x - y) ** 2).sum() / 2 + s / 2 * x @ x
            for rows, y, w, s in zip(self.rows, self.labels, self.weights, self.sigma, strict=True)
        )

    def pooled(self):
        """Rows, labels, weights and the sum of sigma, for the methods of one machine."""
        return (
            np.vstack(self.rows),
            np.concatenate(self.labels),
            np.concatenate(self.weights),
            self.sigma.sum(),
        )


@pytest.fixture
def problem():
    return Quadratic()


def far(X, best):
    return np.max(np.abs(np.asarray(X) - best))


# Mixing matrices


def test_mixing_matrices_of_a_path_are_known():
    path = [(0, 1), (1, 2)]
    third = [[2 / 3, 1 / 3, 0], [1 / 3, 1 / 3, 1 / 3], [0, 1 / 3, 2 / 3]]
    half = [[1 / 2, 1 / 2, 0], [1 / 2, 0, 1 / 2], [0, 1 / 2, 1 / 2]]
    np.testing.assert_allclose(mixing.metropolis(3, path), third, atol=1e-15)
    np.testing.assert_allclose(mixing.max_degree(3, path), third, atol=1e-15)
    np.testing.assert_allclose(mixing.laplacian(3, path), half, atol=1e-15)
    assert mixing.second_largest_modulus(mixing.laplacian(3, path)) == pytest.approx(1 / 2)


@pytest.mark.parametrize("name", MATRICES)
def test_mixing_matrices_average(name):
    W = MATRICES[name](4, EDGES)
    np.testing.assert_allclose(W, W.T, atol=0)
    np.testing.assert_allclose(W.sum(axis=1), 1, atol=1e-15)
    assert W[0, 2] == W[0, 3] == 0
    assert mixing.second_largest_modulus(W) < 1
    np.testing.assert_allclose(np.linalg.matrix_power(W, 200), 0.25, atol=1e-12)


def test_no_other_constant_weight_mixes_faster_than_the_laplacians():
    best = mixing.second_largest_modulus(mixing.laplacian(4, EDGES))
    for weight in np.linspace(0.01, 0.7, 70):
        other = mixing.of_weights(4, dict.fromkeys(EDGES, weight))
        assert mixing.second_largest_modulus(other) >= best - 1e-12


# Methods with full gradients


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize(
    ("method", "share"), [(extra.extra, 0.5), (diging.diging, 0.05), (d2.d2, 1.0)]
)
def test_exact_methods_reach_the_minimiser(problem, method, share, name):
    W = MATRICES[name](4, EDGES)
    iterates = method(problem.grads, W, problem.start, share / problem.smoothness, 3000)
    assert len(iterates) == 3001
    assert far(iterates[0], problem.start) == 0
    assert far(iterates[-1], problem.best) < 1e-10


@pytest.mark.parametrize("method", [extra.extra, diging.diging, d2.d2])
def test_means_of_exact_methods_follow_the_mean_gradient(problem, method):
    W = mixing.metropolis(4, EDGES)
    step = 0.1 / problem.smoothness
    iterates = method(problem.grads, W, problem.start, step, 30)
    for X, new in itertools.pairwise(iterates):
        descent = X.mean(axis=0) - step * problem.grads(X).mean(axis=0)
        np.testing.assert_allclose(new.mean(axis=0), descent, atol=1e-12)


@pytest.mark.parametrize("method", [extra.extra, diging.diging, d2.d2])
def test_one_node_takes_gradient_steps(method):
    alone = Quadratic(sizes=(4,))
    step = 0.5 / alone.smoothness
    iterates = method(alone.grads, np.eye(1), alone.start, step, 20)
    for X, new in itertools.pairwise(iterates):
        np.testing.assert_allclose(new, X - step * alone.grads(X), atol=1e-13)


def test_extra_is_its_sum_form(problem):
    """Shi et al. 2015, (2.14): X_{t+1} = W X_t - a g_t + sum_{s < t} (W - W~) X_s."""
    W = mixing.metropolis(4, EDGES)
    step = 0.5 / problem.smoothness
    iterates = extra.extra(problem.grads, W, problem.start, step, 40)
    past = np.zeros_like(problem.start)
    for X, new in itertools.pairwise(iterates):
        np.testing.assert_allclose(new, W @ X - step * problem.grads(X) + past, atol=1e-11)
        past = past + (W - (np.eye(4) + W) / 2) @ X


def test_diging_without_y_is_two_steps_of_w(problem):
    W = mixing.metropolis(4, EDGES)
    step = 0.1 / problem.smoothness
    iterates = diging.diging(problem.grads, W, problem.start, step, 40)
    for X, new, last in zip(iterates, iterates[1:], iterates[2:], strict=False):
        change = problem.grads(new) - problem.grads(X)
        np.testing.assert_allclose(last, 2 * W @ new - W @ W @ X - step * change, atol=1e-11)


@pytest.mark.parametrize(("factor", "stable"), [(0.95, True), (1.05, False)])
def test_digings_largest_step_falls_with_the_least_eigenvalue(factor, stable):
    """For f_i = h/2 |x - b_i|^2: z = -1 is a root at 2 a h = (1 + lmin(W))^2, lmin = -0.6 here."""
    W = mixing.laplacian(4, EDGES)
    least = np.linalg.eigvalsh(W)[0]
    assert least == pytest.approx(-0.6)
    h, targets = 3.0, np.random.default_rng(0).standard_normal((4, 2))
    step = factor * (1 + least) ** 2 / (2 * h)
    iterates = diging.diging(lambda X: h * (X - targets), W, 0 * targets, step, 2000)
    error = far(iterates[-1], targets.mean(axis=0))
    assert error < 1e-6 if stable else error > 1e2


def test_d2_is_exact_diffusion(problem):
    """Adapt, correct, combine: psi = X - a g; phi = psi + X - psi_before; X+ = V phi."""
    W = mixing.laplacian(4, EDGES)
    step = 1.0 / problem.smoothness
    iterates = d2.d2(problem.grads, W, problem.start, step, 40)
    before = problem.start
    for X, new in itertools.pairwise(iterates):
        psi = X - step * problem.grads(X)
        np.testing.assert_allclose(new, (np.eye(4) + W) / 2 @ (psi + X - before), atol=1e-11)
        before = psi


def test_d2s_largest_step_is_the_same_on_every_network():
    """Below 2 / L on a long path too, where EXTRA diverges with that step."""
    long = Quadratic(sizes=(3,) * 8)
    W = mixing.laplacian(8, [(i, i + 1) for i in range(7)])
    step = 1.9 / long.smoothness
    assert far(d2.d2(long.grads, W, long.start, step, 1000)[-1], long.best) < 1e-10
    assert far(extra.extra(long.grads, W, long.start, step, 100)[-1], long.best) > 1e3


@pytest.mark.parametrize("name", MATRICES)
def test_dgd_stops_where_disagreement_balances_the_gradients(problem, name):
    """(I - W) X / a + g(X) = 0, solved at once for all nodes."""
    W = MATRICES[name](4, EDGES)
    step = 0.3 / problem.smoothness
    matrix = np.kron((np.eye(4) - W) / step, np.eye(3))
    for i, hessian in enumerate(problem.hessians):
        matrix[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] += hessian
    fixed = np.linalg.solve(matrix, np.concatenate(problem.targets)).reshape(4, 3)
    iterates = dgd.dgd(problem.grads, W, problem.start, [step] * 1500)
    assert len(iterates) == 1501
    assert far(iterates[-1], fixed) < 1e-11
    assert far(fixed, problem.best) > 1e-2


def test_dgd_with_decreasing_steps_reaches_the_minimiser(problem):
    W = mixing.metropolis(4, EDGES)
    errors = {}
    for rounds in (500, 5000):
        steps = [2 / (problem.convexity * (40 + t)) for t in range(rounds)]
        errors[rounds] = far(dgd.dgd(problem.grads, W, problem.start, steps)[-1], problem.best)
    assert errors[5000] < errors[500] / 5


# Dual averaging


def test_dual_averaging_keeps_its_theorem_2(problem):
    """Duchi et al. 2012, Theorem 2: f(mean of node i) - f* <= 8 R G log(T sqrt n) / sqrt(T gap)."""
    n = problem.n
    radius = 1.5 * float(np.linalg.norm(problem.best))
    pairs = zip(problem.hessians, problem.targets, strict=True)
    lipschitz = max(np.linalg.norm(h, 2) * radius + np.linalg.norm(b) for h, b in pairs)
    for name, edges in [("metropolis", EDGES), ("max-degree", [(0, 1), (1, 2), (2, 3)])]:
        W = MATRICES[name](n, edges)
        gap = 1 - mixing.second_largest_modulus(W)
        rounds = 2000
        steps = [radius * np.sqrt(gap / t) / (4 * lipschitz) for t in range(1, rounds + 1)]
        iterates, means = dual_averaging.dual_averaging(
            problem.grads, W, np.zeros((n, 3)), steps, radius
        )
        assert len(iterates) == len(means) == rounds + 1
        excess = {}
        for t in (10, 100, 1000, 2000):
            error = max(problem.objective(x) - problem.objective(problem.best) for x in means[t])
            bound = 8 * radius * lipschitz * np.log(t * np.sqrt(n)) / np.sqrt(t * gap)
            excess[t] = error / n
            assert 0 < excess[t] < bound
        assert excess[2000] < excess[1000] < excess[100] < excess[10]
        assert all(np.linalg.norm(x) <= radius * (1 + 1e-12) for X in iterates for x in X)


def test_dual_averaging_with_large_steps_reaches_the_minimiser(problem):
    W = mixing.laplacian(4, EDGES)
    radius = 2 * float(np.linalg.norm(problem.best))
    steps = [4 / problem.smoothness / np.sqrt(t) for t in range(1, 4001)]
    iterates, means = dual_averaging.dual_averaging(
        problem.grads, W, np.zeros((4, 3)), steps, radius
    )
    assert far(means[4000], problem.best) < far(means[400], problem.best) / 2
    assert far(iterates[4000], problem.best) < 0.02


def test_dual_averaging_minimises_over_its_ball(problem):
    """With R half of |x*|, the minimiser solves grad F(x) + nu x = 0 with |x| = R, nu > 0."""
    hessian, target = sum(problem.hessians), sum(problem.targets)
    radius = 0.5 * float(np.linalg.norm(problem.best))
    low, high = 0.0, 1e4
    for _ in range(200):
        nu = (low + high) / 2
        inside = np.linalg.solve(hessian + nu * np.eye(3), target)
        low, high = (nu, high) if np.linalg.norm(inside) > radius else (low, nu)
    W = mixing.metropolis(4, EDGES)
    steps = [2 / problem.smoothness / np.sqrt(t) for t in range(1, 1001)]
    iterates, means = dual_averaging.dual_averaging(
        problem.grads, W, np.zeros((4, 3)), steps, radius
    )
    assert far(means[1000], inside) < min(0.1 * radius, far(means[100], inside) / 2)
    assert far(iterates[1000], inside) < 0.1 * radius


def test_dual_averaging_sums_mean_gradients(problem):
    """Far from the border of the ball, the mean of X is -a_t times the sum of mean gradients."""
    W = mixing.metropolis(4, EDGES)
    steps = [0.05 / np.sqrt(t) for t in range(1, 41)]
    iterates, means = dual_averaging.dual_averaging(
        problem.grads, W, problem.start, steps, radius=1e6
    )
    total = np.zeros(3)
    for X, new, step in zip(iterates, iterates[1:], steps, strict=False):
        total = total + problem.grads(X).mean(axis=0)
        np.testing.assert_allclose(new.mean(axis=0), -step * total, atol=1e-12)
    np.testing.assert_allclose(means[40], np.mean(iterates[1:], axis=0), atol=1e-12)


def test_projection_is_the_nearest_point_of_the_ball():
    np.testing.assert_allclose(dual_averaging.projection(np.array([3.0, 4.0]), 1), [0.6, 0.8])
    np.testing.assert_allclose(dual_averaging.projection(np.array([0.3, 0.4]), 1), [0.3, 0.4])


# Methods that draw samples


def draws(problem, rounds, seed=0):
    rng = np.random.default_rng(seed)
    return [[int(rng.choice(len(p), p=p)) for p in problem.p] for _ in range(rounds)]


def run_dsa(problem, W, step, places):
    return dsa.dsa(
        problem.rows, problem.labels, problem.weights, problem.sigma, W, problem.start, step,
        places, problem.p, slope,
    )  # fmt: skip


def test_dsa_reaches_the_minimiser(problem):
    W = mixing.metropolis(4, EDGES)
    iterates = run_dsa(problem, W, 0.1 / problem.smoothness, draws(problem, 3000))
    assert far(iterates[-1], problem.best) < 1e-10


def test_dsa_with_one_sample_per_node_is_extra():
    single = Quadratic(sizes=(1, 1, 1, 1))
    W = mixing.laplacian(4, EDGES)
    step = 0.5 / single.smoothness
    found = run_dsa(single, W, step, [[0] * 4] * 30)
    expected = extra.extra(single.grads, W, single.start, step, 30)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_mean_of_dsas_first_steps_is_extras():
    """The tables are fresh at X_0, so X_1 is EXTRA's, and X_2 in expectation over round 1."""
    small = Quadratic(sizes=(2, 3, 2, 1))
    W = mixing.metropolis(4, EDGES)
    step = 0.3 / small.smoothness
    expected = extra.extra(small.grads, W, small.start, step, 2)
    mean, total = 0.0, 0.0
    for drawn in itertools.product(*(range(len(p)) for p in small.p)):
        chance = np.prod([p[j] for p, j in zip(small.p, drawn, strict=True)])
        first = [len(p) - 1 for p in small.p]
        iterates = run_dsa(small, W, step, [first, drawn])
        np.testing.assert_allclose(iterates[1], expected[1], atol=1e-12)
        mean, total = mean + chance * iterates[2], total + chance
    assert total == pytest.approx(1)
    np.testing.assert_allclose(mean, expected[2], atol=1e-12)


ACC = {"q": 0.3, "r": 0.5, "s": 0.5}
LAPLACIAN = mixing.laplacian_matrix(4, EDGES)


def run_acc_vr_extra(problem, laplacian, step, K, places, p, coins):
    return acc_vr_extra.acc_vr_extra(
        problem.rows, problem.labels, problem.weights, problem.sigma, laplacian,
        np.tile(problem.start[0], (problem.n, 1)), a=step, rounds=K, places=places, p=p,
        coins=coins, slope=slope, **ACC,
    )  # fmt: skip


def acc_rounds(iterates, coins):
    """(z, y, z+) of each round, from the x alone."""
    q, r = ACC["q"], ACC["r"]
    z = w = iterates[0]
    for x, new, coin in zip(iterates, iterates[1:], coins, strict=False):
        y = q * z + r * w + (1 - q - r) * x
        z_next = z + (new - y) / q
        yield z, y, z_next
        z, w = z_next, x if coin else w


@pytest.mark.parametrize("K", [1, 2, 5])
def test_chebyshev_gossip_is_its_three_term_recursion(K):
    low, high = np.linalg.eigvalsh(LAPLACIAN)[[1, -1]]
    c2, c3 = (high + low) / (high - low), 2 / (high + low)
    expected = np.eye(4) - msda.accelerated_gossip(np.eye(4), LAPLACIAN, K, c2, c3)
    np.testing.assert_allclose(acc_vr_extra.chebyshev(LAPLACIAN, K), expected, atol=1e-13)


@pytest.mark.parametrize("K", [1, 3])
def test_chebyshev_gossip_of_a_complete_graph_is_the_mean(K):
    complete = mixing.laplacian_matrix(4, list(itertools.combinations(range(4), 2)))
    np.testing.assert_allclose(acc_vr_extra.chebyshev(complete, K), 0.25, atol=1e-15)


@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize("batch", ["every row", "uniform", "weights"])
def test_acc_vr_extra_reaches_the_minimiser(problem, batch, K):
    rng = np.random.default_rng(0)
    T = 3000
    even = [np.full(len(p), 1 / len(p)) for p in problem.p]
    p = problem.p if batch == "weights" else even
    if batch == "every row":
        places = [[range(len(own)) for own in p]] * T
    else:
        places = [[rng.choice(len(own), size=len(own), p=own) for own in p] for _ in range(T)]
    coins = rng.random(T) < 0.3
    step = 0.1 / problem.smoothness
    iterates = run_acc_vr_extra(problem, LAPLACIAN, step, K, places, p, coins)
    assert len(iterates) == T + 1
    assert far(iterates[-1], problem.best) < 1e-10


@pytest.mark.parametrize("K", [1, 3])
def test_multipliers_of_acc_vr_extra_keep_their_sum_of_zero(problem, K):
    """Each e, read off its round's equation, has sum zero and is q U^2 times the sum of past z."""
    p = [np.full(len(own), 1 / len(own)) for own in problem.p]
    places = [[range(len(own)) for own in p]] * 40  # so g is the gradient at y
    coins = np.random.default_rng(0).random(40) < 0.3
    step, q, mu = 0.1 / problem.smoothness, ACC["q"], min(problem.sigma)
    iterates = run_acc_vr_extra(problem, LAPLACIAN, step, K, places, p, coins)
    U2 = ACC["s"] * (np.eye(4) - acc_vr_extra.chebyshev(LAPLACIAN, K))
    past = 0 * iterates[0]
    for z, y, z_next in acc_rounds(iterates, coins):
        moved = q * (z_next - z) + mu * step * (z_next - y) + step * problem.grads(y)
        e = -moved - q * U2 @ z
        np.testing.assert_allclose(e.sum(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(e, q * U2 @ past, atol=1e-12)
        past = past + z_next


def test_acc_vr_extras_mean_step_is_the_full_gradients(problem):
    """Its x is affine in g, and each node's g in its own draw: the mean has g = the gradient."""
    places, coins = [[[j] for j in drawn] for drawn in draws(problem, 6)], [0, 1, 0, 0, 1, 0, 0]
    step, q, mu = 0.1 / problem.smoothness, ACC["q"], min(problem.sigma)

    def run(last):
        arguments = (problem, LAPLACIAN, step, 2, [*places, last], problem.p, coins)
        return run_acc_vr_extra(*arguments)

    mean = np.zeros((4, 3))
    for i, p in enumerate(problem.p):
        for j, chance in enumerate(p):
            iterates = run([[j] if node == i else [0] for node in range(4)])
            mean[i] += chance * iterates[-1][i]
    *earlier, (z, y, _) = acc_rounds(iterates, coins)
    U2 = ACC["s"] * (np.eye(4) - acc_vr_extra.chebyshev(LAPLACIAN, 2))
    pulls = q * U2 @ (z + sum(z_next for *_, z_next in earlier))
    right = q * z + mu * step * y - step * problem.grads(y) - pulls
    z_next = right / (q + mu * step)
    np.testing.assert_allclose(mean, y + q * (z_next - z), atol=1e-12)


def test_acc_vr_extra_of_one_node_is_loopless_katyusha():
    """With alpha = N a / q for the mean form's gradients, and w+ = x of before the round."""
    alone = Quadratic(sizes=(6,))
    data = katyusha.data_of(
        list(zip(alone.rows, alone.labels, alone.weights, strict=True)), alone.sigma, "squared"
    )
    p = np.array([katyusha.probability(data, k) for k in range(6)])
    rng = np.random.default_rng(0)
    places = [[list(rng.choice(6, size=2, p=p))] for _ in range(30)]
    coins = rng.random(30) < 0.3
    q, r, step = ACC["q"], ACC["r"], 0.1 / alone.smoothness
    found = run_acc_vr_extra(alone, [[0.0]], step, 2, places, [p], coins)
    c = katyusha.Constants(tau1=q, tau2=r, alpha=6 * step / q, theta=1.0)
    x = z = w = alone.start[0]
    for new, batches, coin in zip(found[1:], places, coins, strict=True):
        before = x
        x, z = katyusha.inner_round(data, c, x, z, w, batches)
        w = before if coin else w
        np.testing.assert_allclose(new[0], x, atol=1e-13)


def exact_grads(problem):
    return lambda t, X: problem.grads(X)


def test_choco_without_compression_is_gradient_step_then_mixing(problem):
    W = mixing.metropolis(4, EDGES)
    steps = [0.3 / problem.smoothness] * 20
    iterates = choco.choco(
        exact_grads(problem), W, problem.start, steps, 1.0, lambda t, i, v: v, 20
    )
    for X, new in itertools.pairwise(iterates):
        np.testing.assert_allclose(new, W @ (X - steps[0] * problem.grads(X)), atol=1e-12)


def test_choco_mixes_what_was_sent_only(problem):
    """If only node 1 sends, its neighbours move towards H_1 and node 1 away from it: H_j = 0."""
    W = mixing.metropolis(4, EDGES)
    steps = [0.3 / problem.smoothness] * 2
    start, gamma = problem.start, 0.7

    def run(compress):
        return choco.choco(exact_grads(problem), W, start, steps, gamma, compress, 2)

    silent = run(lambda t, i, v: 0 * v)
    half = start - steps[0] * problem.grads(start)
    np.testing.assert_allclose(silent[1], half, atol=1e-14)
    sent = run(lambda t, i, v: v if i == 1 else 0 * v)
    moved = gamma * np.outer(W[:, 1] - np.eye(4)[1], half[1])
    np.testing.assert_allclose(sent[1], half + moved, atol=1e-14)


COMPRESSIONS = {
    "top": lambda t, i, v: choco.top(1, v),
    "random": lambda t, i, v: choco.only([(t + i) % len(v)], v),
    "sign": lambda t, i, v: choco.sign(v),
}


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_choco_mixes_without_moving_the_mean(problem, name):
    W = mixing.metropolis(4, EDGES)
    steps = [0.1 / problem.smoothness] * 50
    iterates = choco.choco(
        exact_grads(problem), W, problem.start, steps, 0.2, COMPRESSIONS[name], 50
    )
    for X, new in itertools.pairwise(iterates):
        mean = (X - steps[0] * problem.grads(X)).mean(axis=0)
        np.testing.assert_allclose(new.mean(axis=0), mean, atol=1e-12)


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_choco_gossip_reaches_the_mean(problem, name):
    W = mixing.metropolis(4, EDGES)
    iterates = choco.choco(
        lambda t, X: 0 * X, W, problem.start, [0.0] * 600, 0.2, COMPRESSIONS[name], 600
    )
    assert far(iterates[-1], problem.start.mean(axis=0)) < 1e-8


def test_compressions_are_contractions():
    v = np.array([0.5, -3.0, 0.0, 2.0, -3.0])
    np.testing.assert_array_equal(choco.top(2, v), [0, -3, 0, 0, -3])
    np.testing.assert_array_equal(choco.top(1, v), [0, -3, 0, 0, 0])
    np.testing.assert_array_equal(choco.only([0, 3], v), [0.5, 0, 0, 2, 0])
    np.testing.assert_allclose(choco.sign(v), np.array([1, -1, 0, 1, -1]) * 1.7)
    w = np.array([1.0, -2.0, 3.0])
    left = np.sum((w - choco.sign(w)) ** 2)
    assert left == pytest.approx((1 - 6**2 / (3 * 14)) * 14)


def test_local_sgd_stops_at_the_mean_of_its_local_maps(problem):
    """H full steps at node i take x to (I - a H_i)^H (x - x_i*) + x_i*."""
    step, local = 0.5 / problem.smoothness, 4
    iterates = local_sgd.local_sgd(
        exact_grads(problem), problem.start, [step] * (local * 200), local
    )
    assert len(iterates) == 201
    powers = [np.linalg.matrix_power(np.eye(3) - step * h, local) for h in problem.hessians]
    own = [np.linalg.solve(h, b) for h, b in zip(problem.hessians, problem.targets, strict=True)]
    right = sum((np.eye(3) - power) @ x for power, x in zip(powers, own, strict=True)) / 4
    fixed = np.linalg.solve(np.eye(3) - sum(powers) / 4, right)
    assert far(iterates[-1], fixed) < 1e-11
    assert far(fixed, problem.best) > 1e-3


def test_local_sgd_with_one_local_step_is_gradient_descent(problem):
    step = 0.5 / problem.smoothness
    start = np.tile(problem.start[0], (4, 1))
    iterates = local_sgd.local_sgd(exact_grads(problem), start, [step] * 500, 1)
    for X, new in itertools.pairwise(iterates[:20]):
        expected = np.tile(X[0] - step * problem.grads(X).mean(axis=0), (4, 1))
        np.testing.assert_allclose(new, expected, atol=1e-13)
    assert far(iterates[-1], problem.best) < 1e-11


# Methods of one machine


def machine_step(problem):
    """1 / L of the samples in mean form, and their probabilities w |x|^2 / sum."""
    rows, _, weights, sigma = problem.pooled()
    own = weights * np.sum(rows**2, axis=1)
    p = own / own.sum()
    largest = np.max(own / (len(own) * p)) + sigma / len(own)
    return 1 / largest, 1 / (np.max(own) + sigma / len(own)), p


def machine_draws(p, rounds, seed=0):
    return np.random.default_rng(seed).choice(len(p), size=rounds, p=p)


@pytest.mark.parametrize("ridge", ["gradient", "prox", "table"])
def test_saga_and_sag_reach_the_minimiser(problem, ridge):
    by_p, uniform, p = machine_step(problem)
    rows, labels, weights, sigma = problem.pooled()
    x0 = problem.start[0]
    even = np.full(len(p), 1 / len(p))
    iterates = saga.saga(
        rows, labels, weights, sigma, x0, by_p / 3, machine_draws(p, 3000), p, slope, ridge
    )
    assert far(iterates[-1], problem.best) < 1e-10
    places = machine_draws(even, 3000)
    iterates = saga.saga(rows, labels, weights, sigma, x0, uniform / 3, places, even, slope, ridge)
    assert far(iterates[-1], problem.best) < 1e-10
    iterates = saga.sag(
        rows, labels, weights, sigma, x0, uniform / 16, machine_draws(even, 6000), slope, ridge
    )
    assert far(iterates[-1], problem.best) < 1e-10


@pytest.mark.parametrize("ridge", ["gradient", "table"])
def test_sagas_mean_step_is_the_full_gradients(problem, ridge):
    """At any table, sum_j p_j x(j) = x - a grad F(x) / N."""
    step, _, p = machine_step(problem)
    rows, labels, weights, sigma = problem.pooled()
    N, past = len(p), [0, 5, 3, 3, 9]
    last, mean = None, 0.0
    for j in range(N):
        *_, last, new = saga.saga(
            rows, labels, weights, sigma, problem.start[0], step / 3, [*past, j], p, slope, ridge
        )
        mean = mean + p[j] * new
    gradient = problem.grads(np.tile(last, (4, 1))).sum(axis=0) / N
    np.testing.assert_allclose(mean, last - step / 3 * gradient, atol=1e-12)


@pytest.mark.parametrize("keep", ["weighted", "mean", "last"])
def test_svrg_reaches_the_minimiser(problem, keep):
    by_p, _, p = machine_step(problem)
    rows, labels, weights, sigma = problem.pooled()
    places = [machine_draws(p, 150, seed) for seed in range(40)]
    iterates = svrg.svrg(
        rows, labels, weights, sigma, problem.start[0], by_p / 5, places, p, slope, keep
    )
    assert len(iterates) == 41
    assert far(iterates[-1], problem.best) < 1e-10


def test_svrgs_mean_step_is_the_full_gradients(problem):
    """At any snapshot and point, sum_j p_j x(j) = x - a grad F(x) / N."""
    step, _, p = machine_step(problem)
    rows, labels, weights, sigma = problem.pooled()
    N, past = len(p), [2, 7, 7, 1]

    def last(places):
        arguments = (rows, labels, weights, sigma, problem.start[0], step / 3)
        return svrg.svrg(*arguments, places, p, slope, "last")[-1]

    x = last([[4, 9], past])
    mean = sum(p[j] * last([[4, 9], [*past, j]]) for j in range(N))
    gradient = problem.grads(np.tile(x, (4, 1))).sum(axis=0) / N
    np.testing.assert_allclose(mean, x - step / 3 * gradient, atol=1e-12)


def test_the_three_ways_to_keep_a_point_weigh_the_same_path(problem):
    step, _, p = machine_step(problem)
    rows, labels, weights, sigma = problem.pooled()
    drawn = [3, 0, 11]

    def after(places, keep):
        arguments = (rows, labels, weights, sigma, problem.start[0], step / 3)
        return svrg.svrg(*arguments, [places], p, slope, keep)[1]

    path = [problem.start[0], after(drawn[:1], "last"), after(drawn[:2], "last")]
    shrink = 1 - step / 3 * sigma / len(p)
    share = np.array([shrink**2, shrink, 1.0])
    np.testing.assert_allclose(after(drawn, "mean"), np.mean(path, axis=0), atol=1e-14)
    np.testing.assert_allclose(
        after(drawn, "weighted"), share @ np.array(path) / share.sum(), atol=1e-14
    )


def two_classes(problem, loss):
    """The pooled samples, with labels -1 and 1 if the loss is one of classes."""
    rows, labels, weights, sigma = problem.pooled()
    if loss not in ("squared", "huber"):
        labels = np.where(labels > 0, 1.0, -1.0)
    return rows, labels, weights, sigma


def primal(loss, rows, labels, weights, S, x):
    return float(np.sum(losses.value(loss, rows @ x, labels, weights)) + S / 2 * x @ x)


SMOOTH = ["squared", "logistic", "smoothed_hinge"]


@pytest.mark.parametrize("loss", SMOOTH)
def test_sdca_closes_the_duality_gap(problem, loss):
    rows, labels, weights, S = two_classes(problem, loss)
    places = np.random.default_rng(0).integers(len(rows), size=900)
    iterates, coefficients = sdca.sdca(rows, labels, weights, S, places, loss)
    x, c = iterates[-1], coefficients[-1]
    np.testing.assert_allclose(c, losses.derivative(loss, rows @ x, labels, weights), atol=1e-12)
    gap = primal(loss, rows, labels, weights, S, x) - sdca.dual(loss, rows, labels, weights, S, c)
    assert abs(gap) < 1e-12
    if loss == "squared":
        assert far(x, problem.best) < 1e-12
    duals = [sdca.dual(loss, rows, labels, weights, S, c) for c in coefficients]
    assert all(new >= old - 1e-12 for old, new in itertools.pairwise(duals))


@pytest.mark.parametrize("loss", SMOOTH)
def test_an_sdca_step_solves_the_primal_equation_too(problem, loss):
    """c_j = w_j l'(x_j . x) at the new x, which also is the old one less the change / S."""
    rows, labels, weights, S = two_classes(problem, loss)
    places = [0, 3, 3, 8, 13, 5]
    iterates, coefficients = sdca.sdca(rows, labels, weights, S, places, loss)
    for t, j in enumerate(places):
        x, c = iterates[t + 1], coefficients[t + 1]
        slope_there = losses.derivative(loss, rows[j] @ x, labels[j], weights[j])
        assert c[j] == pytest.approx(slope_there, abs=1e-13)
        change = (c[j] - coefficients[t][j]) / S * rows[j]
        np.testing.assert_allclose(x, iterates[t] - change, atol=1e-14)


@pytest.mark.parametrize("loss", SMOOTH)
def test_sdca_gains_in_the_mean_what_its_theorem_promises(problem, loss):
    """Mean gain of D over uniform draws >= s/N (F - D), s = min_j S / (S + w_j lmax |x_j|^2)."""
    rows, labels, weights, S = two_classes(problem, loss)
    N, bound = len(rows), losses.curvature_bound(loss)
    share = min(S / (S + w * bound * (x @ x)) for x, w in zip(rows, weights, strict=True))
    data = (rows, labels, weights, S)
    for past in ([], [1], [4, 2, 8, 13], list(range(N))):
        iterates, coefficients = sdca.sdca(*data, past, loss)
        start = sdca.dual(loss, *data, coefficients[-1])
        gains = []
        for j in range(N):
            c = sdca.sdca(*data, [*past, j], loss)[1][-1]
            gains.append(sdca.dual(loss, *data, c) - start)
        gap = primal(loss, *data, iterates[-1]) - start
        assert np.mean(gains) >= share / N * gap


def test_acc_sdca_without_an_outer_term_is_sdca(problem):
    rows, labels, weights, S = two_classes(problem, "logistic")
    places = [[0, 4, 4], [9, 1], [13]]
    found, c = acc_sdca.acc_sdca(rows, labels, weights, S, 0.0, 0.0, places, "logistic")
    expected, own = sdca.sdca(rows, labels, weights, S, np.concatenate(places), "logistic")
    np.testing.assert_allclose(found, [expected[t] for t in (0, 3, 5, 6)], atol=1e-14)
    np.testing.assert_allclose(c[-1], own[-1], atol=1e-14)


def test_stages_of_acc_sdca_are_proximal_points(problem):
    """After many draws, x_t = argmin F + K/2 |x - y|^2, y_t = x_t + beta (x_t - x_{t-1})."""
    rows, labels, weights, S = problem.pooled()
    K, beta = 30.0, 0.4
    places = np.random.default_rng(0).integers(len(rows), size=(6, 300))
    found, _ = acc_sdca.acc_sdca(rows, labels, weights, S, K, beta, places, "squared")
    x = y = np.zeros(3)
    for point in found[1:]:
        matrix = sum(problem.hessians) + K * np.eye(3)
        new = np.linalg.solve(matrix, sum(problem.targets) + K * y)
        x, y = new, new + beta * (new - x)
        np.testing.assert_allclose(point, x, atol=1e-12)


@pytest.mark.parametrize("loss", SMOOTH)
def test_acc_sdca_reaches_the_minimiser(problem, loss):
    rows, labels, weights, S = two_classes(problem, loss)
    K = 2 * S
    eta = np.sqrt(S / (S + 2 * K))
    places = np.random.default_rng(0).integers(len(rows), size=(60, 20))
    arguments = (rows, labels, weights, S, K, (1 - eta) / (1 + eta), places, loss)
    x = acc_sdca.acc_sdca(*arguments)[0][-1]
    gradient = rows.T @ losses.derivative(loss, rows @ x, labels, weights) + S * x
    assert np.max(np.abs(gradient)) < 1e-10


def local_places(problem, rounds, steps, seed=0):
    rng = np.random.default_rng(seed)
    return [[rng.integers(len(own), size=steps) for own in problem.rows] for _ in range(rounds)]


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("kind", ["cola", "cocoa"])
def test_cola_and_cocoa_reach_the_minimiser(problem, kind, name):
    data = (problem.rows, problem.labels, problem.weights, problem.sigma.sum())
    places = local_places(problem, 400, 4)
    if kind == "cola":
        W = MATRICES[name](4, EDGES)
        iterates, _ = cola.cola(*data, W, places, "squared")
    else:
        iterates, _ = cola.cocoa(*data, places[:150], "squared")
    assert far(iterates[-1], problem.best) < 1e-10


def test_the_mean_of_colas_rows_is_the_point_of_its_coefficients(problem):
    S = problem.sigma.sum()
    W = mixing.laplacian(4, EDGES)
    data = (problem.rows, problem.labels, problem.weights, S)
    iterates, coefficients = cola.cola(*data, W, local_places(problem, 10, 3), "squared")
    for X, c in zip(iterates, coefficients, strict=True):
        point = -np.vstack(problem.rows).T @ np.concatenate(c) / S
        np.testing.assert_allclose(X.mean(axis=0), point, atol=1e-13)


def test_cola_that_averages_exactly_is_cocoa(problem):
    data = (problem.rows, problem.labels, problem.weights, problem.sigma.sum())
    places = local_places(problem, 10, 3)
    X, c = cola.cola(*data, np.full((4, 4), 0.25), places, "squared")
    Y, d = cola.cocoa(*data, places, "squared")
    np.testing.assert_allclose(np.mean(X, axis=1), np.array(Y)[:, 0], atol=1e-13)
    np.testing.assert_allclose(np.concatenate(c[-1]), np.concatenate(d[-1]), atol=1e-13)


def test_cola_and_cocoa_of_one_node_are_sdca(problem):
    rows, labels, weights, S = two_classes(problem, "logistic")
    drawn = [0, 4, 4, 9, 1, 13]
    data = ([rows], [labels], [weights], S)
    places = [[drawn[:2]], [drawn[2:5]], [drawn[5:]]]
    expected, _ = sdca.sdca(rows, labels, weights, S, drawn, "logistic")
    for found in (
        cola.cola(*data, np.eye(1), places, "logistic")[0],
        cola.cocoa(*data, places, "logistic")[0],
    ):
        for t, own in zip((0, 2, 5, 6), found, strict=True):
            np.testing.assert_allclose(own[0], expected[t], atol=1e-13)


@pytest.mark.parametrize("loss", SMOOTH)
def test_cocoa_never_lowers_the_dual(problem, loss):
    """gamma = 1 is safe with sigma' = n, however many local steps."""
    classes = loss != "squared"
    labels = [np.where(y > 0, 1.0, -1.0) if classes else y for y in problem.labels]
    S = problem.sigma.sum()
    data = (problem.rows, labels, problem.weights, S)
    _, coefficients = cola.cocoa(*data, local_places(problem, 15, 12), loss)
    pooled = (np.vstack(problem.rows), np.concatenate(labels), np.concatenate(problem.weights), S)
    duals = [sdca.dual(loss, *pooled, np.concatenate(c)) for c in coefficients]
    assert all(new >= old - 1e-12 for old, new in itertools.pairwise(duals))
    assert duals[-1] > duals[0] + 0.1

"""DSBA: the kernel is EXTRA with SAGA's backward estimate; it contracts as its page proves."""

import dataclasses

import numpy as np
import pytest

import adfs
from adfs.algorithms import dsba, point_saga
from adfs.algorithms.base import MethodSetting
from adfs.algorithms.dsba import DsbaParameters
from adfs.errors import ParameterError
from adfs.kernels.sampling import alias_draw, uniform
from adfs.randomness import stream_keys
from adfs.schedule.delays import Delays
from oracles import augmented
from oracles import dsba as literal
from oracles import point_saga as literal_point_saga
from support.problems import all_duals, drawn_exactly, make_case, make_shards, stored_as

LOSSES = ("logistic", "squared", "squared_hinge", "smoothed_hinge", "huber")
RULES = ("theory", "paper", "tuned")


def drawn(method, n_rounds, seed=0):
    """Samples that each round's nodes draw, each from its own counter stream at the round."""
    problem, tables = method.algorithm.problem, method.algorithm.constants.tables
    keys = stream_keys(seed, "dsba", problem.n_nodes)
    with np.errstate(over="ignore"):
        return [
            [alias_draw(tables, first, size, uniform(key, t))
             for key, first, size in zip(keys, problem.offsets, problem.sizes, strict=False)]
            for t in range(n_rounds)
        ]  # fmt: skip


def network_of(case, beta=0.0):
    edges = [(int(k), int(l)) for k, l in case.problem.topology.edges]
    loss = case.problem.loss.name
    p = literal.mixed(case.shards, loss, beta)
    return literal.Network(case.shards, case.problem.sigma, edges, loss, p)


def run(method, state, first, last):
    return method.algorithm.step(state, method.source.draw(first, last))


CASES = [*(("grid:2x2", loss, rule) for loss in ("logistic", "squared") for rule in RULES),
         ("ring:5", "squared_hinge", "tuned"), ("star:4", "smoothed_hinge", "paper"),
         ("complete:4", "huber", "tuned"), ("complete:3", "logistic", "tuned"),
         ("single", "logistic", "tuned"), ("path:2", "squared", "paper")]  # fmt: skip


@pytest.mark.parametrize(("graph", "loss", "rule"), CASES)
def test_the_kernel_is_extra_with_the_backward_estimate_of_saga(graph, loss, rule):
    """Dense and CSR; unequal shards, weights and sigmas; all nodes' iterates and the table."""
    case = make_case(graph, loss, seed=4, n_features=5, density=0.6)
    sizes = np.diff(case.problem.offsets)
    assert graph == "single" or len(set(sizes)) > 1
    factors = np.repeat(sizes / sizes.mean(), sizes)[:, None]  # the oracle's table is in mean form
    rows = np.vstack([features for features, *_ in case.shards]) * factors
    theta = np.random.default_rng(1).standard_normal(5) if rule == "paper" else None
    methods = [dsba.prepare(stored_as(case, kind), MethodSetting(rule=rule, seed=7))
               for kind in ("dense", "csr")]  # fmt: skip
    states = [method.algorithm.init(theta) for method in methods]
    start = np.zeros((len(sizes), 5)) if theta is None else np.tile(theta, (len(sizes), 1))
    chosen = methods[0].parameters
    sequence = drawn(methods[0], 400, seed=7)
    expected = literal.iterates(network_of(case, chosen.beta), chosen.alpha, start, sequence)
    moved, at = 0.0, 0
    for t, (z, table) in enumerate(expected):
        if t > 20 and t % 13:
            continue
        for k, method in enumerate(methods):
            states[k] = run(method, states[k], at, t)
            # The oracle's own recursion collects some 5e-15 a round.
            np.testing.assert_allclose(method.algorithm.output(states[k]), z, rtol=0, atol=1e-11)
            gradients = all_duals(method.algorithm, states[k])[:, None] * rows
            np.testing.assert_allclose(gradients, np.vstack(table), rtol=0, atol=1e-10)
        moved, at = max(moved, np.abs(z - start).max()), t
    assert moved > 0.1


@pytest.mark.parametrize("rule", RULES)
def test_samples_are_drawn_with_the_probabilities_of_the_page(rule):
    """Read off the alias tables; `tuned` mixes uniform draws and draws by smoothness."""
    case = make_case("grid:2x2", "logistic", seed=3)
    method = dsba.prepare(case.problem, MethodSetting(rule=rule))
    chosen, tables = method.parameters, method.algorithm.constants.tables
    assert (chosen.beta > 0.3) == (rule == "tuned")
    for node, p in enumerate(literal.mixed(case.shards, "logistic", chosen.beta)):
        cells = tables[case.problem.offsets[node] : case.problem.offsets[node + 1]]
        np.testing.assert_allclose(drawn_exactly(cells), p, rtol=0, atol=1e-9)


def test_the_share_by_smoothness_gives_the_table_its_largest_rate():
    """min_j (p_j - alpha L_j / (2 h m)), beside any other mixture of the two draws."""
    case = make_case("single", "logistic", seed=3, sizes=[12], sigma=0.05)
    chosen = DsbaParameters.of(case.problem, "tuned")
    smoothness = augmented.smoothness(case.shards, "logistic")

    def table_rate(beta):
        (p,) = literal.mixed(case.shards, "logistic", beta)
        return np.min(p - chosen.alpha * smoothness / (2 * chosen.kept * 12))

    assert chosen.rates(chosen.kept)[2] == pytest.approx(table_rate(chosen.beta), rel=1e-9)
    others = [table_rate(beta) for beta in np.linspace(0, 1, 101)]
    assert max(others) <= table_rate(chosen.beta) * (1 + 1e-9)
    assert others[0] < 0.0  # uniform draws with this step: nothing is proven


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_rows_of_zeros_and_a_node_of_nothing_else_do_no_harm(kind):
    shards = make_shards(4, "logistic", seed=5, sizes=[3, 4, 4, 5], dead=True)
    shards[0][0][:] = 0.0
    case = make_case("ring:4", "logistic", shards=shards)
    problem = stored_as(case, kind)
    method = dsba.prepare(problem, MethodSetting())
    state = run(method, method.algorithm.init(), 0, int(50 / method.rho))
    np.testing.assert_allclose(
        method.algorithm.output(state), np.tile(problem.optimum().theta, (4, 1)), rtol=0, atol=1e-9
    )


def test_rounding_errors_do_not_add_up():
    """The text's difference of two rounds keeps each of them: 1e-9 after a million rounds here."""
    problem = make_case("star:4", "smoothed_hinge", seed=4, n_features=5, density=0.6).problem
    method = dsba.prepare(problem, MethodSetting())
    state = run(method, method.algorithm.init(), 0, 300_000)
    error = np.abs(method.algorithm.output(state) - problem.optimum().theta).max()
    assert error < 1e-13


def test_on_one_machine_it_is_point_saga():
    """The oracles of the two methods share only the prox: their recursions are different texts."""
    case = make_case("single", "logistic", seed=9, sizes=[7])
    sequence = np.random.default_rng(0).integers(7, size=300)
    start = np.zeros(4)
    mine = literal.iterates(network_of(case), 0.8, start[None], sequence[:, None])
    theirs = literal_point_saga.ridge_apart(
        case.shards, case.problem.sigma, "logistic", 0.8, start, sequence
    )
    for (z, _), (x, _) in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(z[0], x, rtol=0, atol=1e-12)
    assert np.abs(x).max() > 0.05


class Energy:
    """V, T and the exact expectations of the theorem on its page, with dense matrices."""

    def __init__(self, case, chosen):
        self.network, self.alpha = network_of(case, chosen.beta), chosen.alpha
        self.chosen = chosen
        sizes = self.network.sizes
        smoothness = augmented.smoothness(case.shards, case.problem.loss.name)
        parts = np.split(smoothness, np.cumsum(sizes)[:-1])
        self.weights = [
            1 / (size * p * size / sizes.mean() * part)  # 1 / (m_i p_ij L_ij)
            for size, p, part in zip(sizes, self.network.p, parts, strict=True)
        ]
        theta = augmented.minimiser(case.shards, case.problem.sigma, case.problem.loss.name)
        self.mixing = self.network.w_tilde
        self.u = np.eye(len(self.mixing)) - self.mixing
        self.z = np.tile(theta, (len(self.mixing), 1))
        self.table = self.network.table(self.z)
        self.w = -self.alpha * self.full_gradient(self.table, self.z)

    def full_gradient(self, table, z):
        """Gradient of each F_i in mean form, from a table of its components' gradients."""
        means = np.array([part.mean(axis=0) for part in table])
        return means + self.network.ridge[:, None] * z

    def v(self, z, w):
        """<z, Wt z> + |q|^2 with w = U^{1/2} q, of differences to the optimum."""
        z, w = z - self.z, w - self.w
        return np.sum(z * (self.mixing @ z)) + np.sum(w * (np.linalg.pinv(self.u) @ w))

    def t(self, z, w, table):
        """The function that is proven to shrink by 1 - rho."""
        chosen, h = self.chosen, self.chosen.kept
        rough = chosen.boosted(h) + 2 * chosen.largest_ridge
        s = 2 * self.alpha * chosen.ridge * (1 - (1 - h) * chosen.largest_ridge / rough)
        difference = z - self.z
        squares = sum(
            weights @ np.sum((a - b) ** 2, axis=1)
            for weights, a, b in zip(self.weights, table, self.table, strict=True)
        )
        return (
            self.v(z, w)
            + s * np.sum(difference * (self.mixing @ difference))
            + 2 * self.alpha * h * squares
        )

    def after(self, z, w, table):
        """Every outcome of one round: (z+, w+, table+, the drawn samples, their probability)."""
        for samples, probability in self.network.outcomes():
            new, _, new_table = self.network.backward(
                self.mixing @ z - w, self.alpha, table, samples
            )
            yield new, w + self.u @ new, new_table, samples, probability


def arbitrary_state(energy, size, rng):
    """Iterates, a w in the range of U, and a table that is no gradient of anything."""
    z = energy.z + size * rng.standard_normal(energy.z.shape)
    w = energy.w + size * energy.u @ rng.standard_normal(energy.z.shape)
    return z, w, [part + size * rng.standard_normal(part.shape) for part in energy.table]


def small(graph, loss, rule):
    case = make_case(graph, loss, seed=6, n_features=3, sizes={"path:2": [2, 4]}.get(graph))
    return case, DsbaParameters.of(case.problem, rule)


@pytest.mark.parametrize(("graph", "rule"), [("path:2", "paper"), ("path:3", "tuned")])
def test_the_identity_behind_the_rate_is_exact(graph, rule):
    """E V+ + E[2 alpha <z+, y> + |w + alpha y|^2] + <z, Wt U z> = V + alpha^2 E |e|^2."""
    case, chosen = small(graph, "logistic", rule)
    energy, rng = Energy(case, chosen), np.random.default_rng(2)
    for size in (0.1, 1.0, 5.0):
        z, w, table = arbitrary_state(energy, size, rng)
        left, noise, total = 0.0, 0.0, 0.0
        for new, new_w, _, samples, probability in energy.after(z, w, table):
            boost = np.array([1 / (energy.network.sizes[i] * energy.network.p[i][j])
                              for i, j in enumerate(samples)])  # fmt: skip
            fresh = np.array([energy.network.gradient(i, j, new[i]) for i, j in enumerate(samples)])
            best = np.array([energy.table[i][j] for i, j in enumerate(samples)])
            y = boost[:, None] * (fresh - best) + energy.network.ridge[:, None] * (new - energy.z)
            e = [boost[i] * (table[i][j] - energy.table[i][j])
                 - (table[i] - energy.table[i]).mean(axis=0)
                 for i, j in enumerate(samples)]  # fmt: skip
            gain = 2 * chosen.alpha * np.sum((new - energy.z) * y)
            gain += np.sum((w - energy.w + chosen.alpha * y) ** 2)
            left += probability * (energy.v(new, new_w) + gain)
            noise += probability * chosen.alpha**2 * np.sum(np.square(e))
            total += probability
        assert total == pytest.approx(1.0, rel=1e-12)
        difference = z - energy.z
        left += np.sum(difference * (energy.mixing @ energy.u @ difference))
        assert left == pytest.approx(energy.v(z, w) + noise, rel=1e-9)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("graph", "loss"),
    [("path:2", "logistic"), ("path:3", "squared"), ("ring:3", "huber"), ("single", "logistic")],
)
def test_the_exact_expectation_of_t_shrinks_by_one_minus_rho_from_anywhere(graph, loss, rule):
    case, chosen = small(graph, loss, rule)
    energy, rng = Energy(case, chosen), np.random.default_rng(3)
    starts = [arbitrary_state(energy, size, rng) for size in (0.1, 1.0, 10.0)]
    starts += [(z, energy.w, energy.table) for z, _, _ in starts]
    starts += [(energy.z, w, energy.table) for _, w, _ in starts[:3] if graph != "single"]
    starts += [(energy.z, energy.w, table) for _, _, table in starts[:3]]
    ratios = []
    for state in starts:
        mean = sum(one[4] * energy.t(*one[:3]) for one in energy.after(*state))
        ratios.append(mean / energy.t(*state) / (1.0 - chosen.rho))
    assert max(ratios) <= 1.0 + 1e-9
    assert max(ratios) > 0.5


@pytest.mark.parametrize("rule", ["paper", "tuned"])
@pytest.mark.parametrize("graph", ["grid:3x3", "ring:6"])
def test_mean_t_along_runs_stays_under_the_proven_rate(graph, rule):
    case = make_case(graph, "logistic", seed=11, n_features=3)
    rows = np.vstack([features for features, *_ in case.shards])
    sizes = np.diff(case.problem.offsets)
    scaled = rows * np.repeat(sizes / sizes.mean(), sizes)[:, None]
    chosen = DsbaParameters.of(case.problem, rule)
    energy = Energy(case, chosen)
    n_rounds, every = int(6.0 / chosen.rho), max(1, int(0.2 / chosen.rho))
    runs = []
    for seed in range(8):
        method = dsba.prepare(case.problem, MethodSetting(rule=rule, seed=seed))
        state = method.algorithm.init()
        w, values = energy.u @ method.algorithm.output(state), []
        for t in range(n_rounds):
            if t % every == 0:
                duals = all_duals(method.algorithm, state)[:, None] * scaled
                table = np.split(duals, case.problem.offsets[1:-1])
                values.append(energy.t(method.algorithm.output(state), w, table))
            state = run(method, state, t, t + 1)
            w = w + energy.u @ method.algorithm.output(state)
        runs.append(values)
    mean = np.mean(runs, axis=0)
    times = every * np.arange(len(mean))
    assert np.all(mean <= mean[0] * (1.0 - chosen.rho) ** times)
    assert mean[-1] < 1e-2 * mean[0]


@pytest.mark.parametrize("rule", ["paper", "tuned"])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("graph", ["grid:3x3", "complete:9", "ring:9"])
def test_it_reaches_the_certified_optimum(graph, loss, rule):
    """Shards of 2 to 4 rows, weights and a sigma for each node: the optimum of F, no other."""
    problem = make_case(graph, loss, seed=8).problem
    best = problem.optimum()
    method = dsba.prepare(problem, MethodSetting(rule=rule))
    state = run(method, method.algorithm.init(), 0, int(50 / method.rho))
    thetas = method.algorithm.output(state)
    np.testing.assert_allclose(thetas, np.tile(best.theta, (9, 1)), rtol=0, atol=1e-9)
    for theta in thetas:
        assert problem.objective(theta) - best.objective <= 1e-8 * max(1.0, abs(best.objective))


def gaussian_problem(m, graph="grid:3x3"):
    """``m`` samples per node on nine nodes: five Gaussian features, sigma 1."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((9 * m, 5))
    noise = 0.1 * rng.standard_normal(9 * m)
    labels = np.sign(features @ rng.standard_normal(5) + noise)
    shards = [(features[i * m : (i + 1) * m], labels[i * m : (i + 1) * m]) for i in range(9)]
    return adfs.Problem(shards, topology=adfs.Topology.parse(graph))


def rounds_to(problem, method, step, limit):
    """Rounds until the mean of |theta_i - theta*|^2 / |theta*|^2 is under 1e-8."""
    best = problem.optimum().theta
    state = method.algorithm.init()
    for t in range(0, limit, step):
        state = run(method, state, t, t + step)
        distance = np.mean(np.sum((method.algorithm.output(state) - best) ** 2, axis=1))
        if distance < 1e-8 * (best @ best):
            return t + step
    return limit


@pytest.mark.parametrize(
    ("m", "rule", "expected"), [(20, "theory", 8400), (20, "paper", 1400), (200, "paper", 8360)]
)
def test_rounds_to_1e_8_are_of_the_size_that_spec_section_6_gives(m, rule, expected):
    problem = gaussian_problem(m)
    assert problem.conditioning.kappa_s == pytest.approx({20: 34, 200: 266}[m], rel=0.1)
    found = rounds_to(problem, dsba.prepare(problem, MethodSetting(rule=rule)), 10, 4 * expected)
    assert 0.6 * expected < found < 1.6 * expected


def test_point_saga_too_is_of_that_size():
    problem = gaussian_problem(20)
    found = rounds_to(problem, point_saga.prepare(problem, MethodSetting()), 20, 10_000)
    assert 0.6 * 2400 < found < 1.6 * 2400


def test_steps_beyond_the_papers_are_stable_and_faster():
    """The ADFS paper found DSBA unstable beyond 1 / (4 L); the proof says any step below 2 / L."""
    problem = gaussian_problem(20, "ring:9")
    counts = {rule: rounds_to(problem, dsba.prepare(problem, MethodSetting(rule=rule)), 10, 20_000)
              for rule in RULES}  # fmt: skip
    assert 2 * counts["tuned"] < counts["paper"]
    assert 4 * counts["paper"] < counts["theory"]


def test_every_rule_has_the_step_that_it_names():
    problem = make_case("grid:2x2", "squared", seed=5).problem
    sizes = np.diff(problem.offsets)
    share = np.repeat(sizes / sizes.mean(), sizes)
    largest = float(np.max(share * problem.weights * problem.squared_norms))
    weakest = float(np.min(problem.sigma)) / sizes.mean()
    smoothness = problem.weights * problem.squared_norms
    mean = max(part.sum() for part in np.split(smoothness, problem.offsets[1:-1])) / sizes.mean()
    assert largest > 1.5 * mean
    wanted = {"theory": 1 / (24 * largest), "paper": 1 / (4 * largest),
              "tuned": 2 / (mean + 4 * sizes.max() * weakest)}  # fmt: skip
    for rule, alpha in wanted.items():
        chosen = dsba.prepare(problem, MethodSetting(rule=rule)).parameters
        assert chosen.alpha == pytest.approx(alpha, rel=1e-12)
        assert f"{chosen.alpha:.6g}" in str(chosen)
    with pytest.raises(
        ParameterError, match="'exact' is not a rule of 'dsba'; choose one of theory"
    ):
        dsba.prepare(problem, MethodSetting(rule="exact"))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("gamma", [1.0, 1e-2, 1e-6])
@pytest.mark.parametrize("ridge", [1e-8, 1e-2, 10.0])
def test_no_other_share_promises_more(rule, gamma, ridge):
    chosen = DsbaParameters(rule, 1.0, 0.2, ridge, 3 * ridge, 50, gamma, n_nodes=4)
    least = 0.5 * chosen.alpha * chosen.smoothness  # and not less than half of the table's rate
    shares = np.linspace(2 * least / (1 + least), 1.0, 402)[1:-1]
    best = max(min(chosen.rates(share)) for share in shares)
    assert chosen.rho >= best * (1 - 1e-9)
    assert 0.0 < chosen.rho < 1.0
    alone = dataclasses.replace(chosen, n_nodes=1)
    assert alone.rho >= chosen.rho


def test_a_round_takes_the_slowest_node_and_the_slowest_edge():
    problem = make_case("path:3").problem
    delays = Delays(tau=(2.0, 7.0), speed=(1.0, 3.0, 1.0))
    method = dsba.prepare(problem, MethodSetting(delays=delays))
    events = method.source.draw(0, 10)
    method.clock.advance(events)
    assert method.clock.time == 10 * (3.0 + 7.0)
    counts = method.algorithm.counts(events)
    assert counts == (30, 0, 40, 40 * 8 * 4)

"""The exact rate of every method on a squared loss, beside the rate that its theorem promises.

Nothing is sampled: `oracles.second_moments` has the mean squares of the literal method with the
parameters that the package chose, and tests elsewhere show that the compiled method is the literal
one. What is pinned moves by more than the tolerance if a rule, a step or a probability is off.
"""

import dataclasses
import math

import numpy as np
import pytest

import adfs
from adfs.apcg.apcg_parameters import choose
from adfs.apcg.smooth import Quadratic
from adfs.graphs.spectrum import Spectrum
from adfs.threads import one_blas_thread
from oracles import algorithm3, augmented, msda, point_saga
from oracles import dsba as literal_dsba
from oracles.second_moments import form_of
from support import moments as exact
from support.apcg import quadratic
from support.moments import (
    STUDIES,
    events_per_iteration,
    interpolating_case,
    line_case,
    prepare,
)
from support.problems import Lyapunov, literal, make_case

# Method and rule: the exact rate per iteration, and how many times the proven one that is.
PINNED = {
    ("adfs", "paper"): (0.0162802, 2.054),
    ("adfs", "balanced"): (0.0100984, 2.048),
    ("adfs", "exact"): (0.0267474, 1.495),
    ("adfs", "projector"): (0.0275128, 1.470),
    ("adfs", "tuned"): (0.0356088, 1.786),
    ("esdacd", "theory"): (0.161542, 2.202),
    ("esdacd", "tuned"): (0.185896, 2.199),
    ("msda", "theory"): (0.199058, 2.206),
    ("msda", "tuned"): (0.483113, 2.157),
    ("ssda", "theory"): (0.199058, 2.206),
    ("ssda", "tuned"): (0.306701, 2.197),
    ("dsba", "theory"): (0.0126822, 12.18),
    ("dsba", "paper"): (0.0755451, 12.13),
    ("dsba", "tuned"): (0.117035, 10.01),
    ("point-saga", "theory"): (0.155189, 1.493),
    ("point-saga", "tuned"): (0.149642, 1.024),
    ("katyusha", "theory"): (0.340213, 5.354),
    ("katyusha", "tuned"): (0.344079, 3.189),
    ("l-katyusha", "theory"): (0.472962, 2.990),
    ("l-katyusha", "tuned"): (0.732499, 3.242),
}
# Corollary 1 on a quadratic with these probabilities: the same two numbers.
PINNED_APCG = {
    ("regular", None): (0.0392113, 1.323),
    ("regular", "uniform"): (0.0244902, 1.658),
    ("singular", None): (0.0758319, 1.230),
    ("singular", "uniform"): (0.0390961, 1.655),
    ("narrow", None): (0.00604100, 1.640),
}
# Continuized ADFS: the rate per unit of time.
PINNED_CONTINUIZED = {"paper": 0.0161431, "exact": 0.0257485, "tuned": 0.0339366}
# Corollary 2: E f(x_t) - f* at t = 30 and 60.
PINNED_GAPS = {"regular": (1.12045, 0.319940), "singular": (0.388702, 0.0232042)}
# NS-ADFS: E F*(x_t) - F* at t = 10 and 30.
PINNED_DUAL_GAPS = {
    ("single", "paper"): (0.0218490, 0.000399658),
    ("path:2", "paper"): (0.0411818, 0.0145667),
    ("path:2", "tuned"): (0.0400052, 0.0112026),
}


@pytest.fixture(autouse=True)
def _one_thread():
    with one_blas_thread():
        yield


def uneven_case():
    """Three nodes on a path, five rows of unlike norms in the plane, a sigma for each node."""
    return line_case("path:3", [[1.0, 2.0], [1.0], [0.5, 1.5]], [0.1, 0.2, 0.3])


def even_case():
    """Three nodes alike with rows of one norm on a line: all curvatures are equal."""
    return line_case("path:3", [[1.0, 1.0]] * 3, 0.1, n_features=1)


def rate_of(name, case, method, slow=1.0):
    study = STUDIES[name](case, method.parameters, slow)
    return study.moments.rate() / events_per_iteration(name, method)


def proven(rho):
    """The rate of (1 - rho)^t."""
    return -math.log1p(-rho)


@pytest.mark.parametrize(("name", "rule"), PINNED)
def test_the_rate_is_the_pinned_one_and_above_the_proven_one(name, rule):
    case = uneven_case()
    method = prepare(name, case, rule)
    rate = rate_of(name, case, method)
    pinned, times_the_proven = PINNED[name, rule]
    assert rate == pytest.approx(pinned, rel=1e-3)
    assert rate >= proven(method.rho)
    assert rate / proven(method.rho) == pytest.approx(times_the_proven, rel=2e-3)


@pytest.mark.parametrize(("name", "rule"), PINNED)
def test_a_step_ten_per_cent_smaller_would_not_pass(name, rule):
    case = uneven_case()
    slower = rate_of(name, case, prepare(name, case, rule), slow=0.9)
    assert slower != pytest.approx(PINNED[name, rule][0], rel=4e-3)


@pytest.mark.parametrize("rule", ["paper", "balanced", "exact", "projector", "tuned"])
def test_compiled_adfs_has_the_pinned_rate(rule):
    """Its own events are tried out on unit vectors, with the probabilities of its schedule."""
    case = uneven_case()
    chosen = prepare("adfs", case, rule).parameters
    rate = exact.CompiledAdfs(case, chosen).rate()
    assert rate == pytest.approx(PINNED["adfs", rule][0], rel=1e-3)
    if rule in PINNED_CONTINUIZED:
        continuous = exact.CompiledAdfs(case, chosen, "poisson").rate()
        assert continuous == pytest.approx(PINNED_CONTINUIZED[rule], rel=1e-3)


# Cases in which what is proven is what happens: slower than the theorem is red without a pin.


SHORT = [("single", "exact"), ("path:2", "exact"), ("path:2", "tuned"), ("path:3", "exact"),
         ("complete:3", "exact"), ("complete:3", "projector"), ("complete:3", "tuned")]  # fmt: skip


def short_case(graph):
    """Rows so short that nothing but a visit helps a sample: four on one node, else one each."""
    n_nodes = adfs.Topology.parse(graph).n_nodes
    return line_case(graph, [[0.01] * (4 if graph == "single" else 1)] * n_nodes, 1.0)


@pytest.mark.parametrize(("graph", "rule"), SHORT)
def test_theorem_1_is_reached_within_one_per_cent_on_short_rows(graph, rule):
    """(1 - rho)^t is then the chance that a sample was never drawn, and no bound can be better."""
    case = short_case(graph)
    chosen = adfs.Parameters.choose(case.problem, rule, tau=3.0)
    rho, method = independent_rho(case, chosen), exact.Adfs(case, chosen)
    assert 1.0 <= method.study().moments.rate() / proven(rho) <= 1.01
    assert 1.0 <= method.continuized().moments.rate() / rho <= 1.01
    # Ten per cent off in rho alone is below the theorem: that is how near the bound is.
    slower = exact.Adfs(case, chosen, slow=0.9)
    assert slower.study().moments.rate() < 0.985 * proven(rho)
    assert slower.continuized().moments.rate() < 0.985 * rho


def test_the_lyapunov_of_theorem_1_keeps_to_its_bound_all_along():
    """E V_t is between 99 and 100 % of V_0 (1 - rho)^t for t up to 10 / rho."""
    case = short_case("single")
    chosen = adfs.Parameters.choose(case.problem, "exact")
    method, lyapunov = exact.Adfs(case, chosen), Lyapunov(case, literal(case, chosen))
    form = form_of(lambda state: lyapunov(*state.reshape(2, *method.optimal.shape)), method.fixed)
    times = np.arange(41)
    bound = (1.0 - independent_rho(case, chosen)) ** times
    found = method.study().moments.means(form, 40)
    assert np.all(found <= found[0] * bound * (1 + 1e-9))
    assert np.all(found >= 0.99 * found[0] * bound)


def independent_rho(case, chosen):
    """The largest rho of equation (6) for these probabilities and weights, by dense algebra."""
    oracle = literal(case, chosen)
    sigma_a = augmented.sigma_a(oracle.incidence, oracle.sigma_matrix)
    return augmented.max_rho(oracle.incidence, oracle.sigma_matrix, oracle.p, sigma_a)


@pytest.mark.parametrize("rule", ["paper", "exact", "tuned"])
def test_the_continuized_rate_is_the_pinned_one_and_above_rho(rule):
    case = uneven_case()
    chosen = prepare("adfs", case, rule).parameters
    rate = exact.Adfs(case, chosen).continuized().moments.rate()
    assert rate == pytest.approx(PINNED_CONTINUIZED[rule], rel=1e-3)
    assert rate >= chosen.rho
    slower = exact.Adfs(case, chosen, slow=0.9).continuized().moments.rate()
    assert slower != pytest.approx(rate, rel=4e-3)


@pytest.mark.parametrize("rule", ["theory", "tuned"])
@pytest.mark.parametrize("name", ["msda", "ssda"])
def test_even_nodes_fall_by_exactly_one_minus_rho_per_round(name, rule):
    """The slowest mode has the strong convexity that Nesterov's method is tuned to."""
    case = even_case()
    method = prepare(name, case, rule)
    m, k = 2.0 + 0.1, method.parameters.rounds
    laplacian = case.problem.topology.laplacian().toarray()
    rho = math.sqrt(gossip_condition(laplacian, k) * 0.1 / m)
    assert method.rho == pytest.approx(rho, rel=1e-7)
    assert rate_of(name, case, method) == pytest.approx(2 * proven(rho), rel=1e-4)
    assert rate_of(name, case, method, slow=0.9) < 0.8 * 2 * proven(rho)


def gossip_condition(laplacian, rounds):
    """Least positive over largest eigenvalue of K rounds of Chebyshev gossip."""
    values = np.linalg.eigvalsh(msda.gossip_matrix(laplacian, np.ones(len(laplacian)), rounds))
    return values[1] / values[-1]


def test_point_saga_is_within_one_per_cent_of_its_theorem():
    case = even_case()
    method = prepare("point-saga", case, "theory")
    n, mu, largest = 6, 3 * 0.1 / 6, 1.0
    gamma = point_saga.published_step(n, largest + mu, mu)
    a = 1 + gamma * mu
    theta = max(a**-2, 1 - 2 * a / (2 * a + gamma * largest) / n)
    assert 1.0 <= rate_of("point-saga", case, method) / -math.log(theta) <= 1.01


def test_point_saga_by_importance_is_within_three_per_cent_of_its_theorem():
    """Rows of unlike norms: ten per cent slower would be below what is proven."""
    case = uneven_case()
    method = prepare("point-saga", case, "tuned")
    gamma, mu = method.parameters.gamma, 0.6 / 5
    slowest, p = point_saga.equal_rates(augmented.smoothness(case.shards, "squared"), gamma, mu)
    rho = min(1 - (1 + gamma * mu) ** -2, slowest)
    assert p.max() > 1.5 * p.min()
    assert method.rho == pytest.approx(rho, rel=1e-9)
    assert 1.0 <= rate_of("point-saga", case, method) / proven(rho) <= 1.03


@pytest.mark.parametrize(("graph", "rule", "within"), [
    ("single", "theory", 0.003), ("single", "paper", 0.02), ("single", "tuned", 0.05),
    ("path:2", "theory", 0.003), ("path:2", "paper", 0.02),
])  # fmt: skip
def test_dsba_is_near_its_theorem_along_a_feature_of_no_sample(graph, rule, within):
    """There only the ridge pulls, by 1 / (1 + alpha lam) a round, and the iterate's rate binds."""
    norms = [2.0, 0.5, 0.5] if rule == "tuned" else [1.0, 1.0, 0.5]
    case = line_case(graph, [norms] * (1 + (graph != "single")), 0.3, n_features=1)
    shards = [(np.hstack([rows, 0 * rows]), *rest) for rows, *rest in case.shards]
    case = make_case(graph, "squared", shards=shards, sigma=0.3)
    method = prepare("dsba", case, rule)
    start = np.array([0.0, 1.0])
    rate = exact.of_dsba(case, method.parameters, 1.0, start).moments.rate()
    assert 1.0 <= rate / proven(method.rho) <= 1.0 + within
    slower = exact.of_dsba(case, method.parameters, 0.9, start).moments.rate()
    assert slower < 0.95 * proven(method.rho)


@pytest.mark.parametrize("rule", ["paper", "tuned"])
def test_on_a_long_path_the_network_sets_the_rate_of_dsba(rule):
    """gamma / (2 (1 + b)) binds; without gamma rho would promise more than there is."""
    case = line_case("path:6", [[0.3]] * 6, 1.0, n_features=1)
    method = prepare("dsba", case, rule)
    chosen = method.parameters
    iterate, network, _ = chosen.rates(chosen.kept)
    mixing = literal_dsba.Network(case.shards, [1.0] * 6, exact.edges_of(case), "squared").w
    gamma = 1.0 - np.sort(np.linalg.eigvalsh(mixing))[-2]
    b = chosen.alpha * (0.09 + 2.0) / (2.0 * (1.0 - chosen.kept))
    assert network == pytest.approx(gamma / (2.0 * (1.0 + b)), rel=1e-9)
    assert network < 0.1 * iterate
    assert method.rho == pytest.approx(network, rel=1e-6)
    rate = rate_of("dsba", case, method)
    assert proven(method.rho) <= rate < 0.5 * proven(dataclasses.replace(chosen, gamma=1.0).rho)


# Generalized APCG and NS-ADFS.


@pytest.mark.parametrize(("kind", "p"), PINNED_APCG)
def test_corollary_1_has_the_pinned_rate_above_the_proven_one(kind, p):
    hessian, linear, *_ = quadratic(kind)
    chosen = choose(Quadratic(hessian, linear), np.zeros(7, bool), p, form="strongly-convex")
    rate = exact.Apcg(hessian, linear, chosen).study().moments.rate()
    pinned, times_the_proven = PINNED_APCG[kind, p]
    assert rate == pytest.approx(pinned, rel=1e-3)
    assert rate >= proven(chosen.rho)
    assert rate / proven(chosen.rho) == pytest.approx(times_the_proven, rel=2e-3)
    slower = exact.Apcg(hessian, linear, chosen, slow=0.9).study().moments.rate()
    assert slower != pytest.approx(rate, rel=4e-3)


def test_corollary_1_is_reached_where_coordinates_hardly_meet():
    """H near the identity: rho is nearly 1 / N, the chance of a coordinate to be drawn."""
    generator = np.random.default_rng(0)
    coupling = generator.standard_normal((5, 5))
    hessian = np.eye(5) + 0.001 * (coupling + coupling.T)
    linear = generator.standard_normal(5)
    chosen = choose(Quadratic(hessian, linear), np.zeros(5, bool), form="strongly-convex")
    roots = np.sqrt(np.diag(hessian) / np.linalg.eigvalsh(hessian)[0])
    rho = 1.0 / roots.sum()
    rate = exact.Apcg(hessian, linear, chosen).study().moments.rate()
    assert 1.0 <= rate / proven(rho) <= 1.002
    slower = exact.Apcg(hessian, linear, chosen, slow=0.9).study().moments.rate()
    assert slower < 0.985 * proven(rho)


@pytest.mark.parametrize("kind", PINNED_GAPS)
def test_corollary_2_has_the_pinned_gap_below_its_bound(kind):
    hessian, linear, *_ = quadratic(kind)
    chosen = choose(Quadratic(hessian, linear), np.zeros(7, bool), form="convex")
    method = exact.Apcg(hessian, linear, chosen)
    gaps = method.gaps(60).means()
    growth = algorithm3.weights(3 / (chosen.S * chosen.p_R) ** 2, chosen.S, 60)
    bound = algorithm3.exact_bound(growth, growth[0], method.best @ method.best, gaps[0])
    assert np.all(gaps <= bound)
    assert gaps[[30, 60]] == pytest.approx(PINNED_GAPS[kind], rel=1e-3)
    slower = exact.Apcg(hessian, linear, chosen, slow=0.9).gaps(60).means()
    assert slower[60] > 1.05 * gaps[60]


@pytest.mark.parametrize(("graph", "rule"), PINNED_DUAL_GAPS)
def test_theorem_4_has_the_pinned_dual_gap_below_its_bound(graph, rule):
    case = interpolating_case(graph)
    method = exact.NsAdfs(case, adfs.NonSmoothParameters.choose(case.problem, rule, tau=1.0))
    gaps, oracle = method.gaps(30).means(), method.oracle
    growth = algorithm3.weights(oracle.a_0, oracle.s, 30)
    norm2 = algorithm3.edge_norm2(*oracle.graph, method.optimal)
    bound = algorithm3.exact_bound(growth, oracle.a_0, norm2, gaps[0])
    assert np.all(gaps <= bound)
    assert gaps[[10, 30]] == pytest.approx(PINNED_DUAL_GAPS[graph, rule], rel=1e-3)


@pytest.mark.parametrize("graph", ["ring:4", "complete:3"])
@pytest.mark.parametrize("excess", [1.0, 1.2, 1.5])
def test_bounds_on_the_spectrum_keep_theorem_1(graph, excess):
    case = line_case(graph, [[1.0, 2.0], [1.0], [0.5], [1.5]][: int(graph[-1])], 0.1)
    topology = case.problem.topology
    exactly = topology.spectrum
    resistances = np.minimum(1.0, excess * exactly.resistances)
    bounds = Spectrum(exactly.lambda_min / excess, exactly.lambda_max, resistances, exact=False)
    vars(topology)["spectrum"] = bounds
    chosen = adfs.Parameters.choose(case.problem, "exact")
    assert exact.CompiledAdfs(case, chosen).rate() >= proven(chosen.rho)

"""The duality gap is a proven bound: never below F - F*, and it goes to zero along a run."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import adfs
from adfs.algorithms.adfs import Adfs
from adfs.kernels.certificate import gap_passes
from adfs.losses import LOSSES
from adfs.problem.certificate import Certificate, certify, gap_from_sums
from oracles import losses as literal
from support.problems import make_shards

pytestmark = pytest.mark.uncompiled
NAMES = list(LOSSES)
SMOOTH = [name for name in NAMES if LOSSES[name].smooth]
SIGMA = np.array([0.4, 0.1, 1.3])


def make_problem(loss, seed=0, convert=np.asarray):
    """Three nodes with weights, a zero row and a row of weight zero."""
    shards = make_shards(3, loss, seed, n_features=3, sizes=(4, 9, 7), dead=True)
    return adfs.Problem([(convert(X), y, w) for X, y, w in shards], loss, SIGMA)


def rows_of(problem):
    rows = problem.rows
    if len(rows) == 1:
        return np.asarray(rows.values, dtype=float)
    return sp.csr_matrix(tuple(rows), shape=(problem.n_samples, problem.n_features)).toarray()


def literal_gap(problem, theta, duals):
    """The duality gap, written out sample by sample from the oracle's losses."""
    loss, total, moved = problem.loss.name, 0.0, np.zeros(problem.n_features)
    for x, b, w, c in zip(rows_of(problem), problem.labels, problem.weights, duals, strict=True):
        if w == 0:
            continue
        low, high = literal.conjugate_domain(loss, b, w)
        c = min(max(c, low), high)
        if not x.any():
            c = float(literal.derivative(loss, 0.0, b, w))
        s = x @ theta
        total += float(literal.value(loss, s, b, w)) + literal.conjugate(loss, c, b, w) - c * s
        moved += c * x
    sigma = SIGMA.sum()
    residual = theta + moved / sigma
    return total + sigma / 2 * (residual @ residual)


def node_sums(problem, theta, duals):
    """Each node's losses, Fenchel gaps, ``sum c x`` and ``sum w l' x``, added over the nodes."""
    d, n = problem.n_features, problem.n_nodes
    values, rows = np.empty((n, 2)), np.empty((n, 2 * d))
    samples = (*problem.samples, problem.squared_norms, problem.offsets)
    gap_passes(*samples, theta, duals, values, rows, 0)
    return *values.sum(axis=0), rows[:, :d].sum(axis=0), rows[:, d:].sum(axis=0)


def gap_by_duals(problem, theta, duals):
    """The part of the certificate that the given duals decide, without the other choice."""
    _, gaps, moved, _ = node_sums(problem, theta, duals)
    residual = theta + moved / problem.total_sigma
    return gaps + problem.total_sigma / 2 * (residual @ residual)


def some_duals(problem, theta, seed):
    """Duals near the derivative, random ones, and ones far outside the domain."""
    rng = np.random.default_rng(seed)
    scores = rows_of(problem) @ theta
    pairs = zip(scores, problem.labels, problem.weights, strict=True)
    near = np.array([float(literal.derivative(problem.loss.name, s, b, w)) for s, b, w in pairs])
    noise = rng.normal(size=problem.n_samples)
    return [near + 1e-3 * noise, near, noise, 100.0 * noise, np.zeros(problem.n_samples)]


@pytest.mark.parametrize("convert", [np.asarray, np.float32, sp.csr_matrix])
@pytest.mark.parametrize("loss", NAMES)
def test_the_gap_is_its_formula_sample_by_sample(loss, convert):
    problem = make_problem(loss, convert=convert)
    rng = np.random.default_rng(4)
    for theta in (np.zeros(3), rng.normal(size=3), 5 * rng.normal(size=3)):
        for duals in some_duals(problem, theta, 1):
            expected = literal_gap(problem, theta, duals)
            found = gap_by_duals(problem, theta, duals)
            assert found == pytest.approx(expected, rel=1e-10, abs=1e-12)
            gradient = problem.gradient(theta)
            other = gradient @ gradient / (2 * SIGMA.sum())
            both = certify(problem, theta, duals)
            if not (theta.any() or duals.any()):
                other = found  # at the start of a run the gradient is not evaluated
            assert both.duality_gap == pytest.approx(min(found, other), rel=1e-12, abs=1e-30)
            assert both.objective == pytest.approx(problem.objective(theta), rel=1e-13)


@pytest.mark.parametrize("loss", SMOOTH)
def test_the_gap_is_never_below_the_distance_to_the_optimum(loss):
    for seed in range(5):
        problem = make_problem(loss, seed)
        best = problem.optimum()
        rng = np.random.default_rng(seed)
        for scale in (0.0, 1e-7, 1e-3, 1.0, 100.0):
            theta = best.theta + scale * rng.normal(size=3)
            missing = problem.objective(theta) - best.objective
            rounding = 1e-14 * abs(best.objective)
            for duals in (*some_duals(problem, theta, seed), None):
                found = certify(problem, theta, duals)
                assert found.duality_gap >= missing - rounding
            for duals in some_duals(problem, theta, seed):
                assert gap_by_duals(problem, theta, duals) >= missing - rounding


@pytest.mark.parametrize("loss", SMOOTH)
def test_both_choices_of_duals_bound_the_error_and_the_smaller_is_reported(loss):
    problem = make_problem(loss)
    theta = problem.optimum().theta + 0.1
    exact = some_duals(problem, problem.optimum().theta, 0)[1]  # the optimal duals
    poor = np.zeros(problem.n_samples)
    plain = certify(problem, theta).duality_gap
    gradient = problem.gradient(theta)
    assert plain == pytest.approx(gradient @ gradient / (2 * SIGMA.sum()))
    assert certify(problem, theta, poor).duality_gap <= plain * (1 + 1e-12)
    assert certify(problem, theta, exact).duality_gap == pytest.approx(
        problem.objective(theta) - problem.optimum().objective, rel=1e-7
    )


@pytest.mark.parametrize("loss", SMOOTH)
def test_at_the_derivatives_the_gap_is_that_of_the_gradient_however_small(loss):
    problem = make_problem(loss)
    best = problem.optimum()
    found = gap_by_duals(problem, best.theta, some_duals(problem, best.theta, 0)[1])
    assert found == pytest.approx(best.duality_gap, rel=1e-3, abs=1e-28)
    assert found < 1e-14


@pytest.mark.parametrize("loss", [name for name in NAMES if name != "squared"])
def test_duals_outside_the_domain_are_clipped_to_it(loss):
    problem = make_problem(loss)
    theta = np.array([0.3, -0.2, 0.1])
    rng = np.random.default_rng(0)
    wild = 50.0 * rng.normal(size=problem.n_samples)
    bounds = [
        literal.conjugate_domain(loss, b, w) if w else (0.0, 0.0)
        for b, w in zip(problem.labels, problem.weights, strict=True)
    ]
    tame = np.array([min(max(c, low), high) for c, (low, high) in zip(wild, bounds, strict=True)])
    assert not np.array_equal(wild, tame)
    found = gap_by_duals(problem, theta, wild)
    assert math.isfinite(found)
    assert found == pytest.approx(gap_by_duals(problem, theta, tame), rel=1e-13)


def test_a_zero_row_does_not_spoil_the_certificate_of_the_duals():
    """No update ever touches its dual coefficient; it stands for w l'(0)."""
    X = np.array([[1.0, 0.5], [0.0, 0.0], [-0.3, 1.0]])
    problem = adfs.Problem([(X, [1, 0, 0])])
    duals = some_duals(problem, problem.optimum().theta, 0)[1]
    duals[1] = 0.0
    assert gap_by_duals(problem, problem.optimum().theta, duals) < 1e-14


@pytest.mark.parametrize("loss", SMOOTH)
def test_along_a_run_both_gaps_fall_below_1e_13_and_stay_above_the_error(loss):
    problem = make_problem(loss)
    best = problem.optimum()
    parameters = adfs.Parameters.choose(problem, "exact")
    algorithm = Adfs(problem, parameters)
    state = algorithm.init()
    relative = []
    for block in adfs.Schedule.sample(parameters, 40_000).blocks(size=2_000):
        state = algorithm.step(state, block)
        theta = problem.sigma @ algorithm.output(state) / problem.total_sigma
        duals = np.concatenate([algorithm.duals(state, node) for node in range(3)])
        gap = gap_by_duals(problem, theta, duals)
        missing = problem.objective(theta) - best.objective
        assert gap >= missing - 1e-14 * max(1.0, best.objective)
        relative.append((gap, certify(problem, theta, duals).relative_gap))
    first, last = relative[0], relative[-1]
    assert max(last) < 1e-13 < max(first)


def test_a_gap_of_1e_20_is_right_where_objective_minus_dual_has_no_digits():
    """Squared loss in exact rational arithmetic: F - D is 1e-20 beside F of order one."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(8, 2)), rng.normal(size=8)
    problem = adfs.Problem([(X[:4], y[:4]), (X[4:], y[4:])], "squared", 0.5)
    theta = problem.optimum().theta + 1e-10
    duals = X @ theta - y + 1e-10 * rng.normal(size=8)
    t, c = [Fraction(v) for v in theta.tolist()], [Fraction(v) for v in duals.tolist()]
    rows = [[Fraction(v) for v in row] for row in X.tolist()]
    labels = [Fraction(v) for v in y.tolist()]
    scores = [sum(a * b for a, b in zip(row, t, strict=True)) for row in rows]
    gap = sum((s - b - k) ** 2 for s, b, k in zip(scores, labels, c, strict=True)) / 2
    moved = [sum(k * row[j] for k, row in zip(c, rows, strict=True)) for j in range(2)]
    gap += sum((a + m) ** 2 for a, m in zip(t, moved, strict=True)) / 2  # total sigma is 1
    assert 1e-21 < float(gap) < 1e-18
    assert gap_by_duals(problem, theta, duals) == pytest.approx(float(gap), rel=1e-4)


def test_the_relative_gap_divides_by_the_objective_of_any_size():
    assert Certificate(50.0, 1e-3).relative_gap == pytest.approx(2e-5)
    assert Certificate(1e-12, 1e-15).relative_gap == pytest.approx(1e-3)
    assert Certificate(0.0, 0.0).relative_gap == 0.0
    assert Certificate(0.0, 1e-300).relative_gap == math.inf


@pytest.mark.parametrize("objective", [math.inf, math.nan])
def test_without_a_finite_objective_there_is_no_relative_gap(objective):
    assert math.isnan(Certificate(objective, 1.0).relative_gap)
    assert math.isnan(Certificate(objective, 0.0).relative_gap)


def test_the_sums_of_nodes_combine_to_the_certificate_of_the_whole():
    problem = make_problem("logistic")
    theta, duals = np.array([0.1, 0.2, -0.4]), np.full(problem.n_samples, -0.2)
    whole = gap_from_sums(*node_sums(problem, theta, duals), theta, problem.total_sigma)
    assert whole == pytest.approx(certify(problem, theta, duals), rel=1e-14)


VANISHING = 1e-170  # its square is zero in double precision


def faint_problem(convert):
    """The largest weight at a row whose squared norm underflows, beside nothing to learn."""
    X, y = np.array([[VANISHING, 0.0], [0.0, 1e-140]]), np.array([1.0, 0.0])
    return adfs.Problem([(convert(X), y, [1e100, 1.0])], "squared", 1e-100)


def exact_missing(problem, theta):
    """F(theta) and F(theta) - F*, in rational arithmetic: features are decoupled."""
    rows, sigma = rows_of(problem), sum(Fraction(s) for s in problem.sigma.tolist())
    objective, gain = Fraction(0), Fraction(0)
    for j in range(problem.n_features):
        triples = zip(rows[:, j].tolist(), problem.labels.tolist(), problem.weights, strict=True)
        own = [(Fraction(x), Fraction(y), Fraction(float(w))) for x, y, w in triples if x]
        a = sigma + sum(w * x * x for x, _, w in own)
        b = sum(w * x * y for x, y, w in own)
        c = sum(w * y * y for _, y, w in own)
        t = Fraction(float(theta[j]))
        objective += (a * t * t - 2 * b * t + c) / 2
        gain += (a * t - b) ** 2 / (2 * a)
    return objective, gain


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("first", [0.0, 1e100])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # uncompiled kernels warn of overflow
def test_a_row_whose_squares_underflow_is_not_a_zero_row(convert, first):
    problem = faint_problem(convert)
    theta = np.array([first, 0.0])
    found = certify(problem, theta, np.zeros(2))
    objective, missing = exact_missing(problem, theta)
    assert found.objective == pytest.approx(float(objective))
    assert found.duality_gap >= float(missing) > 0.0


def test_a_gradient_whose_squares_underflow_still_has_a_gap():
    problem = adfs.Problem([(np.array([[1e-140]]), [1e-30])], "squared", 1e-100)
    found = certify(problem, np.zeros(1))
    _, missing = exact_missing(problem, np.zeros(1))
    assert found.duality_gap == pytest.approx(float(missing), rel=1e-12, abs=0.0)

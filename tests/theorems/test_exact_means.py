"""Means over runs of the compiled methods are the exact expectations of the literal ones.

Runs are independent stretches of one schedule. The margin is five standard errors, from the exact
variance; a method ten per cent slower would be ten away: each test checks its own power.
"""

import numpy as np
import pytest

from adfs.algorithms.katyusha import Refreshes
from adfs.apcg.apcg_parameters import CoordinateSampler, choose
from adfs.apcg.penalties import Penalty
from adfs.apcg.smooth import ApcgState, Quadratic
from adfs.kernels.katyusha import SNAPSHOT
from adfs.threads import one_blas_thread
from support import moments as exact
from support.apcg import N, quadratic
from support.moments import (
    STUDIES,
    events_per_iteration,
    interpolating_case,
    line_case,
    minimiser,
    prepare,
)

# Method: rule, least sigma, iterations of a run, runs.
RUNS = {
    "adfs": ("exact", 0.3, 60, 1500),
    "esdacd": ("tuned", 0.03, 30, 300),
    "dsba": ("paper", 0.3, 60, 100),
    "point-saga": ("tuned", 2.0, 10, 500),
    "katyusha": ("theory", 0.03, 10, 500),
    "l-katyusha": ("theory", 0.03, 20, 1000),
}


@pytest.fixture(autouse=True)
def _one_thread():
    with one_blas_thread():
        yield


def require_mean(values, expected, deviation, slower):
    """`slower` is what would be expected of a method ten per cent slower."""
    error = deviation / np.sqrt(len(values))
    assert slower - expected >= 10 * error
    assert abs(np.mean(values) - expected) <= 5 * error


def case_of_three(sigma):
    norms = [[1.0, 2.0], [1.0], [0.5, 1.5]]
    return line_case("path:3", norms, [sigma, 1.3 * sigma, 1.7 * sigma])


def squared_errors(method, theta, length, n_runs):
    """sum_i |theta_i - theta*|^2 at the end of each run of `length` positions of the schedule."""
    values = []
    for k in range(n_runs):
        events = method.source.draw(k * length, (k + 1) * length)
        if isinstance(method.source, Refreshes):  # as at position 0
            events.which[0] = SNAPSHOT
        state = method.algorithm.step(method.algorithm.init(), events)
        values.append(np.sum((method.algorithm.output(state) - theta) ** 2))
    return np.array(values)


@pytest.mark.parametrize("name", RUNS)
def test_the_mean_square_of_compiled_runs_is_the_exact_one(name):
    rule, sigma, length, n_runs = RUNS[name]
    case = case_of_three(sigma)
    method = prepare(name, case, rule)
    study = STUDIES[name](case, method.parameters)
    means, deviation = study.mean_squares(length), study.deviations(length)[-1]
    n_events = length * events_per_iteration(name, method)
    values = squared_errors(method, minimiser(case), n_events, n_runs)
    require_mean(values, means[-1], deviation, means[length * 9 // 10])


@pytest.mark.parametrize("rule", ["theory", "tuned"])
def test_l_katyusha_renews_its_snapshot_as_often_as_it_says(rule):
    case = line_case("path:2", [[1.0, 2.0, 0.5, 1.0, 3.0], [1.0, 1.5, 1.0, 0.5]], 0.3)
    method = prepare("l-katyusha", case, rule)
    p, coins = method.parameters.p, method.source.draw(0, 60_000).which == SNAPSHOT
    assert 0.1 < p < 0.9
    require_mean(coins, p, np.sqrt(p * (1 - p)), 1.1 * p)


def test_the_mean_square_of_continuized_runs_is_the_exact_one():
    case = line_case("path:2", [[1.0], [0.5]], 1.0, n_features=1)
    method = prepare("adfs", case, "exact", "poisson")
    moments, reading = exact.Adfs(case, method.parameters).continuized()
    form, length = reading.T @ reading, 10
    values = squared_errors(method, minimiser(case), length, 6000)
    require_mean(
        values, moments.mean(form, length), moments.deviation(form, length),
        moments.mean(form, 0.9 * length),
    )  # fmt: skip


@pytest.mark.parametrize("rule", ["theory", "tuned"])
@pytest.mark.parametrize("name", ["msda", "ssda"])
def test_the_error_of_compiled_dual_gossip_is_the_exact_one(name, rule):
    """Nothing is random: round by round, to rounding."""
    case = case_of_three(0.3)
    method = prepare(name, case, rule)
    study = exact.of_dual_gossip(case, method.parameters)
    expected, theta = study.mean_squares(40), minimiser(case)
    state = method.algorithm.init()
    for t in range(41):
        state = method.algorithm.step(state, method.source.draw(t, t + 1))  # theta is that of x_t
        found = np.sum((method.algorithm.output(state) - theta) ** 2)
        assert found == pytest.approx(expected[t], rel=1e-6, abs=1e-18)


@pytest.mark.parametrize("form", ["strongly-convex", "convex"])
def test_the_mean_gap_of_compiled_apcg_is_the_exact_one(form):
    hessian, linear, *_ = quadratic("regular")
    f, psi, length = Quadratic(hessian, linear), Penalty().on(N), 50
    chosen = choose(f, psi.active, form=form)
    method = exact.Apcg(hessian, linear, chosen)
    expected = method.gaps(length) if form == "convex" else method.linear_gaps(length)
    sampler, values = CoordinateSampler(chosen.p, 0), []
    for k in range(4000):
        state = ApcgState(chosen.rule(), chosen.clock(), np.zeros(N))
        f.run(sampler.draw(k * length, (k + 1) * length), psi.terms, state)
        away = state.x() - method.best
        values.append(away @ hessian @ away / 2)
    require_gap(values, expected)


def require_gap(values, expected):
    means = expected.means()
    require_mean(values, means[-1], expected.deviation(), means[len(expected.stages) * 9 // 10])


@pytest.mark.parametrize(
    ("graph", "length", "n_runs"), [("single", 10, 8000), ("path:2", 40, 4000)]
)
def test_the_mean_dual_gap_of_compiled_ns_adfs_is_the_exact_one(graph, length, n_runs):
    case = interpolating_case(graph)
    method = prepare("ns-adfs", case, "tuned")
    oracle = exact.NsAdfs(case, method.parameters)
    values = []
    for k in range(n_runs):
        events = method.source.draw(k * length, (k + 1) * length)
        state = method.algorithm.step(method.algorithm.init(), events)
        away = method.algorithm.output(state) - oracle.theta
        values.append(np.sum(case.problem.sigma[:, None] * away**2) / 2)
    require_gap(values, oracle.gaps(length))

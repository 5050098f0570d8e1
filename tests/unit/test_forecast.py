"""No run is endless, and a very long one is announced with its reason."""

import contextlib
import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import adfs
from adfs.algorithms.base import MethodSetting
from adfs.algorithms.ns_adfs import prepare
from adfs.engine import forecast
from adfs.engine.stopping import STATUSES, Stopping
from adfs.errors import AdfsError
from support.problems import make_case

N_SAMPLES = 24


def samples(seed=0):
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((N_SAMPLES, 4))
    return X, np.where(X[:, 0] + 0.5 * generator.standard_normal(N_SAMPLES) > 0, 1.0, -1.0)


def with_identifiers():
    """The third column numbers the rows from ten million on."""
    X, y = samples()
    X[:, 2] = 1e7 + np.arange(N_SAMPLES)
    return X, y


def problem_of(X, y, loss="logistic", weights=None, n_nodes=4):
    parts = adfs.partition(X, y, n_nodes)
    if weights is not None:
        parts = [(X, y, np.full(len(y), weights)) for X, y, _ in parts]
    return adfs.Problem(parts, loss=loss, sigma=0.25)


@pytest.fixture
def few_passes(monkeypatch):
    """Every run is long here, and ends soon."""
    monkeypatch.setattr(forecast, "MOST_PASSES", 30)


@pytest.mark.parametrize("rho", [1e-3, 1e-120, 5e-324, 0.0])
def test_the_default_limit_is_finite_whatever_the_rate(rho):
    assert Stopping().budget(rho, 1.0, ceiling=1_000) == 1_000
    assert Stopping(max_iter=7_000).budget(rho, 1.0, ceiling=1_000) == 7_000


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_a_column_of_identifiers_is_named_before_the_run(layout, few_passes):
    X, y = with_identifiers()
    with pytest.warns(adfs.LongRunWarning, match=r"kappa_s.*column 3 is .*Scale.*newton") as told:
        result = adfs.solve(problem_of(layout(X), y))
    assert len(told) == 1
    assert result.status == "max_iter"
    assert result.iterations == 3 * N_SAMPLES  # out of reach: a tenth of what a run gets


def test_the_expected_length_is_that_of_the_proven_rate(few_passes):
    problem = problem_of(*with_identifiers())
    rho = adfs.Parameters.choose(problem).rho
    with pytest.warns(adfs.LongRunWarning) as told:
        adfs.solve(problem, tol=1e-5)
    expected = math.log(1e5) / rho
    assert f"1e-05 only after {expected:.2g} iterations" in str(told[0].message)
    assert f"{expected / N_SAMPLES:.2g} passes" in str(told[0].message)


def test_a_run_within_reach_gets_all_passes(few_passes):
    X, y = samples()
    with pytest.warns(adfs.LongRunWarning, match="stops after 30 passes") as told:
        result = adfs.solve(problem_of(X, y), tol=1e-8)
    assert "column" not in str(told[0].message).split("Scale the columns")[0]
    assert result.iterations == 30 * N_SAMPLES


def test_a_non_smooth_loss_is_announced_with_its_smooth_neighbour(few_passes):
    with pytest.warns(adfs.LongRunWarning, match=r"column 3 is.*smoothed_hinge"):
        result = adfs.solve(problem_of(*with_identifiers(), "hinge"))
    assert result.iterations == 3 * N_SAMPLES


def test_the_default_limit_of_a_non_smooth_loss_is_theorem_4s():
    problem = problem_of(*samples(), "hinge")
    method = prepare(problem, MethodSetting())
    ahead = forecast.forecast(problem, method, 1e-6)
    limit = Stopping(1e-6).budget(ahead.rho, 1.0, ahead.ceiling)
    assert ahead.expected == pytest.approx(method.needed(1e-6))
    assert 3.0 * ahead.expected < limit < 1e6  # 219,077,553 before
    assert adfs.solve(problem).iterations < limit / 2


def test_a_small_tol_of_a_non_smooth_loss_is_allowed_more_but_not_announced():
    problem = problem_of(*samples(), "hinge")
    method = prepare(problem, MethodSetting())
    usual, fine = (forecast.forecast(problem, method, tol) for tol in (1e-6, 1e-12))
    limits = [Stopping(each.goal).budget(each.rho, 1.0, each.ceiling) for each in (usual, fine)]
    assert limits[1] > 10 * limits[0]
    assert (fine.expected, fine.is_long) == (usual.expected, False)


def test_estimators_warn_too_and_say_that_the_limit_is_a_default_one(few_passes):
    with pytest.warns() as told:
        adfs.LogisticRegression(n_nodes=2).fit(*with_identifiers())
    texts = {each.category.__name__: str(each.message) for each in told}
    assert "column 3 is" in texts["LongRunWarning"]
    assert "default limit" in texts["ConvergenceWarning"]


def test_a_usual_run_is_not_announced():
    X, y = samples()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert adfs.solve(problem_of(X, y)).status == "converged"
        X[:, 2] *= 100.0
        adfs.solve(problem_of(X, y))


def test_a_run_that_max_iter_keeps_short_is_not_announced():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = adfs.solve(problem_of(*with_identifiers()), max_iter=500)
    assert (result.status, result.iterations) == ("max_iter", 500)


def test_a_method_that_does_not_mind_the_scale_is_not_announced():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adfs.solve(problem_of(*with_identifiers()), "newton")


def test_column_sizes_are_means_over_what_is_not_zero_at_all_nodes():
    case = make_case("star:4", density=0.6)
    X = np.vstack([features for features, *_ in case.shards])
    expected = np.abs(X).sum(axis=0) / np.count_nonzero(X, axis=0)
    np.testing.assert_allclose(forecast.column_sizes(case.problem), expected)


def test_a_long_run_is_looked_at_before_a_factor_e_of_theory():
    seen = []
    with pytest.warns(adfs.LongRunWarning):
        adfs.solve(
            problem_of(*with_identifiers()), max_iter=300_000_000, time_limit=0.01,
            callback=lambda progress: seen.append(progress.iteration),
        )  # fmt: skip
    assert len(seen) > 1
    assert seen[1] <= 3_000


EXTREMES = {
    "features of 1e120": lambda loss: problem_of(1e120 * samples()[0], samples()[1], loss),
    "weights of 1e100": lambda loss: problem_of(*samples(), loss, weights=1e100),
    "identifiers": lambda loss: problem_of(*with_identifiers(), loss),
}


def test_extreme_data_are_refused_with_the_way_out():
    for make in (EXTREMES["features of 1e120"], EXTREMES["weights of 1e100"]):
        for loss in ("logistic", "hinge"):
            with pytest.raises(AdfsError, match=r"condition number.*Scale the features"):
                adfs.solve(make(loss))


@pytest.mark.filterwarnings("ignore::adfs.LongRunWarning")
@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize("algorithm", sorted(adfs.algorithms.NAMES))
def test_every_algorithm_ends_on_extreme_data(algorithm, name, few_passes):
    problem = EXTREMES[name]("hinge" if algorithm == "ns-adfs" else "logistic")
    try:
        result = adfs.solve(problem, algorithm)
    except AdfsError:
        return
    assert result.status in STATUSES
    assert result.trace.last()["n_prox"] + result.trace.last()["n_grad"] <= 200 * N_SAMPLES


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("name", EXTREMES)
def test_the_optimum_of_extreme_data_takes_a_bounded_number_of_passes(name, loss, monkeypatch):
    calls = []
    usual = adfs.Problem.objective_and_gradient

    def counted(problem, theta):
        calls.append(theta)
        return usual(problem, theta)

    monkeypatch.setattr(adfs.Problem, "objective_and_gradient", counted)
    with contextlib.suppress(AdfsError, np.linalg.LinAlgError, RuntimeWarning):
        EXTREMES[name](loss).optimum()
    assert len(calls) < 10_000

"""``F`` at many models is the sum of its definition, however it is computed."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

import adfs
from adfs.engine import evaluation
from oracles import losses
from support.problems import make_case, stored_as

SMOOTH = ("logistic", "squared", "squared_hinge", "smoothed_hinge", "huber")


def literal(case, theta):
    """The definition, sample after sample, added exactly."""
    terms = [
        weight * losses.value(case.problem.loss.name, row @ theta, label)
        for features, labels, weights in case.shards
        for row, label, weight in zip(features, labels, weights, strict=True)
    ]
    return math.fsum([*terms, 0.5 * case.problem.total_sigma * float(theta @ theta)])


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("loss", SMOOTH)
def test_every_node_gets_the_objective_of_its_own_model(loss, weighted, kind, monkeypatch):
    monkeypatch.setattr(evaluation, "FACTORS", 5)  # several blocks, several products in each
    monkeypatch.setattr(evaluation, "SCORES_AT_ONCE", 30)
    monkeypatch.setattr(evaluation, "SCORES_FOR_KERNELS", 30)
    case = make_case("grid:2x2", loss, seed=4, sizes=[9, 2, 14, 7], density=0.8)
    if not weighted:
        shards = [(X, y, np.ones(len(y))) for X, y, _ in case.shards]
        case = make_case("grid:2x2", loss, seed=4, shards=shards)
    thetas = np.random.default_rng(0).normal(size=(3, 4)) * np.array([[1e-3], [1.0], [30.0]])
    found = evaluation.objectives(stored_as(case, kind), thetas)
    wanted = [literal(case, theta) for theta in thetas]
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_margins_of_any_size_give_no_overflow_and_no_loss_of_digits():
    margins = np.concatenate([np.linspace(-1e4, 1e4, 2001), [-745.2, -36.8, 0.0, 36.8, 745.2]])
    wanted = math.fsum(np.logaddexp(0.0, -margins))
    for order in (margins, margins[::-1]):
        found = evaluation.logistic_sums(np.array(order)[:, None])
        assert found[0] == pytest.approx(wanted, rel=1e-14)
    far = np.full((4000, 1), 30.0)  # each factor is 1 + 9e-14: little is left of it in a sum
    assert evaluation.logistic_sums(far)[0] == pytest.approx(4000 * np.exp(-30.0), rel=1e-2)


def test_one_model_for_all_nodes_is_computed_once(monkeypatch):
    problem = make_case("grid:2x2").problem
    seen = []
    real = evaluation.objectives
    monkeypatch.setattr(evaluation, "objectives", lambda *a: seen.append(a[1]) or real(*a))
    theta = np.array([0.1, -0.2, 0.3, 0.4])
    found = evaluation.objectives(problem, np.tile(theta, (4, 1)))
    assert [len(thetas) for thetas in seen] == [4, 1]
    np.testing.assert_allclose(found, np.full(4, problem.objective(theta)), rtol=1e-14)


def test_a_model_that_blew_up_has_an_objective_that_says_so():
    X = sp.csr_matrix(np.eye(3))
    problem = adfs.Problem([(X, [1.0, -1.0, 1.0])])
    with np.errstate(all="ignore"):
        found = evaluation.objectives(problem, np.array([[np.nan] * 3, [np.inf] * 3, [0.0] * 3]))
    assert not np.isfinite(found[:2]).any()
    assert found[2] == pytest.approx(3 * np.log(2))

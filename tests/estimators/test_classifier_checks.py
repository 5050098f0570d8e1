"""Scikit-learn's own checks of the classifiers, as users find them."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import adfs
from support.estimators import loose_checks

# One check allows only 1,000 events and judges the prediction; an early stop is then announced.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@parametrize_with_checks(
    [adfs.LogisticRegression(), adfs.LinearSVC()], expected_failed_checks=loose_checks
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)

"""Scikit-learn's own checks of the regressors, as users find them."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import adfs
from support.estimators import loose_checks


@parametrize_with_checks(
    [adfs.Ridge(), adfs.HuberRegressor(), adfs.LinearSVR()], expected_failed_checks=loose_checks
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)

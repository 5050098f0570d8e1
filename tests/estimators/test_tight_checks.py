"""The checks that the default ``tol`` is too large for, and those that need a variable set."""

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
)

import adfs

# Where the loss has a kink, rounding enters the gap at first order: 1e-13 replaces 1e-18.
TIGHT = [
    adfs.LogisticRegression(tol=1e-18),
    adfs.LogisticRegression(tol=1e-18, class_weight="balanced"),
    adfs.LogisticRegressionCV(tol=1e-18, Cs=[0.1, 1.0], cv=3),
    adfs.LinearSVC(tol=1e-18),
    adfs.LinearSVC(tol=1e-18, class_weight="balanced"),
    adfs.Ridge(tol=1e-18),
    adfs.Ridge(tol=1e-18, fit_intercept=False),
    adfs.HuberRegressor(tol=1e-18),
    adfs.LinearSVR(tol=1e-18, loss="squared_epsilon_insensitive"),
    adfs.LinearSVR(tol=1e-13),
]
ARRAY_API = """
import warnings; warnings.simplefilter("error")
from sklearn.utils.estimator_checks import check_array_api_input
import adfs
for name in ("LogisticRegression", "LinearSVC", "Ridge", "HuberRegressor", "LinearSVR"):
    check_array_api_input(name, getattr(adfs, name)(), "numpy", expect_only_array_outputs=False)
model = adfs.LogisticRegressionCV(Cs=[1.0], cv=2)
check_array_api_input("LogisticRegressionCV", model, "numpy", expect_only_array_outputs=False)
"""


@pytest.mark.parametrize("nodes", [1, 4])
@pytest.mark.parametrize("estimator", TIGHT, ids=repr)
@pytest.mark.parametrize(
    "check",
    [check_sample_weight_equivalence_on_dense_data, check_sample_weight_equivalence_on_sparse_data],
)
def test_weights_are_repetitions_to_1e_7_at_a_small_tol(check, estimator, nodes):
    check(type(estimator).__name__, estimator.set_params(n_nodes=nodes))


def test_weights_are_repetitions_for_the_hinge_as_far_as_its_gap_can_tell():
    generator = np.random.default_rng(0)
    X, y = generator.random((15, 30)), generator.integers(0, 3, 15)
    times = generator.integers(0, 5, 15)
    model = adfs.LinearSVC(loss="hinge", tol=1e-13)
    weighted = model.fit(X, y, sample_weight=times).decision_function(X)
    repeated = model.fit(X.repeat(times, axis=0), y.repeat(times)).decision_function(X)
    np.testing.assert_allclose(weighted, repeated, atol=5e-6)


def test_the_array_api_check_passes_where_scipy_supports_it():
    """The check skips itself unless this variable is set before scipy is imported."""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run(
        [sys.executable, "-c", ARRAY_API], env=environment, capture_output=True, text=True
    )
    if "cannot import name 'check_array_api_input'" in done.stderr:
        pytest.skip("this scikit-learn has no such check")
    assert done.returncode == 0, done.stderr

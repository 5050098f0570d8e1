"""NS-ADFS on real data: a certified gap, and the objective of liblinear's hinge SVM."""

import functools
import json

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from adfs.cli.main import main
from adfs.data import datasets


@functools.cache
def independent_objective(name):
    """F at scikit-learn's coefficients for C = 1, by NumPy."""
    X, y = datasets.load(name)
    y = np.where(y == np.max(y), 1.0, -1.0)
    model = LinearSVC(loss="hinge", dual=True, C=1.0, fit_intercept=False, tol=1e-7,
                      max_iter=200_000, random_state=0)  # fmt: skip
    theta = model.fit(X, y).coef_[0]
    return np.sum(np.maximum(0.0, 1.0 - y * (X @ theta))) + 0.5 * theta @ theta


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("name", "nodes"),
    [
        ("a9a", 1), ("a9a", 16), ("mushrooms", 4),
        *(pytest.param(*each, marks=pytest.mark.soak)
          for each in (("a9a", 4), ("mushrooms", 1), ("mushrooms", 16))),
    ],
)  # fmt: skip
def test_the_hinge_objective_is_liblinears(name, nodes, data_folder, capsys):
    command = ["train", name, "--loss", "hinge", "--C", "1", "--nodes", str(nodes), "--tol", "1e-6"]
    assert main([*command, "--json", "--quiet"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["status"] == "converged"
    assert report["algorithm"] == "ns-adfs"
    assert report["duality_gap"] <= 1e-6 * report["objective"]
    best = independent_objective(name)
    assert abs(report["objective"] - best) <= 1e-5 * best

"""`adfs train` on real data: a certified gap, and the objective of an independent solver."""

import functools
import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from adfs.cli.main import main
from adfs.data import datasets
from adfs.data.files import save_npz

SIGMA = 1.0  # in total, whatever the number of nodes: C = 1
DATA = {
    "a9a": ("newton-cholesky", None),
    "mushrooms": ("newton-cholesky", None),
    "reuters-money-fx": ("newton-cg", None),
    "covtype": ("newton-cholesky", 50_000),
    "higgs": ("newton-cholesky", None),
}


@functools.cache
def rows(name):
    """The rows used, labels as -1 and 1."""
    X, y = datasets.load(name)
    limit = DATA[name][1]
    X, y = X[:limit], y[:limit]
    return X, np.where(y == np.max(y), 1.0, -1.0)


@functools.cache
def independent_objective(name):
    """F at scikit-learn's coefficients, by NumPy."""
    X, y = rows(name)
    model = LogisticRegression(
        C=1 / SIGMA, fit_intercept=False, solver=DATA[name][0], tol=1e-10, max_iter=10_000
    )
    theta = model.fit(X, y).coef_[0]
    return np.sum(np.logaddexp(0.0, -y * (X @ theta))) + 0.5 * SIGMA * theta @ theta


# Each set on two numbers of nodes, each number for two sets or more; the rest is soak.
FEW = {"a9a": (1, 16), "mushrooms": (4, 9), "reuters-money-fx": (1, 9), "covtype": (4, 16),
       "higgs": (9, 16)}  # fmt: skip
RUNS = [
    pytest.param(name, nodes, marks=[pytest.mark.soak] * (nodes not in FEW[name]))
    for name in DATA
    for nodes in (1, 4, 9, 16)
]


@pytest.mark.realdata
@pytest.mark.parametrize(("name", "nodes"), RUNS)
def test_train_reaches_the_independent_optimum(name, nodes, data_folder, tmp_path, capsys):
    source = name
    if DATA[name][1] is not None:
        source = str(tmp_path / "rows.npz")
        save_npz(source, *rows(name))
    command = ["train", source, "--C", str(1 / SIGMA), "--nodes", str(nodes), "--tol", "1e-8"]
    assert main([*command, "--json", "--quiet"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["status"] == "converged"
    assert report["duality_gap"] <= 1e-8 * report["objective"]
    assert report["n_nodes"] == nodes
    best = independent_objective(name)
    assert abs(report["objective"] - best) <= 1e-7 * best

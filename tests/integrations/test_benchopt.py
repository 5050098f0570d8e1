"""The solver file for benchopt, run by benchopt's own runner beside scikit-learn's lbfgs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from support.limits import HANG

pytest.importorskip("benchopt", reason="benchopt is not installed: pip install '.[dev]'")

SOLVER = Path(__file__).parents[2] / "integrations" / "benchopt" / "solvers" / "adfs.py"

# The interface of benchopt's benchmark_logreg_l2: the same names, scaling and result.
OBJECTIVE = """\
import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    name = "L2 Logistic Regression"
    parameters = {"lmbd": [0.1], "fit_intercept": [False, True]}

    def set_data(self, X, y):
        self.X, self.y = X, y

    def get_one_result(self):
        return {"beta": np.zeros(self.X.shape[1])}

    def evaluate_result(self, beta):
        margins = self.y * (self.X @ beta)
        return {"value": np.logaddexp(0.0, -margins).sum() + 0.5 * self.lmbd * beta @ beta}

    def get_objective(self):
        return {"X": self.X, "y": self.y, "lmbd": self.lmbd, "fit_intercept": self.fit_intercept}
"""

DATASET = """\
import numpy as np
import scipy.sparse as sp
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "Simulated"
    parameters = {"sparse": [False, True]}

    def get_data(self):
        random = np.random.RandomState(0)
        X = random.randn(80, 6) * (random.rand(80, 6) < 0.7)
        y = np.sign(X @ random.randn(6) + 0.5 * random.randn(80))
        return {"X": sp.csr_matrix(X) if self.sparse else X, "y": y}
"""

LBFGS = """\
import warnings

from benchopt import BaseSolver
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression


class Solver(BaseSolver):
    name = "sklearn"
    sampling_strategy = "iteration"

    def skip(self, X, y, lmbd, fit_intercept):
        return fit_intercept, "one of the two is enough here"

    def set_objective(self, X, y, lmbd, fit_intercept):
        self.X, self.y = X, y
        self.model = LogisticRegression(C=1 / lmbd, fit_intercept=False, tol=1e-12)

    def run(self, n_iter):
        self.model.max_iter = max(1, n_iter)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.fit(self.X, self.y)

    def get_result(self):
        return {"beta": self.model.coef_.ravel()}
"""


@pytest.fixture(scope="module")
def curves(tmp_path_factory):
    """What benchopt has measured, as a table; and what it printed."""
    import pandas as pd

    folder = tmp_path_factory.mktemp("benchmark_logreg_l2")
    for name, text in {
        "objective.py": OBJECTIVE,
        "datasets/simulated.py": DATASET,
        "solvers/sklearn.py": LBFGS,
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    shutil.copy(SOLVER, folder / "solvers")
    command = [
        sys.executable, "-m", "benchopt", "run", folder, "--no-plot", "--no-display",
        "--max-runs", "30", "--output", "found",
    ]  # fmt: skip
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=HANG, cwd=folder,
        stdin=subprocess.DEVNULL, env=os.environ | {"BENCHOPT_RAISE_INSTALL_ERROR": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("outputs/found*.parquet")
    return pd.read_parquet(path), done.stdout


def of(curves, sparse, solver):
    """The curve of one solver on one layout."""
    table = curves[0]
    rows = table[
        table.dataset_name.str.contains(f"sparse={sparse}") & (table.solver_name == solver)
    ]
    assert rows.p_obj_fit_intercept.eq(False).all()
    return rows.sort_values("stop_val")


SOLVERS = [f"adfs[graph=grid,n_nodes={n},tau=5.0]" for n in (1, 4)]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_objective_falls_to_that_of_lbfgs(curves, sparse, solver):
    ours = of(curves, sparse, solver).objective_value.to_numpy()
    theirs = of(curves, sparse, "sklearn").objective_value.min()
    assert ours[0] == pytest.approx(80 * np.log(2.0))  # the first point is the model 0
    assert ours[-1] == pytest.approx(theirs, abs=1e-8)
    assert len(ours) > 5


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_curve_is_that_of_one_run_on_the_same_problem(curves, sparse, solver):
    ours = of(curves, sparse, solver)
    assert (np.diff(ours.time) >= 0).all()
    assert (np.diff(ours.stop_val) > 0).all()


def test_a_free_intercept_is_skipped_with_a_reason(curves):
    assert "adfs regularises the intercept" in " ".join(curves[1].split())

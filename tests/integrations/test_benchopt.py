"""The solver file for benchopt, run by benchopt's own runner beside scikit-learn's lbfgs."""

import importlib.util
import itertools
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

# The interface of benchopt's benchmark_logreg_l2 as of September 2025: the same names, parameters,
# scaling and results.
OBJECTIVE = """\
import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    name = "L2 Logistic Regression"
    parameters = {"lmbd": [1.0, 0.01]}

    def set_data(self, X, y, X_test=None, y_test=None):
        self.train, self.test = (X, y), (X_test, y_test)

    def get_one_result(self):
        return {"beta": np.zeros(self.train[0].shape[1])}

    def evaluate_result(self, beta):
        def value(X, y):
            return np.logaddexp(0.0, -y * (X @ beta)).sum() + 0.5 * self.lmbd * beta @ beta

        test = None if self.test[0] is None else value(*self.test)
        return {"value": value(*self.train), "Test loss": test}

    def get_objective(self):
        return {"X": self.train[0], "y": self.train[1], "lmbd": self.lmbd}
"""

DATASET = """\
import numpy as np
import scipy.sparse as sp
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "Simulated"
    parameters = {"n_samples, n_features": [(80, 6)], "sparse": [False, True]}

    def get_data(self):
        random = np.random.RandomState(0)
        size = (self.n_samples, self.n_features)
        X = random.randn(*size) * (random.rand(*size) < 0.7)
        y = np.sign(X @ random.randn(self.n_features) + 0.5 * random.randn(self.n_samples))
        test = {} if self.sparse else {"X_test": X[:20], "y_test": y[:20]}
        return {"X": sp.csr_matrix(X) if self.sparse else X, "y": y, **test}
"""

LBFGS = """\
import warnings

from benchopt import BaseSolver
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression


class Solver(BaseSolver):
    name = "sklearn"
    sampling_strategy = "iteration"

    def set_objective(self, X, y, lmbd):
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
def benchmark(tmp_path_factory):
    """A folder laid out as the benchmark, with our solver in it."""
    folder = tmp_path_factory.mktemp("benchmark_logreg_l2")
    for name, text in {
        "objective.py": OBJECTIVE,
        "datasets/simulated.py": DATASET,
        "solvers/sklearn.py": LBFGS,
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    shutil.copy(SOLVER, folder / "solvers")
    return folder


def measured(folder, output, *words):
    """What benchopt measures, as a table; and what it prints."""
    import pandas as pd

    command = [
        sys.executable, "-m", "benchopt", "run", folder, "--no-plot", "--no-display",
        "--max-runs", "30", "--output", output, *words,
    ]  # fmt: skip
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=HANG, cwd=folder,
        stdin=subprocess.DEVNULL, env=os.environ | {"BENCHOPT_RAISE_INSTALL_ERROR": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob(f"outputs/{output}*.parquet")
    return pd.read_parquet(path), done.stdout


@pytest.fixture(scope="module")
def curves(benchmark):
    return measured(benchmark, "found")


def of(curves, sparse, lmbd, solver):
    """The curve of one solver on one layout."""
    table = curves[0]
    rows = table[
        table.dataset_name.str.contains(f"sparse={sparse}")
        & table.objective_name.str.contains(f"lmbd={lmbd}")
        & (table.solver_name == solver)
    ]
    return rows.sort_values("stop_val")


SOLVERS = [f"adfs[algorithm=adfs,graph=grid,n_nodes={n},tau=5.0]" for n in (1, 4)]
CASES = pytest.mark.parametrize(
    ("sparse", "lmbd", "solver"), list(itertools.product([False, True], [1.0, 0.01], SOLVERS))
)


@CASES
def test_the_objective_falls_to_that_of_lbfgs(curves, sparse, lmbd, solver):
    ours = of(curves, sparse, lmbd, solver).objective_value.to_numpy()
    theirs = of(curves, sparse, lmbd, "sklearn").objective_value.min()
    assert ours[0] == pytest.approx(80 * np.log(2.0))  # the first point is the model 0
    assert ours[-1] == pytest.approx(theirs, abs=1e-8)
    assert len(ours) > 5


@CASES
def test_the_curve_is_that_of_one_run_on_the_same_problem(curves, sparse, lmbd, solver):
    ours = of(curves, sparse, lmbd, solver)
    assert (np.diff(ours.time) >= 0).all()
    assert (np.diff(ours.stop_val) > 0).all()


def test_any_algorithm_can_be_named(benchmark):
    table = measured(benchmark, "newton", "-s", "adfs[algorithm=newton,n_nodes=4]")[0]
    found = table.groupby("objective_name").objective_value.min()
    assert len(found) == 2
    assert table.solver_name.unique().tolist() == [
        "adfs[algorithm=newton,graph=grid,n_nodes=4,tau=5.0]"
    ]


def test_a_free_intercept_is_skipped_with_a_reason():
    spec = importlib.util.spec_from_file_location("solver", SOLVER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    solver = module.Solver.get_instance(n_nodes=4)
    X = np.ones((8, 2))
    assert solver.skip(X, None, 1.0) == (False, None)
    skipped, reason = solver.skip(X, None, 1.0, fit_intercept=True)
    assert skipped
    assert "adfs regularises the intercept" in reason
    assert "fewer rows (3) than nodes (4)" in solver.skip(X[:3], None, 1.0)[1]

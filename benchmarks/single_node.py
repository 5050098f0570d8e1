"""One node against what a user would pick instead: seconds to a relative suboptimality.

Every solver gets the same rows, features and objective (no intercept, ``C = 1 / sigma``), and a
ladder of tolerances. Counted is the fastest run that reached an accuracy, by our own objective at
its coefficients; short runs are repeated and the best one counts. ADFS is counted whole: set-up,
evaluations and all; `best` also with its plan and pilots.
"""

import argparse
import time
import warnings

import numpy as np

import adfs
from adfs.data import datasets
from adfs.problem.certificate import relative

TARGETS = (1e-3, 1e-6, 1e-9)
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-12)
CASES = (
    ("reuters-money-fx", 1.0, None),
    ("a9a", 1.0, None),
    ("higgs", 1.0, None),
    ("covtype", 1.0, 50_000),
    ("higgs", 0.01, None),
    ("covtype", 0.01, 50_000),
    ("mushrooms", 1.0, None),
    ("breast-cancer", 1.0, None),
)


def ours(algorithm):
    """A runner for one of our methods on one node."""

    def run(X, y, sigma, tol):
        problem = adfs.Problem([(X, y)], sigma=sigma)
        return adfs.solve(problem, algorithm, tol=tol, progress=False).theta

    return run


def scikit(solver, dual=False):
    """A runner for one of scikit-learn's solvers."""

    def run(X, y, sigma, tol):
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(
            C=1.0 / sigma, tol=tol, solver=solver, dual=dual, fit_intercept=False, max_iter=20_000
        )
        return model.fit(X, y).coef_[0]

    return run


def run_cyanure(X, y, sigma, tol, n_threads=-1):
    """Coefficients from Cyanure, whose objective is a mean."""
    from cyanure.estimators import Classifier

    model = Classifier(
        loss="logistic", penalty="l2", lambda_1=sigma / len(y), tol=tol, fit_intercept=False,
        max_iter=5_000, verbose=False, n_threads=n_threads,
    )  # fmt: skip
    return np.asarray(model.fit(X, y).coef_).ravel()


def run_snapml(X, y, sigma, tol, n_jobs=1):
    """Coefficients from Snap ML."""
    from snapml import LogisticRegression

    model = LogisticRegression(
        regularizer=sigma,
        tol=tol,
        fit_intercept=False,
        dual=True,
        max_iter=20_000,
        n_jobs=n_jobs,
    )
    return np.asarray(model.fit(X, y).coef_).ravel()


SOLVERS = {
    "adfs": ours("auto"),
    "best": ours("best"),
    "liblinear-dual": scikit("liblinear", dual=True),
    "saga": scikit("saga"),
    "lbfgs": scikit("lbfgs"),
    "newton-cholesky": scikit("newton-cholesky"),
    "cyanure": run_cyanure,
    "snapml": run_snapml,
}


PEERS = ("liblinear-dual", "snapml")  # one thread each, like adfs


def best_of(run, repeats=5, long=0.3):
    """Result of ``run`` and its best seconds; what takes long is run once."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        result = run()
        best = min(best, time.perf_counter() - start)
        if best > long:
            break
    return result, best


def ladder(run, problem, data, sigma, patience):
    """Best seconds to each target, going down the tolerances until done or out of patience."""
    best = dict.fromkeys(TARGETS)
    goal = problem.optimum().objective
    spent = 0.0
    for tol in TOLERANCES:
        theta, seconds = best_of(lambda tol=tol: run(*data, sigma, tol))
        spent += seconds
        error = relative(problem.objective(theta) - goal, goal)
        for target in TARGETS:
            if error <= target and (best[target] is None or seconds < best[target]):
                best[target] = seconds
        if error <= TARGETS[-1] or spent > patience:
            break
    return best


def compare(name, sigma, limit, patience, solvers=SOLVERS):
    """Rows of the table for one data set."""
    X, y = datasets.load(name)
    X, y = X[:limit], np.where(y[:limit] == np.max(y), 1.0, -1.0)
    problem = adfs.Problem([(X, y)], sigma=sigma)
    table = {}
    for solver, run in solvers.items():
        try:
            run(X[:200], y[:200], sigma, 1e-2)  # compile and import, untimed
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                table[solver] = ladder(run, problem, (X, y), sigma, patience)
        except ImportError as error:
            print(f"  {solver}: not installed ({error.name})")
        except (ValueError, TypeError) as error:
            print(f"  {solver}: does not take these data ({error})")
    return table


def main(patience=60.0):
    """Print the table, wins and losses as they are; returns it."""
    results = {}
    for name, sigma, limit in CASES:
        table = compare(name, sigma, limit, patience)
        results[f"{name} sigma={sigma}"] = table
        print(f"\n{name}, sigma = {sigma}: seconds to relative suboptimality")
        print(f"{'':18}" + "".join(f"{target:>12.0e}" for target in TARGETS))
        for solver, best in table.items():
            cells = ("-" if best[t] is None else f"{best[t]:.3f}" for t in TARGETS)
            print(f"{solver:18}" + "".join(f"{cell:>12}" for cell in cells), flush=True)
    return results


def paired(runs):
    """ADFS over liblinear's and Snap ML's dual solvers, in turns: median and range of ratios."""
    time.perf_counter = time.process_time  # each has one thread, and others may use the machine
    solvers = {key: SOLVERS[key] for key in ("adfs", *PEERS)}
    results = {}
    print(f"seconds of CPU, adfs over a peer: medians (and range) of {runs} runs")
    for (name, sigma, _), peer, found in paired_ratios(runs, solvers):
        low, middle, high = np.nanquantile(found, [0.0, 0.5, 1.0], axis=0)
        cells = [f"{m:.2f} ({a:.2f} to {z:.2f})" for a, m, z in zip(low, middle, high, strict=True)]
        print(f"| {name}, {sigma:g} | {peer} | " + " | ".join(cells) + " |", flush=True)
        results[f"{name} sigma={sigma} {peer}"] = {
            "median": middle.tolist(), "least": low.tolist(), "most": high.tolist(),
        }  # fmt: skip
    return results


def paired_ratios(runs, solvers):
    """For each case and peer the ratios, a row per run; nan where an accuracy was not reached."""
    for case in CASES:
        tables = [compare(*case, 20.0, solvers) for _ in range(runs)]
        for peer in PEERS:
            if all(peer in table for table in tables):
                yield case, peer, np.array([ratios(table["adfs"], table[peer]) for table in tables])


def ratios(own, theirs):
    return [np.nan if None in (own[t], theirs[t]) else own[t] / theirs[t] for t in TARGETS]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paired", type=int, help="only adfs against two peers in turns, so often")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds a solver may spend")
    options = parser.parse_args()
    if options.paired:
        paired(options.paired)
    else:
        main(options.patience)

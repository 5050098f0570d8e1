"""Passes of `tron`, `lbfgs` and `newton` until the certified relative gap is 1e-8."""

from common import print_head, print_row

import adfs

SETTINGS = (  # data, nodes, rows drawn per node (None: all rows), sigma
    ("a9a", 16, 1000, 1.0),
    ("a9a", 16, 1000, 0.01),
    ("covtype", 16, 1000, 0.01),
    ("higgs", 16, 1000, 0.01),
    ("mushrooms", 16, 400, 0.001),
    ("reuters-money-fx", 4, None, 1.0),
    ("reuters-money-fx", 4, None, 0.01),
)
NAMES = ("tron", "lbfgs", "newton")
TOL = 1e-8


def make_problem(name, n_nodes, m, sigma):
    X, y = adfs.datasets.load(name)
    how = "even" if m is None else "draw"
    return adfs.Problem(adfs.partition(X, y, n_nodes, how=how, m=m), sigma=sigma)


def passes(problem, name):
    """Evaluations and products; a dash where the method refuses so many features."""
    if name == "newton" and problem.n_features > 2000:
        return "-"
    return str(adfs.solve(problem, name, tol=TOL, evaluate_every=1).iterations)


def main():
    print_head("data", "sigma", "d", *NAMES)
    for setting in SETTINGS:
        problem = make_problem(*setting)
        counts = [passes(problem, name) for name in NAMES]
        print_row(setting[0], f"{setting[-1]:g}", str(problem.n_features), *counts)


if __name__ == "__main__":
    main()

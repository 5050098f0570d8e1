"""Dask-ML's LogisticRegression on two worker processes; prints what each solver found, as JSON.

The objective is ours: no intercept, ``C = 1 / sum of sigma``, and columns left as they are
(``normalize=False``: dask-glm would otherwise scale them, and regularise what is scaled). Its
``newton`` and ``gradient_descent`` know no regularisation at all, so they keep the scaling, which
helps the latter. Rows are on the workers before the clock starts, one block each. Every solver goes
up a ladder of iterations, each time from the start, until it is near enough by our objective or has
had its time; its own stopping rules are set out of reach. Near enough is a relative suboptimality,
or with ``--by gap`` a relative duality gap, by our certificate.
"""

import argparse
import json
import time
import warnings

import numpy as np

LADDERS = {
    "lbfgs": (20, 40, 60, 80, 120, 200, 400),
    "admm": (5, 10, 20, 40, 80, 160),
    "newton": (2, 5, 10),
    "proximal_grad": (50, 200, 800),
    "gradient_descent": (50, 200, 800),
}
LIMITS = {"lbfgs": 150.0}  # seconds of a solver; most for the one that is best at this
LIMIT = 30.0
REPEATS, SHORT = 3, 10.0  # runs of what reached the target, unless they take longer
REGULARISED = ("lbfgs", "admm", "proximal_grad")


def fit(X, y, sigma, solver, max_iter, as_they_are=False):
    """Coefficients, and seconds from rows on the workers to them."""
    from dask_ml.linear_model import LogisticRegression

    options = {"normalize": False} if as_they_are or solver in REGULARISED else {}
    if solver == "admm":
        options |= {"abstol": 1e-14, "reltol": 1e-14}
    started = time.perf_counter()
    model = LogisticRegression(
        C=1.0 / sigma, solver=solver, fit_intercept=False, max_iter=max_iter, tol=1e-14,
        solver_kwargs=options,
    ).fit(X, y)  # fmt: skip
    seconds = time.perf_counter() - started
    return np.asarray(model.coef_, dtype=np.float64), seconds


def ladder(X, y, sigma, solver, judge, options):
    """Runs of one solver with more and more iterations; the last one is the best."""
    runs, spent, last = [], 0.0, None
    steps = LADDERS[solver]
    limit = options.limit or LIMITS.get(solver, LIMIT)
    for max_iter, following in zip(steps, (*steps[1:], None), strict=True):
        theta, seconds = fit(X, y, sigma, solver, max_iter)
        runs.append({"max_iter": max_iter, "seconds": seconds, **judge(theta)})
        spent += seconds
        if runs[-1][options.by] <= options.target:
            again = [seconds]
            while len(again) < REPEATS and seconds < SHORT:
                again.append(fit(X, y, sigma, solver, max_iter)[1])
            runs[-1]["seconds"] = min(again)
            break
        if following is None or np.array_equal(last, theta):
            break
        if spent + seconds * following / max_iter > limit:
            break
        last = theta
    return runs


def judged_by(X, y, sigma):
    """Our measures of a model: relative suboptimality and relative duality gap."""
    import adfs
    from adfs.problem.certificate import certify, relative

    problem = adfs.Problem([(X, y)], sigma=sigma)
    goal = problem.optimum().objective

    def judge(theta):
        found = certify(problem, theta)
        return {"error": relative(found.objective - goal, goal), "gap": found.relative_gap}

    return judge


def main(options):
    """The solvers on the rows of a file."""
    import dask.array as da
    from dask.distributed import Client, LocalCluster, wait

    from adfs.data.files import load_data

    sigma = options.sigma
    X, y = load_data(options.path)
    judge = judged_by(X, y, sigma)
    X = X if isinstance(X, np.ndarray) else X.toarray()  # dask-glm's solvers want dense blocks
    half = -(-len(y) // 2)
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=None
    )
    with cluster, Client(cluster) as client:
        labels = (y > 0).astype(np.float64)
        blocks = client.persist(
            [da.from_array(X, chunks=(half, X.shape[1])), da.from_array(labels, chunks=half)]
        )
        wait(blocks)
        held = sorted(len(keys) for keys in client.has_what().values())
        if held != [2, 2]:
            client.rebalance()
        few = [block[:2000].rechunk({0: 1000}).persist() for block in blocks]
        runs = {}
        for solver in options.solver or LADDERS:
            # untimed, for imports on the workers; few rows have constant columns: not to be scaled
            fit(*few, sigma, solver, 2, as_they_are=True)
            runs[solver] = ladder(*blocks, sigma, solver, judge, options)
    print(json.dumps(runs))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("sigma", type=float)
    parser.add_argument("target", type=float)
    parser.add_argument("--by", choices=("error", "gap"), default="error")
    parser.add_argument("--solver", action="append", choices=list(LADDERS))
    parser.add_argument("--limit", type=float, help="seconds of all runs of a solver")
    warnings.simplefilter("ignore")
    main(parser.parse_args())

"""What a sample's part of the Hessian costs, in proximal steps: the ``h`` that `newton` charges.

Both on the same rows, one BLAS thread: the accumulation ``X^T D X`` a sample (BLAS for dense rows,
a compiled loop over pairs of non-zeros for sparse ones) and one ADFS local update, m = 10^4 rows on
one node as in the paper's Figure 3.

Warm starts make an update cheaper along a run (at d = 28 from 156 to 64 ns), so "one proximal step"
is the mean over a run from zero to a relative gap of 1e-6, the accuracy of the tables. Processor
time of one thread, the least of many runs: a neighbour only ever adds to it. The last lines are the
constants in `adfs.algorithms.newton`.
"""

import time

import numpy as np
import scipy.sparse as sp

import adfs
from adfs.algorithms import newton
from adfs.algorithms.adfs import Adfs
from adfs.problem.certificate import certify
from adfs.problem.optimum import add_outer_products, curvatures
from adfs.schedule.sampling_law import Drawer
from adfs.threads import one_blas_thread

N_SAMPLES = 10_000
DENSE = (4, 16, 28, 54, 123, 300, 1000)  # features
SPARSE = ((54, 12), (123, 14), (300, 30), (1000, 50), (1000, 100), (300, 5))  # and non-zeros a row
GAP = 1e-6
REPEATS = 5
PASSES = 9  # over all problems: what disturbs one measurement is gone in the next pass


def make_problem(n_features, n_nonzeros=None):
    """Logistic regression on one node, rows of norm about 1."""
    rng = np.random.default_rng(0)
    if n_nonzeros is None:
        X = rng.standard_normal((N_SAMPLES, n_features)) / np.sqrt(n_features)
        scores = X @ rng.standard_normal(n_features)
    else:
        density = n_nonzeros / n_features
        X = sp.random(N_SAMPLES, n_features, density, format="csr", random_state=0)
        X.data /= np.sqrt(n_nonzeros / 3.0)
        scores = X @ rng.standard_normal(n_features)
    return adfs.Problem([(X, np.where(scores + rng.logistic(size=N_SAMPLES) > 0, 1, -1))])


class Prox:
    """ADFS on the problem, run from zero to the accuracy of the tables."""

    def __init__(self, problem):
        self.problem, parameters = problem, adfs.Parameters.choose(problem, "exact")
        self.algorithm, self.drawer = Adfs(problem, parameters), Drawer(parameters, 0)

    def seconds(self):
        """Of one local update, over a whole run; drawing and looking are not counted."""
        state, spent = self.algorithm.init(), 0.0
        while not self._arrived(state):
            events = self.drawer.draw(state.t, state.t + N_SAMPLES)
            start = time.thread_time()
            self.algorithm.step(state, events)
            spent += time.thread_time() - start
        return spent / state.t

    def _arrived(self, state):
        theta, duals = self.algorithm.output(state)[0], self.algorithm.duals(state, 0)
        return state.t and certify(self.problem, theta, duals).relative_gap <= GAP


def hessian_seconds(problem, weights):
    """Of one sample's part of the Hessian."""
    total = np.zeros((problem.n_features, problem.n_features))
    start = time.thread_time()
    add_outer_products(problem, weights, slice(0, N_SAMPLES), total)
    return (time.thread_time() - start) / N_SAMPLES


def measure(problem):
    """Nanoseconds (prox, Hessian) a sample: the least of measurements that take turns."""
    prox = Prox(problem)
    weights = curvatures(problem, np.zeros(problem.n_features), slice(0, N_SAMPLES))
    with one_blas_thread():
        hessian_seconds(problem, weights)
        pairs = [(prox.seconds(), hessian_seconds(problem, weights)) for _ in range(REPEATS)]
    return 1e9 * np.min(pairs, axis=0)


def fit(columns, times):
    """Coefficients >= 0 with the least sum of squared relative errors."""
    from scipy.optimize import nnls

    return nnls(columns / times[:, None], np.ones(len(times)))[0]


def fit_ratio(size, pairs, prox, hessian):
    """Constants of `newton.cost_ratio`: ``e`` from the time of a prox, the others from ``h``."""
    ones = np.ones(len(size))
    constant, slope = fit(np.column_stack([ones, size]), prox)
    e = slope / constant
    columns = np.column_stack([ones, size, pairs]) / (1.0 + e * size)[:, None]
    return np.array([*fit(columns, hessian / prox), e])


def table(problems):
    """Rows (non-zeros, pairs, prox, Hessian): the least over passes, printed with the range."""
    problems = list(problems)
    passes = np.array([[measure(problem) for problem in problems] for _ in range(PASSES)])
    rows = []
    for problem, times in zip(problems, passes.transpose(1, 0, 2), strict=True):
        size, pairs = newton.mean_sizes(problem, 0)
        prox, hessian = np.min(times, axis=0)
        ratios = times[:, 1] / times[:, 0]
        rows.append((size, pairs, prox, hessian))
        print(
            f"d={problem.n_features:5d} non-zeros={size:6.1f} pairs={pairs:8.1f}: "
            f"prox {prox:7.1f} ns, Hessian {hessian:8.1f} ns, h = {hessian / prox:6.3f} "
            f"({ratios.min():.3f} to {ratios.max():.3f})",
            flush=True,
        )
    return np.array(rows)


def report(name, rows):
    """Fit ``h``, print its constants and how far it is off."""
    size, pairs, prox, hessian = rows.T
    constants = fit_ratio(size, pairs, prox, hessian)
    misses = newton.cost_ratio(constants, size, pairs) / (hessian / prox) - 1.0
    print(f"{name} = ({', '.join(f'{number:.3g}' for number in constants)})")
    print(f"  off by {', '.join(f'{100 * miss:+.0f} %' for miss in misses)}")
    return {"constants": constants.tolist(), "misses": misses.tolist()}


def main():
    """Print both tables and the constants; returns the fits."""
    dense = table(make_problem(d) for d in DENSE)
    sparse = table(make_problem(d, k) for d, k in SPARSE)
    return {"dense": report("DENSE", dense), "sparse": report("SPARSE", sparse)}


if __name__ == "__main__":
    main()

"""What elementary steps cost, in proximal steps: what `adfs.Costs` knows, and what it cannot time.

The steps are timed as `adfs.calibration` does it, at more sizes and in more turns, with m = 10^4
rows on one node as in the paper's Figure 3. A ratio is the median over turns, within a turn. The
last lines of the first part are the Hessian's price by the paper's costs, `adfs.costs.HESSIAN`.

Two numbers cannot be timed in a second, and come from runs to a relative gap of 1e-6 on real data:
what a dual gradient takes in gradients of a sample (`adfs.calibration.DUAL_PASSES`), and the share
of products in the passes of TRON (`adfs.algorithms.tron.PRODUCTS`).
"""

import argparse

import numpy as np
from common import print_head, print_row
from tron import SETTINGS, make_problem

import adfs
from adfs import calibration
from adfs.algorithms.dual_gradient import keeps_matrices
from adfs.algorithms.tron import Tron
from adfs.calibration import StepShape, StepTimes, TimedSteps, prices, seconds
from adfs.costs import Price
from adfs.kernels import certificate
from adfs.threads import one_blas_thread

N_ROWS = 10_000  # less where the features of all rows are more than NUMBERS
NUMBERS = 1_000_000  # 8 MB, which stay in the cache
DENSE = [StepShape(min(N_ROWS, NUMBERS // d), d) for d in (4, 16, 28, 54, 123, 300, 600, 1000)]
SPARSE = [
    StepShape(N_ROWS, d, k)
    for d, k in ((54, 12), (123, 14), (123, 30), (300, 30), (300, 60), (1000, 50), (1000, 100))
]
NAMES = StepTimes._fields[2:]
TURNS = 9
ITERATIONS = 20  # of MSDA between two looks at the gap
MOST = 2000  # of them


def table(shapes, turns):
    """`StepTimes` per shape, printed: the least proximal step, the others by median ratios."""
    every = [TimedSteps(shape) for shape in shapes]
    with one_blas_thread():
        for steps in every:
            steps.turn()
        found = np.array([[steps.turn() for steps in every] for _ in range(turns)])
    print_head("features", "non-zeros", "prox, ns", *NAMES[1:])
    rows = []
    for steps, times in zip(every, found.transpose(1, 0, 2), strict=True):
        ratios = times[:, 1:] / times[:, :1]
        size, pairs = (float(each[0]) for each in steps.problem.row_sizes)
        prox, middle = times[:, 0].min(), np.median(ratios, axis=0)
        rows.append(StepTimes(size, pairs, prox, *(prox * middle)))
        ends = zip(middle, ratios.min(axis=0), ratios.max(axis=0), strict=True)
        cells = [f"{each:.3g} ({low:.3g} to {high:.3g})" for each, low, high in ends]
        print_row(str(steps.problem.n_features), f"{size:.1f}", f"{1e9 * prox:.0f}", *cells)
    return rows


def hessian(name, rows):
    """The fitted price of the Hessian, and how far it is off."""
    found = prices(rows)["hessian"]
    size, pairs, measured = np.array([(t.size, t.pairs, t.hessian / t.prox) for t in rows]).T
    misses = Price(found, found).at(False, size, pairs) / measured - 1.0
    print(f"HESSIAN.{name} = ({', '.join(f'{number:.3g}' for number in found)})")
    print(f"  off by {', '.join(f'{100 * miss:+.0f} %' for miss in misses)}", flush=True)
    return {"price": found, "misses": misses.tolist(), "times": [t._asdict() for t in rows]}


def dual_passes(problem):
    """Time of a dual gradient in passes of gradients, over a run of MSDA; both in this process."""
    method = adfs.prepare(problem, "msda")
    algorithm, inner = method.algorithm, method.algorithm.dual_gradients
    state, spent, calls, plain = algorithm.init(), 0.0, 0, inner.solve

    def timed(*arguments):
        nonlocal spent, calls
        spent, calls = spent + seconds(plain, *arguments), calls + 1

    inner.solve = timed
    while calls < MOST:
        state = algorithm.step(state, method.source.draw(calls, calls + ITERATIONS))
        theta = problem.sigma @ algorithm.output(state) / problem.total_sigma
        if adfs.certify(problem, theta).relative_gap <= calibration.GAP:
            break
    stack = np.empty((problem.network.n_levels, problem.n_features + 1))
    place = (problem.offsets, theta, problem.network.links, stack)
    arguments = (*problem.samples, *place)
    gradient = min(seconds(certificate.objective_gradients, *arguments) for _ in range(9))
    return spent / calls / gradient, calls


def product_share(problem):
    """Share of Hessian products in the passes of TRON."""
    plain, products = Tron._multiply, []
    Tron._multiply = lambda self, state: products.append(0) or plain(self, state)
    try:
        result = adfs.solve(problem, "tron", tol=calibration.GAP)
    finally:
        Tron._multiply = plain
    return len(products) / result.iterations


def from_runs():
    """Both numbers on the settings of ``benchmarks/tron.py``."""
    print_head("data", "sigma", "d", "passes per dual gradient", "iterations", "share of products")
    found = []
    for setting in SETTINGS:
        problem = make_problem(*setting)
        passes, n_iterations = dual_passes(problem)
        kept = keeps_matrices(problem.n_nodes, problem.n_features)
        found.append((passes, product_share(problem), kept))
        start = (setting[0], f"{setting[-1]:g}", str(problem.n_features))
        print_row(*start, f"{passes:.2f}", str(n_iterations), f"{found[-1][1]:.2f}")
    passes, shares, direct = np.array(found).T
    medians = [float(np.median(passes[direct == kind])) for kind in (True, False)]
    share = float(np.median(shares))
    print(f"medians: {medians[0]:.1f} passes with Hessians and {medians[1]:.0f} without; "
          f"{share:.2f} products", flush=True)  # fmt: skip
    return {"passes": medians, "products": share, "settings": found}


def main(turns=TURNS):
    """Print all tables and the constants; returns the fits."""
    dense, sparse = table(DENSE, turns), table(SPARSE, turns)
    fits = {"dense": hessian("dense", dense), "sparse": hessian("sparse", sparse)}
    return {**fits, "runs": from_runs()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS)
    main(parser.parse_args().turns)

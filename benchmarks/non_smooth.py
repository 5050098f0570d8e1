"""NS-ADFS on real data: which certificate is reached when, `tuned` beside `paper`, liblinear.

    python benchmarks/non_smooth.py                        # three tables
    python benchmarks/non_smooth.py --picture FILE.png     # and the certificates as a picture

Needs ADFS_DATA (mushrooms, a9a and abalone).
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.svm import LinearSVC

import adfs
from adfs.algorithms.ns_adfs import NsAdfs
from adfs.problem.certificate import certify
from adfs.schedule.sampling_law import Drawer

PASSES = (30, 100, 300, 1_000, 3_000)
PAIRS = ("x, x", "x, v", "v, x", "v, v")
BLOCK = 1 << 14


def make(name, graph, partition="even", loss="hinge"):
    """A problem with C = 1, spread over the graph."""
    X, y = adfs.datasets.load(name)
    topology = adfs.Topology.parse(graph)
    shards = adfs.partition(X, y, topology.n_nodes, how=partition)
    return adfs.Problem(shards, loss=loss, sigma=1.0 / topology.n_nodes, topology=topology)


def advance(algorithm, drawer, state, first, last):
    """Events ``first`` to ``last``."""
    for start in range(first, last, BLOCK):
        state = algorithm.step(state, drawer.draw(start, min(last, start + BLOCK)))
    return state


def relative_gaps(algorithm, state):
    """Relative gaps of the models of x and v, each with the duals of x and v."""
    problem = algorithm.problem
    models = [problem.sigma @ (rows / problem.sigma[:, None]) for rows in algorithm.nodes(state)]
    return [
        certify(problem, model / problem.total_sigma, duals).relative_gap
        for model in models
        for duals in algorithm.virtual(state)
    ]


def certificates(passes=PASSES):
    """What each pair of a model and a dual point certifies after so many passes."""
    table = []
    for name, graph in (("mushrooms", "grid:4x4"), ("a9a", "grid:2x2"), ("mushrooms", "single")):
        problem = make(name, graph)
        parameters = adfs.NonSmoothParameters.choose(problem)
        algorithm, drawer = NsAdfs(problem, parameters), Drawer(parameters, 0)
        state, t = algorithm.init(), 0
        print(f"{name} on {graph}: relative gap of (model, duals) after so many passes")
        print(f"{'passes':>8}" + "".join(f"{pair:>10}" for pair in PAIRS))
        for count in passes:
            state = advance(algorithm, drawer, state, t, count * problem.n_samples)
            t = count * problem.n_samples
            gaps = relative_gaps(algorithm, state)
            print(f"{count:>8}" + "".join(f"{gap:>10.1e}" for gap in gaps), flush=True)
            table.append({"data": name, "graph": graph, "passes": count, "gaps": gaps})
    return table


def rules(tol=1e-6, seeds=3):
    """Idealized time to ``tol`` with both rules, in passes of one machine over all data."""
    table = []
    for name, loss, graph, tau, partition in (
        ("mushrooms", "hinge", "grid:4x4", 0.1, "even"),
        ("mushrooms", "hinge", "grid:4x4", 5.0, "even"),
        ("mushrooms", "hinge", "grid:4x4", 5.0, "sorted"),
        ("mushrooms", "hinge", "grid:4x4", 50.0, "even"),
        ("mushrooms", "hinge", "ring:16", 50.0, "even"),
        ("abalone", "absolute", "grid:4x4", 0.1, "even"),
        ("abalone", "absolute", "grid:4x4", 5.0, "even"),
        ("abalone", "absolute", "grid:4x4", 50.0, "even"),
    ):
        problem = make(name, graph, partition, loss)
        paper, tuned = (
            np.median([_time(problem, rule, tau, tol, seed) for seed in range(seeds)])
            for rule in ("paper", "tuned")
        )
        print(
            f"{name}, {loss}, {graph}, tau {tau:g}, {partition}: time to {tol:g} is {paper:.0f} "
            f"passes with paper, {tuned:.0f} with tuned, {paper / tuned:.1f} times less",
            flush=True,
        )
        table.append({"data": name, "loss": loss, "graph": graph, "tau": tau,
                      "partition": partition, "paper": paper, "tuned": tuned})  # fmt: skip
    return table


def _time(problem, rule, tau, tol, seed):
    result = adfs.solve(
        problem, tol=tol, tau=tau, parameters=rule, seed=seed, evaluate_every=5 * problem.n_samples
    )
    return result.idealized_time / problem.n_samples


def against_liblinear(goals=(1e-3, 1e-6)):
    """Seconds until F is that close to its minimum, one node; liblinear by its tolerance."""
    table = []
    for name in ("a9a", "mushrooms"):
        problem = make(name, "single")
        best = problem.optimum().objective
        adfs.solve(problem, tol=1e-2)  # compiles
        ours = adfs.solve(problem, tol=1e-9, evaluate_every=2 * problem.n_samples).trace.to_dict()
        curve = list(zip(ours["wall_time"], ours["objective"], strict=True))
        theirs = list(_liblinear(name, problem))
        for goal in goals:
            seconds = [
                next((s for s, value in points if value - best <= goal * best), float("nan"))
                for points in (curve, theirs)
            ]
            print(f"{name}, F within {goal:g}: ns-adfs {seconds[0]:.2f} s, "
                  f"liblinear (hinge, dual) {seconds[1]:.2f} s", flush=True)  # fmt: skip
            table.append({"data": name, "goal": goal, "ours": seconds[0], "liblinear": seconds[1]})
    return table


def _liblinear(name, problem):
    X, y = adfs.datasets.load(name)
    for tol in (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7):
        model = LinearSVC(
            loss="hinge", dual=True, C=1.0, fit_intercept=False, tol=tol, max_iter=10**6
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            model.fit(X, y)
            seconds = time.perf_counter() - start
        yield seconds, problem.objective(model.coef_[0])


def draw(table, path):
    """The certificates against passes, with the slope that Theorem 4 proves."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    problems = list(dict.fromkeys((row["data"], row["graph"]) for row in table))
    figure, axes = plt.subplots(1, len(problems), figsize=(11, 3.6), layout="constrained")
    for axis, problem in zip(axes, problems, strict=True):
        rows = [row for row in table if (row["data"], row["graph"]) == problem]
        passes = np.array([row["passes"] for row in rows])
        gaps = np.array([row["gaps"] for row in rows])
        for k, style in ((0, "C0--"), (1, "C0-"), (3, "C1-")):
            axis.loglog(passes, gaps[:, k], style, label=f"model and duals of {PAIRS[k]}")
        axis.loglog(passes, gaps[-1, 0] * (passes / passes[-1]) ** -2.0, "k:", label="slope -2")
        axis.set(title=f"{problem[0]}, {problem[1]}", xlabel="passes over the data")
    axes[0].set_ylabel("relative duality gap")
    axes[0].legend(fontsize=8)
    figure.savefig(path, dpi=130)
    print(f"picture: {path}")


def main(picture=None):
    """All tables; returns them."""
    fine = tuple(np.unique(np.geomspace(10, 3_000, 16).astype(int)).tolist())
    found = certificates(fine if picture else PASSES)
    if picture:
        draw(found, picture)
    return {"certificates": found, "rules": rules(), "liblinear": against_liblinear()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--picture", metavar="FILE")
    main(parser.parse_args().picture)

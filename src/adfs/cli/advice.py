"""Lines of advice after a run: columns of very different sizes, targets far from zero."""

import argparse

import numpy as np

from adfs.algorithms.newton import MOST_FEATURES
from adfs.cli import output
from adfs.cli.problem_arguments import Loaded
from adfs.costs import Costs
from adfs.engine.forecast import column_sizes
from adfs.errors import shortened
from adfs.plan.prediction import reason_against
from adfs.plan.sizes import Sizes
from adfs.problem.finite_sum import Problem

MUCH_FASTER = 3.0
UNEVEN = 100.0  # a column so many times as large as the median column is badly scaled


def advise(args: argparse.Namespace, loaded: Loaded) -> None:
    """Print at most one line about the columns and one about the targets; called on all ranks."""
    if args.quiet:
        return
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows gives no advice
        lines = [] if args.standardize else _about_columns(loaded, args.intercept)
        if not args.intercept and loaded.classes is None:
            lines += _about_targets(loaded.problem)
    if loaded.problem.network.rank == 0:
        for line in lines:
            output.note(f"advice: {line}")


def _about_columns(loaded: Loaded, has_constant: bool) -> list[str]:
    problem = loaded.problem
    sizes = column_sizes(problem)[: problem.n_features - has_constant]
    widest = int(np.argmax(sizes))
    filled = np.sort(sizes[sizes > 0.0])
    median = filled[(len(filled) - 1) // 2] if len(filled) else 0.0
    if not sizes[widest] >= UNEVEN * median > 0.0:
        return []
    name = f"{widest + 1}"
    if loaded.columns is not None:
        name = repr(shortened(loaded.columns.feature_names[widest], 40))
    return [
        f"the values of column {name} are {sizes[widest] / median:.2g} times as large as those of "
        "the median column, which makes training slow and the penalty unequal; add --standardize."
    ]


def _about_targets(problem: Problem) -> list[str]:
    """Advice if the mean explains more of the targets' squares than what varies around it."""
    labels = [problem.labels[problem.node_rows(node)] for node in problem.nodes.tolist()]
    rows = [np.array([y.sum(), (y * y).sum()]) for y in labels]
    total, squares = problem.network.sum_rows(rows, 2) / problem.n_samples
    if not total * total > squares / 2.0:
        return []
    return [
        f"the mean of the targets is {total:.3g}, far from zero, and there is no constant feature; "
        "add --intercept."
    ]


def faster_method(problem: Problem, tau: float, tol: float, costs: Costs) -> str | None:
    """A method that theory expects to be much faster than ADFS, in words; called on all ranks.

    It needs no more than numbers that are known already.
    """
    if not problem.loss.smooth or not problem.conditioning.batches_are_known:
        return None
    refused = ["newton"] if problem.n_features > MOST_FEATURES else []
    times = {
        name: each.time
        for name, each in Sizes.of(problem, tau, costs).runs(tol).items()
        if name not in refused and reason_against(name, problem.n_nodes) is None
    }
    fastest = min(times, key=times.__getitem__)
    ratio = times["adfs"] / times[fastest]
    if not ratio > MUCH_FASTER:
        return None
    return f"{fastest} is expected to need {ratio:.2g} times less idealized time (--algorithm best)"

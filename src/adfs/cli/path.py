"""`adfs path`: models for a grid of C, scores of cross-validation, and the best one."""

import argparse
import contextlib
from functools import partial
from typing import Any

from adfs.agreement import Alone, attempt
from adfs.checks import whole
from adfs.cli import files, output
from adfs.cli.main import SIGNALS
from adfs.cli.on_ranks import Finish, check_engine, run_on_engine
from adfs.cli.options import read_grid
from adfs.cli.problem_arguments import load_problem, model_of, read_setting, read_sigma
from adfs.engine.interrupts import Interrupts
from adfs.engine.stopping import Stopping
from adfs.mpi.communicator import Communicator
from adfs.quality import TITLES, texts_of
from adfs.regularization import PathSamples, RegularizationPath, follow, grid_of
from adfs.run import RunOptions
from adfs.storage import csv_bytes, write_whole
from adfs.study.numbers import count, number

PICTURE = (11.0, 4.2)  # inches
ABOUT_PROBLEM = ("loss", "n_samples", "n_features", "intercept", "n_nodes", "graph", "algorithm")


def run(args: argparse.Namespace) -> int:
    """Check, load, train, write, print: the same in one process and on ranks."""
    return run_on_engine(args, _path)


def _path(
    args: argparse.Namespace, world: Communicator | None, stack: contextlib.ExitStack
) -> Finish:
    peers = world or Alone()
    attempt(peers, lambda: _check(args))
    grid = grid_of(read_grid(args.C))
    loaded = load_problem(_at(args, grid[0]), world)
    network = loaded.problem.network
    attempt(network.peers, lambda: read_sigma(_at(args, grid[-1]), loaded.problem.n_nodes))
    interrupts = stack.enter_context(Interrupts(SIGNALS))
    options = RunOptions(callbacks=(args.leaving.repeat,), timeout=args.timeout)
    to_model = partial(model_of, args, loaded)
    path = follow(
        PathSamples(loaded.problem_of, loaded.n_problems, loaded.labels, to_model), grid,
        args.cv, args.algorithm, read_setting(args),
        Stopping(args.tol, args.max_iter), options, interrupts,
        not args.quiet and network.rank == 0,
    )  # fmt: skip
    if network.rank == 0:
        return lambda: _finish(args, path)
    return lambda: _exit_code(args, path, prints=False)


def _check(args: argparse.Namespace) -> None:
    """Everything that can be refused before a sample is read."""
    if args.cv is not None:
        whole("cv", args.cv, 2, hint="or leave it out")
    read_setting(args)
    Stopping(args.tol, args.max_iter)
    check_engine(args)
    if args.picture is not None:
        files.picture_kind("--picture", args.picture)


def _at(args: argparse.Namespace, C: float) -> argparse.Namespace:
    """The arguments with one C, as other commands have them."""
    return argparse.Namespace(**vars(args) | {"C": float(C), "sigma": None})


def _finish(args: argparse.Namespace, path: RegularizationPath) -> int:
    """Write all files asked for, even if one of them fails, and print; the exit code."""

    def save_table(place: str) -> None:
        table = path.table()
        write_whole(place, csv_bytes([table, *zip(*table.values(), strict=True)]))

    def save_picture(place: str) -> None:
        from adfs.study.plots.path_plot import draw_path

        kind = files.picture_kind("--picture", args.picture)
        files.save_picture(
            place, kind, PICTURE, lambda figure: draw_path(path, figure.subplots(1, 2))
        )

    if path.cv != args.cv:  # interrupted before the best C was known
        args.out = None
    failures = files.write_each(
        (args.out, path.model.save), (args.table, save_table), (args.picture, save_picture)
    )
    code = output.show(args, _record(args, path), _text(args, path), failures)
    return code or _exit_code(args, path)


def _exit_code(args: argparse.Namespace, path: RegularizationPath, prints: bool = True) -> int:
    """The exit code, after a line with the reason if a run stopped early."""
    if path.status == "converged":
        return 0
    early = [f"{point.C:.3g}" for point in path.points if point.status != "converged"]
    message, code = f"{path.status} before --tol {args.tol:g} at C = {', '.join(early)}; ", 3
    if path.status == "interrupted" and path.signal is not None:
        code = 128 + path.signal
        message += "what exists is shown, and --out is written once the best C is known."
    elif path.status == "diverged":
        message += "scale the features or the targets, or lower --C."
    else:
        message += "give a larger --max-iter, a larger --tol or a smaller --C."
    return output.complain(message, code) if prints else code


def _record(args: argparse.Namespace, path: RegularizationPath) -> dict[str, Any]:
    """The path as plain values; unknown ones are None."""
    return {
        "status": path.status,
        "best_C": path.best_C,
        **output.values(path, "measure", "cv"),
        **{name: path.model.meta[name] for name in ABOUT_PROBLEM},
        "points": [_point_record(path, k) for k in range(len(path.points))],
        **output.values(args, "tol", "seed", "data", "out", "table", "picture"),
    }


def _point_record(path: RegularizationPath, k: int) -> dict[str, Any]:
    """One C; of each measure on the folds its mean, standard error and values."""
    point = path.points[k]
    names = ("C", "objective", "relative_gap", "iterations", "status", "train")
    folds = {
        name: {
            "mean": path.mean(name)[k],
            "standard_error": path.standard_error(name)[k],
            "values": path.scores(name)[k],
        }
        for name in (path.measures if path.cv is not None else ())
    }
    return output.values(point, *names) | {"folds": folds}


def _text(args: argparse.Namespace, path: RegularizationPath) -> str:
    titles = [TITLES[name][0] for name in path.measures]
    has_folds = path.cv is not None
    headers = ["C", *(titles if has_folds else []), *(f"training {each}" for each in titles)]
    headers += ["gap", "iterations", ""]
    rows = [_row(path, k) for k in range(len(path.points))]
    meta = path.model.meta
    lines = [
        ("problem", f"{meta['loss']}, {meta['n_samples']:,} samples x {meta['n_features']:,} "
         f"features on {count(meta['n_nodes'], 'node')} ({meta['graph']})"),
    ]  # fmt: skip
    if path.best_C is not None:
        what = TITLES[path.measure][0]
        lines.append(("best", f"C = {path.best_C:g}, by the mean {what} over {path.cv} folds"))
    if written := [each for each in (args.out, args.table, args.picture) if each]:
        lines.append(("wrote", ", ".join(written)))
    right = range(len(headers) - 1)
    return output.table(headers, rows, list(right)) + "\n" + output.facts(lines)


def _row(path: RegularizationPath, k: int) -> list[str]:
    """The cells of one C; means over folds have their standard error."""
    point, cells = path.points[k], []
    if path.cv is not None:
        for name in path.measures:
            mean, error = float(path.mean(name)[k]), float(path.standard_error(name)[k])
            (text,) = texts_of({name: mean}).values()
            spread = f"{100 * error:.2g} %" if name == "accuracy" else f"{error:.2g}"
            cells.append(f"{text} +- {spread}")
    for name in path.measures:
        cells += texts_of({name: point.train[name]}).values()
    mark = "best" if k == path.best else ""
    if point.status != "converged":
        mark = f"{mark} {point.status}".strip()
    gap = f"{point.relative_gap:.1e}"
    return [number(point.C), *cells, gap, f"{point.iterations:,}", mark]

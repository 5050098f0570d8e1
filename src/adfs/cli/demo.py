"""`adfs demo`: what `make demo` runs; data that ships with scikit-learn, a 3x3 grid, a picture."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adfs.cli import options, output, pictures
from adfs.errors import DataError

if TYPE_CHECKING:
    from adfs.problems.finite_sum import Problem
    from adfs.runtime.solve import Result

SIDE, C, TAU, TOL = 3, 1.0, 5.0, 1e-8


def add_parser(commands: Any) -> None:
    """Declare the command; without ``help`` it stays out of the list of commands."""
    parser = options.add_command(
        commands, "demo", run,
        description="Train logistic regression on scikit-learn's breast cancer data over a 3x3 "
        "grid, and draw how it converged.",
        epilog="example:\n  adfs demo --out demo-out",
    )  # fmt: skip
    parser.add_argument(
        "--out",
        default="demo-out",
        metavar="DIR",
        help="folder for model.npz, trace.csv and convergence.png (default demo-out)",
    )


def run(args: argparse.Namespace) -> int:
    """Train, write, draw, print."""
    from adfs.cli.metrics import measure, phrase
    from adfs.runtime.model import Model, linear_scores
    from adfs.runtime.solve import solve

    folder = _folder(args.out)
    X, y = _samples()
    problem = _problem(X, y)
    output.emit(f"Breast cancer data, {len(y)} samples x {X.shape[1]} features, on a "
                f"{SIDE}x{SIDE} grid of nodes; C = {C:g}, tau = {TAU:g}.\n")  # fmt: skip
    problem.optimum()  # makes the distance to it known to the trace
    result = solve(problem, tol=TOL, tau=TAU, evaluate_every=2_000)  # a smooth curve
    model = Model.from_result(result, problem, command="adfs demo")
    output.write(str(folder / "model.npz"), model.to_bytes())
    with output.writing(str(folder / "trace.csv")) as place:
        result.trace.to_csv(place)
    quality = phrase(*measure(model, linear_scores(X, result.theta), y))
    output.emit(output.facts(_lines(result, quality, folder)))
    output.emit(_picture(result, folder))
    return 0 if result.status == "converged" else 3


def _folder(name: str) -> Path:
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"--out {name} must be a folder that can be made, but: {error.strerror}; "
            "choose another."
        ) from None
    for file in ("model.npz", "trace.csv", "convergence.png"):
        output.check_writable("--out", str(folder / file))
    return folder


def _samples() -> tuple[Any, Any]:
    """Standardised features, and labels 0 (malignant) and 1 (benign)."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def _problem(X: Any, y: Any) -> "Problem":
    from adfs.graphs.topology import Topology
    from adfs.problems.finite_sum import Problem
    from adfs.problems.partition import partition

    n_nodes = SIDE * SIDE
    shards = partition(X, y, n_nodes)
    return Problem(shards, "logistic", 1.0 / (C * n_nodes), Topology.grid(SIDE, SIDE))


def _lines(result: "Result", quality: str, folder: Path) -> list[tuple[str, str]]:
    return [
        ("status", result.status),
        ("relative gap", f"{result.relative_gap:.2g} (asked for {TOL:g})"),
        ("training", quality),
        ("idealized time", f"{result.idealized_time:,.0f} proximal steps, "
         f"{result.iterations:,} iterations"),
        ("wall time", f"{result.wall_time:.3g} s, after {result.setup_time:.3g} s of set-up"),
        ("gain", f"{result.parameters.gain:.2f} times as fast as the paper's parameters "
         "(predicted)"),
        ("model", str(folder / "model.npz")),
        ("trace", str(folder / "trace.csv")),
    ]  # fmt: skip


def _picture(result: "Result", folder: Path) -> str:
    """Draw the run; where that cannot be done, say what is missing."""
    if not pictures.have_matplotlib():
        return f"no picture: {pictures.MISSING}\n"
    from adfs.plots.convergence import draw_convergence

    ax = pictures.new_axes(8.0, 5.0)
    draw_convergence(result.trace, ax, rho=result.parameters.rho, tol=TOL)
    ax.set_title("ADFS on breast cancer data, 3x3 grid", loc="left", fontweight="bold")
    path = folder / "convergence.png"
    pictures.save(ax.figure, str(path), "png")
    return f"picture: {path}\n"

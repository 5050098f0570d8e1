"""`adfs demo`: what `make demo` runs; data that ships with scikit-learn, a 3x3 grid, a picture."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adfs.cli import layout, options, output, pictures
from adfs.cli.parser import add_command
from adfs.cli.signals import SIGNALS
from adfs.errors import DataError

if TYPE_CHECKING:
    from adfs.problems.finite_sum import Problem
    from adfs.runtime.model import Model
    from adfs.runtime.solve import Result

SIDE, C, TAU, TOL = 3, 1.0, 5.0, 1e-8


def add_parser(commands: Any) -> None:
    """Declare the command; without ``help`` it stays out of the list of commands."""
    parser = add_command(
        commands, "demo", run,
        description="Train logistic regression on scikit-learn's breast cancer data over a 3x3 "
        "grid to a relative gap of 1e-8, and write the model, the trace and a picture of how it "
        "converged.",
        epilog="examples:\n  adfs demo\n  adfs demo --out demo-out --json",
    )  # fmt: skip
    parser.add_argument(
        "--out",
        default="demo-out",
        metavar="DIR",
        help="folder for model.npz, trace.csv and convergence.png (default demo-out)",
    )
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Train, write, draw, print."""
    from adfs.runtime.model import Model
    from adfs.runtime.solve import solve

    folder = _folder(args.out)
    X, y = _samples()
    problem = _problem(X, y)
    if not args.json:
        output.emit(f"Breast cancer data, {len(y)} samples x {X.shape[1]} features, on a "
                    f"{SIDE}x{SIDE} grid of nodes; C = {C:g}, tau = {TAU:g}.\n")  # fmt: skip
    problem.optimum()  # makes the distance to it known to the trace
    result = solve(
        problem, tol=TOL, tau=TAU, evaluate_every=2_000, callback=args.leaving.repeat,
        signals=SIGNALS,
    )  # fmt: skip
    model = Model.from_result(result, problem, command="adfs demo")
    output.write(str(folder / "model.npz"), model.to_bytes())
    with output.writing(str(folder / "trace.csv")) as place:
        result.trace.to_csv(place)
    _tell(args, result, model, folder, (X, y))
    return _exit_code(result)


def _tell(
    args: argparse.Namespace, result: "Result", model: "Model", folder: Path, samples: Any
) -> None:
    """Draw the picture; print everything, in words or as JSON."""
    from adfs.cli.metrics import measure, phrase
    from adfs.runtime.model import linear_scores

    X, y = samples
    quality = measure(model, linear_scores(X, result.theta), y)
    picture = _picture(result, folder)
    if args.json:
        output.emit_json(_record(result, quality, folder, picture))
        return
    output.emit(layout.facts(_lines(result, phrase(*quality), folder)))
    output.emit(f"picture: {picture}\n" if picture else f"no picture: {pictures.MISSING}\n")


def _exit_code(result: "Result") -> int:
    if result.status == "converged":
        return 0
    code = 3 if result.signal is None else 128 + result.signal
    return output.complain(f"{result.status} before the end; what exists was kept.", code)


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


def _record(
    result: "Result", quality: tuple[str, float], folder: Path, picture: str | None
) -> dict[str, Any]:
    """The same in plain values."""
    last = result.trace.last()
    return {
        "status": result.status,
        "objective": result.objective,
        "duality_gap": result.duality_gap,
        "relative_gap": result.relative_gap,
        "tol": TOL,
        "train": dict([quality]),
        "iterations": result.iterations,
        "idealized_time": result.idealized_time,
        "wall_time": result.wall_time,
        "setup_time": result.setup_time,
        **{name: last[name] for name in ("n_prox", "n_comm")},
        "gain_over_paper": result.parameters.gain,
        "model": str(folder / "model.npz"),
        "trace": str(folder / "trace.csv"),
        "picture": picture,
    }


def _picture(result: "Result", folder: Path) -> str | None:
    """Draw the run; the file, or None where matplotlib is missing."""
    if not pictures.have_matplotlib():
        return None
    from adfs.plots.convergence import draw_convergence

    ax = pictures.new_axes(8.0, 5.0)
    draw_convergence(result.trace, ax, rho=result.parameters.rho, tol=TOL)
    ax.set_title("ADFS on breast cancer data, 3x3 grid", loc="left", fontweight="bold")
    path = folder / "convergence.png"
    pictures.save(ax.figure, str(path), "png")
    return str(path)

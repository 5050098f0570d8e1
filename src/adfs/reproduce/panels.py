"""A panel of Figures 3 and 4: the paper's setting, every contender on it, and time to accuracy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from adfs.bench.comparison import Comparison
from adfs.bench.contenders import PATIENCE
from adfs.graphs.topology import Topology
from adfs.plots.comparison import draw_comparison
from adfs.problems.finite_sum import Problem
from adfs.problems.partition import partition
from adfs.reproduce.order import Order
from adfs.reproduce.report import Claim, Picture, Report, Table
from adfs.reproduce.samples import Pool
from adfs.reproduce.times import JUDGED, Times
from adfs.reproduce.words import Cell

TOL = 1e-8
ACCURACIES = (1e-2, 1e-4, 1e-6, 1e-8)
ADFS = "adfs"  # tuned
YARDSTICKS = ("newton", "lbfgs")


@dataclass(frozen=True)
class Panel:
    """What is run; sizes are the paper's unless the reproduction is quick."""

    name: str
    title: str
    pool: Callable[[], Pool]
    side: int
    tau: float
    contenders: tuple[str, ...]
    m: int = 10_000
    sigma: float = 1.0

    def at_size(self, quick: bool) -> tuple[int, int]:
        """Side of the grid and samples a node."""
        return (min(self.side, 4), 150) if quick else (self.side, self.m)


def run_panel(panel: Panel, order: Order) -> tuple[Comparison, list[str]]:
    """The comparison, and sentences that tell its setting."""
    side, m = panel.at_size(order.quick)
    pool = panel.pool()
    topology = Topology.grid(side, side)
    shards = partition(pool.X, pool.y, topology.n_nodes, how="draw", m=m, seed=0)
    problem = Problem(shards, "logistic", panel.sigma, topology)
    found = order.compare(
        problem, panel.contenders, "quick" if order.quick else "full", tol=TOL, tau=panel.tau
    )  # fmt: skip
    return found, _setting(panel, problem, pool, m)


def _setting(panel: Panel, problem: Problem, pool: Pool, m: int) -> list[str]:
    conditioning = problem.conditioning
    return [
        f"Logistic regression on {pool.words}: {m:,} drawn for each of {problem.n_nodes} nodes "
        f"(overlap allowed), sigma = {panel.sigma:g}, {problem.topology.name}, "
        f"tau = {panel.tau:g}, non-blocking clock.",
        f"kappa_s = {conditioning.kappa_s:.4g}, kappa_b = {conditioning.kappa_b():.4g}, "
        f"gamma = {problem.topology.spectrum.gamma:.3g}, diameter {problem.topology.diameter}.",
        "Error: mean over nodes of F(theta_i) - F*, relative to F*; ADFS is read at y, time is "
        "that of the last node (Appendix E); one seed. A contender without a rule has the best "
        f"parameters that theory allows; runs end at {TOL:g}, or at {PATIENCE:g} times the clock "
        f"that ADFS, tuned, needs for {TOL:g}.",
    ]


def make_report(panel: Panel, order: Order, claims: Callable[[Times], list[Claim]]) -> Report:
    """Run a panel and judge it."""
    found, setting = run_panel(panel, order)
    times = Times(found)
    return Report(
        panel.name, panel.title, setting, claims(times), [table_of(found)], remarks_on(times),
        [_picture(panel, found)] if found.records else [], order.quick, order.interrupted,
    )  # fmt: skip


def table_of(comparison: Comparison) -> Table:
    """Time to each accuracy, and at 1e-6 the multiple of ADFS's."""
    times = Times(comparison)
    rows: list[tuple[Cell, ...]] = []
    for label in comparison.labels:
        cells = [cell_of(comparison, label, accuracy) for accuracy in ACCURACIES]
        multiple = times.multiple(label, ADFS)
        rows.append((label, *cells, multiple.value if multiple.exact else None))
    headers = ("algorithm", *(f"{accuracy:.0e}" for accuracy in ACCURACIES), f"x {ADFS}")
    title = f"Idealized time to an accuracy; the last column is at {JUDGED:g}."
    return Table("times", title, headers, rows)


def cell_of(comparison: Comparison, label: str, accuracy: float) -> Cell:
    """A time, or why there is none."""
    if comparison.refusal(accuracy) is not None:
        return "n/a"
    found = comparison.time_to(label, accuracy)
    if found is not None:
        return found
    statuses = {record.status for record in comparison.runs(label)}
    if statuses == {"diverged"}:
        return "diverged"
    return f"> {PATIENCE:g}x" if statuses == {"time_limit"} else None


def remarks_on(times: Times) -> list[str]:
    """What the yardsticks and our own choice of parameters say about the picture."""
    known = [name for name in YARDSTICKS if times.multiple(name, ADFS).value is not None]
    remarks = [
        f"{name} over an all-reduce takes {times.multiple(name, ADFS)} as long as ADFS, both at "
        "their best parameters."
        for name in known
    ]
    for label in times.comparison.labels:
        multiple = times.multiple(label, ADFS)
        if label.startswith(f"{ADFS}:") and multiple.value is not None:
            remarks.append(f"With the paper's parameters ({label}) ADFS takes {multiple} as long.")
    return remarks


def _picture(panel: Panel, comparison: Comparison) -> Picture:
    def draw(figure: Any) -> None:
        axes = draw_comparison(comparison, figure.add_subplot())
        axes.set_title(f"{panel.name}: {panel.title}", loc="left", fontsize=10)

    return Picture(panel.name, (9.0, 5.0), draw)


def others(labels: Sequence[str], *families: str) -> list[str]:
    """Labels that belong to none of the families (``adfs`` and ``adfs:paper`` are one)."""
    return [each for each in labels if each.partition(":")[0] not in families]

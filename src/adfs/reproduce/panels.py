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
from adfs.reproduce.report import Picture, Report, Table
from adfs.reproduce.samples import Pool
from adfs.reproduce.words import Cell

TOL = 1e-8
ACCURACIES = (1e-2, 1e-4, 1e-6, 1e-8)
JUDGED = 1e-6
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


class Times:
    """Idealized times to an accuracy, where one that did not arrive took longer than the limit."""

    def __init__(self, comparison: Comparison, accuracy: float = JUDGED) -> None:
        self.comparison, self.accuracy = comparison, accuracy

    def of(self, label: str) -> float:
        """Time of a label, or infinity."""
        if label not in self.comparison.labels:
            return float("inf")
        found = self.comparison.time_to(label, self.accuracy)
        return float("inf") if found is None else found

    def ratio(self, label: str, reference: str) -> float:
        """How many times longer ``label`` takes than ``reference``."""
        return self.of(label) / self.of(reference)

    def words(self, label: str, reference: str) -> str:
        """``msda 3.1 times``, or that it did not arrive."""
        ratio = self.ratio(label, reference)
        if ratio == float("inf"):
            least = (self.comparison.clock_limit or 0.0) / self.of(reference)
            return f"{label} more than {least:.2g} times"
        return f"{label} {ratio:.2g} times"


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
        f"kappa_s = {conditioning.kappa_s:.4g}, kappa_b = {conditioning.kappa_b:.4g}, "
        f"gamma = {problem.topology.spectrum.gamma:.3g}, diameter {problem.topology.diameter}.",
        "Error: mean over nodes of F(theta_i) - F*, relative to F*; ADFS is read at y, time is "
        "that of the last node (Appendix E). A contender without a rule has the best parameters "
        f"that theory allows; runs end at {TOL:g} or at {PATIENCE:g} times the clock of ADFS.",
    ]


def make_report(
    panel: Panel, order: Order, claims: Callable[[Times], list[Any]], reference: str
) -> Report:
    """Run a panel and judge it; ``reference`` is the ADFS whose times others are compared with."""
    found, setting = run_panel(panel, order)
    times = Times(found)
    return Report(
        panel.name, panel.title, setting, claims(times), [table_of(found, reference)],
        remarks_on(times, reference), [_picture(panel, found)], order.quick, found.interrupted,
    )  # fmt: skip


def table_of(comparison: Comparison, reference: str) -> Table:
    """Time to each accuracy, and at 1e-6 the multiple of the reference's."""
    times = Times(comparison)
    rows: list[tuple[Cell, ...]] = []
    for label in comparison.labels:
        cells = [_cell(comparison, label, accuracy) for accuracy in ACCURACIES]
        ratio = times.ratio(label, reference)
        shown: Cell = None if ratio in (float("inf"),) or ratio != ratio else ratio
        rows.append((label, *cells, shown))
    headers = ("algorithm", *(f"{accuracy:.0e}" for accuracy in ACCURACIES), f"x {reference}")
    title = f"Idealized time to an accuracy; the last column is at {JUDGED:g}."
    return Table("times", title, headers, rows)


def _cell(comparison: Comparison, label: str, accuracy: float) -> Cell:
    if comparison.refusal(accuracy) is not None:
        return "n/a"
    found = comparison.time_to(label, accuracy)
    if found is not None:
        return found
    statuses = {record.status for record in comparison.runs(label)}
    return "diverged" if statuses == {"diverged"} else f"> {PATIENCE:g}x"


def remarks_on(times: Times, reference: str) -> list[str]:
    """What the yardsticks and our own choice of parameters say about the picture."""
    remarks = []
    for name in YARDSTICKS:
        if name in times.comparison.labels:
            ratio = times.ratio(name, reference)
            verdict = "sooner than" if ratio < 1.0 else "later than"
            remarks.append(f"{name} over an all-reduce arrives {verdict} {reference}: "
                           f"{times.words(name, reference)} its time.")  # fmt: skip
    if "adfs" in times.comparison.labels and reference != "adfs":
        remarks.append(
            f"ADFS with tuned parameters takes {times.ratio('adfs', reference):.2g} times as long "
            f"as with the paper's ({reference})."
        )
    return remarks


def _picture(panel: Panel, comparison: Comparison) -> Picture:
    def draw(figure: Any) -> None:
        axes = draw_comparison(comparison, figure.add_subplot())
        axes.set_title(f"{panel.name}: {panel.title}", loc="left", fontsize=10)

    return Picture(panel.name, (9.0, 5.0), draw)


def others(contenders: Sequence[str], *families: str) -> list[str]:
    """Contenders that belong to none of the families (``adfs`` and ``adfs:paper`` are one)."""
    return [each for each in contenders if each.partition(":")[0] not in families]

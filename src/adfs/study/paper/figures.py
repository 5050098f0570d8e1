"""Figures 3 and 4: time to accuracy on logistic regression, small and large grids, two data sets.

Figure 3 has decentralized methods. Figure 4 has ADFS beside Katyusha with mini-batches and an
all-reduce, at small and large delays.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from adfs.data.partition import partition
from adfs.graphs.topology import Topology
from adfs.problem.finite_sum import Problem
from adfs.study.comparison import ACCURACIES, Comparison
from adfs.study.contenders import CLOCK_LIMIT_FACTOR
from adfs.study.numbers import listing
from adfs.study.paper.bounded_times import JUDGED, AtLeast, Times, every
from adfs.study.paper.paper_report import (
    Claim,
    Picture,
    Report,
    ResultTable,
    Rows,
    TableCell,
    verdict,
)
from adfs.study.paper.samples import Pool, covtype, higgs
from adfs.study.paper.study_context import StudyContext
from adfs.study.plots.comparison_plot import draw_comparison

TOL = 1e-8
ADFS, PAPER = "adfs", "adfs:paper"  # tuned, and what the paper ran
BALANCED = "adfs:balanced"  # at tau = 50 the paper takes tau p_comm = p_comp
BATCH = "katyusha:theory"  # the paper's batch, 1 + diameter tau samples per node
SECOND_ORDER = ("newton", "lbfgs")  # not in the paper
DECENTRALIZED = (
    ADFS, PAPER, "point-saga", "msda", "msda:theory", "ssda", "esdacd", "dsba", "dsba:paper",
    *SECOND_ORDER,
)  # fmt: skip
WITH_KATYUSHA = (BATCH, "katyusha", "l-katyusha", "msda", *SECOND_ORDER)
SIMILAR, LARGE_MARGIN, SIGNIFICANT = 2.0, 2.0, 1.5
ORDER = "to 1e-6, or else to the strictest accuracy in the table that one of the two reached"


@dataclass(frozen=True)
class Panel:
    """What is run, and what is claimed; sizes are the paper's unless the study is quick."""

    name: str
    title: str
    pool: Callable[[], Pool]
    side: int
    tau: float
    contenders: tuple[str, ...]
    claims: tuple[Callable[[Times], Claim], ...]
    m: int = 10_000
    sigma: float = 1.0


def run_panel(panel: Panel, context: StudyContext) -> tuple[Comparison, list[str]]:
    """The comparison, and sentences that describe its setting."""
    side, m = (min(panel.side, 4), 150) if context.quick else (panel.side, panel.m)
    pool, topology = panel.pool(), Topology.grid(side, side)
    shards = partition(pool.X, pool.y, topology.n_nodes, how="draw", m=m, seed=0)
    problem = Problem(shards, "logistic", panel.sigma, topology)
    label = "quick" if context.quick else "full"
    found = context.compare(problem, panel.contenders, label, tol=TOL, tau=panel.tau)
    conditioning = problem.conditioning
    return found, [
        f"Logistic regression on {pool.source}: {m:,} drawn for each of {problem.n_nodes} nodes "
        f"(overlap allowed), sigma = {panel.sigma:g}, {topology.name}, tau = {panel.tau:g}, "
        "non-blocking clock.",
        f"kappa_s = {conditioning.kappa_s:.4g}, kappa_b = {conditioning.kappa_b():.4g}, "
        f"gamma = {topology.spectrum.gamma:.3g}, diameter {topology.diameter}.",
        "Error: mean over nodes of F(theta_i) - F*, relative to F*; ADFS is evaluated at y, time "
        "is that of the last node (Appendix E); one seed. A contender without a rule is tuned, "
        f"within its theorem if it has one; runs end at {TOL:g}, or at {CLOCK_LIMIT_FACTOR:g} "
        f"times the clock that ADFS, tuned, needs for {TOL:g}.",
    ]


def reproduce_panel(panel: Panel, context: StudyContext) -> Report:
    """Run a panel and judge it."""
    found, setting = run_panel(panel, context)
    times = Times(found)

    def draw(figure: Any) -> None:
        axes = draw_comparison(found, figure.add_subplot(), tol=TOL)
        axes.set_title(f"{panel.name}: {panel.title}", loc="left", fontsize=10)

    return Report(
        panel.name, panel.title, setting, [claim(times) for claim in panel.claims],
        [times_table(times)], remarks_on(times),
        [Picture(panel.name, (9.0, 5.0), draw)] if found.records else [],
        context.quick, context.interrupted,
    )  # fmt: skip


def times_table(times: Times) -> ResultTable:
    """Time to each accuracy, and at 1e-6 the multiple of ADFS's."""
    found = times.comparison
    rows: Rows = [
        (label, *(cell_of(found, label, accuracy) for accuracy in ACCURACIES),
         times.multiple(label, ADFS).known)
        for label in found.labels
    ]  # fmt: skip
    headers = ("algorithm", *(f"{accuracy:.0e}" for accuracy in ACCURACIES), f"x {ADFS}")
    title = f"Idealized time to an accuracy; the last column is at {JUDGED:g}."
    return ResultTable("times", title, headers, rows)


def cell_of(comparison: Comparison, label: str, accuracy: float) -> TableCell:
    """A time, or why there is none."""
    if label not in comparison.labels:
        return None
    if comparison.refusal(accuracy) is not None:
        return "n/a"
    found = comparison.time_to(label, accuracy)
    if found is not None:
        return found
    statuses = {record.status for record in comparison.runs(label)}
    if statuses == {"diverged"}:
        return "diverged"
    return f"> {CLOCK_LIMIT_FACTOR:g}x" if statuses == {"time_limit"} else None


def remarks_on(times: Times) -> list[str]:
    """How the second-order methods and the paper's parameters of ADFS compare."""
    texts = {name: f"{name} over an all-reduce takes {{}} as long as ADFS, tuned."
             for name in SECOND_ORDER}  # fmt: skip
    for label in times.comparison.labels:
        if label.startswith(f"{ADFS}:"):
            texts[label] = f"With the paper's parameters ({label}) ADFS takes {{}} as long."
    multiples = {label: times.multiple(label, ADFS) for label in texts}
    return [
        text.format(multiples[label])
        for label, text in texts.items()
        if multiples[label].value is not None
    ]


def others(labels: Sequence[str], *algorithms: str) -> list[str]:
    """Labels of none of the algorithms (``adfs`` and ``adfs:paper`` are one)."""
    return [each for each in labels if each.partition(":")[0] not in algorithms]


def against_adfs(times: Times, label: str) -> AtLeast:
    """A method's time over ADFS's: tuned against tuned, the text's parameters against its own."""
    return times.multiple(label, PAPER if ":" in label else ADFS)


def _rivals(times: Times) -> list[str]:
    return others(times.comparison.labels, ADFS, "point-saga", *SECOND_ORDER)


def _similar_to_point_saga(times: Times) -> Claim:
    cases = [times.multiple("point-saga", each) for each in (PAPER, ADFS)]
    return Claim(
        "on a small network (n = 4) ADFS and Point-SAGA have similar rates.",
        f"at n = {times.n_nodes} Point-SAGA takes {cases[0]} as long to 1e-6 as ADFS with the "
        f"paper's parameters, {cases[1]} as long as with tuned ones (similar: within a factor "
        f"{SIMILAR:g}).",
        verdict(each.within(SIMILAR) for each in cases),
    )


def _far_ahead(times: Times) -> Claim:
    multiples = {label: against_adfs(times, label) for label in _rivals(times)}
    listed = listing([f"{label} {each}" for label, each in multiples.items()]) or "nothing"
    return Claim(
        "at n = 100 ADFS outperforms every other decentralized method by a large margin.",
        f"at n = {times.n_nodes} they take, as multiples of ADFS's time to 1e-6: "
        f"{listed} (large: at least {LARGE_MARGIN:g} times; those with a rule "
        f"named are compared with {PAPER}, the others with tuned ADFS).",
        verdict(each.at_least(LARGE_MARGIN) for each in multiples.values()),
    )


def _before_and_after(times: Times, label: str, rivals: list[str]) -> str:
    """Which methods arrived before and after one: to 1e-6, or where `Times.later` decides it."""
    found = {rival: times.later(label, rival) for rival in rivals}
    texts = {True: "{} arrived before it", False: "{} arrived after it", None: "{}: not known"}
    parts = [
        text.format(listing([rival for rival in rivals if found[rival] is case]))
        for case, text in texts.items()
        if case in found.values()
    ]
    return "; ".join(parts) or "no other ran"


def _slowest(times: Times) -> Claim:
    rivals = _rivals(times)
    return Claim(
        "at n = 100 Point-SAGA is the slowest, with 100 times less computing power.",
        f"at n = {times.n_nodes} it takes {against_adfs(times, 'point-saga')} as long as ADFS; "
        f"{_before_and_after(times, 'point-saga', rivals)} ({ORDER}).",
        verdict([every(times.later("point-saga", label) for label in rivals)]),
    )


def _msda_does_well(times: Times) -> Claim:
    rivals = [*others(_rivals(times), "msda", "ssda"), "point-saga"]
    return Claim(
        "on Covtype MSDA performs quite well thanks to its network scaling.",
        f"MSDA takes {against_adfs(times, 'msda')} as long as ADFS; of the others that are not "
        f"ADFS {_before_and_after(times, 'msda', rivals)} ({ORDER}; quite well: before these).",
        verdict(times.later(label, "msda") for label in rivals),
    )


def _katyusha_over(times: Times, adfs: str) -> str:
    """Katyusha over ADFS, first with the paper's parameters, then both tuned."""
    return (
        f"at n = {times.n_nodes} Katyusha takes {times.multiple(BATCH, adfs)} as long to 1e-6 as "
        f"ADFS where both have the paper's parameters, {times.multiple('katyusha', ADFS)} as long "
        "where both are tuned"
    )


def _comparable(times: Times) -> Claim:
    cases = (times.multiple(BATCH, PAPER), times.multiple("katyusha", ADFS))
    return Claim(
        "Katyusha and ADFS have comparable rates when tau = 5.",
        f"{_katyusha_over(times, PAPER)} (comparable: within a factor {SIMILAR:g}).",
        verdict(each.within(SIMILAR) for each in cases),
    )


def _slower_than_katyusha(times: Times) -> Claim:
    return Claim(
        "on Higgs ADFS is slower than Katyusha when tau = 5.",
        f"{_katyusha_over(times, PAPER)}.",
        verdict([times.later(PAPER, BATCH), times.later(ADFS, "katyusha")]),
    )


def _faster_than_katyusha(times: Times) -> Claim:
    return Claim(
        "on Higgs ADFS outperforms Katyusha when delays are big (tau = 50).",
        f"{_katyusha_over(times, BALANCED)}.",
        verdict([times.later(BATCH, BALANCED), times.later("katyusha", ADFS)]),
    )


def _katyusha_before_msda(times: Times) -> Claim:
    cases = [times.multiple("msda", each) for each in (BATCH, "katyusha")]
    return Claim(
        "at tau = 50 Katyusha is still significantly faster than MSDA.",
        f"MSDA takes {cases[0]} as long as Katyusha with the paper's batch, {cases[1]} as long as "
        f"tuned Katyusha (significantly: at least {SIGNIFICANT:g} times).",
        verdict(each.at_least(SIGNIFICANT) for each in cases),
    )


PANELS = {
    panel.name: panel
    for panel in (
        Panel("figure-3a", "Higgs, n = 4, tau = 5", higgs, 2, 5.0, DECENTRALIZED,
              (_similar_to_point_saga,)),
        Panel("figure-3b", "Higgs, n = 100, tau = 5", higgs, 10, 5.0, DECENTRALIZED,
              (_far_ahead, _slowest)),
        Panel("figure-3c", "Covtype, n = 100, tau = 5", covtype, 10, 5.0, DECENTRALIZED,
              (_far_ahead, _slowest, _msda_does_well)),
        Panel("figure-4a", "Higgs, n = 100, tau = 5", higgs, 10, 5.0,
              (ADFS, PAPER, *WITH_KATYUSHA), (_comparable, _slower_than_katyusha)),
        Panel("figure-4b", "Covtype, n = 100, tau = 5", covtype, 10, 5.0,
              (ADFS, PAPER, *WITH_KATYUSHA), (_comparable,)),
        Panel("figure-4c", "Higgs, n = 100, tau = 50", higgs, 10, 50.0,
              (ADFS, BALANCED, *WITH_KATYUSHA), (_faster_than_katyusha, _katyusha_before_msda)),
    )
}  # fmt: skip
figure_3a, figure_3b, figure_3c, figure_4a, figure_4b, figure_4c = (
    functools.partial(reproduce_panel, panel) for panel in PANELS.values()
)

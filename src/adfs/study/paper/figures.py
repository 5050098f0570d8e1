"""Figures 3 and 4: time to accuracy on logistic regression, small and large grids, two data sets.

Figure 3 has decentralized methods. Figure 4 has ADFS beside Katyusha with mini-batches and an
all-reduce, at small and large delays. A second table and picture of each have the methods of
`adfs_methods`, which the paper's claims do not name.
"""

from collections.abc import Callable, Sequence

from adfs.algorithms.base import BY_NAME
from adfs.graphs.topology import Topology
from adfs.study.comparison import ACCURACIES
from adfs.study.contenders import CLOCK_LIMIT_FACTOR
from adfs.study.numbers import listing
from adfs.study.paper import FIGURE_3, FIGURE_4, StudyCase
from adfs.study.paper.claims import JUDGED, UNKNOWN, AtLeast, Claim, Times, judge
from adfs.study.paper.study_context import Picture, Pool, Report, ResultTable, Rows, StudyContext
from adfs.study.plots.comparison_plot import draw_comparison
from adfs.study.plots.style import Figure

TOL = 1e-8
ADFS, PAPER = "adfs", "adfs:paper"  # tuned, and what the paper ran
BALANCED = "adfs:balanced"
BATCH = "katyusha:theory"  # the paper's batch, 1 + diameter tau samples per node
SECOND_ORDER = ("newton", "lbfgs")  # not in the paper
DECENTRALIZED = (
    ADFS, PAPER, "point-saga", "msda", "msda:theory", "ssda", "esdacd", "dsba", "dsba:paper",
    *SECOND_ORDER,
)  # fmt: skip
WITH_KATYUSHA = (BATCH, "katyusha", "l-katyusha", "msda", *SECOND_ORDER)
SIMILAR, LARGE_MARGIN, SIGNIFICANT = 2.0, 2.0, 1.5
CLAIMED = {
    "figure-3a": ("similar",),
    "figure-3b": ("far ahead", "slowest"),
    "figure-3c": ("far ahead", "slowest", "MSDA"),
    "figure-4a": ("comparable", "slower"),
    "figure-4b": ("comparable",),
    "figure-4c": ("faster", "MSDA"),
}
ORDER = "to 1e-6, or else to the strictest accuracy in the table that one of the two reached"


def run_panel(
    case: StudyCase, contenders: Sequence[str], pool: Pool, context: StudyContext, more: str = ""
) -> tuple[Times, list[str]]:
    """The times, and sentences that describe their setting; ``more`` names further runs."""
    graph, m = case.graph, case.m
    if context.quick:
        graph, m = graph.replace("10x10", "4x4"), 150
    topology = Topology.parse(graph)
    problem = pool.problem(topology, m, case.sigma)
    label = ("quick" if context.quick else "full") + more
    found = context.compare(problem, contenders, label, tol=TOL, tau=case.tau)
    conditioning = problem.conditioning
    return Times(found), [
        f"Logistic regression on {pool.source}: {m:,} drawn for each of {problem.n_nodes} nodes "
        f"(overlap allowed), sigma = {case.sigma:g}, {topology.name}, tau = {case.tau:g}, "
        "non-blocking clock.",
        f"kappa_s = {conditioning.kappa_s:.4g}, kappa_b = {conditioning.kappa_b():.4g}, "
        f"gamma = {topology.spectrum.gamma:.3g}, diameter {topology.diameter}.",
        "Error: mean over nodes of F(theta_i) - F*, relative to F*; ADFS is evaluated at y, time "
        "is that of the last node (Appendix E); one seed. A contender without a rule is tuned, "
        f"within its theorem if it has one; runs end at {TOL:g}, or at {CLOCK_LIMIT_FACTOR:g} "
        f"times the clock that ADFS, tuned, needs for {TOL:g}.",
    ]


def reproduce(context: StudyContext) -> Report:
    """Run the panel that has the study's name, and judge it."""
    name, case = context.name, (FIGURE_3 | FIGURE_4)[context.name]
    contenders: tuple[str, ...] = DECENTRALIZED
    if name in FIGURE_4:
        # With large delays the paper takes tau p_comm = p_comp.
        contenders = (ADFS, BALANCED if case.tau > 5.0 else PAPER, *WITH_KATYUSHA)
    pool = Pool.load(case.data)
    times, setting = run_panel(case, contenders, pool, context)
    added, _ = run_panel(case, (ADFS, *sorted(BY_NAME)), pool, context, "-added")

    def drawn(found: Times, title: str) -> Callable[[Figure], None]:
        def draw(figure: Figure) -> None:
            axes = draw_comparison(found.comparison, figure.add_subplot(), tol=TOL)
            axes.set_title(title, loc="left", fontsize=10)

        return draw

    found = figure_3_claims(times) if name in FIGURE_3 else figure_4_claims(times)
    claims = [found[each] for each in CLAIMED[name]]
    title = f"{name}: {case.name}"
    panels = (
        Picture(name, (9.0, 5.0), drawn(times, title)),
        Picture(f"{name}-added", (9.0, 5.0), drawn(added, f"{title}, added methods")),
    )
    tables = [times_table(times), times_table(added, "added")]
    return Report(
        name, case.name, setting, claims, tables, [*remarks_on(times), *remarks_on_added(added)],
        list(panels) if times.labels else [], context.quick, context.interrupted,
    )  # fmt: skip


def times_table(times: Times, name: str = "times") -> ResultTable:
    rows: Rows = []
    for label in times.labels:
        cells = [times.cell(label, accuracy) for accuracy in ACCURACIES]
        rows.append((label, *cells, times.multiple(label, ADFS).known))
    headers = ("algorithm", *(f"{accuracy:.0e}" for accuracy in ACCURACIES), f"x {ADFS}")
    which = "" if name == "times" else ", methods that the paper does not run"
    title = f"Idealized time to an accuracy{which}; the last column is at {JUDGED:g}."
    return ResultTable(name, title, headers, rows)


def remarks_on_added(times: Times) -> list[str]:
    """Which of the added methods are ahead of ADFS, and by how much."""
    found = {label: times.multiple(label, ADFS) for label in times.labels if label != ADFS}
    ahead = sorted((each.value, label) for label, each in found.items() if each.at_most(1.0))
    names = listing([f"{label} ({value:.2g} of its time)" for value, label in ahead])
    who = f"ahead of ADFS, tuned, at {JUDGED:g}: {names}" if ahead else "none is ahead of ADFS"
    return [f"Of the added methods, {who}."] if found else []


def remarks_on(times: Times) -> list[str]:
    """How the second-order methods and the paper's parameters of ADFS compare."""
    texts = {
        name: f"{name} over an all-reduce takes {{}} as long as ADFS, tuned."
        for name in SECOND_ORDER
    }
    for label in times.labels:
        if label.startswith(f"{ADFS}:"):
            texts[label] = f"With the paper's parameters ({label}) ADFS takes {{}} as long."
    found = [(text, times.multiple(label, ADFS)) for label, text in texts.items()]
    return [text.format(multiple) for text, multiple in found if multiple != UNKNOWN]


def against_adfs(times: Times, label: str) -> AtLeast:
    """A method's time over ADFS's: tuned against tuned, the text's parameters against its own."""
    return times.multiple(label, PAPER if ":" in label else ADFS)


def _before_and_after(times: Times, label: str, rivals: list[str]) -> str:
    """Which methods arrived before and after one: to 1e-6, or where `Times.later` decides it."""
    found = {rival: times.later(label, rival) for rival in rivals}
    texts = {True: "{} arrived before it", False: "{} arrived after it", None: "{}: not known"}
    parts = [
        text.format(listing([rival for rival in rivals if found[rival] is case]))
        for case, text in texts.items()
        if case in found.values()
    ]
    return "; ".join(parts)


def figure_3_claims(times: Times) -> dict[str, Claim]:
    """ADFS beside decentralized methods, tuned or with the parameters of their texts."""
    similar = [times.multiple("point-saga", each) for each in (PAPER, ADFS)]
    methods = {label: label.partition(":")[0] for label in times.labels}
    rivals = [each for each in methods if methods[each] not in (ADFS, "point-saga", *SECOND_ORDER)]
    multiples = {label: against_adfs(times, label) for label in rivals}
    listed = listing([f"{label} {each}" for label, each in multiples.items()])
    slowest = [times.later("point-saga", label) for label in rivals]
    others = [*(each for each in rivals if methods[each] not in ("msda", "ssda")), "point-saga"]
    return {
        "similar": judge(
            "on a small network (n = 4) ADFS and Point-SAGA have similar rates.",
            f"at n = {times.n_nodes} Point-SAGA takes {similar[0]} as long to 1e-6 as ADFS with "
            f"the paper's parameters, {similar[1]} as long as with tuned ones (similar: within a "
            f"factor {SIMILAR:g}).",
            [each.within(SIMILAR) for each in similar],
        ),
        "far ahead": judge(
            "at n = 100 ADFS outperforms every other decentralized method by a large margin.",
            f"at n = {times.n_nodes} they take, as multiples of ADFS's time to 1e-6: "
            f"{listed} (large: at least {LARGE_MARGIN:g} times; those with a rule "
            f"named are compared with {PAPER}, the others with tuned ADFS).",
            [each.at_least(LARGE_MARGIN) for each in multiples.values()],
        ),
        "slowest": judge(
            "at n = 100 Point-SAGA is the slowest, with 100 times less computing power.",
            f"at n = {times.n_nodes} it takes {against_adfs(times, 'point-saga')} as long as ADFS; "
            f"{_before_and_after(times, 'point-saga', rivals)} ({ORDER}).",
            [False] if False in slowest else slowest,
        ),
        "MSDA": judge(
            "on Covtype MSDA performs quite well thanks to its network scaling.",
            f"MSDA takes {against_adfs(times, 'msda')} as long as ADFS; of the others that are not "
            f"ADFS {_before_and_after(times, 'msda', others)} ({ORDER}; quite well: before these).",
            [times.later(label, "msda") for label in others],
        ),
    }


def figure_4_claims(times: Times) -> dict[str, Claim]:
    """Katyusha beside ADFS, first with the paper's parameters, then both tuned; and MSDA."""
    pairs = ((BATCH, BALANCED if BALANCED in times.labels else PAPER), ("katyusha", ADFS))
    multiples = [times.multiple(*pair) for pair in pairs]
    measured = (
        f"at n = {times.n_nodes} Katyusha takes {multiples[0]} as long to 1e-6 as ADFS where both "
        f"have the paper's parameters, {multiples[1]} as long where both are tuned"
    )
    msda = [times.multiple("msda", each) for each in (BATCH, "katyusha")]
    return {
        "comparable": judge(
            "Katyusha and ADFS have comparable rates when tau = 5.",
            f"{measured} (comparable: within a factor {SIMILAR:g}).",
            [each.within(SIMILAR) for each in multiples],
        ),
        "slower": judge(
            "on Higgs ADFS is slower than Katyusha when tau = 5.",
            f"{measured}.",
            [times.later(adfs, katyusha) for katyusha, adfs in pairs],
        ),
        "faster": judge(
            "on Higgs ADFS outperforms Katyusha when delays are big (tau = 50).",
            f"{measured}.",
            [times.later(katyusha, adfs) for katyusha, adfs in pairs],
        ),
        "MSDA": judge(
            "at tau = 50 Katyusha is still significantly faster than MSDA.",
            f"MSDA takes {msda[0]} as long as Katyusha with the paper's batch, {msda[1]} as long "
            f"as tuned Katyusha (significantly: at least {SIGNIFICANT:g} times).",
            [each.at_least(SIGNIFICANT) for each in msda],
        ),
    }

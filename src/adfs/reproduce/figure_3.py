"""Figure 3: decentralized methods on logistic regression, small and large grids, two data sets."""

import math

from adfs.reproduce.order import Order
from adfs.reproduce.panels import YARDSTICKS, Panel, Times, make_report, others
from adfs.reproduce.report import Claim, Report, verdict
from adfs.reproduce.samples import covtype, higgs
from adfs.reproduce.words import listing

REFERENCE = "adfs:paper"  # what the paper ran
CONTENDERS = (
    "adfs", REFERENCE, "point-saga", "msda", "msda:theory", "ssda", "esdacd", "dsba", "dsba:paper",
    *YARDSTICKS,
)  # fmt: skip
SIMILAR = 2.0
LARGE_MARGIN = 2.0

SMALL = Panel("figure-3a", "Higgs, n = 4, tau = 5", higgs, 2, 5.0, CONTENDERS)
LARGE = Panel("figure-3b", "Higgs, n = 100, tau = 5", higgs, 10, 5.0, CONTENDERS)
COVTYPE = Panel("figure-3c", "Covtype, n = 100, tau = 5", covtype, 10, 5.0, CONTENDERS)


def figure_3a(order: Order) -> Report:
    """Higgs on four nodes: ADFS is comparable with Point-SAGA."""
    return make_report(SMALL, order, lambda times: [_similar_to_point_saga(times)], REFERENCE)


def figure_3b(order: Order) -> Report:
    """Higgs on a hundred nodes: ADFS is far ahead, Point-SAGA last."""
    return make_report(LARGE, order, _claims_at_a_hundred, REFERENCE)


def figure_3c(order: Order) -> Report:
    """Covtype on a hundred nodes: ADFS is far ahead, MSDA does well."""
    return make_report(
        COVTYPE, order, lambda times: [*_claims_at_a_hundred(times), _msda_does_well(times)],
        REFERENCE,
    )  # fmt: skip


def _similar_to_point_saga(times: Times) -> Claim:
    ratio = times.ratio("point-saga", REFERENCE)
    return Claim(
        "on a small network (n = 4) ADFS and Point-SAGA have similar rates.",
        f"to 1e-6 Point-SAGA takes {ratio:.2g} times as long as ADFS (similar: within a factor "
        f"{SIMILAR:g}).",
        verdict([1 / SIMILAR <= ratio <= SIMILAR]),
    )


def _claims_at_a_hundred(times: Times) -> list[Claim]:
    rivals = others(times.comparison.labels, "adfs", "point-saga", *YARDSTICKS)
    ahead = Claim(
        "at n = 100 ADFS outperforms every other decentralized method by a large margin.",
        f"as many times as long as ADFS to 1e-6: "
        f"{listing([times.words(label, REFERENCE) for label in rivals])} (large: at least "
        f"{LARGE_MARGIN:g} times).",
        verdict(times.ratio(label, REFERENCE) >= LARGE_MARGIN for label in rivals),
    )
    slowest = Claim(
        "at n = 100 Point-SAGA is the slowest, with 100 times less computing power.",
        f"it takes {times.words('point-saga', REFERENCE).removeprefix('point-saga ')} as long as "
        f"ADFS; {_slower_than_point_saga(times, rivals)}.",
        verdict(times.of("point-saga") >= times.of(label) for label in rivals),
    )
    return [ahead, slowest]


def _slower_than_point_saga(times: Times, rivals: list[str]) -> str:
    slower = [label for label in rivals if times.of(label) > times.of("point-saga")]
    if slower:
        return f"{listing(slower)} took longer"
    if math.isinf(times.of("point-saga")):
        late = [label for label in rivals if math.isinf(times.of(label))]
        return f"{listing(late)} did not arrive either" if late else "all others arrived"
    return "none took longer"


def _msda_does_well(times: Times) -> Claim:
    rivals = others(times.comparison.labels, "adfs", "msda", "ssda", *YARDSTICKS)
    return Claim(
        "on Covtype MSDA performs quite well thanks to its network scaling.",
        f"MSDA takes {times.ratio('msda', REFERENCE):.2g} times as long as ADFS; the others: "
        f"{listing([times.words(label, REFERENCE) for label in rivals])}.",
        verdict(times.of("msda") <= times.of(label) for label in rivals),
    )

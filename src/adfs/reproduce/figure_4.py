"""Figure 4: ADFS beside Katyusha with mini-batches and an all-reduce, at small and large delays."""

from adfs.reproduce.order import Order
from adfs.reproduce.panels import YARDSTICKS, Panel, Times, make_report
from adfs.reproduce.report import Claim, Report, verdict
from adfs.reproduce.samples import covtype, higgs

COMPARABLE = 2.0
KATYUSHA = "katyusha:theory"  # the paper's batch, 1 + diameter tau a node
RIVALS = (KATYUSHA, "katyusha", "l-katyusha", "msda", *YARDSTICKS)
SHORT, LONG = "adfs:paper", "adfs:balanced"  # at tau = 50 the paper takes tau p_comm = p_comp

A = Panel("figure-4a", "Higgs, n = 100, tau = 5", higgs, 10, 5.0, ("adfs", SHORT, *RIVALS))
B = Panel("figure-4b", "Covtype, n = 100, tau = 5", covtype, 10, 5.0, ("adfs", SHORT, *RIVALS))
C = Panel("figure-4c", "Higgs, n = 100, tau = 50", higgs, 10, 50.0, ("adfs", LONG, *RIVALS))


def figure_4a(order: Order) -> Report:
    """Higgs at tau = 5: comparable, Katyusha ahead."""
    return make_report(A, order, lambda times: [_comparable(times), _ahead(times)], SHORT)


def figure_4b(order: Order) -> Report:
    """Covtype at tau = 5: comparable."""
    return make_report(B, order, lambda times: [_comparable(times)], SHORT)


def figure_4c(order: Order) -> Report:
    """Higgs at tau = 50: ADFS ahead."""
    return make_report(C, order, lambda times: [_behind(times), _before_msda(times)], LONG)


def _comparable(times: Times) -> Claim:
    ratio = times.ratio(KATYUSHA, SHORT)
    return Claim(
        "Katyusha and ADFS have comparable rates when tau = 5.",
        f"to 1e-6 {times.words(KATYUSHA, SHORT)} ADFS's time (comparable: within a factor "
        f"{COMPARABLE:g}); with its best batch {times.words('katyusha', SHORT)}.",
        verdict([1 / COMPARABLE <= ratio <= COMPARABLE]),
    )


def _ahead(times: Times) -> Claim:
    return Claim(
        "on Higgs ADFS is slower than Katyusha when tau = 5.",
        f"to 1e-6 {times.words(KATYUSHA, SHORT)} ADFS's time.",
        verdict([times.ratio(KATYUSHA, SHORT) < 1.0]),
    )


def _behind(times: Times) -> Claim:
    return Claim(
        "on Higgs ADFS outperforms Katyusha when delays are big (tau = 50).",
        f"to 1e-6 {times.words(KATYUSHA, LONG)} ADFS's time; with its best batch "
        f"{times.words('katyusha', LONG)}.",
        verdict([times.ratio(KATYUSHA, LONG) > 1.0]),
    )


def _before_msda(times: Times) -> Claim:
    ratio = times.of("msda") / times.of(KATYUSHA)
    return Claim(
        "at tau = 50 Katyusha is still significantly faster than MSDA.",
        f"MSDA takes {ratio:.2g} times as long as Katyusha (significantly: at least 1.5 times).",
        verdict([ratio >= 1.5]),
    )

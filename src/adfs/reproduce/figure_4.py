"""Figure 4: ADFS beside Katyusha with mini-batches and an all-reduce, at small and large delays."""

from adfs.reproduce.order import Order
from adfs.reproduce.panels import ADFS, YARDSTICKS, Panel, make_report
from adfs.reproduce.report import Claim, Report
from adfs.reproduce.samples import covtype, higgs
from adfs.reproduce.times import Times, decided

COMPARABLE, SIGNIFICANT = 2.0, 1.5
BATCH = "katyusha:theory"  # the paper's, 1 + diameter tau a node
RIVALS = (BATCH, "katyusha", "l-katyusha", "msda", *YARDSTICKS)
SHORT, LONG = "adfs:paper", "adfs:balanced"  # at tau = 50 the paper takes tau p_comm = p_comp

A = Panel("figure-4a", "Higgs, n = 100, tau = 5", higgs, 10, 5.0, (ADFS, SHORT, *RIVALS))
B = Panel("figure-4b", "Covtype, n = 100, tau = 5", covtype, 10, 5.0, (ADFS, SHORT, *RIVALS))
C = Panel("figure-4c", "Higgs, n = 100, tau = 50", higgs, 10, 50.0, (ADFS, LONG, *RIVALS))


def figure_4a(order: Order) -> Report:
    """Higgs at tau = 5: comparable, Katyusha ahead."""
    return make_report(A, order, lambda times: [_comparable(times), _ahead(times)])


def figure_4b(order: Order) -> Report:
    """Covtype at tau = 5: comparable."""
    return make_report(B, order, lambda times: [_comparable(times)])


def figure_4c(order: Order) -> Report:
    """Higgs at tau = 50: ADFS ahead."""
    return make_report(C, order, lambda times: [_behind(times), _before_msda(times)])


def _words(times: Times, adfs: str) -> str:
    """Katyusha over ADFS, first with the paper's parameters, then with the best of both."""
    return (
        f"at n = {times.n_nodes} Katyusha takes {times.multiple(BATCH, adfs)} as long to 1e-6 as "
        f"ADFS where both have the paper's parameters, {times.multiple('katyusha', ADFS)} as long "
        "where both have their best"
    )


def _comparable(times: Times) -> Claim:
    cases = (times.multiple(BATCH, SHORT), times.multiple("katyusha", ADFS))
    return Claim(
        "Katyusha and ADFS have comparable rates when tau = 5.",
        f"{_words(times, SHORT)} (comparable: within a factor {COMPARABLE:g}).",
        decided(each.within(COMPARABLE) for each in cases),
    )


def _ahead(times: Times) -> Claim:
    return Claim(
        "on Higgs ADFS is slower than Katyusha when tau = 5.",
        f"{_words(times, SHORT)}.",
        decided([times.later(SHORT, BATCH), times.later(ADFS, "katyusha")]),
    )


def _behind(times: Times) -> Claim:
    return Claim(
        "on Higgs ADFS outperforms Katyusha when delays are big (tau = 50).",
        f"{_words(times, LONG)}.",
        decided([times.later(BATCH, LONG), times.later("katyusha", ADFS)]),
    )


def _before_msda(times: Times) -> Claim:
    cases = [times.multiple("msda", each) for each in (BATCH, "katyusha")]
    return Claim(
        "at tau = 50 Katyusha is still significantly faster than MSDA.",
        f"MSDA takes {cases[0]} as long as Katyusha with the paper's batch, {cases[1]} as long as "
        f"with its best (significantly: at least {SIGNIFICANT:g} times).",
        decided(each.at_least(SIGNIFICANT) for each in cases),
    )

"""`table-1`: theory's times for a factor e of the error beside measured ones, for all methods.

Table 1 leaves constants out, so a method's measured time over theory's should be one number of
moderate size, whatever the graph, the delays, the samples and the conditioning.
"""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from adfs.plots.rates import draw_rates
from adfs.reproduce.factors import FULL, QUICK, TOL, Case, Entry, measure
from adfs.reproduce.order import Order
from adfs.reproduce.rates import TABLE_1
from adfs.reproduce.report import Claim, Picture, Report, Table, verdict
from adfs.reproduce.samples import Pool, higgs
from adfs.reproduce.words import Cell, listing, show

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEADY = 4.0  # ratios within this factor count as one constant
CLEAR = 3.0  # times further apart than this are a prediction of who is faster


def table_1(order: Order) -> Report:
    """Measure, then judge."""
    cases, seeds = (QUICK, 1) if order.quick else (FULL, 3)
    pool, entries = higgs(), []
    for case in cases:
        if not order.interrupted:
            entries += measure(case, pool, seeds, order)
    return Report(
        "table-1", "theory's times beside measured ones", _setting(cases, pool, seeds),
        [_constant_claim(entries), _order_claim(entries), _winner_claim(entries)],
        _tables(entries), _remarks(entries), _pictures(entries),
        order.quick, order.interrupted,
    )  # fmt: skip


def _setting(cases: tuple[Case, ...], pool: Pool, seeds: int) -> list[str]:
    words = "; ".join(
        f"{case.name}: {case.graph}, m = {case.m:,}, tau = {case.tau:g}, sigma = {case.sigma:g}"
        for case in cases
    )
    return [
        f"Data: {pool.words}.",
        f"Logistic regression on samples drawn from them, nonblocking clock; {words}.",
        "Every method with the best parameters that theory allows. Measured is the idealized time "
        "in which the mean over nodes of F(theta_i) - F* falls by a factor e, over the later half "
        f"of the decades down to {TOL:g}; "
        + ("one seed." if seeds == 1 else f"medians of {seeds} seeds."),
    ]


def _ratios(entries: list[Entry]) -> dict[str, list[float]]:
    """Measured over theory, in every setting, for the methods that Table 1 has."""
    found: dict[str, list[float]] = {}
    for entry in entries:
        if entry.ratio is not None:
            found.setdefault(entry.method, []).append(entry.ratio)
    return found


def _constant_claim(entries: list[Entry]) -> Claim:
    ratios = _ratios(entries)
    parts = [f"{name} {min(each):.2g} to {max(each):.2g}" for name, each in ratios.items()]
    return Claim(
        "Time to a factor e as in Table 1, constant factors omitted.",
        f"Measured over theory, range over the settings: {listing(parts) or 'not decided'}. "
        f"Counted as a constant: within a factor {STEADY:g}.",
        verdict(max(each) <= STEADY * min(each) for each in ratios.values()),
    )


def _pairs(entries: list[Entry]) -> Iterator[tuple[Entry, Entry, bool]]:
    """Two methods in one setting, the first clearly faster in theory, and whether it is."""
    for one, other in itertools.permutations(entries, 2):
        if one.case != other.case or one.theory is None or other.theory is None:
            continue
        faster = other.time.later_than(one.time)
        if CLEAR * one.theory < other.theory and faster is not None:
            yield one, other, faster


def _order_claim(entries: list[Entry]) -> Claim:
    pairs = list(_pairs(entries))
    wrong = [
        f"{slow.method} before {fast.method} ({fast.case.name})"
        for fast, slow, so in pairs
        if not so
    ]
    exceptions = f" Not so: {listing(wrong)}." if wrong else ""
    return Claim(
        "The methods' order follows from their times in Table 1.",
        f"{len(pairs)} pairs of methods are more than a factor {CLEAR:g} apart in theory; "
        f"{len(pairs) - len(wrong)} of them are in that order when measured.{exceptions}"
        if pairs
        else f"Not decided: no two methods more than a factor {CLEAR:g} apart were measured.",
        verdict(so for _, _, so in pairs),
    )


def _winner_claim(entries: list[Entry]) -> Claim:
    """Settings in which one of the two was broken off have no vote."""
    ours = {entry.case: entry for entry in entries if entry.method == "adfs"}
    cases, parts = [], []
    for rival in ("msda", "dsba"):
        pairs = [
            (ours[entry.case], entry, faster)
            for entry in entries
            if entry.method == rival and entry.case in ours
            if (faster := entry.time.later_than(ours[entry.case].time)) is not None
        ]
        cases += [faster for _, _, faster in pairs]
        parts += _rival_words(rival, [(mine, theirs) for mine, theirs, _ in pairs])
    return Claim(
        "ADFS outperforms MSDA and DSBA in most standard machine learning settings.",
        f"Over the settings {listing(parts)}."
        if parts
        else "Not decided: in no setting were ADFS and one of the two both measured.",
        verdict(cases),
    )


def _rival_words(rival: str, pairs: list[tuple[Entry, Entry]]) -> list[str]:
    """How long a rival takes, in multiples of ADFS's time; what has no number apart."""
    exact, least, lost = [], [], []
    for mine, theirs in pairs:
        if mine.measured is None:
            lost.append(mine.case.name)
        elif theirs.measured is not None:
            exact.append(theirs.measured / mine.measured)
        elif theirs.least is not None:
            least.append(theirs.least / mine.measured)
    words = []
    if exact:
        words.append(f"{rival} takes {min(exact):.2g} to {max(exact):.2g} times as long")
    if least:
        words.append(
            f"{rival} takes more than {min(least):.2g} times as long where it was too slow to be "
            f"measured ({len(least)} of {len(pairs)})"
        )
    if lost:
        words.append(f"ADFS was too slow to be measured and {rival} was not ({listing(lost)})")
    return words


def _remarks(entries: list[Entry]) -> list[str]:
    absent = [entry for entry in entries if entry.measured is None]
    slow = [f"{each.method} ({each.case.name})" for each in absent if each.least is not None]
    broken = [f"{each.method} ({each.case.name})" for each in absent if each.least is None]
    remarks = [
        "Methods without a row in Table 1 are measured only. Newton and L-BFGS are faster than "
        f"linear: theirs is the mean over the later decades.{_yardsticks(entries)}",
        "Theory bounds the slowest case; a method whose bound is loose has a ratio below one, and "
        "one whose bound is looser on some problems than on others has ratios that spread.",
    ]
    if slow:
        remarks.append(f"Too slow to be measured within the limit: {listing(slow)}.")
    if broken:
        remarks.append(f"Broken off, and left out of the verdicts: {listing(broken)}.")
    return remarks


def _yardsticks(entries: list[Entry]) -> str:
    """How the second-order methods compare, where they were measured."""
    ours = {entry.case: entry.measured for entry in entries if entry.method == "adfs"}
    parts = []
    for name in ("newton", "lbfgs"):
        factors = [
            ours[entry.case] / entry.measured  # type: ignore[operator]
            for entry in entries
            if entry.method == name and entry.measured and ours.get(entry.case)
        ]
        if factors:
            parts.append(f"{name} {min(factors):.2g} to {max(factors):.2g} times faster than ADFS")
    if not parts:
        return ""
    return (
        f" Here, with few features, {listing(parts)} (below 1: slower); Newton sends d x d numbers "
        "and needs d to be small."
    )


def _tables(entries: list[Entry]) -> list[Table]:
    cases = list(dict.fromkeys(entry.case for entry in entries))
    cells = {(entry.method, entry.case): entry for entry in entries}
    methods = list(dict.fromkeys(entry.method for entry in entries))
    title = "Idealized time for a factor e, measured; in brackets over theory's"
    rows: list[tuple[Cell, ...]] = [
        (method, *(_cell(cells.get((method, case))) for case in cases)) for method in methods
    ]
    every: list[tuple[Cell, ...]] = [
        (entry.case.name, *entry.case[1:], entry.method, entry.theory, entry.measured, entry.ratio)
        for entry in entries
    ]
    headers = ("setting", "graph", "m", "tau", "sigma", "method", "theory", "measured", "ratio")
    formulas: list[tuple[Cell, ...]] = [
        (name, row.formula, *(_theory(cells.get((name, case))) for case in cases))
        for name, row in TABLE_1.items()
        if name in methods
    ]
    names = tuple(case.name for case in cases)
    return [
        Table("theory", "Table 1, in numbers", ("method", "time", *names), formulas),
        Table("measured", title, ("method", *names), rows),
        Table("table-1", "Every method in every setting.", headers, every, shown=False),
    ]


def _theory(entry: Entry | None) -> Cell:
    return None if entry is None else entry.theory


def _cell(entry: Entry | None) -> Cell:
    if entry is None or entry.measured is None:
        least = None if entry is None else entry.least
        return None if least is None else f"> {show(float(f'{least:.2g}'))}"
    text = show(float(f"{entry.measured:.3g}"))
    return text if entry.ratio is None else f"{text} ({entry.ratio:.2f})"


def _pictures(entries: list[Entry]) -> list[Picture]:
    points: dict[str, list[tuple[float, float]]] = {}
    for entry in entries:
        if entry.theory is not None and entry.measured is not None:
            points.setdefault(entry.method, []).append((entry.theory, entry.measured))

    def draw(figure: "Figure") -> None:
        draw_rates(points, figure.add_subplot())

    return [Picture("table-1", (7.5, 5.5), draw)] if points else []

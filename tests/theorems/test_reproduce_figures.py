"""Quick versions of the figures and of the stragglers: everything runs, and the words follow."""

import math

import pytest

from adfs.reproduce.catalogue import CATALOGUE
from adfs.reproduce.order import Order
from adfs.reproduce.panels import Times
from adfs.reproduce.straggler_verdicts import CONSTANT, Found, advice, stochastic_claim
from comparisons_for_tests import make_comparison, make_trace

FIGURES = [name for name in CATALOGUE if name.startswith("figure")]


@pytest.mark.parametrize("name", FIGURES)
def test_every_contender_of_a_figure_runs_and_is_judged(name):
    report = CATALOGUE[name].load()(Order(quick=True, jobs=2, quiet=True))
    (table,) = report.tables
    labels = [row[0] for row in table.rows]
    assert {"adfs", "newton", "lbfgs", "msda"} <= set(labels)
    assert ({"esdacd", "dsba", "point-saga"} if "3" in name else {"katyusha"}) <= set(labels)
    for row in table.rows:
        assert "diverged" not in row
        known = [cell for cell in row[1:5] if isinstance(cell, float)]
        assert known == sorted(known)
        assert all(cell == "> 5x" for cell in row[1:5] if isinstance(cell, str))
    assert {claim.holds for claim in report.claims} <= {"yes", "no", "partly"}
    assert "nan" not in str(report)
    assert any("newton over an all-reduce" in remark for remark in report.remarks)


def test_stragglers_tells_all_methods_in_all_worlds():
    report = CATALOGUE["stragglers"].load()(Order(quick=True, jobs=2, quiet=True))
    (table,) = report.tables
    assert {row[0] for row in table.rows} >= {"adfs", "esdacd", "msda", "katyusha", "newton"}
    worlds = table.headers[1:5]
    assert worlds == (CONSTANT, "exponential", "Pareto 1.5", "one slow node")
    slowdown = {row[0]: row[5] for row in table.rows}
    # A machine alone averages its own delays; whoever waits for the slowest of nine does not.
    assert slowdown["point-saga"] < 1.2
    assert slowdown["katyusha"] > 1.3
    assert len(report.remarks) == 4


def runs(**ends):
    """A comparison whose runs fall log-linearly to 1e-8 at the given times (None: not at all)."""
    made = {
        name.replace("_", "-"): [
            ("converged", make_trace([0.0, end], [1.0, 1e-8]))
            if end
            else ("time_limit", make_trace([0.0, 900.0], [1.0, 0.1]))
        ]
        for name, end in ends.items()
    }
    return make_comparison(made, tol=1e-8, clock_limit=900.0)


def test_times_put_whoever_did_not_arrive_behind_everyone():
    times = Times(runs(adfs=100.0, msda=300.0, dsba=None))
    assert times.ratio("msda", "adfs") == pytest.approx(3.0)
    assert math.isinf(times.of("dsba"))
    assert times.words("msda", "adfs") == "msda 3 times"
    assert times.words("dsba", "adfs") == "dsba more than 12 times"


def test_the_advice_follows_the_numbers():
    calm = runs(adfs=100.0, msda=200.0, newton=50.0)
    rough = runs(adfs=120.0, msda=500.0, newton=400.0)
    found = Found("few", "words", {CONSTANT: calm, "exponential": rough})
    first, second = advice([found])
    assert "pick newton, 2 times before ADFS" in first
    assert "ADFS is first" in first
    assert "ADFS is the one to pick, 3.3 times before newton" in second
    assert stochastic_claim([found]).holds == "yes"
    swapped = Found("few", "words", {CONSTANT: rough, "exponential": calm})
    assert stochastic_claim([swapped]).holds == "no"

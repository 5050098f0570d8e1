"""What is known of times where some methods did not arrive, and what follows from it."""

import dataclasses

import pytest

from adfs.study.paper import figures, stragglers
from adfs.study.paper.claims import UNKNOWN, AtLeast, Times, verdict
from adfs.study.paper.figures import remarks_on, times_table
from adfs.study.paper.stragglers import CONSTANT, SLOW_NODE, StragglerTimes, advice, judge_laws
from support.comparisons import make_comparison, make_trace


def runs(**ends):
    """Runs that fall log-linearly to 1e-8 at the given times; a word is the status of a run that
    did not get below 0.1 by its end at 900 (or at 120, if it was interrupted).
    """
    made = {}
    for name, end in ends.items():
        label = name.replace("__", ":").replace("_", "-")
        if isinstance(end, str):
            last = 120.0 if end == "interrupted" else 900.0
            made[label] = [(end, make_trace([0.0, last], [1.0, 0.1]))]
        else:
            made[label] = [("converged", make_trace([0.0, end], [1.0, 1e-8]))]
    found = make_comparison(made, tol=1e-8, clock_limit=900.0)
    found.config["problem"]["n_nodes"] = 100
    return found


def test_a_multiple_decides_what_it_can():
    known, bound = AtLeast(3.0), AtLeast(3.0, exact=False)
    assert (known.at_least(2.0), known.at_least(4.0), known.at_most(4.0)) == (True, False, True)
    assert (bound.at_least(2.0), bound.at_least(4.0)) == (True, None)
    assert (bound.at_most(2.0), bound.at_most(4.0)) == (False, None)
    assert (UNKNOWN.at_least(1.0), UNKNOWN.at_most(1.0)) == (None, None)
    assert (known.within(4.0), known.within(2.0), AtLeast(0.1).within(4.0)) == (True, False, False)
    assert (bound.within(2.0), bound.within(4.0), UNKNOWN.within(9.0)) == (False, None, None)
    assert [str(each) for each in (known, bound, UNKNOWN)] == [
        "3 times", "more than 3 times", "an unknown number of times",
    ]  # fmt: skip
    assert AtLeast(6.0, exact=False).over(AtLeast(2.0)) == (3.0, False)
    assert AtLeast(6.0).over(AtLeast(2.0, exact=False)) == UNKNOWN


def test_a_claim_holds_only_if_every_case_is_known_to():
    assert verdict([True, None, True]) == "not decided"
    assert verdict([True, None, False]) == "partly"
    assert verdict([False, None]) == "no"
    assert verdict([None, None]) == verdict([]) == "not decided"


def test_who_is_later_is_known_unless_neither_arrived():
    times = Times(runs(adfs=100.0, msda=300.0, dsba="time_limit", ssda="time_limit"))
    assert times.multiple("msda", "adfs").value == pytest.approx(3.0)
    assert str(times.multiple("dsba", "adfs")) == "more than 12 times"
    assert times.later("msda", "adfs") is True
    assert times.later("adfs", "msda") is False
    assert times.later("dsba", "adfs") is True
    assert times.later("adfs", "dsba") is False
    assert times.later("dsba", "ssda") is None
    assert times.later("adfs", "katyusha") is None


def test_a_cell_tells_a_limit_from_a_run_that_was_broken_off():
    found = runs(adfs=100.0, msda="time_limit", dsba="interrupted", ssda="diverged")
    cells = [Times(found).cell(label) for label in found.labels]
    assert cells == [pytest.approx(75.0), "> 5x", None, "diverged"]
    assert [row[-1] for row in times_table(Times(found)).rows] == [1.0, None, None, None]


def claims_of(figure, **ends):
    times = Times(runs(**ends))
    claims = (figures.figure_3_claims if figure == 3 else figures.figure_4_claims)(times).values()
    text = " ".join([*map(str, claims), *remarks_on(times)])
    assert "nan" not in text.split()
    assert "inf" not in text.split()
    return [claim.holds for claim in claims]


def test_figure_3_follows_the_numbers():
    usual = {"adfs": 100.0, "adfs__paper": 130.0, "point_saga": 150.0, "msda": 400.0}
    assert claims_of(3, **usual, esdacd=700.0) == ["yes", "yes", "no", "partly"]
    assert claims_of(3, **usual | {"msda": 140.0}, dsba=700.0) == [
        "yes", "partly", "no", "yes",
    ]  # fmt: skip
    late = usual | {"point_saga": "time_limit", "msda": "time_limit"}
    assert claims_of(3, **late, dsba=120.0) == ["no", "partly", "not decided", "no"]
    assert claims_of(3, **late | {"msda": 400.0}, dsba=120.0)[2] == "yes"
    # Neither arrived: who would have been later is open.
    assert claims_of(3, **late) == ["no", "yes", "not decided", "not decided"]


def table_by_hand(limit, **rows):
    """A comparison whose runs reach 1e-2, 1e-4, 1e-6 and 1e-8 at these times, as far as given."""
    made = {}
    for name, times in rows.items():
        errors = [1.0, 1e-2, 1e-4, 1e-6, 1e-8][: len(times) + 1]
        places = [0.0, *times]
        if len(times) < 4:
            places, errors = [*places, limit], [*errors, errors[-1] / 2]
        status = "converged" if len(times) == 4 else "time_limit"
        label = name.replace("__", ":").replace("_", "-")
        made[label] = [(status, make_trace(places, errors))]
    found = make_comparison(made, tol=1e-8, clock_limit=limit)
    found.config["problem"]["n_nodes"] = 100
    return found


HIGGS = {
    "adfs": [167_986, 386_753, 601_408, 823_263], "adfs__paper": [181_556, 466_947, 749_494, 1e6],
    "point_saga": [37_668, 2_612_372], "msda": [10_140, 2_301_780],
    "msda__theory": [10_040, 3_001_960], "ssda": [10_005], "esdacd": [28_011],
    "dsba": [51_612, 426_168, 828_084, 1_234_668], "dsba__paper": [380_964, 3_522_948],
}  # fmt: skip


def test_the_slowest_is_told_from_the_accuracies_that_were_reached():
    # Nobody but ADFS and DSBA reached 1e-6. At 1e-4 four methods came after Point-SAGA.
    claim = figures.figure_3_claims(Times(table_by_hand(4_116_315.0, **HIGGS)))["slowest"]
    assert claim.holds == "no"
    assert "msda and dsba arrived before it" in claim.measured
    assert "msda:theory, ssda, esdacd and dsba:paper arrived after it" in claim.measured
    last = HIGGS | {"point_saga": [37_668]} | {"ssda": [10_005, 4e6], "esdacd": [28_011, 4e6]}
    claim = figures.figure_3_claims(Times(table_by_hand(4_116_315.0, **last)))["slowest"]
    assert claim.holds == "yes"
    assert "after it" not in claim.measured


def test_who_would_have_been_slower_is_open_where_a_run_was_broken_off():
    # Point-SAGA reached 1e-4; MSDA had not by then, and nobody knows when it would have.
    found = table_by_hand(900.0, adfs=[20, 40, 60, 80], point_saga=[30, 400], msda=[10])
    early = make_trace([0.0, 10.0, 120.0], [1.0, 1e-2, 5e-3])
    found.records[2] = dataclasses.replace(found.records[2], status="interrupted", trace=early)
    assert Times(found).later("point-saga", "msda") is None
    assert figures.figure_3_claims(Times(found))["slowest"].holds == "not decided"


def test_figure_3_without_its_runs_decides_nothing():
    assert claims_of(3, adfs="interrupted") == ["not decided"] * 4
    assert claims_of(3, adfs=100.0, msda="interrupted")[1] == "not decided"


def test_figure_4_judges_the_papers_parameters_and_the_tuned_ones():
    usual = {"adfs": 100.0, "adfs__paper": 130.0, "adfs__balanced": 130.0, "msda": 400.0}
    ahead = usual | {"katyusha__theory": 120.0, "katyusha": 60.0}
    assert claims_of(4, **ahead) == ["yes", "yes", "no", "yes"]
    mixed = usual | {"katyusha__theory": 300.0, "katyusha": 60.0}
    assert claims_of(4, **mixed) == ["partly", "partly", "partly", "partly"]
    assert claims_of(4, adfs=100.0) == ["not decided"] * 4


def straggler_times(**comparisons):
    return StragglerTimes("few", "words", {law: Times(runs) for law, runs in comparisons.items()})


def straggler_claims(found):
    return [judge_laws([found], *claim) for claim in stragglers.CLAIMS]


def test_the_advice_follows_the_numbers():
    calm = runs(adfs=100.0, msda=200.0, newton=50.0, dsba=300.0)
    rough = runs(adfs=120.0, msda=500.0, newton=400.0, dsba="time_limit")
    found = straggler_times(**{CONSTANT: calm, "exponential": rough, SLOW_NODE: rough})
    first, second, _ = advice([found])
    assert "pick newton, 2 times before ADFS" in first
    assert "ADFS is first" in first
    assert "ADFS is the one to pick, 3.3 times before newton" in second
    stochastic, slow = straggler_claims(found)
    assert stochastic.holds == slow.holds == "yes"
    assert "dsba more than 4 times" in stochastic.measured  # 900 / 225
    swapped = straggler_times(**{CONSTANT: rough, "exponential": calm})
    assert straggler_claims(swapped)[0].holds == "no"
    # dsba had not arrived under constant delays: nothing can be said of its slowdown.
    assert swapped.slowdown("exponential", "dsba") == UNKNOWN


def test_nothing_finished_is_said_so():
    found = straggler_times(**{CONSTANT: runs(adfs="interrupted")})
    stochastic, _ = straggler_claims(found)
    assert stochastic.holds == "not decided"
    assert stochastic.measured.startswith("Not decided: nothing was measured")
    assert "ADFS did not arrive" in advice([found])[0]

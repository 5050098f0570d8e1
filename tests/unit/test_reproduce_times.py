"""What is known of times where some methods did not arrive, and what follows from it."""

import pytest

from adfs.reproduce import figure_3, figure_4
from adfs.reproduce.panels import cell_of, remarks_on, table_of
from adfs.reproduce.straggler_verdicts import (
    CONSTANT,
    SLOW_NODE,
    Found,
    advice,
    slow_claim,
    stochastic_claim,
)
from adfs.reproduce.times import UNKNOWN, Multiple, Time, Times, decided
from comparisons_for_tests import make_comparison, make_trace


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
    known, bound = Multiple(3.0), Multiple(3.0, exact=False)
    assert (known.at_least(2.0), known.at_least(4.0), known.at_most(4.0)) == (True, False, True)
    assert (bound.at_least(2.0), bound.at_least(4.0)) == (True, None)
    assert (bound.at_most(2.0), bound.at_most(4.0)) == (False, None)
    assert (UNKNOWN.at_least(1.0), UNKNOWN.at_most(1.0)) == (None, None)
    assert (known.within(4.0), known.within(2.0), Multiple(0.1).within(4.0)) == (True, False, False)
    assert (bound.within(2.0), bound.within(4.0), UNKNOWN.within(9.0)) == (False, None, None)
    assert [str(each) for each in (known, bound, UNKNOWN)] == [
        "3 times", "more than 3 times", "an unknown number of times",
    ]  # fmt: skip
    assert Time(6.0, arrived=False).over(Time(2.0)) == (3.0, False)
    assert Time(6.0).over(Time(2.0, arrived=False)) == UNKNOWN


def test_undecided_cases_have_no_vote():
    assert decided([True, None, True]) == "yes"
    assert decided([False, None]) == "no"
    assert decided([None, None]) == decided([]) == "not decided"


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
    cells = [cell_of(found, label, 1e-6) for label in found.labels]
    assert cells == [pytest.approx(75.0), "> 5x", None, "diverged"]
    assert [row[-1] for row in table_of(found).rows] == [1.0, None, None, None]


def claims_of(module, **ends):
    times = Times(runs(**ends))
    functions = {
        figure_3: (figure_3._similar_to_point_saga, figure_3._far_ahead, figure_3._slowest,
                   figure_3._msda_does_well),
        figure_4: (figure_4._comparable, figure_4._ahead, figure_4._behind, figure_4._before_msda),
    }[module]  # fmt: skip
    text = " ".join([*map(str, (f(times) for f in functions)), *remarks_on(times)])
    assert "nan" not in text.split()
    assert "inf" not in text.split()
    return [function(times).holds for function in functions]


def test_figure_3_follows_the_numbers():
    usual = {"adfs": 100.0, "adfs__paper": 130.0, "point_saga": 150.0, "msda": 400.0}
    assert claims_of(figure_3, **usual, esdacd=700.0) == ["yes", "yes", "no", "partly"]
    assert claims_of(figure_3, **usual | {"msda": 140.0}, dsba=700.0) == [
        "yes", "partly", "partly", "yes",
    ]  # fmt: skip
    late = usual | {"point_saga": "time_limit", "msda": "time_limit"}
    assert claims_of(figure_3, **late, dsba=120.0) == ["no", "partly", "yes", "no"]
    # Neither arrived: who would have been later is open.
    assert claims_of(figure_3, **late) == ["no", "yes", "not decided", "not decided"]


def test_figure_3_without_its_runs_decides_nothing():
    assert claims_of(figure_3, adfs="interrupted") == ["not decided"] * 4
    assert claims_of(figure_3, adfs=100.0, msda="interrupted")[1] == "not decided"


def test_figure_4_judges_the_papers_parameters_and_the_best_ones():
    usual = {"adfs": 100.0, "adfs__paper": 130.0, "adfs__balanced": 130.0, "msda": 400.0}
    ahead = usual | {"katyusha__theory": 120.0, "katyusha": 60.0}
    assert claims_of(figure_4, **ahead) == ["yes", "yes", "no", "yes"]
    mixed = usual | {"katyusha__theory": 300.0, "katyusha": 60.0}
    assert claims_of(figure_4, **mixed) == ["partly", "partly", "partly", "partly"]
    assert claims_of(figure_4, adfs=100.0) == ["not decided"] * 4


def test_the_advice_follows_the_numbers():
    calm = runs(adfs=100.0, msda=200.0, newton=50.0, dsba=300.0)
    rough = runs(adfs=120.0, msda=500.0, newton=400.0, dsba="time_limit")
    found = Found("few", "words", {CONSTANT: calm, "exponential": rough, SLOW_NODE: rough})
    first, second, _ = advice([found])
    assert "pick newton, 2 times before ADFS" in first
    assert "ADFS is first" in first
    assert "ADFS is the one to pick, 3.3 times before newton" in second
    claim = stochastic_claim([found])
    assert claim.holds == slow_claim([found]).holds == "yes"
    assert "dsba more than 4 times" in claim.measured  # 900 / 225
    swapped = Found("few", "words", {CONSTANT: rough, "exponential": calm})
    assert stochastic_claim([swapped]).holds == "no"
    # dsba had not arrived under constant delays: nothing can be said of its slowdown.
    assert swapped.slowdown("exponential", "dsba") == UNKNOWN


def test_nothing_finished_is_said_so():
    found = Found("few", "words", {CONSTANT: runs(adfs="interrupted")})
    assert stochastic_claim([found]).holds == "not decided"
    assert "nothing was finished" in stochastic_claim([found]).measured
    assert "ADFS did not arrive" in advice([found])[0]

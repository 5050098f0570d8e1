"""`where-adfs-wins`: verdicts and pictures follow the numbers."""

import math

import pytest

from adfs.schedule.delays import Delays
from adfs.study.paper import where_adfs_wins as study
from adfs.study.paper.claims import AtLeast
from adfs.study.paper.races import Race
from adfs.study.paper.sweep import FULL, QUICK, SAMPLES, SPREAD, Axis, Place
from adfs.study.paper.where_adfs_wins import CHARGES, MEASURED, PAPER, Won, claims, pictures


def race(**times):
    """Times of methods; a negative one is a run that had not arrived by then."""
    known = {
        name.replace("_", "-"): AtLeast(abs(time), exact=time > 0) for name, time in times.items()
    }
    return Race({"adfs": AtLeast(100.0), **known})


def everywhere(sweep, **times):
    return [
        Won(place, charge, [race(**times)] * sweep.seeds)
        for place in sweep.places()
        for charge in CHARGES
    ]


def test_a_spread_is_the_standard_deviation_over_the_mean():
    assert Place(spread=0.0).delays(3, 5) == Delays(2.0, (1.0, 1.0, 4.0), seed=5)
    assert Place(spread=1.0).delays(3, 5).law == "exponential"
    lognormal = Place(spread=2.0).delays(2, 0)
    assert lognormal.law == "lognormal"
    variance = math.exp(lognormal.shape**2) - 1.0  # of a lognormal factor of mean 1
    assert math.sqrt(variance) == pytest.approx(2.0)


@pytest.mark.parametrize("sweep", [FULL, QUICK])
def test_every_axis_goes_through_the_base_point(sweep):
    axes = [axis for pair in sweep.maps for axis in pair] + list(sweep.cuts)
    for axis in axes:
        assert axis.at(sweep.base, axis.values[axis.base_index(sweep.base)]) == sweep.base
        assert len(axis.ticks) == len(axis.values)
    assert len(set(sweep.places())) == len(sweep.places())


def test_an_axis_of_data_chooses_their_features():
    axis = Axis("data", "data", ("higgs", "higgs+"))
    assert [axis.at(Place(), value).features for value in axis.values] == [0, 600]
    assert SAMPLES.ticks == ["50", "150", "500", "1,500"]
    assert SPREAD.at(Place(), 0.0) == Place(spread=0.0)


def test_the_base_point_is_judged_seed_by_seed():
    base = FULL.base
    ahead, behind = race(newton=150.0, lbfgs=130.0), race(newton=150.0, lbfgs=90.0)
    for races, word in (([ahead] * 3, "yes"), ([behind] * 3, "no"), ([ahead, behind], "partly")):
        found = [Won(base, PAPER, races), Won(base, MEASURED, [ahead])]
        assert [claim.holds for claim in claims(base, found)] == [word, "yes", "not decided"]
    assert "lbfgs 1.3 times" in claims(base, [Won(base, PAPER, [ahead])])[0].measured
    assert {claim.holds for claim in claims(base, [])} == {"not decided"}


def test_the_gain_comes_from_delays_if_it_falls_without_them():
    base, calm = FULL.base, FULL.base._replace(spread=0.0)
    for time, word in ((110.0, "yes"), (200.0, "no")):
        found = [Won(base, PAPER, [race(tron=150.0)]), Won(calm, PAPER, [race(tron=time)])]
        assert claims(base, found)[2].holds == word


def test_medians_are_over_seeds_and_bounds_stay_bounds():
    won = Won(Place(), PAPER, [race(dsba=300.0), race(dsba=-500.0), race(dsba=-500.0)])
    assert won.multiple("dsba") == AtLeast(5.0, exact=False)
    assert won.ratio == AtLeast(5.0, exact=False)
    assert Won(Place(), PAPER, [race(dsba=d) for d in (90.0, 300.0, 200.0)]).ratio.value == 2.0


def test_pictures_show_every_place_and_its_rival_and_need_all_of_them():
    figure = pytest.importorskip("matplotlib.figure").Figure(figsize=(11.0, 9.0))
    found = everywhere(FULL, newton=150.0, lbfgs=90.0)
    maps, cuts = pictures(FULL, found)
    maps.draw(figure)
    texts = [text.get_text() for ax in figure.axes for text in ax.texts]
    n_cells = sum(len(a.values) * len(b.values) for a, b in FULL.maps)
    assert texts.count("0.90") == texts.count("L-BFGS") == len(CHARGES) * n_cells
    figure.clear()
    cuts.draw(figure)
    assert len(figure.axes) == len(FULL.cuts)
    assert pictures(FULL, found[1:]) == []


def test_the_boundary_divides_wins_from_losses():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    found = [
        won if won.place.spread < 1.0 else won._replace(races=[race(lbfgs=200.0)])
        for won in everywhere(QUICK, lbfgs=50.0)
    ]
    pictures(QUICK, found)[0].draw(figure)
    lines = [
        line.get_xydata().tolist() for line in figure.axes[0].lines if line.get_linewidth() > 2
    ]
    assert lines == [[[0.5, -0.5], [0.5, 0.5]], [[0.5, 0.5], [0.5, 1.5]]]


@pytest.mark.slow
def test_the_quick_version_races_all_methods():
    study_report = study.reproduce(study.StudyContext(quick=True, jobs=2, quiet=True))
    base, every = study_report.tables
    assert [row[0] for row in base.rows] == list(study.RIVALS)
    assert len(every.rows) == len(CHARGES) * len(QUICK.places())
    assert {claim.holds for claim in study_report.claims} <= {"yes", "no", "partly"}
    assert not {"nan", "inf"} & set(str(study_report).split())
    assert len(study_report.pictures) == 2

"""Verdicts of `scaling` and `table-1` follow the numbers; a broken-off run tells what it has."""

import dataclasses
import math
import signal

import pytest

import adfs
from adfs.reproduce import scaling, table_1
from adfs.reproduce.factors import Case, Entry, late_slope, late_time_per_factor_e
from adfs.reproduce.growth import FAMILIES, Line
from adfs.reproduce.order import Order
from adfs.reproduce.rates import Sizes


@pytest.fixture(autouse=True)
def no_data(monkeypatch, tmp_path):
    monkeypatch.setenv("ADFS_CACHE", str(tmp_path))
    monkeypatch.delenv("ADFS_DATA", raising=False)


def line(*times):
    """Times at 1, 4, 16, ... nodes; theory's time of ADFS is 200, its network's term negligible."""
    sizes = {4**k: Sizes(4**k, 100, 0.0, 100, 10, 1e6) for k in range(len(times))}
    return Line({4**k: time for k, time in enumerate(times)}, sizes)


SINGLE = line(100.0, 250.0, 900.0, 3300.0)


def claims(critical, *times, single=SINGLE):
    return scaling._claims({"grid": line(*times)}, single, {"grid": critical})


def test_up_to_the_critical_size_the_time_must_stay_within_a_factor_2():
    assert claims(20.0, 100, 150, 199, 900)[0].holds == "yes"
    assert claims(20.0, 100, 150, 201, 900)[0].holds == "partly"
    assert claims(20.0, 100, 250, 300, 900)[0].holds == "no"
    assert claims(None, 100, 150, 199, 900)[0].holds == "partly"
    assert "critical size 20" in claims(20.0, 100, 150, 199, 900)[0].measured


def test_well_beyond_the_critical_size_it_must_have_grown():
    assert claims(16.0, 100, 150, 200, 300)[1].holds == "yes"
    assert claims(16.0, 100, 120, 130, 140)[1].holds == "no"
    assert claims(None, 100, 120, 130, 140)[1].holds == "yes"
    assert claims(None, 100, 120, 130, 240)[1].holds == "no"
    assert claims(40.0, 100, 120, 130, 140)[1].holds == "not decided"  # 64 is not far beyond 40


def test_the_speed_up_is_theorys_up_to_one_constant():
    # Theory's speed-ups at n = 4, 16, 64: (n m + sqrt(n m kappa)) / 200 = 3, 10, 36.
    assert claims(None, 100, 100, 100, 100)[2].holds == "yes"  # 2.5, 9, 33
    assert claims(None, 100, 100, 100, 300)[2].holds == "no"  # 2.5, 9, 11
    assert "0.83 to 0.92" in claims(None, 100, 100, 100, 100)[2].measured
    assert claims(None, 100, 100, single=Line({}, {}))[2].holds == "not decided"


ONE, TWO = Case("one", "grid:3x3", 10, 5.0, 1.0), Case("two", "grid:3x3", 10, 50.0, 1.0)


def test_a_ratio_that_wanders_is_no_constant():
    steady = [Entry(ONE, "adfs", 10.0, 5.0), Entry(TWO, "adfs", 100.0, 190.0)]
    wild = [Entry(ONE, "dsba", 10.0, 5.0), Entry(TWO, "dsba", 100.0, 210.0)]
    assert table_1._constant_claim(steady).holds == "yes"
    assert table_1._constant_claim(wild).holds == "no"
    assert table_1._constant_claim(steady + wild).holds == "partly"
    assert "adfs 0.5 to 1.9 and dsba 0.5 to 2.1" in table_1._constant_claim(steady + wild).measured
    assert table_1._constant_claim([Entry(ONE, "newton", None, 5.0)]).holds == "not decided"


def test_only_clear_predictions_are_held_against_theory():
    entries = [Entry(ONE, "adfs", 10.0, 8.0), Entry(ONE, "msda", 29.0, 4.0)]
    assert table_1._order_claim(entries).holds == "not decided"  # within a factor 3
    entries.append(Entry(ONE, "dsba", 100.0, 70.0))
    assert table_1._order_claim(entries).holds == "yes"
    entries.append(Entry(TWO, "adfs", 10.0, 8.0))  # another setting: no pair
    entries.append(Entry(ONE, "esdacd", 100.0, 5.0))
    claim = table_1._order_claim(entries)
    assert claim.holds == "partly"
    assert "Not so: esdacd before adfs (one)." in claim.measured


def test_adfs_must_be_ahead_of_msda_and_dsba_everywhere():
    ahead = [Entry(ONE, "adfs", 1.0, 8.0), Entry(ONE, "msda", 1.0, 9.0)]
    assert table_1._winner_claim(ahead).holds == "yes"
    assert table_1._winner_claim([*ahead, Entry(ONE, "dsba", 1.0, 7.0)]).holds == "partly"
    too_slow = Entry(ONE, "dsba", 1.0, None)
    assert table_1._winner_claim([*ahead, too_slow]).holds == "yes"
    assert "dsba (one)" in table_1._remarks([*ahead, too_slow])[-1]


@pytest.mark.parametrize("function", [scaling.scaling, table_1.table_1])
def test_a_report_of_nothing_claims_nothing(function, tmp_path):
    order = Order(quick=True)
    order.interrupts.received = signal.SIGINT
    report = function(order)
    assert report.interrupted
    assert {claim.holds for claim in report.claims} == {"not decided"}
    assert {path.suffix for path in report.save(tmp_path)} == {".txt", ".json", ".csv"}


def test_a_run_that_a_signal_broke_off_has_no_late_slope():
    X, y = adfs.generators.two_gaussians(40, 3, seed=0)
    problem = adfs.Problem(adfs.partition(X, y, 4), sigma=0.5)
    found = adfs.compare(problem, ["adfs"], tol=1e-8, seeds=2)
    times = [late_slope(curve) for curve in found.curves("adfs")]
    assert late_time_per_factor_e(found, "adfs") == pytest.approx(sum(times) / 2)
    cut = [found.records[0], dataclasses.replace(found.records[1], status="interrupted")]
    found = dataclasses.replace(found, records=cut)
    assert late_time_per_factor_e(found, "adfs") == times[0]
    found = dataclasses.replace(found, records=cut[1:])
    assert late_time_per_factor_e(found, "adfs") is None


def test_a_study_broken_off_tells_what_was_finished(tmp_path):
    def stop_when_a_tenth_is_done(share):
        if share > 0.1:
            order.interrupts.received = signal.SIGINT

    order = Order(quick=True, progress=stop_when_a_tenth_is_done)
    report = scaling.scaling(order)
    sizes = {row[1] for row in report.tables[0].rows}
    assert report.interrupted
    assert {1, 4} <= sizes < {1, 4, 16, 64, math.inf}
    assert "scaling.png" in {path.name for path in report.save(tmp_path)}
    assert str(report).count("The paper:") == 3
    assert set(FAMILIES) >= {row[0] for row in report.tables[0].rows} - {"one node"}

"""Verdicts of `scaling` and `table-1` follow the numbers; a broken-off run tells what it has."""

import dataclasses
import math
import re
import signal

import pytest

import adfs
from adfs.plan.sizes import Sizes
from adfs.study.paper import StudyCase, scaling, table_1
from adfs.study.paper.claims import UNKNOWN, AtLeast
from adfs.study.paper.scaling import FAMILIES, GRID, ONE_MACHINE, ONE_NODE, GrowthTime, rows_of
from adfs.study.paper.study_context import StudyContext
from adfs.study.paper.table_1 import Rate, late_slope, time_per_factor_e
from support.problems import gaussian_problem


@pytest.fixture(autouse=True)
def no_data(monkeypatch, tmp_path):
    monkeypatch.setenv("ADFS_CACHE", str(tmp_path))
    monkeypatch.delenv("ADFS_DATA", raising=False)


@pytest.fixture
def problem():
    return gaussian_problem(sigma=0.5, samples=(40, 3))


def measured(line, *times, critical=None):
    """Times at 1, 4, 16, ... nodes, None for one that did not arrive.

    Theory's time of ADFS is 200, its network's term negligible unless a critical size is given:
    then it is 200 n / critical.
    """
    for k, time in enumerate(times):
        n = 4**k
        gamma = 1e6 if critical is None else (critical / (20 * n)) ** 2
        sizes = Sizes(n, 100, 0.0, 100, 10, gamma)
        name = ONE_NODE if n == 1 and line == GRID else line
        yield GrowthTime(name, n, math.inf if time is None else time, sizes)


SINGLE = (100.0, 250.0, 900.0, 3300.0)


def rows(critical, *times, single=SINGLE):
    return rows_of([*measured(GRID, *times, critical=critical), *measured(ONE_MACHINE, *single)])


def claims(critical, *times, single=SINGLE):
    found = rows(critical, *times, single=single)
    return [*scaling.growth_claims(found), scaling.speed_up_claim(found)]


def test_up_to_the_critical_size_the_time_must_stay_within_a_factor_2():
    assert claims(20.0, 100, 150, 199, 900)[0].holds == "yes"
    assert claims(20.0, 100, 150, 201, 900)[0].holds == "partly"
    assert claims(20.0, 100, 250, 300, 900)[0].holds == "no"
    assert claims(None, 100, 150, 199, 900)[0].holds == "partly"
    assert "critical size 20" in claims(20.0, 100, 150, 199, 900)[0].measured


def test_well_beyond_the_critical_size_it_must_have_grown():
    assert claims(15.9, 100, 150, 200, 300)[1].holds == "yes"
    assert claims(15.9, 100, 120, 130, 140)[1].holds == "no"
    assert claims(None, 100, 120, 130, 140)[1].holds == "yes"
    assert claims(None, 100, 120, 130, 240)[1].holds == "no"
    assert claims(40.0, 100, 120, 130, 140)[1].holds == "not decided"  # 64 is not far beyond 40


def test_the_speed_up_is_theorys_up_to_one_constant():
    # Theory's speed-ups at n = 4, 16, 64: (n m + sqrt(n m kappa)) / 200 = 3, 10, 36.
    assert claims(None, 100, 100, 100, 100)[2].holds == "yes"  # 2.5, 9, 33
    assert claims(None, 100, 100, 100, 300)[2].holds == "no"  # 2.5, 9, 11
    assert "0.83 to 0.92" in claims(None, 100, 100, 100, 100)[2].measured
    assert claims(None, 100, 100, single=())[2].holds == "not decided"


def says_no_nan(text):
    return re.search(r"\b(nan|inf)\b", text) is None


def test_what_did_not_arrive_is_left_out_and_named():
    same, limit, speed = claims(None, 100, 150, None, 900)
    assert all(says_no_nan(each.measured) for each in (same, limit, speed))
    assert same.holds == "partly"  # 1.5 and 9; without a vote at n = 16
    assert "9.00 times one node's time at most up to n = 64" in same.measured
    assert claims(20.0, 100, 150, None, 900)[0].holds == "yes"
    assert limit.holds == "no"
    assert speed.holds == "no"  # 250 / 150 = 1.7 of 3, 3300 / 900 = 3.7 of 36
    assert claims(None, 100, 150, 160, None)[1].measured.startswith("1.60 times at n = 16")
    late = scaling._remarks(rows(None, 100, 150, None, 900, single=(100.0, None)))[1]
    assert f"ADFS on the {GRID} of 16 and Point-SAGA with 4 m samples" in late
    table = scaling._table(rows(None, 100, 150, None, 900))
    assert [row[1] for row in table.rows] == [1, 4, 16, 64]
    assert says_no_nan(str(table))


@pytest.mark.parametrize("times", [(None, 150, 160), (100, None, None), (100,), ()])
def test_without_a_time_to_compare_nothing_is_decided(times):
    same, limit, _ = claims(None, *times)
    for claim in (same, limit):
        assert claim.holds == "not decided"
        assert claim.measured.startswith("Not decided: ")
        assert says_no_nan(claim.measured)
    (speed,) = claims(None, *times, single=(None, None, None))[2:]
    assert speed.holds == "not decided"
    assert speed.measured.startswith("Not decided: ")
    assert says_no_nan(speed.measured)


def test_a_size_counts_where_more_than_half_of_its_seeds_arrived():
    def time(*values):
        sizes = Sizes(4, 100, 0.0, 100, 10, 1e6)
        (row,) = rows_of([GrowthTime(GRID, 4, value, sizes) for value in values])
        return row.time

    assert time(3.0, math.inf, 1.0) == AtLeast(3.0)
    assert not time(3.0, math.inf).exact


def test_without_one_nodes_time_there_is_a_report_but_no_picture(monkeypatch, tmp_path):
    monkeypatch.setattr(scaling, "measure", lambda family, n, *_: [
        GrowthTime(family, n, math.inf if n == 1 else 7.0, Sizes(n, 100, 0.0, 100, 10, 1e6))
    ])  # fmt: skip
    report = scaling.reproduce(StudyContext(quick=True))
    assert report.holds == "not decided"
    assert says_no_nan(str(report))
    assert {path.suffix for path in report.save(tmp_path)} == {".txt", ".json", ".csv"}


ONE, TWO = StudyCase("one", "grid:3x3", 10, 5.0, 1.0), StudyCase("two", "grid:3x3", 10, 50.0, 1.0)


def rate(case, method, theory, measured=None, least=None):
    """Measured, or too slow to be measured and above ``least``, or interrupted."""
    time = AtLeast(measured) if measured is not None else AtLeast(least or 0.0, exact=False)
    return Rate(case, method, math.nan if theory is None else theory, time)


def test_a_ratio_that_wanders_is_no_constant():
    steady = [rate(ONE, "adfs", 10.0, 5.0), rate(TWO, "adfs", 100.0, 190.0)]
    wild = [rate(ONE, "dsba", 10.0, 5.0), rate(TWO, "dsba", 100.0, 210.0)]
    assert table_1.constant_claim(steady).holds == "yes"
    assert table_1.constant_claim(wild).holds == "no"
    assert table_1.constant_claim(steady + wild).holds == "partly"
    assert "adfs 0.5 to 1.9 and dsba 0.5 to 2.1" in table_1.constant_claim(steady + wild).measured
    assert table_1.constant_claim([rate(ONE, "newton", None, 5.0)]).holds == "not decided"


def test_only_clear_predictions_are_held_against_theory():
    entries = [rate(ONE, "adfs", 10.0, 8.0), rate(ONE, "msda", 29.0, 4.0)]
    assert table_1.order_claim(entries).holds == "not decided"  # within a factor 3
    entries.append(rate(ONE, "dsba", 100.0, 70.0))
    assert table_1.order_claim(entries).holds == "yes"
    entries.append(rate(TWO, "adfs", 10.0, 8.0))  # another setting: no pair
    entries.append(rate(ONE, "esdacd", 100.0, 5.0))
    claim = table_1.order_claim(entries)
    assert claim.holds == "partly"
    assert "Not so: esdacd before adfs (one)." in claim.measured


def test_adfs_must_be_ahead_of_msda_and_dsba_everywhere():
    ahead = [rate(ONE, "adfs", 1.0, 8.0), rate(ONE, "msda", 1.0, 9.0)]
    assert table_1.winner_claim(ahead).holds == "yes"
    assert table_1.winner_claim([*ahead, rate(ONE, "dsba", 1.0, 7.0)]).holds == "partly"


AHEAD = [rate(ONE, "adfs", 1.0, 8.0), rate(ONE, "msda", 1.0, 9.0)]
TOO_SLOW, BROKEN_OFF = (
    rate(ONE, "dsba", 1.0, None, 40.0),
    rate(ONE, "dsba", 1.0, None),
)


def test_too_slow_to_be_measured_is_behind():
    claim = table_1.winner_claim([*AHEAD, TOO_SLOW])
    assert claim.holds == "yes"
    assert "dsba takes more than 5 times as long where it was too slow" in claim.measured
    assert says_no_nan(claim.measured)
    remarks = table_1._remarks([*AHEAD, TOO_SLOW])
    assert remarks[-1] == "Too slow to be measured within the limit: dsba (one)."
    # A limit below ADFS's own time tells nothing, and ADFS too may be the one that was too slow.
    assert (
        table_1.winner_claim([AHEAD[0], TOO_SLOW._replace(time=AtLeast(7.0, exact=False))]).holds
        == "not decided"
    )
    claim = table_1.winner_claim([AHEAD[0]._replace(time=AtLeast(40.0, exact=False)), AHEAD[1]])
    assert claim.holds == "no"
    assert "ADFS was too slow to be measured and msda was not (one)" in claim.measured


def test_broken_off_has_no_vote():
    behind = [AHEAD[0], AHEAD[1]._replace(time=AtLeast(7.0))]
    claim = table_1.winner_claim([*behind, BROKEN_OFF])
    assert claim.holds == "no"  # not "partly"
    assert "dsba" not in claim.measured
    assert says_no_nan(claim.measured)
    remarks = table_1._remarks([*behind, BROKEN_OFF])
    assert remarks[-1] == "Interrupted, and left out of the verdicts: dsba (one)."
    for entries in ([AHEAD[0], BROKEN_OFF], [AHEAD[0]._replace(time=UNKNOWN), AHEAD[1]], []):
        claim = table_1.winner_claim(entries)
        assert claim.holds == "not decided"
        assert claim.measured.startswith("Not decided: ")


def test_the_order_of_methods_counts_too_slow_and_leaves_out_broken_off():
    fast, slow = rate(ONE, "adfs", 10.0, 8.0), rate(ONE, "dsba", 100.0, None)
    assert table_1.order_claim([fast, slow]).holds == "not decided"
    assert table_1.order_claim([fast, slow]).measured.startswith("Not decided: ")
    assert (
        table_1.order_claim([fast, slow._replace(time=AtLeast(40.0, exact=False))]).holds == "yes"
    )
    late = fast._replace(time=AtLeast(40.0, exact=False))
    assert table_1.order_claim([late, slow._replace(time=AtLeast(9.0))]).holds == "no"


def test_tables_have_a_gap_where_a_method_was_not_run():
    slow = TOO_SLOW._replace(method="dsba:paper")
    entries = [*AHEAD, slow, rate(TWO, "adfs", 2.0, None)]
    theory, measured, every = table_1._tables(entries)
    assert [row[2:] for row in theory.rows] == [(1.0, None), (1.0, None), (1.0, 2.0)]
    assert measured.rows[2] == ("dsba:paper", "> 40", None)
    assert all(says_no_nan(str(table)) for table in (theory, measured, every))


@pytest.mark.parametrize("function", [scaling.reproduce, table_1.reproduce])
def test_a_report_of_nothing_claims_nothing(function, tmp_path):
    context = StudyContext(quick=True)
    context.interrupts.received = signal.SIGINT
    report = function(context)
    assert report.interrupted
    assert {claim.holds for claim in report.claims} == {"not decided"}
    assert {path.suffix for path in report.save(tmp_path)} == {".txt", ".json", ".csv"}


def test_a_run_that_a_signal_broke_off_has_no_late_slope(problem):
    found = adfs.compare(problem, ["adfs"], tol=1e-8, seeds=2)
    times = [late_slope(curve) for curve in found.curves("adfs")]
    assert time_per_factor_e(found, "adfs").known == pytest.approx(sum(times) / 2)
    cut = [found.records[0], dataclasses.replace(found.records[1], status="interrupted")]
    found = dataclasses.replace(found, records=cut)
    assert time_per_factor_e(found, "adfs") == (times[0], True)
    found = dataclasses.replace(found, records=cut[1:], clock_limit=60.0)
    assert time_per_factor_e(found, "adfs") == UNKNOWN  # interrupted: not even a bound


def test_a_run_that_hardly_falls_within_the_limit_has_a_least_time(problem):
    slow = adfs.compare(problem, ["adfs"], tol=1e-8, clock_limit=2.0)
    curve = slow.curves("adfs")[0]
    factors = math.log(curve.error[0] / curve.error[-1])
    assert time_per_factor_e(slow, "adfs") == (1.0, False)
    assert curve.x[-1] / factors > 1.0
    quick = adfs.compare(problem, ["adfs"], tol=1e-8)
    assert time_per_factor_e(quick, "adfs").exact


@pytest.mark.slow
def test_a_signal_noted_before_lets_no_run_start(problem, tmp_path):
    for jobs in (1, 2):
        context = StudyContext(jobs=jobs, folder=tmp_path)
        context.interrupts.received = signal.SIGTERM
        found = context.compare(problem, ["adfs", "msda"], "here")
        assert found.interrupted
        assert (found.records, found.signal) == ([], signal.SIGTERM)
    complete = StudyContext(folder=tmp_path).compare(problem, ["adfs", "msda"], "here")
    assert not complete.interrupted
    kept = context.compare(problem, ["adfs", "msda"], "here")  # nothing left to run
    assert [record.reused for record in kept.records] == [True, True]


def test_the_first_sentence_says_where_the_data_are_from():
    for function in (scaling.reproduce, table_1.reproduce):
        context = StudyContext(quick=True)
        context.interrupts.received = signal.SIGINT
        first = function(context).setting[0]
        assert first.startswith("Data: generated rows that look like Higgs (")
        assert "higgs is not on disk" in first


@pytest.mark.slow
def test_a_study_broken_off_tells_what_was_finished(tmp_path):
    def stop_when_a_tenth_is_done(share):
        if share > 0.1:
            context.interrupts.received = signal.SIGINT

    context = StudyContext(quick=True, progress=stop_when_a_tenth_is_done)
    report = scaling.reproduce(context)
    sizes = {row[1] for row in report.tables[0].rows}
    assert report.interrupted
    assert {1, 4} <= sizes < {1, 4, 16, 64, math.inf}
    assert "scaling.png" in {path.name for path in report.save(tmp_path)}
    assert str(report).count("The paper:") == 3
    assert set(FAMILIES) >= {row[0] for row in report.tables[0].rows} - {"one node"}

"""Times to an accuracy, medians, bands and tables, against numbers worked out by hand."""

import csv
import io
import json
import math

import numpy as np
import pytest

from adfs.errors import ParameterError
from adfs.study.comparison import ACCURACIES, AXES, Curve, to_csv
from support.comparisons import log_linear, make_comparison, make_trace

STRAIGHT = make_trace([0, 10, 30], [1.0, 1e-2, 1e-4])


def one(trace, status="converged", **keywords):
    return make_comparison({"adfs": [(status, trace)]}, **keywords)


def test_an_accuracy_between_two_looks_is_found_on_the_straight_line_of_the_logarithm():
    comparison = one(STRAIGHT)
    # 1 -> 1e-2 in 10 units: 1e-1 after 5. 1e-2 -> 1e-4 in 20 units: 1e-3 after 10 more.
    assert comparison.times_to("adfs", 1e-1) == [pytest.approx(5.0)]
    assert comparison.times_to("adfs", 1e-2) == [pytest.approx(10.0)]
    assert comparison.times_to("adfs", 1e-3) == [pytest.approx(20.0)]
    assert comparison.times_to("adfs", 1e-4) == [pytest.approx(30.0)]
    assert comparison.times_to("adfs", 0.99e-4) == [None]
    assert comparison.times_to("adfs", 2.0) == [0.0]  # so close from the start


def test_the_first_arrival_counts_where_an_error_rises_again():
    comparison = one(make_trace([0, 10, 20, 30], [1.0, 1e-3, 1e-1, 1e-5]))
    assert comparison.time_to("adfs", 1e-2) == pytest.approx(20 / 3)


@pytest.mark.parametrize("last", [0.0, -1e-17, 2e-17])
def test_an_error_that_is_rounding_counts_as_rounding(last):
    comparison = one(make_trace([0, 10], [1.0, last]))
    decades = -math.log10(np.finfo(float).eps)
    assert comparison.time_to("adfs", 1e-8) == pytest.approx(10 * 8 / decades)


@pytest.mark.parametrize("wild", [math.inf, math.nan])
def test_after_a_reading_that_is_no_number_the_look_itself_is_the_time(wild):
    comparison = one(make_trace([0, 10, 20], [1.0, wild, 1e-3]))
    assert comparison.time_to("adfs", 1e-2) == 20.0


def test_each_axis_is_read_from_its_columns_and_passes_count_all_samples():
    columns = {"iteration": [0, 4], "wall_time": [0.0, 0.5], "n_prox": [0, 30], "n_grad": [0, 10],
               "n_comm": [0, 6], "bytes": [0, 48]}  # fmt: skip
    comparison = one(make_trace([0, 7], [1.0, 1e-2], **columns), n_samples=10)
    ends = {axis: comparison.time_to("adfs", 1e-2, axis) for axis in AXES}
    assert ends == pytest.approx(
        {"idealized_time": 7, "iteration": 4, "passes": 4, "n_comm": 6, "bytes": 48,
         "wall_time": 0.5}
    )  # fmt: skip
    assert {axis: comparison.end_of("adfs", axis) for axis in AXES} == ends


def arriving(*times):
    """Runs that reach 1e-2 at these times, or end at 100 without (None)."""
    return [
        ("time_limit", make_trace([0, 100], [1.0, 0.5])) if time is None
        else ("converged", make_trace([0, time], [1.0, 1e-2]))
        for time in times
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("times", "median"),
    [((10, 30, 20), 20), ((10, 20), 15), ((None, 10, 20), 20), ((10, None, None), None),
     ((10, None), None)],
)  # fmt: skip
def test_the_median_counts_seeds_that_did_not_arrive_as_later_than_all(times, median):
    comparison = make_comparison({"dsba:theory": arriving(*times)})
    assert comparison.times_to("dsba:theory", 1e-2) == [
        None if time is None else pytest.approx(time) for time in times
    ]
    found = comparison.time_to("dsba:theory", 1e-2)
    assert found == (None if median is None else pytest.approx(median))


def test_an_accuracy_that_the_optimum_cannot_tell_is_refused_not_guessed():
    # |F*| = 200: the gap 1e-6 is 5e-9 relative, good for 5e-7 and no better.
    comparison = one(make_trace([0, 10], [1.0, 1e-9]), optimum=-200.0, gap=1e-6)
    assert comparison.time_to("adfs", 5e-7) is not None
    with pytest.raises(ParameterError, match=r"4e-07 cannot be measured: .* 5.0e-09 only.*5.0e-07"):
        comparison.time_to("adfs", 4e-7)
    table = comparison.table()
    assert [cell.text for cell in table[0].cells][2:] == [table[0].cells[2].text, "n/a"]
    assert "n/a: accuracy 1e-08 cannot be measured" in str(table)


def test_no_certificate_reaches_below_double_precision():
    with pytest.raises(ParameterError, match=r"certified to 2\.2e-16 only"):
        one(STRAIGHT, gap=0.0).time_to("adfs", 1e-14)


@pytest.mark.parametrize("accuracy", [0.0, -1.0, math.nan, math.inf])
def test_an_accuracy_that_is_none_is_refused(accuracy):
    with pytest.raises(ParameterError, match="must be a finite number > 0"):
        one(STRAIGHT).time_to("adfs", accuracy)


def test_unknown_labels_and_axes_are_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match="'msda' has no run here; choose one of adfs"):
        one(STRAIGHT).time_to("msda", 1e-2)
    with pytest.raises(
        ParameterError, match="axis='time' is unknown; choose one of idealized_time"
    ):
        one(STRAIGHT).time_to("adfs", 1e-2, "time")


def test_a_table_says_in_each_cell_what_is_known():
    comparison = make_comparison(
        {
            "adfs": [("converged", make_trace([0, 12_000], [1.0, 1e-6]))],
            "msda": [("time_limit", make_trace([0, 60_000], [1.0, 1e-3]))],
            "dsba": [("diverged", make_trace([0, 5], [1.0, math.nan]))],
        },
        clock_limit=60_000.0,
    )
    table = comparison.table()
    texts = {row.label: [cell.text for cell in row.cells] for row in table}
    assert texts == {
        "adfs": ["4,000", "8,000", "12,000", "-"],
        "msda": ["40,000", "> 60,000", "> 60,000", "> 60,000"],
        "dsba": ["diverged"] * 4,
    }
    text = str(comparison)
    assert text == str(table)
    assert "-: not tried, runs stop at tol=1e-06" in text
    assert "F* = 2, certified: relative gap 0.0e+00" in text
    assert "limit of a run: idealized time 60,000, as given" in text
    header = text.splitlines()[1].split()
    assert header == ["algorithm", "1e-02", "1e-04", "1e-06", "1e-08", "status"]
    assert len({len(line.rpartition("  ")[0]) for line in text.splitlines()[1:5]}) == 1


def test_how_runs_ended_is_counted_over_seeds():
    row = make_comparison({"adfs": arriving(1, 2, None)}).table()[0]
    assert row.status == "2 converged, 1 time_limit"


def test_json_and_csv_hold_the_same_numbers_as_the_table():
    comparison = make_comparison({"adfs": arriving(10, 20, 30), "ms,da": arriving(None, None, 5)})
    record = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    assert record["tables"]["idealized_time"][0]["times"]["1e-02"] == pytest.approx(20)
    assert record["tables"]["idealized_time"][1]["times"]["1e-02"] is None
    tables = [comparison.table(axis=axis) for axis in AXES]
    rows = list(csv.DictReader(io.StringIO(to_csv(tables).decode(), newline="")))
    assert [(row["axis"], row["algorithm"]) for row in rows] == [
        (axis, label) for axis in AXES for label in ("adfs", "ms,da")
    ]
    assert float(rows[0]["1e-02"]) == comparison.time_to("adfs", 1e-2)
    assert rows[1]["1e-02"] == ""
    assert float(rows[1]["end"]) == 100.0


def test_json_has_no_word_for_numbers_that_are_none():
    comparison = one(make_trace([0, 5], [1.0, math.nan]), status="diverged")
    record = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    assert record["runs"][0]["suboptimality"] is None
    assert record["runs"][0]["idealized_time"] == 5


def test_bands_are_quantiles_over_seeds_of_curves_read_at_the_same_places():
    places = [([0, 10, 20], [1.0, 1e-2, 1e-4]), ([0, 8, 20], [1.0, 1e-1, 1e-3]),
              ([0, 12, 20], [1.0, 1e-3, 1e-6])]  # fmt: skip
    runs = [("converged", make_trace(*each)) for each in places]
    x, (low, middle, high) = make_comparison({"adfs": runs}).band("adfs")
    assert x.tolist() == [0, 8, 10, 12, 20]
    for k, place in enumerate(x[1:], start=1):
        values = sorted(log_linear(place, *each) for each in places)
        assert middle[k] == pytest.approx(values[1])
        # A quartile of three values lies halfway between neighbours, on the logarithm.
        assert low[k] == pytest.approx(math.sqrt(values[0] * values[1]))
        assert high[k] == pytest.approx(math.sqrt(values[1] * values[2]))


def test_a_band_ends_with_the_middle_run_and_keeps_the_last_error_of_one_that_ended():
    runs = [("converged", make_trace([0, end], [1.0, 1e-6])) for end in (10, 20, 40)]
    x, (lowest, middle, highest) = make_comparison({"adfs": runs}).band(
        "adfs", quantiles=(0, 0.5, 1)
    )
    assert x.tolist() == [0, 10, 20]
    assert lowest.tolist() == pytest.approx([1, 1e-6, 1e-6])
    assert middle.tolist() == pytest.approx([1, 1e-3, 1e-6])
    assert highest.tolist() == pytest.approx([1, 10**-1.5, 1e-3])


def test_one_seed_is_its_own_band_and_ends_where_it_blows_up():
    x, errors = one(make_trace([0, 1, 2], [1.0, 10.0, math.inf])).band("adfs")
    assert x.tolist() == [0, 1]
    assert errors.tolist() == [[1.0, 10.0]] * 3
    nothing, errors = one(make_trace([0], [math.nan])).band("adfs")
    assert len(nothing) == 0
    assert errors.shape == (3, 0)


def test_accuracies_are_those_of_the_contract():
    assert ACCURACIES == (1e-2, 1e-4, 1e-6, 1e-8)


def test_a_method_arrives_at_the_end_of_an_iteration_never_inside_it():
    x, error = np.array([0.0, 300.0]), np.array([1.0, 1e-4])
    one = Curve(x, error, iteration=np.array([0.0, 1.0]))
    three = Curve(x, error, iteration=np.array([0.0, 3.0]))
    assert one.first_reach(1e-2) == 300.0
    assert three.first_reach(1e-2) == 200.0
    assert Curve(x, error).first_reach(1e-2) == pytest.approx(150.0)

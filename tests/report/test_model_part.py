"""The model on a page, its quality, and the ranking of a comparison."""

import dataclasses

import numpy as np
import pytest

import adfs
from adfs.model import Model
from adfs.study.numbers import listing
from adfs.study.report import compare_page, train_page
from adfs.study.report.convergence_chart import LETTER, LINE, place_labels
from adfs.study.report.model_pictures import MOST_ROWS, MOST_TABLES, coefficient_tables
from adfs.study.report.pages import rank
from support.commands import here
from support.reports import EVIL, Page, make_problem

WORDS = "a,<script>alert(1)</script>,city,y\n"


def model_of(coef, classes, names=None, **meta):
    coef = np.array(coef, dtype=float)
    loss = "logistic" if classes else "squared"
    about = {"format": 1, "loss": loss, "classes": classes, "intercept": False,
             "n_features": coef.shape[-1] - meta.get("intercept", False), **meta}  # fmt: skip
    return Model(coef, coef[..., None, :], about | ({"feature_names": names} if names else {}))


def column(table, k=0):
    return [row[k] for row in table[1]]


def test_the_largest_coefficients_come_first_with_bars_of_their_sign():
    (table,) = coefficient_tables(model_of([1.0, -4.0, 2.0], ["no", "yes"]))
    assert column(table) == ["x2", "x3", "x1"]
    assert column(table, 1) == [(0.0, 50.0), (50.0, 25.0), (50.0, 12.5)]
    assert column(table, 2) == ["down", "up", "up"]
    (table,) = coefficient_tables(model_of(np.arange(40.0), ["no", "yes"]))
    assert column(table) == [f"x{40 - k}" for k in range(MOST_ROWS)]


def test_scaled_features_are_ordered_by_their_standard_deviations():
    scaler = {"means": [0.0, 0.0], "scales": [100.0, 1.0]}
    model = model_of([0.1, 2.0, -7.0], [], ["big", "small"], scaler=scaler, intercept=True)
    (table,) = coefficient_tables(model)
    assert column(table) == ["big", "small", "intercept"]
    assert [text for text, _ in table[1][0][3]] == ["0.1", "10"]


def test_each_class_has_a_table_up_to_a_limit_and_what_blew_up_has_no_bar():
    tables = coefficient_tables(model_of(np.eye(30), list(range(30))))
    assert [label for label, _ in tables] == list(range(MOST_TABLES))
    (table,) = coefficient_tables(model_of([np.nan, np.inf, 1.0], []))
    assert column(table, 1)[0] == (50.0, 50.0)
    assert {bar[1] for bar in column(table, 1)[1:]} == {0.0}


def page_of(model, quality, problem=None):
    problem = problem or make_problem(4, loss=model.meta["loss"])
    result = adfs.solve(problem, tol=1e-2)
    return Page(train_page(problem, result, model=model, quality=quality))


def test_the_page_shows_measures_of_training_and_test_data():
    train = {"accuracy": 0.75, "auc": 0.8, "precision": 0.5, "recall": 1.0,
             "confusion": [[3, 1], [0, 1234]], "roc": [[0.0, 0.0], [1.0, 1.0]]}  # fmt: skip
    page = page_of(model_of([1.0, 2.0], ["no", "yes"]),
                   {"training": train, "test": {"accuracy": 0.5}})  # fmt: skip
    assert "accuracy, test50.00 %" in page.words("header").replace("\n", "")
    found = page.words("section", id="quality")
    assert all(each in found for each in ("75.00 %", "0.8000", "1,234", "training, AUC 0.8000"))
    assert len(page.all("td", class_="hit")) == len(page.all("td", class_="miss")) == 2
    assert "class yes" in page.words("section", id="model")


def test_a_regression_shows_its_residuals():
    found = {"r2": 0.5, "root_mean_squared_error": 2.0,
             "residuals": {"edges": [-7.0, 0.0, 7.0], "counts": [1, 3]}}  # fmt: skip
    page = page_of(model_of([1.0, 2.0], []), {"training": found, "test": None})
    assert "R2, training0.5" in page.words("header").replace("\n", "")
    assert "target minus prediction of 4 samples" in page.words("section", id="quality")
    (bars,) = page.all("path", class_="k-compute")[:1]
    assert bars[1]["d"].count("M") == 2


def test_names_of_features_and_classes_stay_text():
    model = model_of(np.eye(3), [EVIL, "b", "c"], [EVIL, "<b>", "_x^2"])
    result = adfs.solve(problem := make_problem(4), tol=1e-2)
    found = {"accuracy": 1.0, "confusion": np.eye(3, dtype=int).tolist()}
    text = train_page(problem, [result] * 3, model=model, quality={EVIL: found})
    page = Page(text)
    assert not page.all("img")
    assert len(page.all("script")) == 2
    assert not page.all("b")
    assert EVIL in "".join(page.words("section", id="model"))
    assert page.data["chart"]["runs"][0]["label"].startswith("class ")


def test_more_than_two_classes_have_a_curve_and_a_row_each(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    rows = [f"{random.normal(k):.3f},{random.normal():.3f},{'pqr'[k]},{'uvw'[k]}\n"
            for k in range(3) for _ in range(12)]  # fmt: skip
    (tmp_path / "d.csv").write_text(WORDS + "".join(rows))
    outcome = here("train", "d.csv", "--target", "y", "--tol", "1e-2", "--report", "r.html",
                   "--schedule", "shared")  # fmt: skip
    assert outcome.code == 0, outcome.err
    page = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
    runs = {run["label"] for run in page.data["chart"]["runs"] if not run["theory"]}
    assert runs == {"class u", "class v", "class w"}
    assert len({run["color"] for run in page.data["chart"]["runs"]}) == 4
    shown = page.words("section", id="model")
    assert "city=p" in shown
    assert shown.count("<script>alert(1)</script>") == 3
    assert "One run per class" in page.words("section", id="convergence")


@pytest.fixture(scope="module")
def comparison():
    return adfs.compare(make_problem(4), ["adfs", "newton", "dsba"], tol=1e-4)


def test_the_ranking_is_that_of_the_times(comparison):
    found = rank(comparison, "idealized_time")
    times = {label: comparison.time_to(label, 1e-4) for label in comparison.labels}
    known = sorted((time, label) for label, time in times.items() if time is not None)
    assert [bar[0] for bar in found["bars"]][: len(known)] == [label for _, label in known]
    assert found["first"] == [known[0][1]]
    assert [bar[3][0][1] for bar in found["bars"]].count("fastest") == 1
    assert max(bar[1][1] for bar in found["bars"]) == 100.0
    page = Page(compare_page(make_problem(4), comparison))
    assert f"{known[0][1]} is the fastest" in page.words("header")
    assert [each[1]["id"] for each in page.all("section")][:2] == ["ranking", "convergence"]


def test_what_did_not_arrive_is_said_and_never_fastest(comparison):
    strict = dataclasses.replace(comparison, config={**comparison.config, "tol": 1e-9})
    arrived = [label for label in comparison.labels if strict.time_to(label, 1e-9) is not None]
    found = rank(strict, "idealized_time")
    late = [bar for bar in found["bars"] if bar[2] == "late"]
    assert {bar[0] for bar in late} == set(comparison.labels) - set(arrived) != set()
    assert all("not reached" in bar[3][0][1] for bar in late)
    words = Page(compare_page(make_problem(4), strict)).words("header")
    assert f"Not reached by {listing(found['late'])}" in words or "No algorithm reached" in words


def test_equal_costs_share_the_first_place():
    problem = make_problem(1)
    comparison = adfs.compare(problem, ["adfs", "newton"], tol=1e-3)
    found = rank(comparison, "n_comm")
    assert found["first"] == ["adfs", "newton"]
    words = Page(compare_page(problem, comparison, axis="n_comm")).words("header")
    assert "adfs and newton are first." in words


def test_an_accuracy_beyond_the_optimum_has_no_ranking(comparison):
    rough = dataclasses.replace(comparison, optimum_gap=1.0)
    words = Page(compare_page(make_problem(4), rough)).words("header")
    assert "No ranking" in words
    assert "is the fastest" not in words


def test_labels_at_curves_never_cover_each_other():
    random = np.random.default_rng(0)
    places = random.uniform([62, 100], [620, 316], (12, 2))
    wanted = [(x, y, "a label"[: 2 + k % 5], "0") for k, (x, y) in enumerate(places)]
    placed = place_labels(sorted(wanted, key=lambda each: -each[1]))
    for k, (x, y, text, _) in enumerate(placed):
        for a, b, other, _ in placed[:k]:
            apart = a >= x + LETTER * len(text) or x >= a + LETTER * len(other)
            assert apart or abs(b - y) > LINE - 1e-9

"""Whole pages: every algorithm, every kind of problem, however the run ended."""

import dataclasses
import math

import pytest

import adfs
from adfs.algorithms.base import REGISTRY, Method, get_algorithm
from adfs.study.comparison import RunRecord
from adfs.study.numbers import number
from adfs.study.report import compare_page, train_page
from adfs.study.report.convergence_chart import ROWS
from support.reports import EVIL, Page, make_problem, with_last_row

SMOOTH = ["adfs", "dsba", "esdacd", "katyusha", "l-katyusha", "lbfgs", "msda", "newton",
          "point-saga", "ssda", "tron"]  # fmt: skip
PARTS = ["convergence", "model", "theory", "problem", "parameters", "schedule", "making"]


def test_the_list_of_algorithms_is_that_of_the_registry():
    assert sorted([*SMOOTH, "ns-adfs"]) == sorted(adfs.algorithms.NAMES)


@pytest.mark.parametrize("algorithm", [*SMOOTH, "ns-adfs"])
def test_every_algorithm_has_a_page(algorithm):
    problem = make_problem(4, loss="hinge" if algorithm == "ns-adfs" else "logistic")
    result = adfs.solve(problem, algorithm, tol=1e-3, max_iter=20_000)
    result = dataclasses.replace(result, setup_time=0.0)  # on a busy machine it is long
    page = Page(train_page(problem, result, tol=1e-3, data="d.svm", command="adfs train d.svm"))
    assert [each[1]["id"] for each in page.all("section")] == PARTS
    assert len(page.all("circle")) == 4
    assert page.all("path", class_="k-compute"), "the timeline is empty"
    assert algorithm in page.words("header")
    assert page.words("pre", aria_label="The command") == "adfs train d.svm"
    assert page.data["chart"]["runs"][0]["columns"]["iteration"] == result.trace["iteration"]
    proven = [run for run in page.data["chart"]["runs"] if run["theory"]]
    assert len(proven) == (algorithm not in ("ns-adfs", "newton", "lbfgs", "tron"))


@pytest.mark.parametrize(
    "loss", ["squared", "squared_hinge", "smoothed_hinge", "huber", "absolute"]
)
def test_every_loss_has_a_page(loss):
    problem = make_problem(4, loss=loss)
    result = adfs.solve(problem, tol=1e-2, max_iter=20_000)
    page = Page(train_page(problem, result))
    text = page.words("section", id="problem")
    assert problem.loss.formula in text
    assert ("none: the loss is not smooth" in text) == (not problem.loss.smooth)


def test_condition_numbers_and_rates_are_those_of_the_run():
    problem = make_problem(4)
    result = adfs.solve(problem, tol=1e-6, parameters="exact", schedule="shared")
    page = Page(train_page(problem, result))
    facts = page.words("section", id="problem")
    assert f"{problem.conditioning.kappa_s:.4g}" in facts
    assert f"{problem.conditioning.kappa_b():.4g}" in facts
    shown = page.words("section", id="parameters")
    assert f"{result.parameters.sigma_A:.4g}" in shown
    assert page.words("section", id="theory").count("1 − ρ") == 2


@pytest.mark.parametrize("schedule", ["shared", "poisson"])
def test_the_page_says_what_t_is(schedule):
    problem = make_problem(4)
    text = train_page(problem, adfs.solve(problem, tol=1e-4, schedule=schedule))
    assert ("Under Poisson clocks t is a time" in text) == (schedule == "poisson")


def test_one_node_has_a_page_without_edges():
    problem = make_problem(1)
    page = Page(train_page(problem, adfs.solve(problem, tol=1e-4)))
    assert len(page.all("circle")) == 1
    assert "0: one node has no edge" in page.words("section", id="parameters")
    assert "n_comm" not in page.data["chart"]["xAxes"], "an axis on which nothing happens"


def test_many_nodes_have_a_page_of_moderate_size():
    problem = make_problem(1_200, graph="ring", n_samples=2_400)
    result = adfs.solve(problem, parameters="paper", max_iter=3_000)
    text = train_page(problem, result)
    page = Page(text)
    assert "too many to be drawn" in text
    assert len(page.all("svg", class_="timeline")) == 1
    assert "Nodes 0 to 23 of 1,200" in text
    assert "mean of 1,200" in page.words("section", id="schedule")
    assert len(text) < 400_000


def test_a_long_trace_is_thinned_and_says_so():
    problem = make_problem(4)
    result = adfs.solve(problem, max_iter=2_500, evaluate_every=1, tol=1e-15)
    text = train_page(problem, result)
    kept = len(Page(text).data["chart"]["runs"][0]["columns"]["iteration"])
    assert kept == ROWS // 10 < len(result.trace)
    assert f"thinned for this page: {kept:,} of {len(result.trace):,} rows" in text


def test_a_run_without_an_event_has_a_page():
    problem = make_problem(4)
    page = Page(train_page(problem, adfs.solve(problem, max_iter=0)))
    assert "limit of iterations" in page.words("header")
    assert page.data["chart"]["x"] == "iteration"


def test_a_run_that_blew_up_has_a_page_with_nulls():
    problem = make_problem(4)
    result = adfs.solve(problem, tol=1e-4, evaluate_every=500)
    wild = with_last_row(result, objective=math.nan, duality_gap=math.inf, consensus_error=math.inf)
    wild = dataclasses.replace(
        wild, status="diverged", objective=math.nan, duality_gap=math.inf
    )  # fmt: skip
    page = Page(train_page(problem, wild, tol=1e-4))
    columns = page.data["chart"]["runs"][0]["columns"]
    assert columns["objective"][-1] is columns["duality_gap"][-1] is None
    assert page.words("header").count("not finite") == 3
    assert "Diverged" in page.words("header")


def test_a_comparison_of_all_algorithms_has_a_page():
    problem = make_problem(4)
    comparison = adfs.compare(problem, SMOOTH, tol=1e-4, seeds=2)
    page = Page(compare_page(problem, comparison, command="adfs compare d.svm"))
    runs = page.data["chart"]["runs"]
    assert [(run["label"], run["seed"]) for run in runs] == [
        (record.label, record.seed) for record in comparison.records
    ]
    table = page.words("section", id="times")
    for row in comparison.table():
        assert all(cell.text in table for cell in row.cells)
    rates = page.words("section", id="theory")
    assert rates.count("no theorem") == 3
    schedules = page.words("section", id="schedule")
    assert schedules.count("How the nodes spend their time") == len(SMOOTH)


def made_up(problem, setting):
    """A plug-in's factory: MSDA at ten times its rate, about which nothing is said."""
    method = get_algorithm("msda")(problem, setting)
    fields = (method.algorithm, method.source, method.clock)
    return Method(*fields, min(0.5, 10.0 * method.rho), "my parameters", block=16, shortest=1)


def test_the_made_up_rate_of_a_plug_in_is_not_called_proven(monkeypatch):
    monkeypatch.setitem(REGISTRY, "mine", made_up)
    problem = make_problem(4)
    page = Page(train_page(problem, adfs.solve(problem, "mine", tol=1e-4)))
    assert [run["theory"] for run in page.data["chart"]["runs"]] == [False]
    assert "proven" not in page.words("section", id="theory")
    assert "proven" not in page.words("section", id="convergence")
    assert page.words("section", id="parameters").count("my parameters") == 1
    comparison = adfs.compare(problem, ["mine"], tol=1e-4)
    assert comparison.records[0].proven_rate is None
    rates = Page(compare_page(problem, comparison)).words("section", id="theory")
    assert rates.count("no theorem") == 1


@pytest.mark.parametrize("setup_time", [0.0, 1e6])
def test_msda_is_called_proven_however_long_its_set_up_took(setup_time):
    problem = make_problem(4)
    result = dataclasses.replace(adfs.solve(problem, "msda", tol=1e-4), setup_time=setup_time)
    page = Page(train_page(problem, result))
    assert [run["theory"] for run in page.data["chart"]["runs"]] == [False, True]
    whole = adfs.compare(problem, ["msda"], tol=1e-4)
    slow = [dataclasses.replace(record, setup_time=setup_time) for record in whole.records]
    rates = Page(compare_page(problem, dataclasses.replace(whole, records=slow)))
    text = rates.words("section", id="theory")
    assert "no theorem" not in text
    assert number(result.rho) in text


def test_a_comparison_with_random_delays_on_a_loss_without_smoothness_has_a_page():
    problem = make_problem(4, loss="hinge")
    delays = adfs.Delays(tau=2.0, speed=[1.0, 1.0, 1.0, 5.0], law="exponential")
    comparison = adfs.compare(problem, ["ns-adfs"], tol=1e-1, delays=delays, max_iter=50_000)
    page = Page(compare_page(problem, comparison))
    assert "no theorem" in page.words("section", id="theory")
    assert page.all("path", class_="k-compute")


def test_a_comparison_in_which_nothing_started_has_a_page():
    problem = make_problem(4)
    whole = adfs.compare(problem, ["adfs"], tol=1e-2)
    none = dataclasses.replace(whole, records=[], interrupted=True)
    text = compare_page(problem, none)
    assert "Interrupted with 0 of 1 runs finished." in Page(text).words("header")
    assert "No run was started" in text


def test_parameters_that_cannot_be_made_again_are_shown_as_text():
    problem = make_problem(4)
    whole = adfs.compare(problem, ["adfs"], tol=1e-2)
    slow = [dataclasses.replace(record, setup_time=1e3) for record in whole.records]
    page = Page(compare_page(problem, dataclasses.replace(whole, records=slow)))
    assert "No timeline" in page.words("section", id="schedule")
    assert "stochastic condition number" in page.words("section", id="parameters")


def evil_comparison(problem):
    """A comparison in which every text contains markup."""
    whole = adfs.compare(problem, ["adfs"], tol=1e-2)
    (record,) = whole.records
    fields = {**vars(record), "label": EVIL, "parameters": f"{EVIL}\n  {EVIL}", "setup_time": 1e3}
    return dataclasses.replace(whole, records=[RunRecord(**fields)], left_out={EVIL: EVIL})


def test_no_word_of_a_page_becomes_markup():
    problem = make_problem(4)
    evil = adfs.Topology(4, problem.topology.edges, EVIL)
    problem = adfs.Problem(adfs.partition(*adfs.generators.two_gaussians(80, 3, seed=0), 4),
                           topology=evil)  # fmt: skip
    result = dataclasses.replace(adfs.solve(problem, tol=1e-2), rule=EVIL, clock="nonblocking")
    train = train_page(problem, result, data=EVIL, command=EVIL, measures={EVIL: EVIL})
    compare = compare_page(problem, evil_comparison(problem), data=EVIL, command=EVIL)
    for text in (train, compare):
        page = Page(text)
        assert not page.all("img")
        assert len(page.all("script")) == 2
        assert not any(name.startswith("on") for each in page.elements for name in each[1])
        assert page.words("pre", aria_label="The command") == EVIL
        assert page.words("h1") == EVIL


def test_headings_tables_and_pictures_can_be_read_aloud():
    problem = make_problem(4)
    page = Page(train_page(problem, adfs.solve(problem, tol=1e-4)))
    assert len(page.all("h1")) == 1
    assert len(page.all("table")) == len(page.all("caption"))
    for svg in page.all("svg"):
        assert "aria-hidden" in svg[1] or "".join(svg[2]).strip(), "a picture without words"
    (html,) = page.all("html")
    assert html[1]["lang"] == "en"
    identifiers = [each[1]["id"] for each in page.elements if "id" in each[1]]
    assert len(identifiers) == len(set(identifiers))

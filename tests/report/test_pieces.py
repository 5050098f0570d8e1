"""The pieces of a page against what they are made from: graph, curves, timelines, rates."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import adfs
from adfs.algorithms.base import MethodSetting, get_algorithm
from adfs.engine.trace import Trace
from adfs.schedule.delays import Delays
from adfs.study.plots.graph_plot import positions
from adfs.study.report import convergence_chart, node_timeline, pages
from adfs.study.report.graph_picture import MOST_NODES, draw_graph
from adfs.study.report.render import environment
from adfs.theory.description import BindingPlace
from support.reports import Page, make_problem

FAMILIES = ["grid:3x4", "torus:4x5", "ring:7", "path:30", "star:6", "complete:5", "hypercube:4",
            "random_regular:20,k=3", "erdos_renyi:25,p=0.3", "single", "path:2"]  # fmt: skip
CLOCKS = ("nonblocking", "rendezvous")


def part(name, *values):
    """HTML of a macro of the templates."""
    return str(getattr(environment().get_template("parts.html").module, name)(*values))


def graph(topology, binding=None):
    return part("graph", draw_graph(topology, binding))


def parameters(chosen, rule):
    return part("parameters", chosen, rule)


def activity(method, n_events):
    return node_timeline.activity_of(
        method.source, method.clock.copy(), method.parameters, n_events
    )


@pytest.mark.parametrize("name", FAMILIES)
def test_a_picture_has_the_nodes_and_edges_of_its_graph(name):
    topology = adfs.Topology.parse(name)
    page = Page(graph(topology))
    assert len(page.all("circle")) == topology.n_nodes
    (path,) = page.all("path", class_="edge")
    assert path[1]["d"].count("M") == topology.n_edges
    assert f"{topology.n_nodes} node" in page.words("desc")


@pytest.mark.parametrize("name", FAMILIES)
def test_no_two_nodes_are_drawn_at_one_place_or_outside_the_picture(name):
    topology = adfs.Topology.parse(name)
    places = positions(topology)
    assert len(np.unique(places.round(6), axis=0)) == topology.n_nodes
    page = Page(graph(topology))
    width, height = map(float, page.all("svg")[0][1]["viewbox"].split()[2:])
    for circle in page.all("circle"):
        x, y, r = (float(circle[1][key]) for key in ("cx", "cy", "r"))
        assert r <= x <= width - r
        assert r <= y <= height - r


def test_a_huge_graph_is_described_not_drawn():
    topology = adfs.Topology.ring(MOST_NODES + 1)
    text = graph(topology)
    assert "1,001 nodes and 1,001 edges: too many to be drawn." in text
    assert "<circle" not in text
    assert len(text) < 500


def test_a_large_graph_stays_a_small_picture():
    topology = adfs.Topology.grid(30, 33)
    assert len(Page(graph(topology)).all("circle")) == 990
    assert len(graph(topology)) < 200_000


def test_what_limits_the_rate_is_marked():
    problem = make_problem(6, graph="ring")
    chosen = adfs.Parameters.choose(problem, "paper")
    place = chosen.binding_place
    limits = {"edge": chosen.edge_limits, "node": chosen.node_limits}[place.kind]
    assert limits[place.number] == pytest.approx(chosen.rho, rel=1e-6)
    assert len(Page(graph(problem.topology, place)).all("line", class_="binding")) == (
        place.kind == "edge"
    )
    marked = Page(graph(problem.topology, BindingPlace("node", 2))).all("circle", class_="binding")
    assert len(marked) == 1


@pytest.mark.parametrize("how", ["paper", "balanced", "exact", "projector", "tuned"])
def test_every_parameter_has_its_formula(how):
    problem = make_problem(4)
    chosen = adfs.Parameters.choose(problem, how)
    text = parameters(chosen, how)
    assert "given" not in text
    assert f"by the rule {how}" in text
    assert chosen.binding[1:] in text


@pytest.mark.parametrize("name", sorted(adfs.algorithms.NAMES))
def test_a_page_shows_every_number_that_the_text_has(name):
    problem = make_problem(4, loss="hinge" if name == "ns-adfs" else "logistic")
    chosen = get_algorithm(name)(problem, MethodSetting()).parameters
    rows = [line.split() for line in str(chosen).splitlines()[1:]]
    facts = [fact for fact in chosen.description().facts if fact.name]
    assert [row[:2] for row in rows] == [[fact.name, fact.text] for fact in facts]
    shown = Page(parameters(chosen, "tuned")).all("tr")
    assert len(shown) == 1 + len(chosen.description().facts)


def test_parameters_that_say_nothing_of_themselves_are_shown_as_text():
    text = "Mine\n  eta       0.25         <b>step</b>"
    assert Page(parameters(text, "tuned")).words("pre") == text


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("name", ["adfs", "esdacd", "msda", "dsba", "katyusha", "newton"])
def test_shares_of_time_are_those_of_the_clock(name, clock):
    problem = make_problem(6, graph="ring", n_samples=50)
    delays = Delays(tau=3.0, speed=(1.0, 2.0, 1.0, 1.0, 4.0, 1.0))
    method = get_algorithm(name)(problem, MethodSetting("tuned", 3.0, clock, delays, 1))
    found = activity(method, 200)
    whole = method.clock.copy()
    whole.advance(method.source.draw(0, found.n_events))
    busy = found.shares["compute"] + found.shares["communicate"]
    synchronous = not hasattr(whole, "waiting")
    computed = found.shares["compute"] if synchronous else busy
    assert found.table["end"].max() == pytest.approx(whole.time)
    assert computed * whole.time == pytest.approx(whole.busy)
    assert busy + found.shares["wait"] + found.shares["outside"] == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["adfs", "esdacd", "dsba"])
def test_a_node_does_one_thing_at_a_time(name):
    problem = make_problem(6, graph="ring", n_samples=50)
    method = get_algorithm(name)(
        problem, MethodSetting("tuned", 3.0, "nonblocking", Delays(tau=3.0), 1)
    )
    window, end = activity(method, 200).window()
    assert window["end"].max() == end
    for node in range(6):
        mine = window[window["node"] == node]
        mine = mine[np.argsort(mine["start"], kind="stable")]
        assert (mine["start"][1:] >= mine["end"][:-1] - 1e-9).all()


@pytest.mark.parametrize("schedule", ["shared", "poisson"])
def test_the_timeline_is_of_the_events_that_were_run(schedule):
    problem = make_problem(4)
    result = adfs.solve(problem, tol=1e-12, max_iter=500, seed=3, schedule=schedule)
    chosen = result.parameters
    found = pages._run_activity(problem, result, Delays(tau=5.0))
    source = get_algorithm("adfs")(
        problem, MethodSetting(chosen, 5.0, "nonblocking", Delays(tau=5.0), 3, schedule)
    ).source
    local = source.draw(0, result.iterations).which >= problem.topology.n_edges
    assert found.n_events == len(local)
    assert np.count_nonzero(found.table["kind"] == 0) == np.count_nonzero(local)


def test_a_law_of_events_has_the_timeline_of_its_method():
    problem, delays = make_problem(6, graph="ring"), Delays(tau=3.0)
    method = get_algorithm("esdacd")(problem, MethodSetting("tuned", 3.0, "rendezvous", delays, 1))
    result = adfs.solve(
        problem, "esdacd", tau=3.0, clock="rendezvous", seed=1, tol=1e-12, max_iter=100
    )
    found = pages._run_activity(problem, result, delays)
    assert (found.table == activity(method, 100).table).all()


@pytest.mark.parametrize(("name", "known"), [("adfs", True), ("esdacd", True), ("dsba", False)])
def test_on_ranks_the_timeline_is_drawn_again_from_the_law(name, known):
    problem = make_problem(4)
    result = adfs.solve(problem, name, tol=1e-3, max_iter=100)
    on_ranks = SimpleNamespace(network=SimpleNamespace(is_whole=False))
    found = pages._run_activity(on_ranks, result, Delays(tau=5.0))
    assert (found is not None) == known


def test_one_by_one_durations_that_are_random_are_not_guessed():
    problem = make_problem(4)
    delays = Delays(tau=3.0, law="exponential")
    method = get_algorithm("esdacd")(problem, MethodSetting("tuned", 3.0, "nonblocking", delays, 0))
    assert activity(method, 50) is None


def test_thinning_keeps_both_ends_and_the_number_of_rows():
    trace = Trace()
    for k in range(5_000):
        trace.append(iteration=k, n_prox=k, n_grad=0, objective=-2.0, duality_gap=1.0 / (1 + k))
    columns = convergence_chart.page_curve("adfs", 0, trace, 100, 300).columns
    assert len(columns["iteration"]) == 300
    assert (columns["iteration"][0], columns["iteration"][-1]) == (0, 4_999)
    assert columns["relative_gap"][-1] == pytest.approx(1 / 5_000 / 2.0)
    assert columns["passes"][-1] == pytest.approx(49.99)


def geometric(rate, n=40, noise=0.0, **columns):
    t = np.arange(n) * 100
    error = np.exp(np.log1p(-rate) * t + noise * np.random.default_rng(0).normal(size=n))
    return {"iteration": t.tolist(), "idealized_time": (2.0 * t).tolist(), "e": error.tolist()}


@pytest.mark.parametrize(("noise", "slack"), [(0.0, 1e-9), (0.1, 0.05)])
def test_the_measured_rate_is_that_of_the_curve(noise, slack):
    found = pages.fit(geometric(3e-3, noise=noise), "e")
    assert found.rate == pytest.approx(3e-3, rel=slack)
    assert found.time == pytest.approx(-2.0 / math.log1p(-3e-3), rel=slack)


def test_the_rate_is_that_of_the_end_not_of_the_start():
    slow, fast = geometric(1e-3, n=40), geometric(5e-3, n=40)
    errors = fast["e"][:20] + [fast["e"][20] / slow["e"][20] * each for each in slow["e"][20:]]
    assert pages.fit({**slow, "e": errors}, "e").rate == pytest.approx(1e-3)


def test_the_measured_exponent_is_that_of_the_curve():
    t = list(range(10, 500, 10))
    found = pages.fit({"iteration": t, "idealized_time": t, "e": [7.0 / k**2 for k in t]}, "e")
    assert found.power == pytest.approx(-2.0)


def test_rounding_and_gaps_in_a_trace_do_not_spoil_the_rate():
    columns = geometric(3e-3)
    columns["e"][5], columns["e"][30], columns["e"][33] = None, math.nan, math.inf
    columns["e"] += [1e-17] * 3
    columns["iteration"] += [4_000, 4_100, 4_200]
    columns["idealized_time"] += [8_000.0, 8_200.0, 8_400.0]
    assert pages.fit(columns, "e").rate == pytest.approx(3e-3, rel=1e-6)


def test_an_error_that_grows_has_no_time_for_a_factor():
    columns = geometric(3e-3)
    columns["e"].reverse()
    found = pages.fit(columns, "e")
    assert found.rate < 0.0
    assert math.isinf(found.time)


@pytest.mark.parametrize("errors", [[], [1.0], [1.0, None], [None, None, math.nan]])
def test_too_few_evaluations_have_no_rate(errors):
    t = list(range(len(errors)))
    assert pages.fit({"iteration": t, "idealized_time": t, "e": errors}, "e") is None


def test_the_dotted_line_falls_by_the_proven_factor():
    result = adfs.solve(make_problem(4), tol=1e-6, evaluate_every=500, schedule="shared")
    run = convergence_chart.page_curve("adfs", 0, result.trace, 80)
    line = run.proven(result.rho)
    gaps = line.columns["relative_gap"]
    assert gaps[0] == run.columns["relative_gap"][0]
    assert gaps[3] / gaps[2] == pytest.approx((1.0 - result.rho) ** 500)
    assert set(line.columns["objective"]) == {None}

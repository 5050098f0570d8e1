"""Reports, contexts, samples and yardsticks: what every reproduction stands on."""

import csv
import json
import math
import signal
import sys
import threading

import numpy as np
import pytest

import adfs
from adfs.algorithms.base import REGISTRY, MethodSetting
from adfs.engine.interrupts import Interrupts
from adfs.engine.stopping import Stopping
from adfs.plan.sizes import Sizes
from adfs.run import RunOptions, run
from adfs.study.comparison import Curve
from adfs.study.paper import CATALOGUE, claims, study_context
from adfs.study.paper.claims import Claim, verdict
from adfs.study.paper.scaling import FAMILIES, QUICK, LargeNetwork, critical_size, draw_graph
from adfs.study.paper.study_context import Picture, Pool, Report, ResultTable, StudyContext
from adfs.study.paper.table_1 import late_slope
from adfs.study.plots.paper_plots import draw_rates, draw_scaling
from support.limits import HANG


@pytest.mark.parametrize(
    ("cases", "word"),
    [([True, True], "yes"), ([False, False], "no"), ([True, False], "partly"), ([], "not decided")],
)
def test_a_verdict_is_what_the_cases_say(cases, word):
    assert verdict(iter(cases)) == word


def make_report(**changes):
    claims = [Claim("it is small", "it is 3", verdict([True])), Claim("red", "blue", "no")]
    rows = [("a", 1234, 0.123456, None, True), ("bb", 7, math.nan, 5e9, False)]
    table = ResultTable("numbers", "Numbers", ("name", "n", "x", "y", "ok"), rows)
    hidden = ResultTable("hidden", "Hidden", ("z",), [(np.float64(1.5),), (math.inf,)], shown=False)
    given = {"remarks": ["as expected"], **changes}
    return Report("thing", "A thing", ["In a setting."], claims, [table, hidden], **given)


def test_a_report_reads_from_the_setting_to_the_verdicts():
    text = str(make_report(quick=True, interrupted=True))
    places = [text.index(part) for part in (
        "thing: A thing", "A quick version", "Interrupted: this is what was finished",
        "In a setting.", "name      n", "The paper:  it is small", "Measured:   it is 3",
        "Holds:      yes", "Holds:      no", "Remark:     as expected",
    )]  # fmt: skip
    assert places == sorted(places)
    assert "Hidden" not in text
    assert "a     1,234  0.1235      -  yes" in text
    assert "bb        7       -  5e+09   no" in text
    assert make_report().holds == "partly"


def test_long_sentences_are_broken_beside_their_heading():
    text = str(Claim("word " * 40, "short", "yes")).splitlines()
    assert text[0].startswith("The paper:  word")
    assert text[1].startswith("            word")
    assert max(map(len, text)) <= claims.WIDTH


def test_a_saved_report_is_whole_in_every_format(tmp_path):
    def draw(figure):
        figure.add_subplot().plot([0, 1])

    report = make_report(pictures=[Picture("curve", (3.0, 2.0), draw)])
    names = {path.name for path in report.save(tmp_path / "new" / "thing")}
    folder = tmp_path / "new" / "thing"
    assert names == {path.name for path in folder.iterdir()} == {
        "report.txt", "report.json", "numbers.csv", "hidden.csv", "curve.png", "curve.pdf",
    }  # fmt: skip
    assert (folder / "report.txt").read_text() == f"{report}\n"
    record = json.loads((folder / "report.json").read_text())
    assert record["claims"][1] == {"paper": "red", "measured": "blue", "holds": "no"}
    assert record["tables"][0]["rows"][1] == ["bb", 7, None, 5e9, False]
    assert record["tables"][1]["rows"] == [[1.5], [None]]
    with open(folder / "numbers.csv", newline="") as file:
        assert list(csv.reader(file))[2] == ["bb", "7", "", "5000000000.0", "False"]
    assert (folder / "curve.png").read_bytes()[:4] == b"\x89PNG"
    assert (folder / "curve.pdf").read_bytes()[:4] == b"%PDF"


def test_without_matplotlib_everything_but_the_pictures_is_saved(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    report = make_report(pictures=[Picture("curve", (3.0, 2.0), lambda figure: None)])
    assert "report.txt" in {path.name for path in report.save(tmp_path)}
    assert not (tmp_path / "curve.png").exists()


def test_work_is_done_in_several_threads_and_told_in_order():
    meeting, shares = threading.Barrier(2, timeout=HANG), []

    def work(item):
        meeting.wait()  # passes only if two items are worked on at a time
        return item * item

    context = StudyContext(jobs=2, progress=shares.append)
    assert context.map(work, [1, 2, 3, 4], [1.0, 1.0, 1.0, 1.0]) == [1, 4, 9, 16]
    assert sorted(shares) == [0.25, 0.5, 0.75, 1.0]


def test_a_signal_keeps_what_is_finished_and_begins_nothing_more():
    with Interrupts((signal.SIGINT,)) as interrupts:
        context, begun = StudyContext(jobs=1, interrupts=interrupts), []

        def work(item):
            begun.append(item)
            if item == 3:
                interrupts.received = signal.SIGINT
                return None
            return item

        assert context.map(work, [1, 2, 3, 4, 5], [1.0] * 5) == [1, 2]
        assert begun == [1, 2, 3]
        assert context.interrupted


def test_every_name_of_the_catalogue_leads_to_a_function():
    assert all(callable(entry.load()) for entry in CATALOGUE.values())


def test_samples_are_generated_where_a_set_is_not_on_disk(monkeypatch, tmp_path):
    monkeypatch.setenv("ADFS_CACHE", str(tmp_path))
    monkeypatch.delenv("ADFS_DATA", raising=False)
    pool = Pool.load("higgs")
    assert "generated" in pool.source
    assert pool.X.shape == (study_context.ROWS, 28)
    (tmp_path / "HIGGS.57594").write_text("1 1:1\n-1 28:2\n")
    assert Pool.load("higgs").source == "higgs, 2 rows of HIGGS.57594"


def small_network(topology, seed=0):
    X, y = adfs.generators.two_gaussians(30, 3, seed=1)
    return LargeNetwork(Pool(X, y, "clouds"), topology, 12, 0.5, seed)


def test_the_weighted_sum_over_the_pool_is_f_itself():
    network = small_network(adfs.Topology.grid(2, 3))
    assert network.pooled.n_samples <= 30 < network.problem.n_samples == 72
    thetas = np.random.default_rng(0).standard_normal((6, 3))
    for theta in thetas:
        assert network.pooled.objective(theta) == pytest.approx(network.problem.objective(theta))
    best = network.problem.optimum()
    mean = np.mean([network.problem.objective(theta) for theta in thetas])
    expected = (mean - best.objective) / best.objective
    assert network.error(thetas) == pytest.approx(expected, rel=1e-12)
    same = np.tile(thetas[0], (6, 1))
    assert network.error(same) == pytest.approx(
        network.problem.objective(thetas[0]) / best.objective - 1, rel=1e-12
    )
    near = best.theta + 1e-3 * thetas
    assert network.rough_error(near) == pytest.approx(network.error(near), rel=0.01)


@pytest.mark.parametrize("name", ["adfs", "point-saga"])
def test_time_to_an_error_agrees_with_a_dense_curve(name):
    network = small_network(adfs.Topology.ring(4))
    network.problem.optimum()
    tol = 1e-5
    method = REGISTRY[name](network.problem, MethodSetting())
    found = network.time_to(tol, method, Interrupts())
    stopping = Stopping(tol / 100, measure="suboptimality")
    options = RunOptions(evaluate_every=1)
    trace = run(network.problem, name, MethodSetting(), stopping, options, Interrupts()).trace
    time, error = (np.array(trace[column]) for column in ("idealized_time", "suboptimality"))
    # The error rises and falls: it passes the one asked for between these two.
    assert time[error <= 3 * tol].min() < found < time[error > tol / 3].max() + 1


def test_a_run_that_was_interrupted_has_no_time():
    network, interrupts = small_network(adfs.Topology.ring(4)), Interrupts()
    interrupts.received = signal.SIGINT
    method = REGISTRY["adfs"](network.problem, MethodSetting())
    assert network.time_to(1e-5, method, interrupts) is None


SIZES = Sizes(n=9, m=100, tau=5, kappa_s=400, kappa_b=144, gamma=0.25)


@pytest.mark.parametrize(
    ("name", "time"),
    [("point-saga", 900 + 600), ("msda", 12 * (100 + 10)), ("esdacd", 105 * 24),
     ("dsba", (100 + 400 + 4) * 6), ("adfs", 100 + 200 + 6 * 40)],
)  # fmt: skip
def test_table_1_in_numbers(name, time):
    assert SIZES.times[name] == pytest.approx(time)


def test_sizes_are_read_off_the_problem():
    problem = small_network(adfs.Topology.complete(4)).problem
    sizes = Sizes.of(problem, 2.0)
    rows = np.vstack([problem.rows[0]])
    by_hand = max(1 + (rows[k : k + 12] ** 2).sum() / 4 / 0.5 for k in range(0, 48, 12))
    assert sizes[:3] == (4, 12.0, 2.0)
    assert sizes.kappa_s == pytest.approx(by_hand)
    assert sizes.gamma == pytest.approx(1.0)
    assert Sizes.of(small_network(adfs.Topology.single()).problem, 2.0).network == 0.0


def test_the_critical_size_of_square_grids_is_the_one_in_closed_form():
    # A k x k grid has gamma = tan^2(pi / 2k) / 2, from the path's eigenvalues.
    sizes = {k * k: Sizes(k * k, 1000, 5, 9000, 1, adfs.Topology.grid(k, k).spectrum.gamma)
             for k in (2, 4, 8, 16)}  # fmt: skip
    gamma = (6.0 * math.sqrt(9000) / (1000 + math.sqrt(9e6))) ** 2
    side = math.pi / (2 * math.atan(math.sqrt(2 * gamma)))
    assert critical_size(sizes) == pytest.approx(side**2, rel=0.02)
    assert critical_size({n: each for n, each in sizes.items() if n < 20}) == math.inf
    assert critical_size({n: each._replace(tau=500) for n, each in sizes.items()}) == 4.0
    assert critical_size({}) == math.inf


def test_every_family_has_a_graph_of_every_size():
    for family in FAMILIES:
        assert [draw_graph(family, n, 0).n_nodes for n in QUICK.sizes] == list(QUICK.sizes)
    assert set(draw_graph("random 4-regular graph", 64, 1).degrees) == {4}


def test_the_late_slope_leaves_the_start_out():
    x = np.array([0.0, 1.0, 2.0, 12.0, 22.0])
    assert late_slope(Curve(x, np.exp([0.0, -4.0, -8.0, -12.0, -16.0]))) == pytest.approx(2.5)
    assert late_slope(Curve(x, np.array([1.0, 0.9, 0.8, 0.6, 0.5]))) == math.inf
    exact = late_slope(Curve(x[:2], np.array([1.0, -1e-17])))  # below rounding: nothing left
    assert exact == pytest.approx(1 / -math.log(np.finfo(float).eps), rel=1e-9)


def test_scaling_and_rates_are_drawn_where_they_are():
    from matplotlib.figure import Figure

    points = {"ADFS, grid": [(1, 10.0), (4, 12.0)], "one machine": [(1, 8.0), (4, 30.0)]}
    theory, critical = {"one machine": [(1, 8.0), (4, 32.0)]}, {"ADFS, grid": 3.0}
    figure = Figure()
    draw_scaling(points, theory, critical, 20.0, figure)
    (ax,) = figure.axes
    lines = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
    assert lines["ADFS, grid"] == [[1, 10.0], [4, 12.0]]
    assert [text.get_text() for text in ax.texts] == [
        "twice the time of one node", "critical size of the grid: 3",
    ]  # fmt: skip
    figure = Figure()
    draw_rates({"adfs": [(200.0, 90.0), (100.0, 50.0)]}, figure)
    assert figure.axes[0].lines[0].get_xydata().tolist() == [[100.0, 50.0], [200.0, 90.0]]

"""`adfs schedule`: drawn, shown, timed and pictured."""

import json
import sys

import numpy as np
import pytest

from adfs.schedule.schedule import Schedule

# Figure 2 of the paper: nodes A to D, tau = 3.
FIGURE_2 = Schedule.from_events(
    4, [(0, 2), (1, 3), (0, 1), (2, 3)], [(0, 2), (1, 3), (0, 1), 3, (2, 3)]
)


@pytest.fixture
def figure_2(home):
    FIGURE_2.save("s.npz")
    return "s.npz"


def test_a_sample_without_data_has_the_share_of_communications_asked_for(adfs):
    outcome = adfs("schedule", "sample", "--graph", "ring", "--nodes", "6", "--p-comm", "0.25",
                   "--events", "40000", "--out", "s.npz", "--json")  # fmt: skip
    record = json.loads(outcome.out)
    assert (record["n_nodes"], record["n_edges"], record["n_events"]) == (6, 6, 40000)
    assert record["p_comm"] == pytest.approx(0.25, abs=0.01)
    np.testing.assert_allclose(record["n_local"], 5000, rtol=0.06)
    assert len(Schedule.load("s.npz")) == 40000


def test_a_sample_for_data_is_what_training_draws(adfs, dense):
    from adfs import Parameters, Problem, partition

    name, X, y = dense
    outcome = adfs("schedule", "sample", name, "--sigma", "0.5", "--tau", "2", "--events", "300",
                   "--seed", "4", "--out", "s.npz")  # fmt: skip
    assert outcome.code == 0
    problem = Problem(partition(X, y, 4, seed=4), sigma=0.5)
    drawn = Schedule.sample(Parameters.choose(problem, tau=2.0), 300, seed=4).events()
    saved = Schedule.load("s.npz").events()
    np.testing.assert_array_equal(saved.which, drawn.which)
    np.testing.assert_array_equal(saved.sample, drawn.sample)


def test_a_sample_without_a_strength_is_that_of_C_1(adfs, dense):
    for name, words in (("default.npz", ()), ("one.npz", ("--C", "1"))):
        assert adfs("schedule", "sample", dense[0], *words, "--out", name).code == 0
    default, one = (Schedule.load(name).events() for name in ("default.npz", "one.npz"))
    np.testing.assert_array_equal(default.which, one.which)


def test_one_node_never_communicates(adfs):
    record = json.loads(adfs("schedule", "sample", "--nodes", "1", "--events", "5", "--json").out)
    assert record["first"] == [0, 0, 0, 0, 0]


@pytest.mark.parametrize(("nodes", "share"), [(4, "1.5"), (4, "-0.1"), (4, "nan"), (1, "0.5")])
def test_an_impossible_share_is_refused(adfs, nodes, share):
    outcome = adfs("schedule", "sample", "--nodes", nodes, "--p-comm", share)
    assert outcome.code == 2
    assert "must be a share between 0 and 1" in outcome.err


def test_show_counts_and_lists_events_as_the_paper_writes_them(adfs, figure_2):
    outcome = adfs("schedule", "show", figure_2)
    assert "4 (80.0 %)" in outcome.out
    assert "(0,2) (1,3) (0,1) (3) (2,3)" in outcome.out
    record = json.loads(adfs("schedule", "show", figure_2, "--first", "2", "--json").out)
    assert record["first"] == [[0, 2], [1, 3]]
    assert record["n_local"] == [0, 0, 0, 1]


def test_figure_2_nodes_finish_when_the_paper_says(adfs, figure_2):
    arguments = ("schedule", "times", figure_2, "--tau", "3", "--clock", "rendezvous")
    record = json.loads(adfs(*arguments, "--json").out)
    assert record["finish"] == [6, 6, 7, 7]
    assert record["makespan"] == 7
    assert "makespan 7, mean idle share" in adfs(*arguments).out


def test_times_take_speeds_delays_and_laws(adfs, figure_2):
    slow = json.loads(
        adfs("schedule", "times", figure_2, "--tau", "3,3,3,1", "--speed", "1,1,1,10",
             "--clock", "rendezvous", "--json").out
    )  # fmt: skip
    assert slow["finish"] == [6, 6, 14, 14]
    runs = [
        json.loads(adfs("schedule", "times", figure_2, "--delay-law", "exponential",
                        "--delay-seed", seed, "--json").out)["makespan"]
        for seed in (0, 0, 1)
    ]  # fmt: skip
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--tau", "-1"], "--tau -1 must be >= 0"),
        (["--tau", "fast"], "'fast' must be a number or a list of numbers"),
        (["--speed", "1,2"], "speed has 2 values for 4 nodes"),
        (["--delay-shape", "2"], "means nothing to the constant law"),
    ],
)
def test_impossible_delays_are_refused(adfs, figure_2, arguments, sentence):
    outcome = adfs("schedule", "times", figure_2, *arguments)
    assert outcome.code == 2
    assert sentence in outcome.err


def test_a_timeline_is_a_picture_and_a_chrome_trace(adfs, figure_2, home):
    outcome = adfs("schedule", "timeline", figure_2, "--tau", "3", "--clock", "rendezvous",
                   "--out", "t.png", "--chrome", "t.json")  # fmt: skip
    assert outcome == (0, "events 0 to 4: wrote t.png, t.json\n", "")
    assert (home / "t.png").read_bytes()[:4] == b"\x89PNG"
    slices = [row for row in json.loads((home / "t.json").read_text())["traceEvents"]
              if row["ph"] == "X"]  # fmt: skip
    assert max(row["ts"] + row["dur"] for row in slices) == 7


def test_a_window_begins_where_the_events_before_it_end(adfs, figure_2, home):
    adfs("schedule", "timeline", figure_2, "--tau", "3", "--clock", "rendezvous", "--first", "2",
         "--last", "3", "--chrome", "t.json")  # fmt: skip
    slices = [row for row in json.loads((home / "t.json").read_text())["traceEvents"]
              if row["ph"] == "X"]  # fmt: skip
    assert [(row["tid"], row["ts"], row["dur"]) for row in slices] == [(0, 3, 3), (1, 3, 3)]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "a timeline needs a file"),
        (["--out", "t.bmp"], "must end in .png, .pdf, .svg"),
        (["--chrome", "t.json", "--first", "5"], "--first 5 must come before --last 5"),
        (["--chrome", "no/t.json"], "must be in an existing folder"),
        (["--chrome", "s.npz"], "would overwrite s.npz"),
    ],
)
def test_impossible_timelines_are_refused(adfs, figure_2, arguments, sentence):
    outcome = adfs("schedule", "timeline", figure_2, *arguments)
    assert outcome.code == 2
    assert sentence in outcome.err


def test_a_picture_without_matplotlib_says_which_extra(adfs, figure_2, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    outcome = adfs("schedule", "timeline", figure_2, "--out", "t.png")
    assert outcome.code == 2
    assert "run pip install '.[plots]'" in outcome.err


@pytest.mark.parametrize("verb", ["show", "times"])
def test_a_file_that_is_no_schedule_is_refused(adfs, home, verb):
    (home / "s.npz").write_bytes(b"noise")
    outcome = adfs("schedule", verb, "s.npz")
    assert outcome.code == 2
    assert "s.npz is not a schedule that can be read" in outcome.err

"""`datasets`, `info`, help, and the lists the parser writes out."""

import json

import pytest

import adfs as package
from adfs import losses
from adfs.cli import options
from adfs.data import partition
from adfs.data.datasets import DATASETS
from adfs.engine.trace import Trace
from adfs.graphs import graph_names
from adfs.schedule import clock, delays
from adfs.study.plots.comparison_plot import draw_convergence
from adfs.theory import rules


def test_names_written_out_for_a_quick_help_are_those_of_the_registries():
    assert set(options.LOSSES) == set(losses.LOSSES)
    assert options.PARTITIONS == partition.HOW
    assert options.CLOCKS == clock.CLOCKS
    assert set(options.RULES) == {*rules.RULES, "theory"}
    assert set(options.LAWS) == set(delays.LAWS)
    assert options.SCOPES == delays.SCOPES


def test_version(adfs):
    assert adfs("--version") == (0, f"adfs {package.__version__}\n", "")


@pytest.mark.parametrize(
    "command",
    ["train", "predict", "path", "datasets", "info", "schedule", "schedule sample",
     "schedule show", "schedule times", "schedule timeline"],
)  # fmt: skip
def test_every_command_has_help_with_an_example(adfs, command):
    outcome = adfs(*command.split(), "--help")
    assert outcome.code == 0
    assert f"usage: adfs {command}" in outcome.out
    assert "\nexample" in outcome.out
    assert f"  adfs {command}" in outcome.out.split("\nexample")[1].replace(
        "ADFS_DATA=~/libsvm ", ""
    )


def test_help_names_every_graph(adfs):
    text = " ".join(adfs("train", "--help").out.split())
    assert all(family in text for family in graph_names.FAMILIES)
    assert "regularised" in text[text.index("--intercept append") :][:120]


def test_datasets_are_listed_with_where_they_are(adfs, home, monkeypatch):
    (home / "data").mkdir()
    (home / "data" / "a9a").write_text("1 1:1\n")
    monkeypatch.setenv("ADFS_DATA", str(home / "data"))
    lines = adfs("datasets").out.splitlines()
    assert lines[0].split() == ["name", "rows", "features", "task", "where", "what"]
    assert len(lines) == 1 + len(DATASETS)
    where = {line.split()[0]: line for line in lines[1:]}
    assert str(home / "data" / "a9a") in where["a9a"]
    assert "downloaded when used" in where["rcv1"]
    assert "put it into ADFS_DATA" in where["reuters-money-fx"]


def test_datasets_as_json(adfs):
    records = json.loads(adfs("datasets", "--json").out)["datasets"]
    assert {record["name"]: record["n_features"] for record in records}["a9a"] == 123
    assert all(record["path"] is None for record in records)


def test_a_known_set_that_is_not_on_disk_is_announced_and_fetched(adfs, home, monkeypatch):
    def locate(name, progress):
        (home / "cache").mkdir()
        (home / "cache" / name).write_text("1 1:1\n-1 2:1\n1 1:2\n-1 2:2\n")

    monkeypatch.setattr("adfs.cli.problem_arguments.locate", locate)
    outcome = adfs("train", "a9a", "--json")
    assert outcome.err == f"a9a is not on disk: downloading {DATASETS['a9a'].url}\n"
    assert json.loads(outcome.out)["n_features"] == 123
    assert adfs("train", "a9a", "--json").err == ""


def test_datasets_of_a_folder_that_is_none(adfs, monkeypatch):
    monkeypatch.setenv("ADFS_DATA", "/no/such/folder")
    outcome = adfs("datasets")
    assert outcome.code == 2
    assert "ADFS_DATA=/no/such/folder must be a folder" in outcome.err


def test_info_tells_versions_extras_and_caches(adfs, monkeypatch):
    monkeypatch.setenv("ADFS_DATA", "/no/such/folder")
    record = json.loads(adfs("info", "--json").out)
    assert record["adfs"] == package.__version__
    assert record["cores"] >= 1
    assert {"numpy", "numba", "scikit-learn"} <= set(record["versions"])
    assert "must be a folder" in record["data"]["fault"]
    text = adfs("info").out
    assert "numba cache" in text
    assert "adfs" in text


def test_info_says_which_extra_to_install(adfs, monkeypatch):
    monkeypatch.setattr("adfs.cli.info.EXTRAS", {"no-such-package": "mpi"})
    assert "not installed; pip install '.[mpi]'" in adfs("info").out


def test_info_shows_costs_once_they_are_measured(adfs, monkeypatch, tmp_path):
    monkeypatch.setenv("ADFS_CACHE", str(tmp_path))
    given = package.Costs(0.25, factorisation=300.0, seconds=7e-8, name="measured")
    monkeypatch.setattr("adfs.calibration.measure", lambda: given)
    assert json.loads(adfs("info", "--json").out)["costs"] is None
    assert "not measured yet; adfs info --costs" in adfs("info").out
    text = adfs("info", "--costs").out
    for word in ("70 ns", "0.25", "300", "sparse, 100 features", str(tmp_path)):
        assert word in text
    record = json.loads(adfs("info", "--costs", "--json").out)
    assert package.Costs.read(record["costs"]) == given
    assert package.Costs.read(json.loads(adfs("info", "--json").out)["costs"]) == given


def test_convergence_is_drawn_with_the_rate_of_theorem_1():
    from matplotlib.figure import Figure

    trace = Trace()
    for iteration, gap in ((0, 8.0), (10, 2.0), (20, 0.5)):
        trace.append(iteration=iteration, idealized_time=3.0 * iteration, objective=4.0,
                     duality_gap=gap)  # fmt: skip
    ax = draw_convergence(trace, Figure().add_subplot(), rho=0.1, tol=1e-3)
    lines = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
    assert lines["duality gap (certified)"] == [[0, 2.0], [30, 0.5], [60, 0.125]]
    theory = lines[r"theory, $(1-\rho)^t$"]
    assert theory[2] == pytest.approx([60, 2.0 * 0.9**20])
    assert not any("suboptimality" in label for label in lines)
    assert ax.get_yscale() == "log"

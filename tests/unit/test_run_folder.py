"""The run folder: finished runs are not computed again, damaged ones are not trusted."""

import csv
import errno
import json
import math
import sys

import numpy as np
import pytest

import adfs
from adfs.algorithms.base import REGISTRY, get_algorithm
from adfs.engine import trace as traces
from adfs.engine.trace import COLUMNS
from adfs.errors import DataError
from adfs.study import run_folder as folders
from adfs.study.compare import UnsavedWarning
from adfs.study.comparison import RunRecord
from adfs.study.run_folder import fingerprint, run_digest
from support.comparisons import bits, counted, idle, interrupt, make_trace
from support.problems import gaussian_problem

pytestmark = pytest.mark.slow  # draws pictures
NAMES = ["adfs:exact", "counted"]
FILES = {
    "config.json",
    "comparison.json",
    "table.csv",
    "convergence.png",
    "convergence.pdf",
    "runs",
}


@pytest.fixture(scope="module")
def problem():
    return gaussian_problem()


@pytest.fixture
def pictures():
    """Asks for real pictures, which take longer than all else here."""


@pytest.fixture(autouse=True)
def quick(request, monkeypatch):
    if "pictures" not in request.fixturenames:
        monkeypatch.setattr(
            folders, "figure_images", lambda *_: dict.fromkeys(("png", "pdf"), b"picture")
        )


@pytest.fixture
def calls(monkeypatch):
    """Seeds of the runs of ``counted`` that were really computed."""
    return counted(monkeypatch)


@pytest.fixture
def again(problem, tmp_path):
    """Compare into the same folder, with changes."""

    def run(**keywords):
        keywords = {"algorithms": NAMES, "tol": 1e-5, "seeds": 2, **keywords}
        return adfs.compare(keywords.pop("problem", problem), folder=tmp_path / "r", **keywords)

    return run


def run_files(tmp_path, suffix):
    return sorted((tmp_path / "r" / "runs").glob(f"*{suffix}"))


def test_a_folder_says_what_it_holds(problem, calls, again, tmp_path):
    comparison = again(command="adfs compare x --out r")
    assert {path.name for path in (tmp_path / "r").iterdir()} == FILES
    config = json.loads((tmp_path / "r" / "config.json").read_text())
    assert config == comparison.config
    assert config["problem"] == {
        "loss": "logistic", "n_samples": 60, "n_features": 3, "n_nodes": 4, "storage": "dense",
        "graph": "grid:2x2", "n_edges": 4, "sigma": 0.3, "fingerprint": fingerprint(problem),
    }  # fmt: skip
    assert [each["label"] for each in config["algorithms"]] == NAMES
    assert config["seeds"] == [0, 1]
    assert (config["tol"], config["tau"], config["clock"]) == (1e-5, 5.0, "nonblocking")
    assert config["command"] == "adfs compare x --out r"
    assert set(config["versions"]) == {"python", "adfs", "numpy", "scipy", "numba"}
    assert config["cpu"]
    record = json.loads((tmp_path / "r" / "comparison.json").read_text())
    assert record == json.loads(json.dumps(comparison.to_dict()))
    assert record["optimum_gap"] == problem.optimum().duality_gap


def test_pictures_are_written_as_png_and_pdf(calls, again, tmp_path, pictures):
    again(seeds=1)
    assert (tmp_path / "r" / "convergence.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "r" / "convergence.pdf").read_bytes().startswith(b"%PDF")


def test_each_run_is_a_trace_and_a_summary(calls, again, tmp_path):
    comparison = again()
    for path, record in zip(run_files(tmp_path, ".csv"), comparison.records, strict=True):
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        assert list(rows[0]) == list(COLUMNS)
        assert [float(row["suboptimality"]) for row in rows] == record.trace["suboptimality"]
        summary = json.loads(path.with_suffix(".json").read_text())
        kept = summary["record"]
        assert (kept["label"], kept["seed"]) == (record.label, record.seed)
        assert (kept["status"], kept["parameters"]) == ("converged", record.parameters)
        assert kept["setup_time"] == record.setup_time > 0
        assert path.stem.endswith(run_digest(summary["identity"]))


def test_a_finished_run_is_not_computed_again(calls, again):
    first = again()
    assert calls == [0, 1]
    second = again()
    assert calls == [0, 1]
    assert bits(second) == bits(first)
    assert [run.trace["wall_time"] for run in second.records] == [
        run.trace["wall_time"] for run in first.records
    ]
    assert [run.reused for run in second.records] == [True] * 4
    assert str(second) == str(first)


def test_the_proven_rate_is_kept_with_a_run(again, calls):
    rates = [run.proven_rate for run in again(seeds=1).records]
    assert all(0.0 < rate < 1.0 for rate in rates)
    second = again(seeds=1)
    assert [(run.reused, run.proven_rate) for run in second.records] == [(True, r) for r in rates]
    assert [run["proven_rate"] for run in second.to_dict()["runs"]] == rates


def test_that_wall_times_are_not_clean_is_remembered(calls, again):
    again(jobs=2)
    assert [run.jobs for run in again(jobs=1).records] == [2] * 4


def test_more_seeds_or_algorithms_compute_only_what_is_new(calls, again):
    again()
    again(seeds=3)
    assert calls == [0, 1, 2]
    comparison = again(seeds=3, algorithms=[*NAMES, "adfs:paper"])
    assert calls == [0, 1, 2]
    assert [run.reused for run in comparison.records] == [True] * 6 + [False] * 3


@pytest.mark.parametrize(
    "change",
    [{"tol": 1e-4}, {"max_iter": 7}, {"time_limit": 100.0}, {"clock_limit": 1e8}, {"seed": 10}],
)
def test_what_a_run_depends_on_makes_another_run_and_leaves_the_first(
    calls, again, tmp_path, change
):
    again(seeds=1)
    before = {path: path.read_bytes() for path in run_files(tmp_path, "")}
    again(seeds=1, **change)
    assert len(calls) == 2
    assert {path: path.read_bytes() for path in before} == before
    again(seeds=1)
    assert len(calls) == 2


def test_an_identity_holds_all_that_a_run_depends_on(calls, again, tmp_path):
    again(seeds=1)
    (summary,) = (json.loads(p.read_text()) for p in run_files(tmp_path, ".json") if "co" in p.name)
    assert set(summary["identity"]) == {
        "problem", "algorithm", "rule", "seed", "tau", "clock", "delays", "costs", "tol",
        "clock_limit", "time_limit", "max_iter", "adfs",
    }  # fmt: skip
    names = {run_digest({**summary["identity"], name: "other"}) for name in summary["identity"]}
    assert len(names | {run_digest(summary["identity"])}) == 14


def test_another_version_of_adfs_runs_again(calls, again, monkeypatch):
    again(seeds=1)
    monkeypatch.setattr(adfs, "__version__", "99")
    again(seeds=1)
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("change", "word"),
    [({"tau": 6.0}, "tau"), ({"clock": "rendezvous"}, "clock"),
     ({"delays": adfs.Delays(tau=5.0, law="exponential")}, "delays"),
     ({"costs": adfs.Costs(gradient=0.5)}, "costs"),
     ({"problem": gaussian_problem(seed=1)}, "problem"), ({"problem": gaussian_problem(sigma=0.4)},
     "problem"), ({"problem": gaussian_problem(graph="star:4")}, "problem")],
)  # fmt: skip
def test_a_folder_of_another_comparison_is_refused_and_stays_as_it_is(
    calls, again, tmp_path, change, word
):
    again()
    before = {path: path.read_bytes() for path in (tmp_path / "r").rglob("*") if path.is_file()}
    with pytest.raises(DataError, match=f"holds a comparison with another {word}; choose another"):
        again(**change)
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("change", ["rows", "labels", "weights"])
def test_the_fingerprint_sees_every_number_of_the_data(change):
    X, y, weights = np.eye(4, 3) + 0.5, np.array([1.0, -1.0, 1.0, -1.0]), np.ones(4)

    def of(X, y, weights):
        shards = [(X[:2], y[:2], weights[:2]), (X[2:], y[2:], weights[2:])]
        return fingerprint(adfs.Problem(shards))

    before = of(X, y, weights)
    assert of(X.copy(), y.copy(), weights.copy()) == before
    {"rows": X[2], "labels": y, "weights": weights}[change][:2] *= -1.0 if change == "labels" else 2
    assert of(X, y, weights) != before


def spoil(path, how):
    content = path.read_bytes()
    if how == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "noise":
        path.write_bytes(b"\xff\x00" * 50)
    elif how == "changed":
        place = max(content.rfind(b"1"), content.rfind(b"2"))
        path.write_bytes(content[:place] + b"9" + content[place + 1 :])
    elif how == "missing":
        path.unlink()
    elif how == "folder":
        path.unlink()
        path.mkdir()


@pytest.mark.parametrize("suffix", [".csv", ".json"])
@pytest.mark.parametrize("how", ["truncated", "empty", "noise", "changed", "missing"])
def test_a_damaged_run_is_computed_again_not_trusted(calls, again, tmp_path, suffix, how):
    first = again()
    spoil(next(p for p in run_files(tmp_path, suffix) if p.name.startswith("counted-seed1")), how)
    second = again()
    assert calls == [0, 1, 1]
    assert bits(second) == bits(first)
    again()
    assert calls == [0, 1, 1]


@pytest.mark.parametrize("text", ["[1]", '{"record": 3}', "{}", "null", "[" * 100_000])
def test_json_of_another_shape_is_not_trusted(calls, again, tmp_path, text):
    again(seeds=1)
    for path in run_files(tmp_path, ".json"):
        path.write_text(text)
    again(seeds=1)
    assert calls == [0, 0]


def test_a_summary_of_another_run_does_not_vouch_for_this_one(calls, again, tmp_path):
    again()
    seed0, seed1 = (
        next(p for p in run_files(tmp_path, ".csv") if p.name.startswith(f"counted-seed{k}"))
        for k in (0, 1)
    )
    seed1.write_bytes(seed0.read_bytes())
    seed1.with_suffix(".json").write_bytes(seed0.with_suffix(".json").read_bytes())
    again()
    assert calls == [0, 1, 1]


def test_an_interrupted_run_is_not_kept_and_the_next_time_goes_on(
    calls, again, monkeypatch, tmp_path
):
    striking = [True]
    idle(monkeypatch, "struck", action=lambda: striking[0] and interrupt())
    later = counted(monkeypatch, "later")
    names = ["counted", "struck", "later"]
    first = again(algorithms=names, seeds=1, max_iter=20_000)
    assert first.interrupted
    assert later == []
    assert [path.name[:7] for path in run_files(tmp_path, ".csv")] == ["counted"]
    assert json.loads((tmp_path / "r" / "comparison.json").read_text())["interrupted"]
    striking[0] = False
    second = again(algorithms=names, seeds=1, max_iter=20_000)
    assert not second.interrupted
    assert calls == later == [0]
    assert [(run.label, run.status) for run in second.records] == [
        ("counted", "converged"), ("struck", "max_iter"), ("later", "converged"),
    ]  # fmt: skip
    assert len(run_files(tmp_path, ".csv")) == 3


def test_runs_that_did_not_arrive_are_finished_too(again, monkeypatch):
    prepared = []
    idle(monkeypatch)
    inner = REGISTRY["idle"]
    monkeypatch.setitem(REGISTRY, "idle", lambda p, s: prepared.append(p) or inner(p, s))
    again(algorithms=["idle"], max_iter=100, seeds=1)
    n_trials = len([p for p in prepared if p.n_samples == 4])
    again(algorithms=["idle"], max_iter=100, seeds=1)
    assert len(prepared) - 2 * n_trials == 1


def test_the_limit_that_adfs_sets_is_found_again_from_its_kept_run(calls, again):
    first = again(algorithms=["counted", "adfs"])
    second = again(algorithms=["counted", "adfs"])
    assert second.clock_limit == first.clock_limit
    assert [run.reused for run in second.records] == [True] * 4


@pytest.mark.parametrize("label", ["../../evil", "a/b", "..", ".hidden", "x\ny", "c:\\d", "☃"])
def test_a_hostile_label_stays_inside_the_folder(again, tmp_path, monkeypatch, label):
    monkeypatch.setitem(REGISTRY, label.replace(":", ""), get_algorithm("adfs"))
    names = [label.replace(":", "") + ":exact"]
    again(algorithms=names, seeds=1)
    assert again(algorithms=names, seeds=1).records[0].reused
    (trace,) = run_files(tmp_path, ".csv")
    assert trace.resolve().parent == tmp_path / "r" / "runs"
    assert trace.name.isascii()
    assert not trace.name.startswith(".")
    assert {path.name for path in tmp_path.iterdir()} == {"r"}


def full_disk(path, content):
    raise OSError(errno.ENOSPC, "No space left on device", str(path))


def test_a_disk_that_fills_up_costs_the_file_not_the_result(calls, again, tmp_path, monkeypatch):
    again(seeds=1)
    before = {path: path.read_bytes() for path in (tmp_path / "r").rglob("*") if path.is_file()}
    write = folders.write_whole

    def config_only(path, content):
        (write if path.name == "config.json" and b'"seeds"' in content else full_disk)(
            path, content
        )

    monkeypatch.setattr(folders, "write_whole", config_only)
    monkeypatch.setattr(traces, "write_whole", full_disk)
    with pytest.warns(UnsavedWarning, match="could not be written: No space left on device"):
        comparison = again(seeds=2)
    assert [run.status for run in comparison.records] == ["converged"] * 4
    assert len(comparison.failures) == 6  # two traces, summary, table and two pictures
    for path in before:
        assert path.name == "config.json" or path.read_bytes() == before[path]
    monkeypatch.undo()


def test_a_disk_that_is_full_from_the_start_is_told_before_any_run(calls, again, monkeypatch):
    monkeypatch.setattr(folders, "write_whole", full_disk)
    with pytest.raises(DataError, match="cannot be used: No space left on device; choose another"):
        again()
    assert calls == []


def test_a_refused_comparison_changes_nothing(calls, again, tmp_path):
    again(seeds=1)
    before = (tmp_path / "r" / "config.json").read_bytes()
    with pytest.raises(adfs.AdfsError, match="tol=1e-15 is too small"):
        again(tol=1e-15)
    assert (tmp_path / "r" / "config.json").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("config.json", b"{}", "was not written by `compare`"),
        ("config.json", b'{"format": "adfs comp', "or is damaged"),
        ("table.csv", b"mine", "holds table.csv but no config.json, so it is not a folder of"),
    ],
)
def test_files_of_others_are_not_overwritten(calls, again, tmp_path, name, content, sentence):
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / name).write_bytes(content)
    with pytest.raises(DataError, match=sentence):
        again()
    assert [path.read_bytes() for path in (tmp_path / "r").iterdir()] == [content]


def test_a_place_that_is_no_folder_is_refused(problem, tmp_path):
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / "file", ""):
        with pytest.raises(DataError, match="must name a folder; choose another"):
            adfs.compare(problem, ["adfs"], folder=place)
    with pytest.raises(DataError, match="must be a folder for results, but cannot be used: Not a"):
        adfs.compare(problem, ["adfs"], folder=tmp_path / "file" / "r")


def test_a_folder_that_cannot_be_looked_into_is_a_sentence(problem, tmp_path, monkeypatch):
    def denied(self):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("pathlib.Path.exists", denied)
    with pytest.raises(DataError, match="cannot be used: Permission denied"):
        adfs.compare(problem, ["adfs"], folder=tmp_path / "r")


def test_a_trace_comes_back_to_the_bit(tmp_path):
    trace = make_trace([0, 1, 7], [1 / 3, math.inf, -1e-17], bytes=[0, 2**60, 2**60 + 1],
                       wall_time=[0.0, 0.1, 1e-300])  # fmt: skip
    config = dict.fromkeys(("problem", "tau", "clock", "delays"))
    store = folders.RunFolder(tmp_path / "r", config)
    store.open(config)
    identity = {"seed": 3}
    store.save(RunRecord("a:b", "a", "b", 3, "diverged", trace, "text", 0.25), identity)
    found = store.load("a:b", identity)
    assert found.trace.to_dict() == trace.to_dict()
    assert (found.status, found.parameters, found.setup_time) == ("diverged", "text", 0.25)
    assert store.load("a:b", {"seed": 4}) is None
    store.save(RunRecord("a:b", "a", "b", 4, "interrupted", trace, "text", 0.25), {"seed": 4})
    assert store.load("a:b", {"seed": 4}) is None  # not finished


def test_no_matplotlib_means_no_picture_and_no_failure(
    calls, again, tmp_path, pictures, monkeypatch
):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    comparison = again(seeds=1)
    assert comparison.failures == ()
    assert {path.name for path in (tmp_path / "r").iterdir()} == {
        "config.json", "comparison.json", "table.csv", "runs",
    }  # fmt: skip

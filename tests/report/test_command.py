"""`--report`: refused before the run or written after it, however the run ended."""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import adfs
from adfs.cli.main import Leaving
from support.commands import here
from support.limits import HANG
from support.reports import Page, find_browser

TRAIN = ("train", "data.svm", "--nodes", "4", "--tol", "1e-4")
COMPARE = ("compare", "data.svm", "--nodes", "4", "--algorithms", "adfs,newton", "--tol", "1e-4")


def read(path):
    return Page(path.read_text(encoding="utf-8"))


def test_train_writes_the_page_of_its_run(home):
    outcome = here(*TRAIN, "--seed", "7", "--report", "r.html", "--test", "data.svm", "--json")
    record = json.loads(outcome.out)
    assert (outcome.code, record["report"]) == (0, "r.html")
    page = read(home / "r.html")
    command = "adfs train data.svm --nodes 4 --tol 1e-4 --seed 7 --report r.html --test data.svm"
    assert page.words("pre", aria_label="The command") == f"{command} --json"
    made = page.words("section", id="making")
    assert "seed7" in made
    assert f"adfs{adfs.__version__}" in made
    assert all(word in made for word in ("date", "host", "fingerprint of the samples"))
    assert page.data["chart"]["runs"][0]["columns"]["iteration"][-1] == record["iterations"]
    assert "accuracy, test" in page.words("header")
    assert record["train"]["confusion"] == record["test"]["confusion"]
    accuracy = f"{100 * record['test']['accuracy']:.2f} %"
    assert page.words("section", id="quality").count(accuracy) >= 2
    assert accuracy in page.words("header")


def test_the_output_names_the_page(home):
    assert "wrote" in here(*TRAIN, "--report", "r.html").out
    assert "report: c.html\n" in here(*COMPARE, "--report", "c.html").out


def test_the_page_changes_nothing_of_the_run(home):
    here(*TRAIN, "--out", "a.npz", "--trace", "a.csv")
    here(*TRAIN, "--out", "b.npz", "--trace", "b.csv", "--report", "r.html")
    first, second = adfs_models("a.npz"), adfs_models("b.npz")
    assert (first.coef == second.coef).all()
    assert (first.thetas == second.thetas).all()


def adfs_models(path):
    from adfs.model import Model

    return Model.load(path)


def test_a_run_that_stops_before_tol_has_its_page(home):
    outcome = here(*TRAIN, "--max-iter", "50", "--report", "r.html")
    assert outcome.code == 3
    assert "Stopped at the limit of iterations" in read(home / "r.html").words("header")


@pytest.mark.parametrize("command", [TRAIN, COMPARE], ids=["train", "compare"])
def test_what_is_interrupted_has_its_page(home, monkeypatch, command):
    monkeypatch.setattr(Leaving, "repeat", lambda *_: signal.raise_signal(signal.SIGINT))
    outcome = here(*command, "--report", "r.html")
    assert outcome.code == 130
    assert "Interrupted" in read(home / "r.html").words("header")


@pytest.mark.parametrize("command", [TRAIN, COMPARE], ids=["train", "compare"])
@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("r.txt", "--report r.txt must end in .html; rename it."),
        ("", "--report '' must name a file"),
        ("none/r.html", "must be in an existing folder"),
        ("folder.html", "must name a file, but is a folder"),
    ],
)
def test_a_place_that_cannot_be_is_refused_before_the_work(home, command, place, sentence):
    (home / "folder.html").mkdir()
    outcome = here(*command, "--report", place, "--max-iter", "0")
    assert outcome.code == 2
    assert sentence in outcome.err
    assert sorted(each.name for each in home.iterdir()) == ["data.svm", "folder.html"]


def test_a_page_does_not_overwrite_samples_or_other_files(home):
    (home / "data.svm").rename(home / "data.html")
    before = (home / "data.html").read_bytes()
    for verb in ("train", "compare"):
        outcome = here(verb, "data.html", "--report", "data.html")
        assert outcome.code == 2
        assert "--report data.html would overwrite data.html" in outcome.err
    outcome = here("train", "data.html", "--out", "m.html", "--report", "m.html")
    assert "--report m.html would overwrite --out m.html" in outcome.err
    assert (home / "data.html").read_bytes() == before


def test_a_failure_leaves_the_old_page(home):
    (home / "r.html").write_text("old")
    (home / "bad.svm").write_text("1 0:5\n")
    assert here("train", "bad.svm", "--report", "r.html").code == 2
    assert (home / "r.html").read_text() == "old"


@pytest.mark.parametrize("command", [TRAIN, COMPARE], ids=["train", "compare"])
def test_a_full_disk_costs_the_page_and_nothing_else(home, monkeypatch, command):
    def refuse(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("adfs.storage.write_whole", refuse)
    outcome = here(*command, "--report", "r.html")
    assert outcome.code == 1
    assert "r.html could not be written: No space left on device" in outcome.err
    assert "converged" in outcome.out
    assert not (home / "r.html").exists()


def test_compare_writes_its_page_into_the_folder_that_it_makes(home):
    outcome = here(*COMPARE, "--out", "results", "--report", "results/r.html", "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["report"] == "results/r.html"
    page = read(home / "results" / "r.html")
    assert {run["label"] for run in page.data["chart"]["runs"]} == {"adfs", "newton"}
    again = here(*COMPARE, "--out", "results", "--report", "results/r.html")
    assert "2 of 2 runs taken from there" in again.out
    assert "runs taken from a folder2" in read(home / "results" / "r.html").words(
        "section", id="making"
    )


def test_several_taus_have_a_page(home):
    outcome = here("compare", "data.svm", "--nodes", "4", "--algorithms", "adfs,dsba", "--tau",
                   "1,2,3,4", "--speed", "1,1,1,9", "--delay-law", "pareto", "--tol", "1e-2",
                   "--report", "r.html")  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert read(home / "r.html").all("path", class_="k-compute")


SCRIPT = """\
import sys
for name in ("matplotlib", "mpi4py", "selenium"):
    sys.modules[name] = None
from adfs.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_page_needs_neither_matplotlib_nor_mpi(home):
    subprocess.run([sys.executable, "-c", SCRIPT, *TRAIN, "--report", "r.html"], check=True)
    assert len(read(home / "r.html").all("circle")) == 4


def fingerprint(page):
    made = page.words("section", id="making")
    return re.search("fingerprint of the samples([0-9a-f]{16})", made)[1]


def test_ranks_are_on_the_page_of_rank_0(home):
    pytest.importorskip("mpi4py", reason="needs mpi4py: pip install '.[mpi]'")
    mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent))
    if mpiexec is None:
        pytest.skip("needs the mpiexec of this Python's MPI: pip install '.[mpi]'")
    launcher = [mpiexec, "-n", "2", sys.executable]
    subprocess.run([*launcher, "-m", "adfs", *TRAIN, "--engine", "mpi", "--report", "r.html"],
                   check=True, timeout=HANG)  # fmt: skip
    page = read(home / "r.html")
    ranks = page.words("section", id="ranks")
    assert "rank 0 (nodes 0, 1)" in ranks
    assert "rank 1 (nodes 2, 3)" in ranks
    assert page.all("path", class_="k-computing")
    assert "of ranks as measured" in page.words("section", id="theory")
    assert "2 ranks over MPI" in page.words("section", id="making")
    here(*TRAIN, "--report", "local.html")
    alone = read(home / "local.html")
    for part in ("model", "quality"):
        assert page.words("section", id=part) == alone.words("section", id=part)
    assert fingerprint(page) == fingerprint(alone)
    roc, same = ([path[1]["d"] for path in each.all("path", class_="c0")] for each in (page, alone))
    assert roc == same
    local = alone.data["chart"]["runs"][0]["columns"]
    found = page.data["chart"]["runs"][0]["columns"]
    assert {name for name in found if found[name] != local[name]} <= {"wall_time"}


def test_a_missing_browser_is_a_skip_but_a_failure_in_ci(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt-get install chromium"):
        find_browser()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="CI has to test reports in a browser"):
        find_browser()

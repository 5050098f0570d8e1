"""No command writes over what it reads, or writes two things to one file."""

import os

import pytest

from adfs.cli.commands import ADFS
from support.commands import leaves

GOOD = "1 1:1 2:2\n-1 1:2 2:1\n1 1:3 2:4\n-1 1:4 2:3\n"
FILES = ("good.txt", "p0.txt", "p1.txt", "m.npz", "s.npz", "run.toml", "good.html", "good.json",
         "good.png")  # fmt: skip


@pytest.fixture
def files(home):
    """A file for everything that commands read; what it holds does not matter."""
    for name in FILES:
        (home / name).write_text(GOOD)
    (home / "run.toml").write_text("json = false\n")
    (home / "folder").mkdir()
    (home / "link.npz").symlink_to("good.txt")
    (home / "l1.txt").symlink_to("good.txt")
    os.link(home / "good.txt", home / "hard.npz")
    return {path: path.read_bytes() for path in home.iterdir() if path.is_file()}


LINES = {
    "the samples": "train good.txt --out good.txt",
    "another spelling": "train good.txt --out folder/../good.txt",
    "a link": "train good.txt --trace link.npz",
    "a hard link": "train good.txt --out hard.npz",
    "a shard": "train p{node}.txt --trace p1.txt",
    "the test samples": "train good.txt --test p0.txt --out p0.txt",
    "the model it starts from": "train good.txt --warm-start m.npz --out m.npz",
    "its settings": "train good.txt --config run.toml --trace run.toml",
    "its settings, saved again": "train good.txt --config=run.toml --save-config run.toml",
    "a report": "train good.html --report good.html",
    "a timeline": "train good.json --timeline good.json --engine mpi",
    "saved settings": "train good.txt --save-config good.txt",
    "two outputs": "train good.txt --out new --trace ./new",
    "two outputs, spelled otherwise": "train good.txt --out new --trace folder/../new",
    "settings and a trace": "train good.txt --trace new --save-config new",
    "a file and a folder": "train good.txt --checkpoint new --out new",
    "a comparison's report": "compare good.html --report good.html",
    "a comparison's settings": "compare good.txt --config run.toml --save-config ./run.toml",
    "a schedule's samples": "schedule sample good.txt --out good.txt",
    "a schedule's settings": "schedule sample --config run.toml --out run.toml",
    "a schedule that is timed": "schedule times s.npz --save-config s.npz",
    "a schedule that is drawn": "schedule timeline good.png --out good.png",
    "a schedule that is traced": "schedule timeline s.npz --chrome s.npz",
    "a picture and a trace": "schedule timeline s.npz --out t.png --chrome folder/../t.png",
    "a model that predicts": "predict m.npz good.txt --out m.npz",
    "what is predicted": "predict m.npz good.txt --out hard.npz",
    "shards that are predicted": "predict m.npz p{node}.txt --out p0.txt",
    "what is split": "split p0.txt --nodes 2 --out p{node}.txt",
    "a link to what is split": "split good.txt --nodes 2 --out l{node}.txt",
    "a reproduction's settings": "reproduce theorem-2 --config run.toml --save-config run.toml",
}


@pytest.mark.parametrize("case", LINES)
def test_an_output_over_an_input_or_another_is_refused(adfs, files, home, case):
    outcome = adfs(*LINES[case].split())
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert "would overwrite" in outcome.err
    assert {path: path.read_bytes() for path in home.iterdir() if path.is_file()} == files


def test_the_file_of_a_known_data_set_is_an_input(adfs, home, monkeypatch):
    monkeypatch.setenv("ADFS_DATA", str(home))
    (home / "a9a").write_text(GOOD)
    (home / "elsewhere").mkdir()
    monkeypatch.chdir(home / "elsewhere")
    outcome = adfs("train", "a9a", "--out", home / "a9a")
    assert (outcome.code, (home / "a9a").read_text()) == (2, GOOD)
    assert "would overwrite" in outcome.err


def test_a_name_that_only_looks_like_a_shard_may_be_written(adfs, home):
    for name in ("p0.txt", "p1.txt"):
        (home / name).write_text(GOOD)
    assert adfs("train", "p{node}.txt", "--quiet", "--out", "p9x.txt").code == 0


def test_every_argument_that_names_a_place_says_what_it_does_there():
    for name, command in leaves(ADFS):
        for option in command.options:
            assert (option.metavar in ("FILE", "DIR", "MODEL", "DATA")) == bool(option.kind.role), (
                name,
                option,
            )

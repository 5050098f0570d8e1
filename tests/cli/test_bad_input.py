"""Each kind of bad input: exit code 2, one sentence, nothing overwritten."""

import gzip

import numpy as np
import pytest

from adfs.errors import GraphError
from adfs.graphs.topology import Topology

GOOD = "1 1:1 2:2\n-1 1:2 2:1\n1 1:3 2:4\n-1 1:4 2:3\n"


def refused(outcome, sentence):
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("adfs: ")
    assert outcome.err.count("\n") == 1
    assert outcome.err.endswith(".\n")
    assert sentence in outcome.err


def denied(*arguments, **keywords):
    raise PermissionError(13, "Permission denied")


@pytest.fixture
def good(home):
    (home / "good.txt").write_text(GOOD)
    return "good.txt"


TEXTS = {
    "NaN": ("1 1:nan\n-1 1:1\n", "line 1: a value must be a finite number, not 'nan'"),
    "infinity": ("1 1:1\n-1 1:inf\n", "line 2: a value must be a finite number, not 'inf'"),
    "a label that is NaN": ("nan 1:1\n", "must begin with a finite label, not 'nan'"),
    "one class": ("1 1:1\n1 1:2\n1 1:3\n1 1:4\n", "All labels are 1.0 (one class)"),
    "values as labels": ("1 1:1\n2.5 1:2\n3 1:3\n1 1:4\n", "There are 3 different labels"),
    "zero samples": ("", "must hold at least one sample, but has none"),
    "only a comment": ("# nothing\n", "must hold at least one sample, but has none"),
    "all-zero rows only": ("1 1:0\n-1 1:0\n1 1:0\n-1 1:0\n", "All rows are zero"),
    "index 0": ("1 0:1 1:2\n", "LIBSVM indices start at 1, but 0 was found"),
    "indices that descend": ("1 2:1 1:2\n", "indices must ascend within a row"),
    "words": ("hello world\n", "must begin with a finite label, not 'hello'"),
}


@pytest.mark.parametrize("case", TEXTS)
def test_text_that_cannot_be_learnt_from(adfs, home, case):
    text, sentence = TEXTS[case]
    (home / "data.txt").write_text(text)
    refused(adfs("train", "data.txt", "--n-features", "2"), sentence)


ARGUMENTS = {
    "sigma = 0": (["--sigma", "0"], "--sigma 0 must be a finite number > 0"),
    "sigma < 0": (["--sigma", "-1"], "--sigma -1 must be a finite number > 0"),
    "sigma next to 0": (["--sigma", "1e-308"], "--sigma 1e-308 must be a finite number"),
    "balanced without tau": (["--parameters", "balanced", "--tau", "0"], "tuned"),
    "sigma NaN": (["--sigma", "nan"], "--sigma nan must be a finite number > 0"),
    "C = 0": (["--C", "0"], "--C 0 must be a finite number > 0"),
    "C infinite": (["--C", "inf"], "--C inf must be a finite number > 0"),
    "both strengths": (["--C", "1", "--sigma", "1"], "--sigma: not allowed with argument --C"),
    "tau < 0": (["--tau", "-1"], "--tau -1 must be >= 0 and finite"),
    "tau NaN": (["--tau", "nan"], "--tau nan must be >= 0 and finite"),
    "tol = 0": (["--tol", "0"], "--tol 0 must be a finite number > 0"),
    "tol < 0": (["--tol", "-1e-3"], "--tol -0.001 must be a finite number > 0"),
    "tol in words": (["--tol", "tiny"], "--tol: 'tiny' must be a number; see `adfs train"),
    "time limit": (["--time-limit", "0"], "--time-limit 0 must be a finite number > 0"),
    "iterations": (["--max-iter", "-1"], "--max-iter: -1 must be a whole number >= 0"),
    "nodes = 0": (["--nodes", "0"], "--nodes: 0 must be a whole number >= 1"),
    "nodes > samples": (["--nodes", "5"], "--nodes 5 must not exceed 4"),
    "seed < 0": (["--seed", "-1"], "--seed: -1 must be a whole number >= 0"),
    "graph and nodes": (["--graph", "grid:3x3"], "has 9 nodes, but 4 were asked for"),
    "hypercube": (["--graph", "hypercube", "--nodes", "3"], "a power of two of nodes"),
    "graph unknown": (["--graph", "web"], "Graph 'web' is not known"),
    "disconnected": (
        ["--graph", "erdos_renyi:p=1e-9"],
        "The graph must be connected, but 100 draws",
    ),
    "loss unknown": (["--loss", "log"], "--loss: invalid choice: 'log' (choose from"),
    "loss not smooth": (
        ["--loss", "hinge", "--algorithm", "adfs"],
        "needs a smooth loss and 'hinge' is not; choose algorithm ns-adfs, or one of the losses",
    ),
    "algorithm": (["--algorithm", "sgd"], "--algorithm sgd is not known"),
    "rule": (["--parameters", "best"], "--parameters best is not a rule; choose one of paper"),
    "draw without m": (["--partition", "draw"], "--partition draw needs --m"),
    "m without draw": (["--m", "3"], "--m 3 is for --partition draw only"),
    "m > samples": (["--partition", "draw", "--m", "9"], "--m 9 must be a whole number from 1 to"),
    "too few columns": (["--n-features", "1"], "index 2 is above --n-features 1"),
    "weights of targets": (
        ["--loss", "squared", "--class-weight", "balanced"],
        "--class-weight needs two classes, but --loss squared is a regression",
    ),
    "flag unknown": (["--speed", "9"], "unrecognized arguments: --speed 9; see `adfs train"),
    "flag shortened": (["--max", "9"], "unrecognized arguments: --max 9"),
    "test missing": (["--test", "no.txt"], "no.txt must be a file or a known data set"),
    "model missing": (["--warm-start", "no.npz"], "no.npz must be a model file, but there is none"),
}  # fmt: skip


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments_out_of_range(adfs, good, case):
    arguments, sentence = ARGUMENTS[case]
    refused(adfs("train", good, *arguments), sentence)


def test_a_disconnected_graph_in_python():
    with pytest.raises(GraphError, match="must be connected, but it has 2 components"):
        Topology.from_edges(4, [(0, 1), (2, 3)])


def test_an_empty_shard(adfs, home, good):
    (home / "p0.txt").write_text(GOOD)
    (home / "p1.txt").write_text("")
    refused(adfs("train", "p{node}.txt"), "p1.txt must hold at least one sample, but has none")


def test_a_missing_shard(adfs, home):
    (home / "p0.txt").write_text(GOOD)
    (home / "p2.txt").write_text(GOOD)
    refused(adfs("train", "p{node}.txt"), "but p1.txt is missing")


def test_shards_of_mixed_dimension_wider_than_n_features(adfs, home):
    (home / "p0.txt").write_text("1 1:1\n")
    (home / "p1.txt").write_text("-1 3:1\n")
    refused(adfs("train", "p{node}.txt", "--n-features", "2"), "index 3 is above --n-features 2")
    assert adfs("train", "p{node}.txt", "--quiet").code == 0


def test_a_pattern_contradicted_by_nodes_or_partition(adfs, home):
    (home / "p0.txt").write_text(GOOD)
    refused(adfs("train", "p{node}.txt", "--nodes", "2"), "--nodes 2 must equal the number of")
    refused(
        adfs("train", "p{node}.txt", "--partition", "even"), "--partition and --m distribute one"
    )


def test_arrays_of_mixed_dimension(adfs):
    np.savez("x.npz", X=np.ones((3, 2)), y=np.ones(2))
    refused(adfs("train", "x.npz"), "y must be one-dimensional with one entry per row, 3 in all")


def test_arrays_with_nan_or_infinity(adfs):
    for value in (np.nan, np.inf):
        np.savez("x.npz", X=np.full((4, 2), value), y=np.array([1, 2, 1, 2]))
        refused(adfs("train", "x.npz"), "X must be finite, but holds NaN or infinity")


def test_files_that_are_missing_folders_binary_or_truncated(adfs, home):
    (home / "folder").mkdir()
    (home / "noise.txt").write_bytes(bytes(range(256)) * 20)
    packed = gzip.compress(GOOD.encode() * 100)
    (home / "cut.gz").write_bytes(packed[: len(packed) // 2])
    (home / "cut.npz").write_bytes(b"PK\x03\x04" + b"\0" * 40)
    for name, sentence in (
        ("missing.txt", "missing.txt must be a file or a known data set, but is neither"),
        ("folder", "folder must be a file, but is a folder"),
        ("noise.txt", "noise.txt must be LIBSVM text, but holds binary data"),
        ("cut.gz", "cut.gz must be a whole compressed file, but ends too early"),
        ("cut.npz", "cut.npz must be a whole .npz file of plain arrays"),
        ("a" * 300, "cannot be used: File name too long"),
    ):
        refused(adfs("train", name), sentence)


def test_a_file_without_permission(adfs, good, monkeypatch):
    monkeypatch.setattr("pathlib.Path.open", denied)  # a chmod would not stop root
    refused(adfs("train", good), "good.txt cannot be read: Permission denied")


@pytest.mark.parametrize("flag", ["--out", "--trace"])
def test_outputs_that_cannot_be_written_are_refused_before_any_work(adfs, home, flag, monkeypatch):
    monkeypatch.setattr("adfs.data.files.load_rows", lambda *_: pytest.fail("data was read"))
    (home / "folder").mkdir()
    (home / "file").write_text("")
    for path, sentence in (
        ("folder", "must name a file, but is a folder"),
        ("", "must name a file, but is a folder"),
        ("nowhere/m.npz", "must be in an existing folder"),
        ("file/m.npz", "must be in an existing folder"),
        ("/dev/null", "must be an ordinary file, not a device"),
        ("/proc/m.npz", "cannot be written"),
        ("a" * 300, "cannot be written: File name too long"),
    ):
        refused(adfs("train", "good.txt", flag, path), sentence)


def test_outputs_without_permission(adfs, good, home, monkeypatch):
    (home / "kept.npz").write_text("")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    refused(adfs("train", good, "--out", "kept.npz"), "--out kept.npz is write-protected")
    monkeypatch.setattr("tempfile.NamedTemporaryFile", denied)
    refused(adfs("train", good, "--out", "m.npz"), "m.npz cannot be written: Permission denied")


def test_outputs_on_top_of_each_other_or_of_the_samples(adfs, good):
    refused(adfs("train", good, "--out", "x", "--trace", "x"), "--trace x would overwrite --out x")
    refused(adfs("train", good, "--out", good), "--out good.txt would overwrite good.txt")


def test_bad_input_leaves_the_previous_model_and_trace_alone(adfs, home):
    (home / "bad.txt").write_text("1 0:1\n")
    for name in ("m.npz", "t.csv"):
        (home / name).write_text("precious")
    refused(adfs("train", "bad.txt", "--out", "m.npz", "--trace", "t.csv"), "start at 1")
    assert (home / "m.npz").read_text() == (home / "t.csv").read_text() == "precious"
    assert sorted(path.name for path in home.iterdir()) == ["bad.txt", "m.npz", "t.csv"]


def test_test_data_or_a_model_wider_than_the_training_data(adfs, home, good):
    (home / "wide.txt").write_text("1 5:1\n-1 1:1\n")
    refused(adfs("train", good, "--test", "wide.txt"), "give --n-features 5, or check the files")
    assert adfs("train", "wide.txt", "--nodes", "1", "--out", "wide.npz").code == 0
    refused(adfs("train", good, "--warm-start", "wide.npz"), "has 5 features but the data has 2")


def test_test_data_without_labels(adfs, good):
    np.savez("rows.npz", X=np.ones((3, 2)))
    refused(adfs("train", good, "--test", "rows.npz"), "must hold the labels y, but has none")


@pytest.mark.parametrize("content", [b"", b"noise\0" * 50, b"PK\x03\x04", b"1 1:1\n"])
def test_a_model_that_is_not_a_model(adfs, home, good, content):
    (home / "m.npz").write_bytes(content)
    refused(adfs("predict", "m.npz", good), "m.npz is not a model (")
    refused(adfs("train", good, "--warm-start", "m.npz"), "m.npz is not a model (")


def test_words_that_are_no_command(adfs):
    bare = adfs()
    assert bare.out == adfs("--help").out
    refused(bare._replace(out=""), "the following arguments are required: COMMAND; see `adfs --hel")
    refused(adfs("trian"), "invalid choice: 'trian'")
    refused(adfs("train"), "the following arguments are required: DATA; see `adfs train --help`")
    refused(adfs("schedule"), "required: VERB; see `adfs schedule --help`")

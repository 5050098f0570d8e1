"""`adfs split`: files with which a training has the bits of a training on the whole."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from adfs.data.files import save_npz
from support.commands import bits_of_model

TABLE = ("--target", "level", "--standardize", "--intercept")


@pytest.fixture
def people(home):
    """The same table as CSV and Parquet: numbers, words, truth values and names of digits."""
    random = np.random.default_rng(0)
    columns = {
        "age": random.normal(40, 12, 120),
        "city": random.choice(["Oslo", 'New "York", NY', "Paris"], 120),
        "member": random.choice([True, False], 120),
        "children": random.integers(0, 5, 120),
        "level": random.choice(["low", "mid", "top"], 120),
    }
    pyarrow.csv.write_csv(pa.table(columns), "people.csv")
    pq.write_table(pa.table(columns), "people.parquet", row_group_size=50)
    return columns


def trained(adfs, data, *options):
    outcome = adfs("train", data, *options, "--graph", "ring", "--quiet", "--out", "model.npz")
    assert outcome.code == 0, outcome.err
    return bits_of_model("model.npz")


@pytest.mark.parametrize(
    ("source", "suffix"),
    [
        ("people.csv", "csv"), ("people.csv", "parquet"), ("people.csv", "tsv.gz"),
        ("people.parquet", "csv"), ("people.parquet", "parquet"),
    ],
)  # fmt: skip
def test_training_on_shards_of_a_table_has_the_bits_of_the_whole(adfs, people, source, suffix):
    nodes = ("--nodes", 3, "--seed", 7)
    assert adfs("split", source, *nodes, "--out", f"shard-{{node}}.{suffix}").code == 0
    whole = trained(adfs, source, *TABLE, *nodes)
    assert trained(adfs, f"shard-{{node}}.{suffix}", *TABLE, "--seed", 7) == whole


@pytest.mark.parametrize("how", ["even", "contiguous"])
@pytest.mark.parametrize("suffix", ["svm", "txt.xz", "npz"])
def test_training_on_shards_without_names_has_the_bits_of_the_whole(adfs, sparse, how, suffix):
    source, X, y = sparse
    if suffix == "npz":
        source = "sparse.npz"
        save_npz(source, X, y)
    cut = ("--nodes", 4, "--seed", 1, "--partition", how)
    assert adfs("split", source, *cut, "--out", f"shard-{{node}}.{suffix}").code == 0
    whole = trained(adfs, source, *cut)
    assert trained(adfs, f"shard-{{node}}.{suffix}", "--seed", 1) == whole


def test_the_files_and_their_rows_are_listed(adfs, home):
    words = ("split", "breast-cancer", "--nodes", 4, "--out", "s-{node}.svm")
    rows = [line.split() for line in adfs(*words).out.splitlines()]
    assert rows[0] == ["node", "rows", "file"]
    assert rows[1:] == [
        [str(k), n, f"s-{k}.svm"] for k, n in enumerate(("143", "142", "142", "142"))
    ]
    record = json.loads(adfs(*words, "--json").out)
    assert (record["n_nodes"], record["n_samples"], record["seed"]) == (4, 569, 0)
    assert record["files"][3] == {"rows": 142, "path": "s-3.svm"}
    assert sum(len((home / f"s-{k}.svm").read_text().splitlines()) for k in range(4)) == 569


def test_rows_with_one_value_are_on_one_node(adfs, people):
    assert (
        adfs("split", "people.csv", "--nodes", 2, "--by", "city", "--out", "{node}.tsv").code == 0
    )
    tab = pyarrow.csv.ParseOptions(delimiter="\t")
    cities = [
        set(pyarrow.csv.read_csv(f"{k}.tsv", parse_options=tab)["city"].to_pylist()) for k in (0, 1)
    ]
    assert cities[0].isdisjoint(cities[1])
    assert cities[0] | cities[1] == set(people["city"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--nodes 2", "--out must name the files"),
        ("--nodes 2 --out new.csv", "new.csv must hold {node}"),
        ("--nodes 2 --out new-{node}.svm", "must be a table"),
        ("--nodes 2 --out none/{node}.csv", "must be in an existing folder"),
        ("--nodes 2 --out folder-{node}/a.csv", "folder-1 is none"),
        ("--nodes 999 --out {node}.csv", "--nodes 999 must not exceed 120"),
        (f"--nodes {10**22} --out {{node}}.csv", "must not exceed 120"),
        ("--nodes 4 --by city --out {node}.csv", "has only 3 different"),
        ("--by city --partition even --out {node}.csv", "not allowed with"),
        ("--nodes 2 --out old-{node}.csv", "old-5.csv exists"),
        ("--nodes 2 --partition draw --out {node}.csv", "invalid choice"),
    ],
)
def test_what_cannot_be_written_is_refused_in_one_line(adfs, people, home, words, message):
    (home / "old-5.csv").write_text("")
    (home / "folder-0").mkdir()
    before = set(home.rglob("*"))
    outcome = adfs("split", "people.csv", *words.split())
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert message in outcome.err
    assert set(home.rglob("*")) == before


def test_a_pattern_is_not_split_again(adfs, people):
    outcome = adfs("split", "p-{node}.csv", "--nodes", 2, "--out", "q-{node}.csv")
    assert outcome.code == 2
    assert "one file per node already" in outcome.err


@pytest.mark.parametrize("fault", ["a number", "labels"])
def test_a_fault_in_the_last_row_leaves_old_files_as_they_were(adfs, home, fault):
    X = np.ones((6, 2))
    X[5, 1] = np.nan if fault == "a number" else 1.0
    np.savez("a.npz", X=X, **({"y": np.ones(6)} if fault == "a number" else {}))
    (home / "s-0.npz").write_text("old")
    words = ("--nodes", 2, "--partition", "contiguous", "--out", "s-{node}.npz")
    assert adfs("split", "a.npz", *words).code == 2
    assert (home / "s-0.npz").read_text() == "old"
    assert not (home / "s-1.npz").exists()

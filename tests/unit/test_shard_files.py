"""One file per node: the rows that `partition` gives each node, as they are in the file."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_matrix

from adfs.data.files import load_data, load_shards, save_npz
from adfs.data.generators import sparse_text
from adfs.data.partition import partition
from adfs.data.shard_files import deal_values, split_file
from adfs.errors import DataError, ParameterError

LIBSVM = "+1 1:0.10 3:2 # first\n\n# a comment\n-1 2:1\r\n+1 qid:3 1:1e-3\n  -1 1:4\n+1 3:7"
ROWS = [line for line in LIBSVM.splitlines(keepends=True) if line.strip() and line[0] != "#"]
WORDS = 'say "hi"', "a,b", "tab\there", "07", "", "é"


def texts(*arguments, **options):
    return [b"".join(content).decode() for _, content in split_file(*arguments, **options)]


@pytest.fixture
def table(tmp_path):
    """Words with quotes and separators, names that look like numbers, and missing values."""
    columns = {
        "word": list(WORDS), "code": ["01", "02", "1", "2", "01", "10"],
        "x": [0.1, 1e300, -0.0, 3.0, None, 1 / 3], "n": [1, 2, 3, 4, 5, 2**60],
        "yes": [True, False, True, True, False, None], "day": ["2024-01-01"] * 6,
    }  # fmt: skip
    made = pa.table(columns)
    pq.write_table(made, tmp_path / "t.parquet", row_group_size=4)
    lines = ["word,code,x,n,yes,day"]
    for row in zip(*columns.values(), strict=True):
        quoted = '"' + row[0].replace('"', '""') + '"'
        shown = ["" if value is None else str(value) for value in row[1:]]
        lines.append(",".join([quoted, *shown]))
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    return made


def test_lines_of_libsvm_text_are_copied_as_they_are(tmp_path):
    (tmp_path / "a.txt").write_bytes(LIBSVM.encode())
    first, second = texts(tmp_path / "a.txt", "x.svm", 2, "contiguous")
    assert first == "".join(ROWS[:3])
    assert second == "".join(ROWS[3:]) + "\n"


def test_blocks_of_a_long_text_are_joined_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr("adfs.data.text_lines.BLOCK_BYTES", 40)
    X, y = np.arange(1.0, 201.0)[:, None], np.arange(200.0) % 2
    rows = [f"{label:g} 1:{value!r}\n" for label, (value,) in zip(y, X.tolist(), strict=True)]
    (tmp_path / "a.txt").write_text("".join(rows))
    found = texts(tmp_path / "a.txt", "x.svm", 3, seed=5)
    assert found == [
        "".join(rows[int(x) - 1] for (x,) in part.X) for part in partition(X, y, 3, seed=5)
    ]


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz"])
def test_compressed_text_becomes_plain_and_back(tmp_path, suffix, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_bytes(LIBSVM.encode())
    ((_, content),) = split_file("a.txt", f"b.svm.{suffix}", 1)
    (tmp_path / f"b.svm.{suffix}").write_bytes(b"".join(content))
    assert texts(f"b.svm.{suffix}", "c.txt", 1) == ["".join(ROWS) + "\n"]


@pytest.mark.parametrize("is_sparse", [True, False])
def test_shards_of_an_archive_have_the_bits_of_the_whole(tmp_path, is_sparse):
    X, y = sparse_text(50, 30, words_per_row=4, seed=1)
    X = csr_matrix(X.astype(np.float32)) if is_sparse else X.toarray() + 0.5
    save_npz(tmp_path / "a.npz", X, y)
    for node, (_, content) in enumerate(split_file(tmp_path / "a.npz", "x.npz", 3, seed=2)):
        (tmp_path / f"{node}.npz").write_bytes(b"".join(content))
    for ours, theirs in zip(
        load_shards(tmp_path / "{node}.npz"), partition(X, y, 3, seed=2), strict=True
    ):
        assert (ours.X != theirs.X).sum() == 0
        assert ours.X.dtype == theirs.X.dtype
        assert ours.y.tobytes() == theirs.y.tobytes()


def test_rows_of_a_csv_file_keep_quotes_header_and_mark(table, tmp_path):
    lines = (tmp_path / "t.csv").read_text().splitlines(keepends=True)
    (tmp_path / "u.csv.gz").write_bytes(gzip.compress(("\ufeff" + "".join(lines)).encode()))
    found = texts(tmp_path / "u.csv.gz", "x.csv", 2, "contiguous")
    assert found == ["\ufeff" + "".join(lines[:4]), "\ufeff" + "".join([lines[0], *lines[4:]])]


@pytest.mark.parametrize("source", ["t.csv", "t.parquet"])
@pytest.mark.parametrize("out", ["x.csv", "x.tsv", "x.tsv.gz", "x.parquet"])
def test_tables_keep_all_values_in_any_direction(table, tmp_path, source, out):
    path = tmp_path / out
    ((_, content),) = split_file(tmp_path / source, out, 1, categorical=["code"])
    path.write_bytes(b"".join(content))
    if out == "x.parquet":
        found = pq.read_table(path)
    else:
        found = read_text(path, "\t" if "tsv" in out else ",")
    for name in table.column_names:
        ours = [None if value is None else str(value) for value in found.column(name).to_pylist()]
        theirs = [None if value is None else str(value) for value in table.column(name).to_pylist()]
        assert ours == theirs, name


def read_text(path, separator):
    words = dict.fromkeys(("word", "code", "day"), pa.string())
    return pyarrow.csv.read_csv(
        path, parse_options=pyarrow.csv.ParseOptions(delimiter=separator),
        convert_options=pyarrow.csv.ConvertOptions(column_types=words),
    )  # fmt: skip


def test_numbers_of_single_precision_keep_their_bits_in_text(tmp_path):
    values = np.random.default_rng(0).normal(size=40).astype(np.float32)
    pq.write_table(pa.table({"x": values, "y": values > 0}), tmp_path / "t.parquet")
    (text,) = texts(tmp_path / "t.parquet", "x.csv", 1)
    found = [float(line.split(",")[0]) for line in text.splitlines()[1:]]
    assert found == values.astype(float).tolist()


def test_types_of_a_column_agree_over_all_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("adfs.data.text_lines.BLOCK_BYTES", 30)
    n = 40
    rows = [
        f"{k},{k if k < 30 else k + 0.5},{'' if k < 20 else k},{k if k < 35 else 'w'}"
        for k in range(n)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["i,f,gap,w", *rows]))
    ((_, content),) = split_file(tmp_path / "t.csv", "x.parquet", 1)
    (tmp_path / "x.parquet").write_bytes(b"".join(content))
    found = pq.read_table(tmp_path / "x.parquet")
    assert [str(field.type) for field in found.schema] == ["int64", "double", "int64", "string"]
    assert found.column("gap").to_pylist() == [None] * 20 + list(range(20, n))
    assert found.column("w").to_pylist() == [*map(str, range(35)), *["w"] * 5]


def test_values_are_dealt_in_order_to_the_node_with_fewest_rows():
    words = ["10"] * 5 + ["9"] * 2 + ["2"] * 3 + ["2.0"] + ["30"]
    parts = deal_values(pa.chunked_array([words[:4], words[4:]]), 3, "--by x")
    assert [sorted({words[row] for row in part}) for part in parts] == [
        ["2", "2.0"],
        ["30", "9"],
        ["10"],
    ]
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(words)))
    assert all((np.diff(part) > 0).all() for part in parts)


@pytest.mark.parametrize("source", ["t.csv", "t.parquet"])
@pytest.mark.parametrize("out", ["x.csv", "x.parquet"])
def test_rows_with_one_value_go_to_one_node(table, tmp_path, source, out):
    sizes = [n for n, _ in split_file(tmp_path / source, out, 3, by="yes")]
    assert sizes == [1, 2, 3]  # missing, false, true
    with pytest.raises(DataError, match="--by yes must have a value for each of 4 nodes"):
        split_file(tmp_path / source, out, 4, by="yes")


@pytest.mark.parametrize("letter", ["\n", "\r", "\0"])
def test_a_word_with_a_line_break_is_refused_in_text(tmp_path, letter):
    pq.write_table(pa.table({"w": ["a", f"b{letter}c"], "y": [0, 1]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"column 'w': a word must not hold a line break"):
        split_file(tmp_path / "t.parquet", "x.csv", 1)
    assert len(list(split_file(tmp_path / "t.parquet", "x.parquet", 2))) == 2


@pytest.mark.parametrize(
    ("source", "out", "message"),
    [
        ("t.csv", "x.svm", r"must be a table .* but is LIBSVM text"),
        ("t.parquet", "x.npz", r"must be a table .* but is a .npz file"),
        ("a.txt", "x.csv.gz", r"must be LIBSVM text .* but is a table"),
        ("a.npz", "x.txt", r"must be a .npz file.* but is LIBSVM text"),
        ("t.parquet", "x.parquet.gz", r"but is LIBSVM text"),
    ],
)
def test_a_file_of_another_format_is_refused(table, tmp_path, source, out, message):
    (tmp_path / "a.txt").write_text(LIBSVM)
    save_npz(tmp_path / "a.npz", np.eye(2), np.ones(2))
    with pytest.raises(ParameterError, match=message):
        split_file(tmp_path / source, out, 1)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("1 1:1\nx 1:2\n", {}, "a.txt, line 2"),
        ("# none\n", {}, "at least one sample"),
        ("1 1:1\n", {"by": "x"}, "--by x names a column of a table"),
        ("1 1:1\n", {"categorical": ["x"]}, "--categorical names columns of a table"),
    ],
)
def test_faults_of_text_are_found_before_anything_is_written(tmp_path, text, options, message):
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(DataError, match=message):
        split_file(tmp_path / "a.txt", "x.svm", 1, **options)


@pytest.mark.parametrize("out", ["x.csv", "x.tsv", "x.parquet"])
@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ('1,"a\nb"\n', {}, "must have one row per line"),
        ("1,2\n3\n", {}, "line 3: a row must have 2 columns"),
        ("", {}, "at least one sample"),
        ("1,2\n", {"by": "z"}, "--by z must be a column"),
        ("1,2\n", {"categorical": ["z"]}, "--categorical z must be a column"),
    ],
)
def test_faults_of_tables_are_found_before_anything_is_written(
    tmp_path, rows, options, message, out
):
    (tmp_path / "t.csv").write_text("a,b\n" + rows)
    with pytest.raises(DataError, match=message):
        split_file(tmp_path / "t.csv", out, 1, **options)


def test_more_nodes_than_rows_are_refused(tmp_path):
    (tmp_path / "a.txt").write_bytes(LIBSVM.encode())
    with pytest.raises(ParameterError, match="must not exceed 5, the number of rows"):
        split_file(tmp_path / "a.txt", "x.svm", 6)


def test_all_shards_together_decide_whether_rows_are_an_array(tmp_path):
    rows = ["1 1:1\n"] * 9 + ["-1 " + " ".join(f"{k}:1" for k in range(1, 11)) + "\n"]
    (tmp_path / "0.txt").write_text("".join(rows[:9]))  # full, with one column
    (tmp_path / "1.txt").write_text(rows[9])
    (tmp_path / "all.txt").write_text("".join(rows))
    assert not isinstance(load_data(tmp_path / "all.txt").X, np.ndarray)
    assert not any(isinstance(X, np.ndarray) for X, _ in load_shards(tmp_path / "{node}.txt"))

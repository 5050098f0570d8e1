"""CSV, TSV and Parquet: the same bits as other formats and on ranks, and sentences about faults."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from adfs.agreement import Alone
from adfs.data import text_lines
from adfs.data.columns import Columns
from adfs.data.files import load_data, load_rows, load_share, save_npz
from adfs.data.partition import partition
from adfs.data.reader import Selection
from adfs.errors import DataError
from support.peers import on_ranks, owners, require_same_bits, succeed

N_NODES = 5
DEALS = [("even", None), ("contiguous", None), ("sorted", None), ("draw", 11)]
CITIES = ["Oslo", "Rome", "São Paulo", "new york, NY"]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Many blocks even in small files."""
    monkeypatch.setattr(text_lines, "BLOCK_BYTES", 300)


def people(n=61, seed=0):
    """Columns of every kind."""
    random = np.random.default_rng(seed)
    return {
        "age": random.integers(18, 90, n).tolist(),
        "city": [CITIES[k] for k in random.integers(0, 4, n)],
        "income": random.normal(5e4, 2e4, n).tolist(),
        "smokes": (random.random(n) < 0.3).tolist(),
        "buys": np.where(random.random(n) < 0.5, "yes", "no").tolist(),
    }


def write_csv(path, columns, separator=","):
    options = pyarrow.csv.WriteOptions(delimiter=separator)
    pyarrow.csv.write_csv(pa.table(columns), path, options)


def write_all(folder, columns):
    """The same table in every format that has names."""
    write_csv(folder / "people.csv", columns)
    write_csv(folder / "people.tsv", columns, "\t")
    packed = gzip.compress((folder / "people.csv").read_bytes())
    (folder / "people.csv.gz").write_bytes(packed)
    pq.write_table(pa.table(columns), folder / "people.parquet", row_group_size=9)
    return [folder / f"people.{suffix}" for suffix in ("csv", "tsv", "csv.gz", "parquet")]


def encoded(columns):
    """What the features should be, by hand: numbers, truth values as 0 and 1, cities in order."""
    city = np.array(columns["city"])
    one_hot = [(city == name).astype(float) for name in sorted(CITIES)]
    return np.column_stack([columns["age"], *one_hot, columns["income"], columns["smokes"]])


def dense(X):
    return X if isinstance(X, np.ndarray) else X.toarray()


def test_all_formats_of_a_table_give_the_same_samples(tmp_path):
    columns = people()
    for path in write_all(tmp_path, columns):
        X, y = load_data(path, target="buys")
        np.testing.assert_array_equal(dense(X), encoded(columns))
        assert y.tolist() == columns["buys"]


@pytest.mark.parametrize("density", [0.2, 0.9], ids=["sparse", "dense"])
def test_numbers_have_the_same_bits_in_every_format(density, tmp_path):
    random = np.random.default_rng(1)
    X = random.normal(size=(40, 6)) * (random.random((40, 6)) < density) + 0.0  # no -0.0
    y = random.normal(size=40)
    names = [f"x{j}" for j in range(6)]
    paths = write_all(tmp_path, {**dict(zip(names, X.T.tolist(), strict=True)), "y": y.tolist()})
    lines = [
        " ".join([repr(label), *(f"{j + 1}:{v!r}" for j, v in enumerate(row) if v)])
        for label, row in zip(y.tolist(), X.tolist(), strict=True)
    ]
    (tmp_path / "rows.svm").write_text("\n".join(lines))
    save_npz(tmp_path / "rows.npz", X, y)
    samples = [load_data(path, target="y") for path in paths]
    samples += [load_data(tmp_path / "rows.svm", 6), load_data(tmp_path / "rows.npz")]
    shards = [partition(*each, 2) for each in samples]
    for other in shards[1:]:
        require_same_bits(other, shards[0])


@pytest.mark.parametrize(("how", "m"), DEALS)
@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_ranks_get_the_rows_and_columns_of_one_process(suffix, how, m, tmp_path):
    write_all(tmp_path, people())
    path = str(tmp_path / f"people.{suffix}")
    expected = partition(*load_data(path, target="buys"), N_NODES, how, 3, m)
    for size in (2, 3):
        for owner in owners(N_NODES, size):
            work = lambda peers, owner=owner: load_share(  # noqa: E731
                peers, path, owner, "logistic", how, 3, m, target="buys"
            )
            data = succeed(size, work)
            shards = [None] * N_NODES
            for rank, share in enumerate(data):
                assert share.columns == data[0].columns
                assert share.classes.tolist() == ["no", "yes"]
                for node, shard in zip(np.flatnonzero(owner == rank), share.shards, strict=True):
                    shards[node] = shard._replace(y=shard.y.astype("U3"))
            require_same_bits(shards, expected)


def test_files_per_node_share_their_categories(tmp_path):
    """A city that only one node has becomes a feature of all."""
    for node, city in enumerate(["Oslo", "Rome"]):
        write_csv(tmp_path / f"part-{node}.csv", {"city": [city, city], "y": ["a", "b"]})
    pattern = str(tmp_path / "part-{node}.csv")
    data = succeed(2, lambda peers: load_share(peers, pattern, [0, 1], "logistic", target="y"))
    assert data[0].columns.feature_names == ["city=Oslo", "city=Rome"]
    assert [dense(share.shards[0].X).tolist() for share in data] == [[[1, 0]] * 2, [[0, 1]] * 2]


def test_columns_are_chosen_and_declared_by_name(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("zip,x,skip,y\n01,1.5,?,1\n02,2.5,!,0\n01,0,?,1\n")
    X, y = load_data(path, target="y", features=["x", "zip"], categorical=["zip"])
    assert dense(X).tolist() == [[1.5, 1, 0], [2.5, 0, 1], [0, 1, 0]]
    assert y.tolist() == [1, 0, 1]
    X, _ = load_data(path, target="y", features=["zip"])
    assert dense(X).tolist() == [[1], [2], [1]]


def test_quotes_marks_and_line_ends_of_other_programs(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes('\ufeff"the, name",y\r\n"1.5",a\r\n\r\n"2",b\r\n'.encode())
    X, y = load_data(path, target="y")
    assert dense(X).tolist() == [[1.5], [2]]
    assert y.tolist() == ["a", "b"]


def test_prediction_takes_columns_by_name(tmp_path):
    columns = Columns({"x": "number", "c": "word"}, {"c": ("p", "q")}, "y")
    path = tmp_path / "new.csv"
    path.write_text("c,more,x\nq,9,1\np,9,2\n")
    X, y = load_rows(path, Selection(columns=columns))
    assert dense(X).tolist() == [[1, 0, 1], [2, 1, 0]]
    assert y is None


FAULTS = {
    "too short": ("a,b,y\n1,2,3\n4,5\n", "line 3: a row must have 3 columns"),
    "too long": ("a,b,y\n1,2,3\n\n4,5,6,7\n", "line 4: a row must have 3 columns"),
    "missing": ("a,b,y\n1,2,3\n4,,6\n", "line 3, column 'b': a value is missing"),
    "missing by name": ("a,b,y\n1,2,3\n4,NA,6\n", "line 3, column 'b': a value is missing"),
    "missing word": ("a,b,y\n1,u,3\n4,,6\n", "line 3, column 'b': a value is missing"),
    "missing target": ("a,b,y\n1,2,3\n4,5,\n", "line 3, column 'y': a value is missing"),
    "all missing": ("a,b,y\n1,,3\n4,,6\n", "line 2, column 'b': a value is missing"),
    "number and word": ("a,b,y\n1,2,3\n4,x,6\n", "line 3, column 'b': a column must hold numbers"),
    "infinite": ("a,b,y\n1,2,3\n4,inf,6\n", "line 3, column 'b': a value must be finite"),
    "date": ("a,b,y\n1,2020-01-31,3\n", "line 2, column 'b': 2020-01-31 is a date"),
    "line break": ('a,b,y\n1,"u\nv",3\n', "one row per line"),
    "open quotes": ('a,b,y\n1,"u,3\n2,v,4\n', "line 2: a row must have 3 columns"),
    "not UTF-8": (b"a,b,y\n1,u,3\n1,caf\xe9,3\n", "line 3: text must be UTF-8"),
    "name not UTF-8": (b"a,caf\xe9,y\n1,2,3\n", "line 1: text must be UTF-8"),
    "same name": ("a,a,y\n1,2,3\n", "'a' twice"),
    "no name": ("a,,y\n1,2,3\n", "one without a name"),
    "wrong separator": ("a;b;y\n1;2;3\n", "columns separated by commas"),
    "no such target": ("a,b,c\n1,2,3\n", "--target y must be a column"),
    "only a target": ("y,\n1,\n", "one without a name"),
    "empty": ("", "first line is empty"),
    "header only": ("a,b,y\n", "at least one sample"),
    "long word": ("a,b,y\n1,u,3\n1," + "w" * 2000 + ",3\n", "line 3, column 'b': a word may have"),
    "binary": (b"a,b,y\n1,\0,3\n", "binary data"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_has_one_sentence_with_line_and_column(fault, tmp_path):
    content, sentence = FAULTS[fault]
    path = tmp_path / "a.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError) as caught:
        load_data(path, target="y")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    outcomes, _ = on_ranks(
        2, lambda peers: load_share(peers, str(path), [0, 1], "squared", target="y")
    )
    assert all(str(each).startswith(str(path)) or "--target" in str(each) for each in outcomes)
    assert all(isinstance(each, DataError) for each in outcomes)


def test_a_number_on_one_rank_and_a_word_on_another_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "1,0\n" * 200 + "many,0\n" + "1,1\n" * 200)
    outcomes, _ = on_ranks(
        2, lambda peers: load_share(peers, str(path), [0, 1], "squared", target="y")
    )
    for error in outcomes:
        assert "line 202, column 'x'" in str(error)


def test_an_unseen_category_is_refused(tmp_path):
    columns = Columns({"c": "word"}, {"c": ("p", "q")}, "y")
    (tmp_path / "new.csv").write_text("c\np\nz\n")
    (tmp_path / "two.csv").write_text("c,d\np,1\nz,1\n")
    for name in ("new.csv", "two.csv"):
        with pytest.raises(DataError, match=r"line 3, column 'c': 'z' is a category"):
            load_rows(tmp_path / name, Selection(columns=columns))
    (tmp_path / "twice.csv").write_text("c,c\np,p\n")
    with pytest.raises(DataError, match="'c' twice"):
        load_rows(tmp_path / "twice.csv", Selection(columns=columns))
    pq.write_table(pa.table({"c": ["p", "q", "z"]}), tmp_path / "new.parquet")
    with pytest.raises(DataError, match=r"row 3, column 'c': 'z' is a category"):
        load_rows(tmp_path / "new.parquet", Selection(columns=columns))
    write_csv(tmp_path / "other.csv", {"d": [1], "e": [2]})
    with pytest.raises(DataError, match="has no c"):
        load_rows(tmp_path / "other.csv", Selection(columns=columns))


def test_what_is_wrong_with_a_parquet_file(tmp_path):
    path = tmp_path / "a.parquet"

    def refused(columns, **more):
        pq.write_table(pa.table(columns), path)
        with pytest.raises(DataError) as caught:
            load_data(path, **({"target": "y"} | more))
        return str(caught.value)

    assert "row 2, column 'x': a value is missing" in refused({"x": [1, None], "y": [0, 1]})
    assert "row 2, column 'x': a value is missing" in refused({"x": ["u", None], "y": [0, 1]})
    assert "row 1, column 'x': a value must be finite" in refused({"x": [np.inf], "y": [0]})
    assert "column 'x': a column must hold numbers" in refused({"x": [[1]], "y": [0]})
    assert "at least one sample" in refused({"x": np.empty(0), "y": np.empty(0)})
    assert "--target must name the column" in refused({"x": [1], "y": [0]}, target=None)
    assert "--n-features 3" in refused({"x": [1], "y": [0]}, n_features=3)
    for damaged in (path.read_bytes()[:-20], b"PAR1nothing"):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="cannot be read"):
            load_data(path, target="y")


def test_names_of_columns_are_refused_where_there_are_none(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n")
    save_npz(tmp_path / "a.npz", np.ones((1, 1)), np.ones(1))
    for name in ("a.svm", "a.npz"):
        with pytest.raises(DataError, match="columns have no names"):
            load_data(tmp_path / name, target="y")


def test_too_many_categories_are_an_identifier(tmp_path, monkeypatch):
    monkeypatch.setattr("adfs.data.columns.MOST_CATEGORIES", 3)
    monkeypatch.setattr("adfs.data.tables.MOST_CATEGORIES", 3)
    write_csv(tmp_path / "a.csv", {"name": list("abcde"), "y": [1, 2, 3, 4, 5]})
    with pytest.raises(DataError, match="at most 3 different ones"):
        load_data(tmp_path / "a.csv", target="y")


def test_a_model_keeps_its_columns():
    columns = Columns({"x": "number", "c": "word"}, {"c": ("p", "q")}, "y", "word")
    assert Columns.from_dict(columns.to_dict()) == columns
    for damaged in ({}, {"kinds": []}, columns.to_dict() | {"kinds": {"x": "colour"}}):
        with pytest.raises(DataError):
            Columns.from_dict(damaged)


def test_one_process_and_one_rank_agree(tmp_path):
    paths = write_all(tmp_path, people())
    for path in paths:
        data = load_share(Alone(), str(path), [0, 0], "logistic", target="buys")
        expected = partition(*load_data(path, target="buys"), 2)
        require_same_bits(data.shards, expected)


def test_names_may_hold_points_and_spaces(tmp_path):
    for path in write_all(tmp_path, {"Sepal.Length": [1.5, 2.0], "a b": [3, 4], "y": [0, 1]}):
        X, _ = load_data(path, target="y", features=["a b", "Sepal.Length"])
        assert dense(X).tolist() == [[3, 1.5], [4, 2]]

import gzip
import io
import zipfile

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix

from adfs.data.files import load_data, load_rows, load_shards, save_npz
from adfs.errors import DataError

DENSE = np.array([[1.0, 2.0, 0.0], [3.0, 0.0, 4.0]])
SPARSE = csr_matrix([[0.0, 2.0, 0.0], [0.0, 0.0, 4.0]])
Y = np.array([1.0, -1.0])


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADFS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ADFS_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    return tmp_path


def dense(X):
    return X if isinstance(X, np.ndarray) else X.toarray()


@pytest.mark.parametrize("X", [DENSE, SPARSE, DENSE.astype(np.float32), SPARSE.astype(np.float32)])
def test_what_is_saved_is_loaded(X):
    save_npz("samples.npz", X, Y)
    loaded, y = load_data("samples.npz")
    assert type(loaded) is type(X)
    assert loaded.dtype == X.dtype
    np.testing.assert_array_equal(dense(loaded), dense(X))
    np.testing.assert_array_equal(y, Y)
    assert y.dtype == np.float64


def test_sparse_arrays_and_long_indices_come_back_as_csr_matrix_with_int32():
    X = csr_array(SPARSE)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    save_npz("samples.npz", X, Y)
    loaded = load_data("samples.npz").X
    assert isinstance(loaded, csr_matrix)
    assert (loaded.indices.dtype, loaded.indptr.dtype) == (np.int32, np.int32)


def test_plain_numpy_archives_are_loaded_in_our_layout():
    np.savez_compressed("f.npz", X=np.asfortranarray([[1, 2], [3, 4]]), y=np.array([True, False]))
    X, y = load_data("f.npz")
    assert X.flags.c_contiguous
    assert X.dtype == y.dtype == np.float64
    assert X.tolist() == [[1, 2], [3, 4]]
    assert y.tolist() == [1, 0]


def test_unsorted_csr_rows_are_sorted():
    np.savez(
        "u.npz",
        X_data=[1.0, 2.0],
        X_indices=[2, 0],
        X_indptr=[0, 2],
        X_shape=[1, 9],
        y=[1.0],
    )
    X, _ = load_data("u.npz")
    assert X.indices.tolist() == [0, 2]
    assert X[:, :3].toarray().tolist() == [[2, 0, 1]]


def test_libsvm_and_npz_are_told_apart_by_suffix_or_content(home):
    save_npz("samples", DENSE, Y)
    assert load_data("samples").X.tolist() == DENSE.tolist()
    (home / "text.data").write_bytes(gzip.compress(b"1 1:2\n"))
    assert load_data(home / "text.data").X.tolist() == [[2.0]]


def test_a_file_wins_over_a_data_set_and_a_folder_does_not(home):
    (home / "data" / "a9a").write_text("1 1:1\n" * 3)
    assert len(load_data("a9a").y) == 3
    (home / "a9a").mkdir()
    assert len(load_data("a9a").y) == 3
    (home / "a9a").rmdir()
    (home / "a9a").write_text("1 1:1\n")
    assert len(load_data("a9a").y) == 1


@pytest.mark.parametrize("X", [DENSE, SPARSE], ids=["dense", "csr"])
def test_n_features_pads_or_refuses(X):
    save_npz("samples.npz", X, Y)
    padded = load_data("samples.npz", n_features=5).X
    np.testing.assert_array_equal(dense(padded), np.pad(dense(X), ((0, 0), (0, 2))))
    with pytest.raises(
        DataError, match="must have at most n_features=2 features, but has 3; raise"
    ):
        load_data("samples.npz", n_features=2)


def test_rows_for_prediction_need_no_labels():
    np.savez("rows.npz", X=DENSE)
    X, y = load_rows("rows.npz")
    assert y is None
    np.testing.assert_array_equal(X, DENSE)
    with pytest.raises(
        DataError, match=r"rows.npz must hold the labels y, but has none; save X and"
    ):
        load_data("rows.npz")


CSR = {"X_data": [1.0], "X_indices": [0], "X_indptr": [0, 1], "X_shape": [1, 2], "y": [1.0]}


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"y": Y}, r"must hold X, or X_data, X_indices, X_indptr, X_shape, but holds y; save"),
        ({}, r"must hold X, or .*, but holds nothing"),
        (
            {"X": DENSE[0], "y": Y},
            r"X must have two dimensions, .* not shape \(3,\)",
        ),
        (
            {"X": DENSE[:0], "y": Y[:0]},
            r"X must have at least one row .* its shape is \(0, 3\)",
        ),
        ({"X": DENSE, "y": Y[:1]}, r"y must be one-dimensional .* 2 in all, but has shape \(1,\)"),
        ({"X": DENSE, "y": Y[:, None]}, r"y must be one-dimensional .* but has shape \(2, 1\)"),
        ({"X": DENSE, "y": Y * np.nan}, r"y must be finite, but holds NaN or infinity"),
        (
            {"X": np.where(DENSE, DENSE, np.inf), "y": Y},
            r"X must be finite, but holds NaN or infinity",
        ),
        ({"X": DENSE + 1j, "y": Y}, r"X must hold real numbers, not complex128"),
        ({"X": DENSE, "y": ["a", "b"]}, r"y must hold real numbers, not <U1; convert it"),
        ({"X": np.array([{}]), "y": Y}, r"whole .npz file of plain arrays, but: Object arrays"),
        (CSR | {"X_indices": [2]}, r"must hold a valid CSR matrix, but: .*< 2"),
        (CSR | {"X_indices": [-1]}, r"must hold a valid CSR matrix, but: .*>= 0"),
        (CSR | {"X_indptr": [0, 5]}, r"must hold a valid CSR matrix, but: "),
        (CSR | {"X_indptr": [0, 1, 1]}, r"must hold a valid CSR matrix, but: "),
        (CSR | {"X_shape": [1]}, r"must hold a valid CSR matrix, but: not enough values"),
        (CSR | {"X_shape": 7}, r"must hold a valid CSR matrix, but: "),
        (CSR | {"X_indices": [0.5]}, r"but: indices, indptr and shape are not whole numbers"),
        (CSR | {"X_data": [np.inf]}, r"X must be finite, but holds NaN or infinity"),
        (
            CSR | {"X_data": [1.0, 1.0], "X_indices": [1, 1], "X_indptr": [0, 2]},
            r"X must give an index once per row; merge what is double",
        ),
    ],
)
def test_archives_that_do_not_fit_are_refused(arrays, sentence):
    np.savez("bad.npz", **arrays)
    with pytest.raises(DataError, match=rf"bad.npz.*{sentence}"):
        load_data("bad.npz")


def archive(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def lone_array():
    buffer = io.BytesIO()
    np.save(buffer, DENSE)
    return buffer.getvalue()


WHOLE = archive(X=DENSE, y=Y)


@pytest.mark.parametrize(
    "content",
    [WHOLE[:-60], WHOLE[:200], b"", b"1 1:1\n", lone_array(), WHOLE.replace(b"\x00@", b"\x01@", 1)],
    ids=["tail cut", "half", "empty", "text", "npy", "flipped bit"],
)
def test_files_that_are_no_whole_archive_are_refused(home, content):
    (home / "cut.npz").write_bytes(content)
    with pytest.raises(
        DataError, match=r"cut.npz must be a whole .npz file of plain arrays, but: "
    ):
        load_data("cut.npz")


def test_an_archive_of_something_else_is_refused(home):
    with zipfile.ZipFile(home / "other.npz", "w") as file:
        file.writestr("readme.txt", "hello")
    with pytest.raises(DataError, match=r"other.npz"):
        load_data("other.npz")


def test_a_source_that_is_nothing_is_refused(home):
    with pytest.raises(DataError, match=r"a9b must be a file or a known data set, but is neither"):
        load_data("a9b")
    with pytest.raises(DataError, match=r"part-\{node\} must name one file, but holds \{node\}"):
        load_data("part-{node}")
    with pytest.raises(DataError, match="must be a file, but is a folder"):
        load_data(home)


def test_shards_come_in_the_order_of_nodes_and_equally_wide(home):
    for node in range(12):
        (home / f"part-{node}.txt").write_text(f"{node} {1 + node}:1\n")
    shards = load_shards("part-{node}.txt")
    assert [shard.y.tolist() for shard in shards] == [[node] for node in range(12)]
    np.testing.assert_array_equal(np.vstack([dense(X) for X, _ in shards]), np.eye(12))
    assert all(X.shape == (1, 20) for X, _ in load_shards("part-{node}.txt", n_features=20))
    with pytest.raises(DataError, match=r"part-11.txt, line 1: index 12 is above n_features=11"):
        load_shards("part-{node}.txt", n_features=11)


def test_shards_share_one_layout_decided_over_all(home):
    (home / "0.txt").write_text("1 1:1 2:1\n")
    (home / "1.txt").write_text("1 8:1\n" * 9)
    assert all(isinstance(X, csr_matrix) for X, _ in load_shards("{node}.txt"))
    (home / "1.txt").write_text("1 3:1\n")
    shards = load_shards("{node}.txt")
    assert [X.tolist() for X, _ in shards] == [[[1, 1, 0]], [[0, 0, 1]]]


def test_shards_share_one_type_of_number():
    save_npz("s0.npz", DENSE.astype(np.float32), Y)
    save_npz("s1.npz", DENSE, Y)
    assert {X.dtype for X, _ in load_shards("s{node}.npz")} == {np.dtype(np.float64)}


def test_the_node_may_name_a_folder_too(home):
    for node in range(2):
        (home / f"[n]{node}").mkdir()
        (home / f"[n]{node}" / f"x{node}").write_text(f"{node} 1:1\n")
    shards = load_shards(str(home / "[n]{node}" / "x{node}"))
    assert [shard.y.tolist() for shard in shards] == [[0], [1]]


def test_a_hole_in_the_shards_names_the_missing_file(home):
    for name in ("0", "1", "3", "07", "x"):
        (home / f"part-{name}").write_text("1 1:1\n")
    with pytest.raises(DataError, match=r"numbered from 0, but part-2 is missing; add it or renum"):
        load_shards("part-{node}")
    with pytest.raises(DataError, match=r"numbered from 0, but none-0 is missing"):
        load_shards("none-{node}")
    with pytest.raises(DataError, match=r"part-0 must hold \{node\}; write for example"):
        load_shards("part-0")


def test_an_empty_shard_is_named(home):
    (home / "part-0").write_text("1 1:1\n")
    (home / "part-1").write_text("")
    with pytest.raises(DataError, match="part-1 must hold at least one sample, but has none"):
        load_shards("part-{node}")


def test_nothing_is_written_where_samples_are_bad_or_the_place_is(home):
    with pytest.raises(DataError, match="y must be one-dimensional"):
        save_npz("bad.npz", DENSE, Y[:1])
    assert not (home / "bad.npz").exists()
    with pytest.raises(DataError, match="cannot be written: No such file or directory; choose"):
        save_npz(home / "nowhere" / "x.npz", DENSE, Y)

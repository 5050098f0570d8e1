import bz2
import gzip
import lzma
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from adfs.agreement import Alone
from adfs.data import text_lines
from adfs.data.libsvm import LibsvmReader, read_libsvm
from adfs.data.reader import Layout, Piece, Selection, lay_out
from adfs.errors import DataError, ParameterError

DATA = os.environ.get("ADFS_DATA", "")


def gzipped(text):
    """Without the time of day, which would make another test's name in every worker."""
    return gzip.compress(text, mtime=0)


PACK = {".txt": bytes, ".gz": gzipped, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.fixture
def write(tmp_path):
    def write(text, name="samples.txt"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def literal_reader(path):
    """Every line in plain Python, into a dense array."""
    rows = []
    for line in lzma.decompress(Path(path).read_bytes()).decode().splitlines():
        label, *pairs = line.split()
        cells = (pair.split(":") for pair in pairs)
        rows.append((float(label), {int(i): float(v) for i, v in cells}))
    width = max(max(row, default=0) for _, row in rows)
    X = np.zeros((len(rows), width))
    for i, (_, row) in enumerate(rows):
        for index, value in row.items():
            X[i, index - 1] = value
    return X, np.array([label for label, _ in rows])


@pytest.mark.parametrize("suffix", PACK)
def test_every_compression_gives_the_same_samples(write, suffix):
    text = b"+1 1:0.5 4:-2e-3 # a remark\n\n# only a remark\r\n-1\n2.5 2:1\r\n"
    X, y = read_libsvm(write(PACK[suffix](text), "samples" + suffix))
    assert isinstance(X, csr_matrix)
    np.testing.assert_array_equal(X.toarray(), [[0.5, 0, 0, -2e-3], [0] * 4, [0, 1, 0, 0]])
    np.testing.assert_array_equal(y, [1, -1, 2.5])


@pytest.mark.parametrize("packing", [gzipped, bz2.compress, lzma.compress])
def test_content_tells_the_compression_where_the_suffix_is_silent(write, packing):
    assert read_libsvm(write(packing(b"1 1:2\n"), "a9a.t")).X.tolist() == [[2.0]]


def test_half_full_rows_come_dense_and_emptier_rows_come_sparse(write):
    half, _ = read_libsvm(write("1 1:1 2:2\n1 1:3 4:5\n"))
    assert isinstance(half, np.ndarray)
    assert half.flags.c_contiguous
    assert half.dtype == np.float64
    less, _ = read_libsvm(write("1 1:1 2:2\n1 1:3 4:0\n"), n_features=4)
    assert isinstance(less, csr_matrix)
    assert less.nnz == 3, "a stored zero is no entry"
    assert (less.indices.dtype, less.indptr.dtype) == (np.int32, np.int32)


def test_n_features_pads_and_rows_without_features_are_samples(write):
    X, y = read_libsvm(write("1 1:7\n-1\n"), n_features=5)
    np.testing.assert_array_equal(X.toarray(), [[7, 0, 0, 0, 0], [0] * 5])
    np.testing.assert_array_equal(y, [1, -1])


def test_small_blocks_change_nothing_and_keep_the_line_number(write, monkeypatch):
    lines = [f"{i % 2} {1 + i % 7}:{i} {9 + i % 3}:1" for i in range(1, 200)]
    whole = read_libsvm(write("\n".join(lines)))
    monkeypatch.setattr(text_lines, "BLOCK_BYTES", 50)
    path = write("\n".join(lines))
    assert len(list(LibsvmReader(Alone(), path, Selection()).read())) > 20
    cut = read_libsvm(path)
    assert (whole.X != cut.X).nnz == 0
    np.testing.assert_array_equal(whole.y, cut.y)
    lines[150] = "1 3:nan"
    with pytest.raises(DataError, match=r"samples.txt, line 151: a value must be a finite"):
        read_libsvm(write("\n".join(lines)))


def test_pieces_become_one_matrix_as_wide_as_the_widest():
    pieces = [
        Piece(csr_matrix([[1.0, 2.0]]), None, np.array([1])),
        Piece(np.array([[3.0]]), None, np.array([0])),
    ]
    for dense in (True, False):
        X = lay_out(list(pieces), Layout(dense, 3, np.dtype(np.float64)))
        assert isinstance(X, np.ndarray) == dense
        assert (X if dense else X.toarray()).tolist() == [[3, 0, 0], [1, 2, 0]]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("1 0:1", r"indices start at 1, but 0 was found; add 1 to every index\.$"),
        ("1 -2:1", "indices start at 1, but -2 was found"),
        ("1 1:1 1:2", "ascend within a row, each once, but 1 follows 1; sort"),
        ("1 2:1 1:2", "ascend within a row, each once, but 1 follows 2; sort"),
        ("1 1:nan", "value must be a finite number, not 'nan'; remove or replace it"),
        ("1 1:-inf", "value must be a finite number, not '-inf'"),
        ("1 1:1e999", "value must be a finite number, not '1e999'"),
        ("1 1:", "value must be a finite number, not ''"),
        ("1 1:abc", "value must be a finite number, not 'abc'"),
        ("nan 1:1", "must begin with a finite label, not 'nan'; write 'label index:value"),
        ("inf 1:1", "must begin with a finite label, not 'inf'"),
        ("1,0.5,0.25", "must begin with a finite label, not '1,0.5,0.25'.*separated by spaces"),
        ("1:0.5 2:1", "must begin with a finite label, not '1:0.5'"),
        ("1 0.5 0.25", "feature must read index:value, not '0.5'; check the separators"),
        ("1 x:1", "feature must read index:value, not 'x:1'"),
        ("1 qid:3 1.5:1", "feature must read index:value, not '1.5:1'"),
        ("1 6:1", "index 6 is above n_features=5; raise it or check the file"),
    ],
)
def test_a_bad_line_is_named_with_its_rule(write, line, sentence):
    path = write(f"1 1:1 5:1\n\n{line}\n1 0:oops\n")
    with pytest.raises(DataError, match=f"samples.txt, line 3: .*{sentence}"):
        read_libsvm(path, n_features=5)


def test_an_index_past_int32_is_refused(write):
    with pytest.raises(DataError, match="line 1: index 3000000000 is above the limit 2147483647"):
        read_libsvm(write("1 3000000000:1\n"))


@pytest.mark.parametrize("n_features", [0, -1, 2.5, "3"])
def test_n_features_must_be_a_count(write, n_features):
    with pytest.raises(
        ParameterError, match=r"n_features=.* must be a whole number from 1 to 2147483647"
    ):
        read_libsvm(write("1 1:1\n"), n_features)


@pytest.mark.parametrize("text", [b"", b"\n\n", b"# nothing\n", gzipped(b"")])
def test_a_file_without_samples_is_refused(write, text):
    with pytest.raises(DataError, match="must hold at least one sample, but has none"):
        read_libsvm(write(text))


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_an_empty_file_under_a_compressed_name_is_refused(write, suffix):
    with pytest.raises(DataError, match="must hold at least one sample, but has none"):
        read_libsvm(write(b"", "empty" + suffix))


def test_missing_files_and_folders_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"nowhere.txt must be an existing file, but there is none"):
        read_libsvm(tmp_path / "nowhere.txt")
    with pytest.raises(DataError, match="must be a file, but is a folder; name a file in it"):
        read_libsvm(tmp_path)


def test_an_unreadable_file_is_refused(write, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    path = write("1 1:1\n")
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError, match=r"samples.txt cannot be read: Permission denied; check"):
        read_libsvm(path)


@pytest.mark.parametrize("size", [300, 3_000_000])
def test_binary_data_is_refused(write, size):
    noise = np.random.default_rng(0).bytes(size)
    with pytest.raises(DataError, match="must be LIBSVM text, but holds binary data; pass"):
        read_libsvm(write(noise + b"\0"))


def test_binary_data_without_a_zero_byte_is_refused(write):
    with pytest.raises(DataError, match="line 1: a line must begin with a finite label"):
        read_libsvm(write(bytes(range(128, 256))))


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_truncated_compressed_files_are_refused(write, suffix):
    text = b"".join(b"1 1:%d\n" % i for i in range(5000))
    path = write(PACK[suffix](text)[:-40], "cut" + suffix)
    with pytest.raises(DataError, match=r"must be a whole compressed file, but ends too early"):
        read_libsvm(path)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_damaged_compressed_files_are_refused(write, suffix):
    packed = bytearray(PACK[suffix](b"".join(b"1 1:%d\n" % i for i in range(5000))))
    packed[len(packed) // 2 : len(packed) // 2 + 8] = b"\xaa" * 8
    with pytest.raises(DataError, match=r"bent\.(gz|bz2|xz)"):
        read_libsvm(write(bytes(packed), "bent" + suffix))


@pytest.mark.parametrize(
    ("suffix", "content", "found"),
    [
        (".gz", b"1 1:2\n", "something else"),
        (".xz", gzipped(b"1 1:2\n"), "gz"),
        (".bz2", lzma.compress(b"1 1:2\n"), "xz"),
    ],
)
def test_a_suffix_that_lies_is_refused(write, suffix, content, found):
    sentence = f"must hold {suffix[1:]} data, as its suffix says, but holds {found}; rename"
    with pytest.raises(DataError, match=sentence):
        read_libsvm(write(content, "liar" + suffix))


def test_a_pipe_can_be_read(tmp_path):
    reader, writer = os.pipe()
    os.write(writer, lzma.compress(b"1 1:2\n-1 1:3\n"))
    os.close(writer)
    assert read_libsvm(f"/dev/fd/{reader}").y.tolist() == [1, -1]
    os.close(reader)


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["mushrooms.xz", "abalone_scale.xz", "a9a.t.xz"])
def test_real_files_agree_with_a_literal_reader(name):
    path = Path(DATA, name)
    if not DATA or not path.exists():
        pytest.skip(f"{name} is not in the folder ADFS_DATA={DATA!r}")
    X, y = read_libsvm(path)
    expected_X, expected_y = literal_reader(path)
    np.testing.assert_array_equal(X if isinstance(X, np.ndarray) else X.toarray(), expected_X)
    np.testing.assert_array_equal(y, expected_y)

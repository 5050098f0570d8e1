"""One file on several ranks: every shard has the bits of the local engine's."""

import bz2
import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from adfs.agreement import Alone
from adfs.data import text_lines
from adfs.data.files import load_share, save_npz
from adfs.data.libsvm import LibsvmReader
from adfs.data.reader import Selection
from adfs.data.shards import join_shards
from support.peers import local_shards, owners, require_same_bits, succeed

N_NODES = 5
DEALS = [
    ("even", None), ("contiguous", None), ("sorted", None), ("draw", 11), ("dirichlet:0.2", None),
]  # fmt: skip
PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Many blocks even in small files."""
    monkeypatch.setattr(text_lines, "BLOCK_BYTES", 150)


def text_of(density, n=43, d=9, seed=0, labels=(2.0, -7.0)):
    """LIBSVM text with remarks, blank lines, rows without entries and zeros that are written."""
    random = np.random.default_rng(seed)
    lines = []
    for row in range(n):
        label = labels[int(random.random() < 0.4)]
        pairs = [
            f"{index}:{random.choice([0.0, random.normal()], p=[0.1, 0.9])!r}"
            for index in range(1, d + 1)
            if random.random() < density
        ]
        lines.append(" ".join([f"{label:g}", *pairs]).replace("np.float64(", "").replace(")", ""))
        if row % 7 == 0:
            lines += ["", "# a remark 1:1", "   \t", f"  {label:g} 1:1 # indented, with a remark"]
    return "\n".join(lines)


def shares(size, source, owner, loss="squared", **how):
    """What every rank loads, put together in the order of the nodes."""
    data = succeed(size, lambda peers: load_share(peers, str(source), owner, loss, **how))
    shards = [None] * len(owner)
    for rank, share in enumerate(data):
        nodes = np.flatnonzero(np.asarray(owner) == rank)
        for node, shard in zip(nodes, share.shards, strict=True):
            shards[node] = shard
    return data, shards


def compare(size, source, how, m, n_features=None, n_nodes=N_NODES):
    """Both engines, bit for bit."""
    expected = local_shards(source, n_nodes, how, 3, m, n_features)
    for owner in owners(n_nodes, size):
        data, found = shares(size, source, owner, how=how, seed=3, m=m, n_features=n_features)
        require_same_bits(found, expected)
        for share in data:
            assert share.classes is share.label_counts is None


@pytest.mark.parametrize("density", [0.1, 0.9], ids=["sparse", "dense"])
@pytest.mark.parametrize(("how", "m"), DEALS)
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_a_libsvm_file_is_dealt_as_the_local_engine_deals_it(size, how, m, density, tmp_path):
    path = tmp_path / "samples.txt"
    path.write_text(text_of(density))
    compare(size, path, how, m)


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize(("how", "m"), DEALS)
def test_a_packed_file_is_dealt_as_the_local_engine_deals_it(how, m, suffix, tmp_path):
    path = tmp_path / f"samples.txt{suffix}"
    path.write_bytes(PACK[suffix](text_of(0.3).encode()))
    compare(3, path, how, m)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int16, np.float16, ">f8"])
@pytest.mark.parametrize("layout", ["rows", "columns", "csr", "unsorted csr"])
def test_a_npz_file_is_dealt_as_the_local_engine_deals_it(layout, kind, tmp_path):
    random = np.random.default_rng(1)
    path = tmp_path / "samples.npz"
    y = random.choice([-1, 1], 43)
    X = csr_matrix(np.where(random.random((43, 9)) < 0.4, 9 * random.normal(size=(43, 9)), 0.0))
    if layout.endswith("csr"):
        data, indices = X.data.astype(kind), X.indices.astype(np.int64)
        if layout == "unsorted csr":
            for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True):
                data[a:b], indices[a:b] = data[a:b][::-1], indices[a:b][::-1]
        parts = {"X_data": data, "X_indices": indices, "X_indptr": X.indptr, "X_shape": [43, 9]}
        np.savez_compressed(path, y=y, **parts)
    else:
        np.savez(path, y=y, X=X.toarray(order="F" if layout == "columns" else "C").astype(kind))
    for (how, m), size, n_features in zip(
        DEALS, (1, 2, 3, 4, 3), (None, 14, 9, None, 9), strict=True
    ):
        compare(size, path, how, m, n_features)


@pytest.mark.parametrize(("how", "m"), DEALS)
@pytest.mark.parametrize("n_features", [9, 20, 100])
def test_the_number_of_features_decides_the_layout_as_in_the_local_engine(
    n_features, how, m, tmp_path
):
    path = tmp_path / "samples.txt"
    path.write_text(text_of(0.9))
    compare(2, path, how, m, n_features)


def test_the_whole_file_decides_the_layout_not_the_rows_of_a_rank_nor_those_drawn(tmp_path):
    full = "1 " + " ".join(f"{i}:{i}" for i in range(1, 7)) + "\n"
    path = tmp_path / "samples.txt"
    for rows in (full * 20 + "-1 6:1\n" * 20, full * 10 + "-1 6:1\n" * 30):
        path.write_text(rows)
        for how, m in DEALS[1:3]:
            compare(4, path, how, m, n_nodes=4)
        for seed in range(5):
            expected = local_shards(path, 3, "draw", seed, 1)
            _, found = shares(3, path, [0, 1, 2], how="draw", seed=seed, m=1)
            require_same_bits(found, expected)


def test_explicit_zeros_of_a_npz_file_stay(tmp_path):
    X = csr_matrix(([1.0, 0.0, 2.0, 0.0], [0, 1, 1, 0], [0, 2, 3, 4, 4]), shape=(4, 3))
    save_npz(tmp_path / "zeros.npz", X, np.arange(4.0))
    compare(2, tmp_path / "zeros.npz", "even", None, n_nodes=2)


def test_one_long_row_among_short_ones(tmp_path):
    """A line longer than several ranks' parts of the bytes."""
    long = " ".join(f"{i}:1" for i in range(1, 2000))
    path = tmp_path / "samples.txt"
    path.write_text("1 1:1\n-1 2:1\n1 " + long + "\n-1 3:3\n1 7:7")
    for size in (1, 2, 3, 4):
        compare(size, path, "contiguous", None, n_nodes=4)
        compare(size, path, "even", None, n_nodes=4)


@pytest.mark.parametrize(
    "text", ["1 1:1\r\n\r\n-1 2:2\r\n1", "1\n2\n3\n4\n", "\n\n\n1\n#\n2 3:4 \n"]
)
def test_odd_line_ends_and_rows_without_features(text, tmp_path):
    path = tmp_path / "samples.txt"
    path.write_bytes(text.encode())
    compare(2, path, "contiguous", None, n_nodes=2)


def test_a_known_data_set_keeps_the_columns_of_the_registry(tmp_path, monkeypatch):
    monkeypatch.setenv("ADFS_DATA", str(tmp_path))
    (tmp_path / "abalone_scale").write_text(text_of(0.9, d=5))
    for size in (1, 3):
        compare(size, "abalone", "even", None)


@pytest.mark.parametrize("labels", [(0.0, 1.0), (-1.0, 1.0), (3.5, 2.0)])
def test_classes_are_judged_and_counted_over_all_shards(labels, tmp_path):
    path = tmp_path / "samples.txt"
    path.write_text(text_of(0.5, labels=labels))
    # With sorted labels the first and the last rank see one class only.
    for how, m in DEALS:
        data, found = shares(3, path, [0, 0, 1, 2, 2], "logistic", how=how, m=m)
        y = np.concatenate([shard.y for shard in found])
        for share in data:
            assert share.classes.tolist() == sorted(labels)
            assert share.label_counts.tolist() == [np.sum(y == label) for label in sorted(labels)]


@pytest.mark.parametrize("density", [0.1, 0.9], ids=["sparse", "dense"])
def test_the_shards_of_a_rank_are_joined_without_a_copy(density, tmp_path):
    path = tmp_path / "samples.txt"
    path.write_text(text_of(density))
    share = load_share(Alone(), str(path), [0] * N_NODES, "squared")
    joined = join_shards(share.shards)
    ours = share.shards[0].X.data if density < 0.5 else share.shards[0].X
    assert np.shares_memory(ours, joined.rows.values)


@given(st.binary(max_size=60))
@example(b" \t1 1:1\n\x0b#\n\r\n#1\n1#\n\n+1")
def test_lines_with_a_sample_are_those_that_the_parser_takes(noise):
    """Whatever stands in a text: a line is a sample if the parser would make a row of it."""
    text = noise.replace(b"\0", b"")
    samples = LibsvmReader(Alone(), Path("s"), Selection()).find_lines(text)[1].tolist()
    kept = [line.split(b"#")[0].split() for line in text.split(b"\n")]
    assert samples == [number for number, words in enumerate(kept) if words]


@pytest.mark.realdata
@pytest.mark.parametrize("plain", [True, False], ids=["plain", "packed"])
@pytest.mark.parametrize("how", ["even", "contiguous"])
def test_a9a_has_the_bits_of_the_local_engine(how, plain, data_folder, monkeypatch, tmp_path):
    monkeypatch.undo()
    packed = data_folder / "a9a.xz"
    if not packed.exists():
        pytest.skip(f"a9a.xz is not in {data_folder}")
    source = "a9a"
    if plain:
        source = tmp_path / "a9a.txt"
        source.write_bytes(lzma.decompress(packed.read_bytes()))
    _, found = shares(3, source, np.arange(8) * 3 // 8, how=how)
    require_same_bits(found, local_shards(source, 8, how))

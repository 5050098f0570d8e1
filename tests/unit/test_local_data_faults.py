"""What the local engine refuses is refused by all ranks together, with its sentence, told once."""

import gzip
import lzma
import os

import numpy as np
import pytest

from adfs.data import text_lines
from adfs.data.files import load_share
from adfs.data.text_lines import LineReader
from adfs.errors import AdfsError, DataError, ParameterError, is_printed_elsewhere
from support.peers import local_shards, on_ranks

LINES = [f"{i % 2} {1 + i % 7}:{i} {9 + i % 3}:1" for i in range(60)]
PACK = {"": bytes, ".gz": lambda text: gzip.compress(text, mtime=0), ".xz": lzma.compress}
DENSE = np.arange(24.0).reshape(8, 3)
Y = np.array([0.0, 1.0] * 4)
CSR = {
    "X_data": np.ones(8),
    "X_indices": np.zeros(8, int),
    "X_indptr": np.arange(9),
    "X_shape": [8, 2],
    "y": Y,
}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADFS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ADFS_DATA", raising=False)
    monkeypatch.setattr(text_lines, "BLOCK_BYTES", 100)
    return tmp_path


def refused(size, source, n_nodes=4, loss="squared", **how):
    """The one error that all ranks raise; exactly one of them is to print it."""
    owner = np.arange(n_nodes) % size
    outcomes, _ = on_ranks(size, lambda peers: load_share(peers, source, owner, loss, **how))
    assert all(isinstance(outcome, AdfsError) for outcome in outcomes), outcomes
    assert len({str(outcome) for outcome in outcomes}) == 1
    silent = [is_printed_elsewhere(outcome) for outcome in outcomes]
    assert silent.count(False) == 1
    return outcomes[silent.index(False)]


def require_the_local_sentence(source, n_nodes=4, sizes=(1, 2, 3, 4), **how):
    """Both engines refuse a DATA with the same words and the same kind of error."""
    with pytest.raises(AdfsError) as local:
        local_shards(source, n_nodes, **how)
    for size in sizes:
        error = refused(size, source, n_nodes, **how)
        assert str(error) == str(local.value)
        assert isinstance(error, DataError) == isinstance(local.value, DataError)
        assert isinstance(error, ParameterError) == isinstance(local.value, ParameterError)
    return str(local.value)


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize(
    ("how", "m"), [("even", None), ("contiguous", None), ("sorted", None), ("draw", 2)]
)
def test_the_first_faulty_line_is_named_whoever_meets_it(how, m, suffix, home):
    for bad in ([41], [3, 58], [59, 17, 30], [0]):
        lines = list(LINES)
        for place in bad:
            lines[place] = f"1 3:{'nan' if place % 2 else 'oops'}"
        lines[10:10] = ["", "# a remark"]
        text = "\n".join(lines).encode()
        (home / f"s{suffix}").write_bytes(PACK[suffix](text))
        sentence = require_the_local_sentence(f"s{suffix}", sizes=(1, 3), how=how, m=m)
        line = min(bad) + (3 if min(bad) >= 10 else 1)
        assert f"s{suffix}, line {line}: a value must be a finite number" in sentence


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("text", [b"", b"\n\n# nothing\n", b"1 1:1\n\0\n", b"1 0:1\n2 1:1"])
def test_files_that_are_no_samples(text, suffix, home):
    (home / f"s{suffix}").write_bytes(PACK[suffix](text) if text else b"")
    require_the_local_sentence(f"s{suffix}", 2, sizes=(1, 2))


def test_indices_above_the_number_of_features(home):
    (home / "s").write_text("\n".join(LINES))
    sentence = require_the_local_sentence("s", n_features=9)
    assert "line 2: index 10 is above n_features=9" in sentence
    require_the_local_sentence("s", n_features=0)


def test_damaged_and_lying_packed_files(home):
    packed = PACK[".xz"]("\n".join(LINES * 9).encode())
    (home / "cut.xz").write_bytes(packed[:-30])
    require_the_local_sentence("cut.xz")
    (home / "liar.gz").write_text("1 1:1\n")
    require_the_local_sentence("liar.gz")


def test_missing_files_folders_and_pipes(home):
    require_the_local_sentence("nowhere.txt")
    (home / "folder").mkdir()
    require_the_local_sentence("folder")
    os.mkfifo("pipe")
    assert "pipe must be a regular file, since each rank" in str(refused(2, "pipe"))


@pytest.mark.parametrize(
    "options",
    [
        {"n_nodes": 61},
        {"how": "draw"},
        {"how": "draw", "m": 61},
        {"how": "even", "m": 3},
        {"how": "odd"},
    ],
)
def test_samples_that_cannot_be_dealt(options, home):
    (home / "s").write_text("\n".join(LINES))
    require_the_local_sentence("s", sizes=(1, 3), **options)
    # A fault in the file is told first, as it is met first.
    (home / "s").write_text("\n".join([*LINES, "1 0:1"]))
    assert "line 61" in require_the_local_sentence("s", sizes=(1, 3), **options)


@pytest.mark.parametrize(
    "arrays",
    [
        {"y": Y},
        {},
        {"X": DENSE},
        {"X": DENSE[0], "y": Y},
        {"X": DENSE[:0], "y": Y[:0]},
        {"X": DENSE, "y": Y[:1]},
        {"X": DENSE, "y": Y[:, None]},
        {"X": DENSE, "y": Y * np.nan},
        {"X": np.where(DENSE == 13, np.inf, DENSE), "y": Y},
        {"X": np.asfortranarray(np.where(DENSE == 13, np.nan, DENSE)), "y": Y},
        {"X": DENSE + 1j, "y": Y},
        {"X": DENSE, "y": ["a"] * 8},
        {"X": np.array([{}]), "y": Y},
        CSR | {"X_indices": np.arange(8)},
        CSR | {"X_indices": -np.arange(8)},
        CSR | {"X_indptr": np.arange(9) + 1},
        CSR | {"X_indptr": np.arange(10)},
        CSR | {"X_indptr": [0, 4, 3, 4, 5, 6, 7, 8, 8]},
        CSR | {"X_indptr": [0, 1, 2, 3, 4, 5, 6, 7, 9]},
        CSR | {"X_shape": [8]},
        CSR | {"X_indices": np.zeros(8)},
        CSR | {"X_data": np.full(8, np.nan)},
        CSR | {"X_data": np.ones(7)},
        CSR | {"X_indptr": [0, 2, 2, 3, 4, 5, 6, 7, 8]},
    ],
)
@pytest.mark.parametrize("how", ["even", "draw"])
def test_npz_files_that_are_no_samples(arrays, how, home):
    np.savez("s.npz", **arrays)
    require_the_local_sentence("s.npz", sizes=(1, 3), how=how, m=2 if how == "draw" else None)


def test_npz_files_that_are_too_wide_or_damaged(home):
    np.savez("s.npz", X=DENSE, y=Y)
    require_the_local_sentence("s.npz", n_features=2)
    whole = (home / "s.npz").read_bytes()
    place = whole.index(DENSE[3].tobytes())
    (home / "bent.npz").write_bytes(whole[:place] + b"\xff" * 16 + whole[place + 16 :])
    assert "Bad CRC-32" in require_the_local_sentence("bent.npz")
    (home / "cut.npz").write_bytes(whole[:-200])
    require_the_local_sentence("cut.npz")


def test_a_row_that_nobody_draws_is_checked_too(home):
    X = np.ones((40, 3))
    for bad in range(0, 40, 7):
        rows = X.copy()
        rows[bad] = np.nan
        np.savez("s.npz", X=rows, y=np.arange(40.0))
        require_the_local_sentence("s.npz", 2, sizes=(2,), how="draw", m=1)


@pytest.mark.parametrize("faulty", [{1: "1 0:1"}, {3: ""}, {2: "1 1:1 x", 1: "\n"}, {0: "1 9:1"}])
def test_one_faulty_file_of_a_pattern_is_named(faulty, home):
    for node in range(4):
        (home / f"part-{node}").write_text(faulty.get(node, "1 1:1\n0 2:1\n"))
    sentence = require_the_local_sentence("part-{node}", n_features=5)
    assert f"part-{min(faulty)}" in sentence


def test_a_file_of_a_pattern_that_its_rank_does_not_see(home):
    for node in range(3):
        (home / f"part-{node}").write_text("1 1:1\n0 2:1\n")
    (home / "part-1").unlink()
    error = refused(2, "part-{node}", 3)
    assert str(error) == "part-1 must be an existing file, but there is none; check the name."


def test_a_file_that_one_rank_does_not_see_or_sees_differently(home):
    for rank, text in enumerate(["1 1:1\n0 2:1\n"] * 2 + ["1 1:1\n0 2:1\n1 1:1\n"]):
        (home / f"host{rank}").write_text(text)

    def load(peers):
        return load_share(peers, f"host{peers.rank}", [0, 1, 2], "squared")

    outcomes, _ = on_ranks(3, load)
    for error in outcomes:
        assert (
            "must be the same file on every rank, but rank 0 sees 12 bytes and rank 2 sees 18"
            in (str(error))
        )
    (home / "host1").unlink()
    outcomes, _ = on_ranks(3, load)
    for error in outcomes:
        assert str(error).startswith("On the host of rank 1, host1 must be a file or a known")


OTHERS = {
    "ends": (0, "even"), "even": (3_900, "even"), "draw": (3_900, "draw"),
    "sorted": (3_900, "sorted"), "packed": (3_900, "contiguous"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_other_content_of_the_same_size_is_refused(home, name):
    (place, how), m = OTHERS[name], 3_600 if name == "draw" else None
    rows = [f"{k % 2} 1:{k:06d} 2:1.000\n" for k in range(8_000)]
    other = rows.copy()
    other[place] = rows[place].replace("2:1", "2:3")
    for host, lines in enumerate((rows, rows, other)):
        text = "".join(lines).encode()
        if name == "packed":
            text = gzip.compress(text, compresslevel=0, mtime=0)
        (home / f"host{host}").write_bytes(text)

    def load(peers):
        return load_share(peers, f"host{peers.rank}", [0, 1, 2], "squared", how, m=m)

    outcomes, _ = on_ranks(3, load)
    for error in outcomes:
        assert "must be the same file on every rank" in str(error)
        assert "rank 2 " in str(error)


def test_one_class_and_three_classes_are_judged_over_all_ranks(home):
    (home / "s").write_text("1 1:1\n" * 6)
    sentence = str(refused(3, "s", 3, loss="logistic"))
    assert sentence.startswith("All labels are 1.0 (one class); loss 'logistic' needs two classes")
    (home / "s").write_text("1 1:1\n" * 2 + "2 1:1\n" * 2 + "3 1:1\n" * 2)
    sentence = str(refused(3, "s", 3, loss="hinge", how="contiguous"))
    assert sentence.startswith("There are 3 different labels (1.0, 2.0, 3.0, ...)")


def test_a_file_that_changes_between_two_readings_is_refused(home, monkeypatch):
    (home / "s").write_text("1 1:1\n0 2:1\n" * 9)
    count, counted = LineReader.count_part, []

    def count_then_change(reader, rank, size):
        counts = count(reader, rank, size)
        counted.append(rank)
        if len(counted) == size:
            reader.path.write_text("1 1:1\n0 2:5\n" * 9)
        return counts

    monkeypatch.setattr(LineReader, "count_part", count_then_change)
    assert str(refused(2, "s")).startswith("s must not change while it is read, but it did; start")

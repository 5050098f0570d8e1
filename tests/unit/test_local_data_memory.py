"""A rank reads the bytes of its rows and holds its rows, not the file."""

import io
import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from adfs.agreement import Alone
from adfs.data import text_lines
from adfs.data.files import load_share, save_npz
from support.peers import Replay, on_ranks

pytestmark = pytest.mark.slow
N_NODES = 8


class CountedFile(io.FileIO):
    """A file that counts the bytes taken from it."""

    taken = 0

    def readinto(self, buffer):
        count = super().readinto(buffer)
        CountedFile.taken += count
        return count

    def readall(self):
        content = super().readall()
        CountedFile.taken += len(content)
        return content


def replayed(size, source, how, rank):
    """One rank of a run that all ranks went through before, to be measured alone."""
    owner = np.arange(N_NODES) * size // N_NODES

    def load(peers):
        return load_share(peers, str(source), owner, "squared", how=how)

    _, peers = on_ranks(size, load)
    return lambda: load(Replay(peers[rank]))


@pytest.mark.parametrize("size", [2, 4])
def test_a_rank_reads_the_bytes_of_its_rows_once_and_counts_as_many(size, tmp_path, monkeypatch):
    path = tmp_path / "rows.txt"
    path.write_text("".join(f"{i % 2} 1:{i} 2:{i * i} 3:{i}e-3\n" for i in range(100_000)))
    n_bytes = path.stat().st_size
    for rank in range(size):
        run = replayed(size, path, "contiguous", rank)
        with monkeypatch.context() as patch:
            patch.setattr(
                type(path), "open", lambda path, mode: io.BufferedReader(CountedFile(path, "r"))
            )
            CountedFile.taken = 0
            run()
        # One part to count and one to read, each with at most two blocks beyond its ends.
        share = n_bytes / size
        assert 1.9 * share < CountedFile.taken < 2 * share + 0.2 * share + 5e5 / size


def peak(run):
    """Bytes that a run held at most, beyond what was there before."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def write_rows(path, kind):
    """Many rows: the text of some megabytes, or an archive."""
    random = np.random.default_rng(0)
    n, d = 12_000, 40
    if kind == "sparse text":
        rows = random.integers(1, 40, (n, 4)).cumsum(axis=1)
        lines = (
            f"{i % 2} " + " ".join(f"{k}:{i}.5" for k in row) for i, row in enumerate(rows.tolist())
        )
        path.write_text("\n".join(lines))
    elif kind == "dense text":
        pairs = " ".join(f"{k}:0.25" for k in range(1, 21))
        path.write_text("\n".join(f"{i % 2} {pairs}" for i in range(n)))
    elif kind == "sparse archive":
        X = csr_matrix(np.where(random.random((n, d)) < 0.3, random.normal(size=(n, d)), 0.0))
        save_npz(path, X, np.arange(n) % 2)
    else:
        save_npz(path, random.normal(size=(n, d)), np.arange(n) % 2)


@pytest.mark.parametrize("kind", ["dense text", "sparse text", "dense archive", "sparse archive"])
@pytest.mark.parametrize("how", ["contiguous", "even"])
def test_a_quarter_of_the_nodes_takes_a_quarter_of_the_memory(how, kind, tmp_path, monkeypatch):
    monkeypatch.setattr(text_lines, "BLOCK_BYTES", 1 << 14)
    path = tmp_path / "rows"
    write_rows(path, kind)
    load_share(Alone(), str(path), [0] * N_NODES, "squared")  # imports what is imported once
    whole = peak(replayed(1, path, how, 0))
    shares = [peak(replayed(4, path, how, rank)) for rank in (0, 3)]
    assert max(shares) < 0.4 * whole


@pytest.mark.parametrize("kind", ["dense archive", "sparse archive"])
def test_the_rows_of_an_archive_are_held_once(kind, tmp_path, monkeypatch):
    """One process that reads everything holds them twice while it deals them."""
    monkeypatch.setattr(text_lines, "BLOCK_BYTES", 1 << 14)
    path = tmp_path / "rows"
    write_rows(path, kind)
    shards = load_share(Alone(), str(path), [0] * N_NODES, "squared").shards
    held = sum(
        shard.X.nbytes if isinstance(shard.X, np.ndarray) else shard.X.data.nbytes * 1.5
        for shard in shards
    )
    assert peak(replayed(2, path, "even", 0)) < 1.7 * held / 2

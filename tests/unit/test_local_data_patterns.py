"""One file a node: only its own files are opened by a rank, and the shards keep their bits."""

import builtins
import gzip
import io
import itertools

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from adfs.agreement import attempt
from adfs.data import text_lines
from adfs.data.files import load_share, save_npz
from adfs.errors import DataError, is_printed_elsewhere
from adfs.mpi.problem_loading import find_shards, place_shards
from support.peers import local_shards, on_ranks, owners, require_same_bits, succeed

DENSE = np.array([[1.0, 2.0, 0.0], [3.0, 0.0, 4.0]])
SPARSE = csr_matrix([[0.0, 2.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 4.0, 0.0, 0.0, 0.0]])
FULL = b"1 1:0.1 2:0.2\n-1 1:3 2:-0\n1 1:5 2:6\n"
EMPTY = b"1 7:0.1\n\n# remark\n-1 1:3 5:0\n"
Y = np.array([1.0, -1.0])


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(text_lines, "BLOCK_BYTES", 20)
    return tmp_path


def write(folder, contents):
    """Files part-0, part-1, ... with these contents."""
    for node, content in enumerate(contents):
        if isinstance(content, bytes):
            (folder / f"part-{node}").write_bytes(content)
        else:
            save_npz(folder / f"part-{node}", content, Y)


@pytest.mark.parametrize("n_features", [None, 8])
@pytest.mark.parametrize(
    "contents",
    [
        [FULL, FULL, gzip.compress(FULL, mtime=0), FULL],
        [EMPTY, EMPTY, EMPTY],
        [FULL, EMPTY, FULL],
        [FULL * 9, EMPTY, FULL],
        [DENSE, SPARSE, DENSE, SPARSE],
        [DENSE, FULL, DENSE.astype(np.float32)],
        [SPARSE.astype(np.float32), EMPTY, SPARSE],
        [SPARSE.astype(np.float32), SPARSE.astype(np.float32), DENSE.astype(np.float32)],
        [DENSE.astype(np.float32)] * 3,
        [SPARSE, FULL, DENSE],
    ],
)
def test_shards_have_the_bits_of_the_local_engine(contents, n_features, home):
    write(home, contents)
    expected = local_shards("part-{node}", len(contents), n_features=n_features)
    for size in (1, 2, 3):
        for owner in owners(len(contents), size):
            data = succeed(
                size,
                lambda peers, owner=owner: load_share(
                    peers, "part-{node}", owner, "logistic", n_features=n_features
                ),
            )
            for rank, share in enumerate(data):
                nodes = np.flatnonzero(np.asarray(owner) == rank)
                require_same_bits(share.shards, [expected[node] for node in nodes])
                assert share.classes.tolist() == [-1, 1]
                y = np.concatenate([shard.y for shard in expected])
                assert share.label_counts.tolist() == [np.sum(y < 0), np.sum(y > 0)]


def test_only_the_files_of_a_rank_are_opened(home, monkeypatch):
    write(home, [FULL, EMPTY, DENSE, SPARSE])
    opened = []
    real = io.open

    def spy(path, *args, **options):
        opened.append(str(path))
        return real(path, *args, **options)

    monkeypatch.setattr(io, "open", spy)  # of pathlib and zipfile
    monkeypatch.setattr(builtins, "open", spy)

    class LastOfTwo:
        rank, size = 1, 2

        def gather(self, item):
            # The other rank has nodes 0 and 1, with three and two rows.
            facts = [[3, 5, 2, "<f8"], [2, 2, 7, "<f8"]]
            is_facts = isinstance(item, list) and item and isinstance(item[0], list)
            return [facts if is_facts else item, item]

    load_share(LastOfTwo(), "part-{node}", [0, 0, 1, 1], "squared")
    assert {name for name in opened if "part-" in name} == {"part-2", "part-3"}


def separate_hosts(home, holdings):
    """A folder for each rank with the files of some nodes."""
    for rank, nodes in enumerate(holdings):
        (home / f"host{rank}").mkdir()
        for node in nodes:
            text = f"{node % 2} 1:{node + 1} 3:1\n" * (node + 1)
            (home / f"host{rank}" / f"part-{node}").write_text(text)


def on_hosts(home, holdings, owner):
    """Find, place and load, each rank in its own folder."""

    def work(peers):
        pattern = f"host{peers.rank}/part-{{node}}"
        seen = find_shards(peers, pattern)
        ranks = attempt(peers, lambda: place_shards(seen, owner, pattern))
        return ranks.tolist(), load_share(peers, pattern, ranks, "squared")

    separate_hosts(home, holdings)
    return on_ranks(len(holdings), work)[0]


def test_hosts_that_share_no_file_system_take_the_files_they_see(home):
    outcomes = on_hosts(home, [[1, 4], [0, 3], [2]], [0, 0, 1, 1, 2])
    for rank, (ranks, share) in enumerate(outcomes):
        assert ranks == [1, 0, 2, 1, 0]
        nodes = [[1, 4], [0, 3], [2]][rank]
        assert [len(shard.y) for shard in share.shards] == [node + 1 for node in nodes]
        assert [shard.X[0, 0] for shard in share.shards] == [node + 1 for node in nodes]


def test_the_given_mapping_is_kept_where_all_ranks_see_all_files(home):
    outcomes = on_hosts(home, [[0, 1, 2], [0, 1, 2]], [1, 0, 1])
    assert [ranks for ranks, _ in outcomes] == [[1, 0, 1]] * 2


def test_a_hole_is_one_that_no_rank_can_fill(home):
    outcomes = on_hosts(home, [[0, 1], [1, 3]], [0, 0, 1, 1])
    for rank, error in enumerate(outcomes):
        assert isinstance(error, DataError)
        assert str(error).endswith(
            "must have one file per node, numbered from 0, but host0/part-2 is missing; add it or "
            "renumber the files."
        )
        assert is_printed_elsewhere(error) == bool(rank)


def test_a_rank_that_would_be_left_without_nodes_is_named(home):
    outcomes = on_hosts(home, [[0, 1], [2], []], [0, 1, 2])
    for error in outcomes:
        assert isinstance(error, DataError)
        assert "rank 2 must see a file of host" in str(error)
        assert str(error).endswith("copy some files there, or start fewer ranks.")


def test_placing_gives_every_rank_a_node_and_spreads_them_as_evenly_as_files_allow():
    """Against all ways to place the nodes, for random sights."""
    random = np.random.default_rng(0)
    refused = 0
    for _ in range(200):
        size, n = random.integers(2, 4), random.integers(3, 7)
        seen = random.random((size, n)) < 0.45
        seen[random.integers(0, size, n), np.arange(n)] = True
        if seen.all():
            continue
        ways = itertools.product(*(np.flatnonzero(column) for column in seen.T))
        best = min((np.bincount(way, minlength=size) ** 2).sum() for way in ways)
        ways = itertools.product(*(np.flatnonzero(column) for column in seen.T))
        if all(0 in np.bincount(way, minlength=size) for way in ways):
            refused += 1
            with pytest.raises(DataError, match=r"rank \d must see a file of part-\{node\} that"):
                place_shards(seen, np.zeros(n), "part-{node}")
            continue
        ranks = place_shards(seen, np.zeros(n), "part-{node}")
        assert seen[ranks, np.arange(n)].all()
        assert (np.bincount(ranks, minlength=size) ** 2).sum() == best
    assert 0 < refused < 150

"""The folder of checkpoints: the newest that can be trusted is found, and the last two are kept."""

import math
import os
import shutil

import numpy as np
import pytest

from adfs.engine import checkpoint_file
from adfs.engine.checkpoint_folder import CheckpointFolder
from adfs.engine.checkpoint_folder import CheckpointName as Name
from adfs.errors import CheckpointError, DataError, ParameterError
from support.checkpoints import files, identity, same, save, state

NODES = range(4)


def make(folder, nodes=NODES, rank=0, size=1, **config):
    store = CheckpointFolder(folder, identity(nodes, **config), rank, size)
    store.open()
    return store


@pytest.fixture
def two(tmp_path):
    """A folder with positions 100 and 200."""
    store = make(tmp_path)
    save(store, 100)
    save(store, 200)
    return tmp_path


def newest(folder, nodes=NODES):
    """The newest position, which must load, and what was skipped on the way."""
    store = CheckpointFolder(folder, identity(nodes))
    position = next(store.valid_positions(nodes), None)
    if position is not None:
        assert same(store.load(position, nodes).nodes, state(position, nodes))
    return position, store.skipped


def path_of(folder, position, rank=0, size=1):
    return folder / str(Name(position, rank, size))


def test_what_was_saved_is_loaded_to_the_bit(tmp_path):
    arrays = {3: {"x": np.array([np.nan, -0.0, 5e-324])}, 7: {}, 0: {"a/b": np.array(np.inf)}}
    run = {"time": 0.1, "gap": float("inf"), "counts": {"n_prox": 3}}
    store = make(tmp_path, nodes=arrays)
    store.save(np.int64(5), run, arrays)
    loaded = make(tmp_path, nodes=arrays).load(5, arrays)
    assert loaded.run == run
    assert sorted(loaded.nodes) == [0, 3, 7]
    assert same(loaded.nodes, arrays)


def test_names_are_as_documented_and_positions_of_any_size_are_in_order(tmp_path):
    store = make(tmp_path)
    positions = [0, 999_999_999_999, 10**15, 2**62]
    for position in positions:
        save(store, position)
        assert next(make(tmp_path).valid_positions(NODES)) == position
    assert files(tmp_path) == [
        "checkpoint-1000000000000000-0-of-1.adfs", f"checkpoint-{2**62}-0-of-1.adfs",
    ]  # fmt: skip


def test_the_last_two_are_kept_and_nothing_else_is_touched(tmp_path):
    strangers = ["model.npz", "checkpoint-000000000001-1-of-2.txt", "checkpoint-1-0-of-1.adfs",
                 "checkpoint-0000000000001-0-of-1.adfs", "checkpoint-000000000001-2-of-2.adfs",
                 ".notes.0123456789ab", ".checkpoint-000000000001-0-of-1.adfs.swp",
                 "checkpoint-٠٠٠٠٠٠٠٠٠٠٠١-0-of-1.adfs"]  # fmt: skip
    for name in strangers:
        (tmp_path / name).write_bytes(b"somebody's")
    store = make(tmp_path)
    for position in range(100, 1000, 100):
        save(store, position)
        assert list(store.valid_positions(NODES)) == [
            p for p in (position, position - 100) if p >= 100
        ]
    assert files(tmp_path) == sorted([*strangers, str(Name(800, 0, 1)), str(Name(900, 0, 1))])


def test_a_run_that_dies_after_each_save_still_keeps_only_two(tmp_path):
    for position in range(100, 700, 100):
        store = make(tmp_path)
        before = next(store.valid_positions(NODES), None)
        if before is not None:
            store.load(before, NODES)
        save(store, position)
    assert files(tmp_path) == [str(Name(500, 0, 1)), str(Name(600, 0, 1))]


def test_any_flipped_byte_makes_the_previous_position_the_newest(two):
    path = path_of(two, 200)
    content = path.read_bytes()
    assert newest(two) == (200, [])
    rng = np.random.default_rng(0)
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1 << rng.integers(8)
        path.write_bytes(changed)
        position, skipped = newest(two)
        assert position == 100
        assert skipped[0][0] == path
    path.write_bytes(content)
    assert newest(two) == (200, [])


def test_a_file_cut_anywhere_makes_the_previous_position_the_newest(two):
    path = path_of(two, 200)
    content = path.read_bytes()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        assert newest(two)[0] == 100


def put_folder(path):
    path.unlink()
    path.mkdir()


def put_pipe(path):
    path.unlink()
    os.mkfifo(path)


def put_loop(path):
    path.unlink()
    path.symlink_to(path)


def with_an_endless_node(path):
    header, arrays = checkpoint_file.unpack(path)
    header["nodes"] = [math.inf]
    path.write_bytes(b"".join(bytes(part) for part in checkpoint_file.pack(header, arrays)))


@pytest.mark.parametrize(
    ("harm", "reason"),
    [(lambda path: path.write_bytes(b""), "is empty"),
     (lambda path: path.write_bytes(b"a letter\n" * 50), "is not a checkpoint of adfs"),
     (put_folder, "is a folder, not a file"),
     (put_pipe, "is not an ordinary file"),
     (put_loop, "cannot be read: Too many levels of symbolic links"),
     (lambda path: shutil.copy(path.with_name(str(Name(100, 0, 1))), path),
      f"was {Name(100, 0, 1)} when it was written, and is now under another name"),
     (with_an_endless_node, "has a header that was not written by adfs")],
)  # fmt: skip
def test_what_is_not_a_checkpoint_is_skipped_with_the_reason(two, harm, reason):
    harm(path_of(two, 200))
    position, skipped = newest(two)
    assert position == 100
    assert skipped == [
        (path_of(two, 200), reason),
        (two, "has no valid file of position 200 for node 0"),
    ]


def test_a_file_that_may_not_be_read_is_skipped_with_the_reason(two, monkeypatch):
    """Root may read everything, so the system's refusal is played."""
    real = os.open

    def refuse(path, *rest, **options):
        if str(path).endswith(str(Name(200, 0, 1))):
            raise PermissionError(13, "Permission denied")
        return real(path, *rest, **options)

    monkeypatch.setattr(os, "open", refuse)
    position, skipped = newest(two)
    assert position == 100
    assert skipped[0] == (path_of(two, 200), "cannot be read: Permission denied")


def test_without_any_valid_file_nothing_is_found(tmp_path):
    assert newest(tmp_path) == (None, [])
    position, skipped = newest(tmp_path / "nowhere")
    assert position is None
    assert skipped == [(tmp_path / "nowhere", "cannot be read: No such file or directory")]
    path_of(tmp_path, 100).write_bytes(b"x")
    assert newest(tmp_path)[0] is None
    with pytest.raises(CheckpointError, match="has no valid files of position 100 for all"):
        make(tmp_path).load(100, NODES)


def test_a_place_that_is_no_folder_is_refused_before_the_run(tmp_path):
    (tmp_path / "file").write_text("text")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(DataError, match=r"must be a folder that can be written: .+; choose"):
            make(place)


def test_a_damaged_file_does_not_count_among_the_last_two(two):
    """Position 200 was damaged before the resume, so 100 has to stay until 400 is there."""
    path_of(two, 200).write_bytes(path_of(two, 200).read_bytes()[:-1])
    store = make(two)
    store.load(next(store.valid_positions(NODES)), NODES)
    save(store, 300)
    assert list(store.valid_positions(NODES)) == [300, 100]
    save(store, 400)
    assert list(store.valid_positions(NODES)) == [400, 300]


def test_a_file_in_the_way_is_replaced_and_a_folder_in_the_way_is_a_sentence(two):
    path = path_of(two, 300)
    path.write_bytes(b"in the way")
    store = make(two)
    save(store, 300)
    assert newest(two) == (300, [])
    path_of(two, 400).mkdir()
    with pytest.raises(CheckpointError, match="could not be written: Is a directory; the checkpo"):
        save(store, 400)
    assert newest(two)[0] == 300
    save(store, 500)
    assert newest(two)[0] == 500


def test_files_of_two_ranks_make_one_position(tmp_path):
    zero, one = make(tmp_path, [0, 2], 0, 2), make(tmp_path, [1, 3], 1, 2)
    save(zero, 100, [0, 2])
    assert newest(tmp_path)[0] is None
    assert newest(tmp_path, [0, 2])[0] == 100
    save(one, 100, [1, 3])
    assert newest(tmp_path) == (100, [])
    save(zero, 200, [0, 2])
    position, skipped = newest(tmp_path)
    assert position == 100
    assert skipped == [(tmp_path, "has no valid file of position 200 for node 1")]
    save(one, 200, [1, 3])
    assert newest(tmp_path) == (200, [])
    path_of(tmp_path, 200, 1, 2).unlink()
    assert newest(tmp_path)[0] == 100


def test_a_rank_that_runs_ahead_keeps_what_those_behind_need(tmp_path):
    """With the last two of its own files alone, no position would be common to both."""
    zero, one = make(tmp_path, [0, 2], 0, 2), make(tmp_path, [1, 3], 1, 2)
    for position in (100, 200):
        save(zero, position, [0, 2])
        save(one, position, [1, 3])
    for position in (300, 400, 500, 600):
        save(zero, position, [0, 2])
    assert newest(tmp_path)[0] == 200
    path, away = path_of(tmp_path, 200, 1, 2), tmp_path / "away"
    path.rename(away)
    assert newest(tmp_path)[0] == 100
    away.rename(path)
    for position in (300, 400, 500, 600):
        save(one, position, [1, 3])
    zero.tidy()
    assert files(tmp_path) == [str(Name(p, rank, 2)) for p in (500, 600) for rank in (0, 1)]


def test_ranks_that_share_no_folder_are_told_what_everybody_has(tmp_path):
    folders = [tmp_path / "host0", tmp_path / "host1"]
    stores = [make(folders[rank], [rank, rank + 2], rank, 2) for rank in (0, 1)]
    for position in range(100, 600, 100):
        for rank, store in enumerate(stores):
            everywhere = position - 100 if position > 100 else -1
            save(store, position, [rank, rank + 2], everywhere=everywhere)
    for rank, folder in enumerate(folders):
        assert files(folder) == [str(Name(p, rank, 2)) for p in (300, 400, 500)]
        stores[rank].tidy(everywhere=500)
        assert files(folder) == [str(Name(p, rank, 2)) for p in (400, 500)]
        assert newest(folder, [rank, rank + 2])[0] == 500


@pytest.mark.parametrize("before", [1, 2, 3, 4])
@pytest.mark.parametrize("after", [1, 2, 3, 4])
def test_any_number_of_ranks_goes_on_from_any_other(tmp_path, before, after):
    for rank in range(before):
        held = range(rank, 4, before)
        store = make(tmp_path, held, rank, before)
        for position in (100, 200):
            save(store, position, held)
    stores = []
    for rank in range(after):
        held = range(rank, 4, after)
        store = make(tmp_path, held, rank, after)
        assert next(store.valid_positions(held)) == 200
        loaded = store.load(200, held)
        assert loaded.run == {"at": 200}
        assert same(loaded.nodes, state(200, held))
        stores.append(store)
    for position in (300, 400):
        for rank, store in enumerate(stores):
            save(store, position, range(rank, 4, after))
    for store in stores:
        store.tidy()
    assert files(tmp_path) == [str(Name(p, r, after)) for p in (300, 400) for r in range(after)]
    assert newest(tmp_path) == (400, [])


def test_files_of_several_sizes_at_one_position_complete_each_other(tmp_path):
    """Rank 1 of 2 is lost, but another session of the same run had written the position too."""
    save(make(tmp_path, NODES, 0, 1), 100)
    save(make(tmp_path, [0, 1], 0, 2), 100, [0, 1])
    assert newest(tmp_path) == (100, [])
    path_of(tmp_path, 100, 0, 1).write_bytes(b"")
    assert newest(tmp_path)[0] is None
    assert newest(tmp_path, [0, 1])[0] == 100
    save(make(tmp_path, [2, 3], 2, 3), 100, [2, 3])
    assert newest(tmp_path)[0] == 100


def test_only_files_that_are_reached_are_read(two):
    path_of(two, 100).write_bytes(b"")
    store = CheckpointFolder(two, identity())
    positions = store.valid_positions(NODES)
    assert next(positions) == 200
    assert store.skipped == []
    assert list(positions) == []
    assert len(store.skipped) == 2
    assert list(store.valid_positions(NODES)) == [200]
    assert len(store.skipped) == 2


def test_another_run_is_refused_and_its_files_stay(two):
    for use in (
        lambda: make(two, sigma=2.0),
        lambda: next(CheckpointFolder(two, identity(sigma=2.0)).valid_positions(NODES)),
        lambda: CheckpointFolder(two, identity(sigma=2.0)).load(200, NODES),
    ):
        with pytest.raises(ParameterError, match="was made with sigma=1 but this run has sigma=2"):
            use()
    careless = CheckpointFolder(two, identity(sigma=2.0))
    for position in (300, 400, 500):
        save(careless, position)
    assert files(two) == [str(Name(p, 0, 1)) for p in (100, 200, 400, 500)]


def test_a_node_without_a_fingerprint_cannot_be_saved(tmp_path):
    store = make(tmp_path, [0, 1])
    with pytest.raises(KeyError):
        save(store, 100, [0, 1, 2])
    assert files(tmp_path) == []


def test_temporary_files_of_this_rank_are_cleared_and_those_of_others_stay(tmp_path):
    mine, other = (f".{Name(100, rank, 2)}.0123456789ab" for rank in (0, 1))
    for use in (lambda store: None, lambda store: save(store, 100, [0])):
        store = make(tmp_path, [0], 0, 2)
        for name in (mine, other):
            (tmp_path / name).write_bytes(b"half")
        use(store)
        make(tmp_path, [0], 0, 2)
        assert mine not in files(tmp_path)
        assert other in files(tmp_path)

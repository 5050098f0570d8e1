"""Full disks and killed processes: what was saved before is never harmed."""

import errno
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from adfs import storage
from adfs.engine.checkpoint_file import unpack
from adfs.engine.checkpoint_folder import CheckpointFolder
from adfs.engine.checkpoint_folder import CheckpointName as Name
from adfs.errors import CheckpointError
from adfs.storage import temporary_of, write_whole
from support.checkpoints import files, identity, same, save, state
from support.limits import HANG

pytestmark = pytest.mark.slow  # starts processes
NODES = range(4)
TESTS = Path(__file__).parent.parent


@pytest.fixture
def store(tmp_path):
    """A store with positions 100 and 200."""
    store = CheckpointFolder(tmp_path, identity())
    store.open()
    save(store, 100)
    save(store, 200)
    return store


def command(function, folder):
    return [sys.executable, "-c", f"from support import checkpoints as c; c.{function}({folder!r})"]


def environment():
    return os.environ | {"PYTHONPATH": str(TESTS)}


def intact(folder, *positions):
    """Exactly these positions are there and load to the bit; no other file is."""
    assert files(folder) == [str(Name(position, 0, 1)) for position in positions]
    store = CheckpointFolder(folder, identity())
    assert list(store.valid_positions(NODES)) == list(reversed(positions))
    for position in positions:
        assert same(store.load(position, NODES).nodes, state(position))


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_disk_that_is_full_at_any_call_harms_nothing(store, monkeypatch, call):
    def refuse(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(CheckpointError) as caught:
        save(store, 300)
    assert str(caught.value) == (
        f"{store.folder}/{Name(300, 0, 1)} could not be written: No space left on device; the "
        "checkpoints before it are intact."
    )
    monkeypatch.undo()
    intact(store.folder, 100, 200)
    save(store, 400)
    intact(store.folder, 200, 400)


def test_a_write_that_the_system_cuts_short_harms_nothing(store):
    """A real refusal in the middle of the file, which needs no rights: a limit on its size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    large = {node: {"theta": np.ones(50_000)} for node in NODES}
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, before[1]))
    try:
        with pytest.raises(CheckpointError, match="could not be written: File too large; the ch"):
            store.save(300, {}, large)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    intact(store.folder, 100, 200)


def test_a_disk_that_is_really_full_harms_nothing(tmp_path):
    """On a file system of 1 MB that only this process sees."""
    script = 'mount -t tmpfs -o size=1m none "$0" && exec "$@"'
    run = ["unshare", "-rm", "sh", "-c", script, str(tmp_path)]
    try:
        trial = subprocess.run([*run, "true"], capture_output=True, text=True, timeout=HANG)
    except OSError as error:
        pytest.skip(f"cannot start unshare: {error.strerror}")
    if trial.returncode:
        pytest.skip(f"this machine does not let us mount a small disk: {trial.stderr.strip()}")
    done = subprocess.run(
        [*run, *command("fill_the_disk", str(tmp_path))],
        capture_output=True, text=True, env=environment(), timeout=HANG,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    sentence, facts = done.stdout.splitlines()
    assert "could not be written: No space left on device; the checkpoints" in sentence
    failed, newest, *left = facts.split()
    assert int(newest) == int(failed) - 100 >= 200
    assert left == [
        str(Name(int(newest) - 100, 0, 1)),
        str(Name(int(newest), 0, 1)),
    ]


def test_a_process_killed_at_any_line_of_a_save_leaves_a_valid_newest(tmp_path):
    done = subprocess.run(
        command("die_at_every_line", str(tmp_path)),
        capture_output=True, text=True, env=environment(), timeout=HANG,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert len(rows) > 50
    assert [row[1] for row in rows] == ["0"] * (len(rows) - 1) + ["1"]
    newest = [int(row[2]) for row in rows]
    assert newest == sorted(newest)
    assert set(newest) == {200, 300}
    # Some deaths left half a file, and the next save removed it with what is older than two.
    assert {row[3] for row in rows} == {"0", "1"}
    for row, before in zip(rows, newest, strict=True):
        assert row[4:] == [str(Name(before, 0, 1)), str(Name(400, 0, 1))]


def test_a_process_killed_at_random_moments_leaves_a_valid_newest(tmp_path):
    rng = np.random.default_rng(0)
    for delay in rng.uniform(0.0, 0.05, 8):
        with subprocess.Popen(
            command("save_for_ever", str(tmp_path)), stdout=subprocess.PIPE, text=True,
            env=environment(),
        ) as child:  # fmt: skip
            for _ in range(3):
                said = child.stdout.readline()
            time.sleep(delay)
            child.send_signal(signal.SIGKILL)
            said = int((said + child.stdout.read()).split()[-1])
        assert child.returncode == -signal.SIGKILL
        names = [name for name in files(tmp_path) if temporary_of(name) is None]
        assert len(files(tmp_path)) - len(names) <= 1
        for name in names:
            unpack(tmp_path / name)
        store = CheckpointFolder(tmp_path, identity())
        position = next(store.valid_positions(NODES))
        assert position >= said
        assert same(store.load(position, NODES).nodes, state(position, n=200_000))
        store.open()
        assert files(tmp_path) == names
        for name in names:
            (tmp_path / name).unlink()


def test_the_rename_is_forced_to_disk_after_the_content(tmp_path, monkeypatch):
    """A power cut cannot be played, but the order of calls that survives one can be seen."""
    calls = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)

        def spy(*args, name=name, real=real):
            target = os.readlink(f"/proc/self/fd/{args[0]}") if name == "fsync" else args[1]
            calls.append((name, Path(target)))
            return real(*args)

        monkeypatch.setattr(os, name, spy)
    write_whole(tmp_path / "file", [b"one ", memoryview(b"two "), bytearray(b"three")])
    assert (tmp_path / "file").read_bytes() == b"one two three"
    assert [name for name, _ in calls] == ["fsync", "replace", "fsync"]
    assert temporary_of(calls[0][1].name) == "file"
    assert [path for _, path in calls[1:]] == [tmp_path / "file", tmp_path]


def test_a_folder_that_cannot_be_forced_to_disk_is_no_failure(tmp_path, monkeypatch):
    real = os.open

    def refuse(path, *rest):
        if Path(path) == tmp_path:
            raise OSError(errno.EINVAL, "Invalid argument")
        return real(path, *rest)

    monkeypatch.setattr(storage.os, "open", refuse)
    write_whole(tmp_path / "file", b"whole")
    assert files(tmp_path) == ["file"]


def test_a_part_that_cannot_be_made_leaves_nothing(tmp_path):
    def parts():
        yield b"one"
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        write_whole(tmp_path / "file", parts())
    assert files(tmp_path) == []

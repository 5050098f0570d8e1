"""What a run has kept: after a signal, where it is damaged, and for another problem."""

import shutil
import signal
import sys
from pathlib import Path

import pytest

from support.crashes import LINUX, N_EVENTS, Runs, found_in, positions, written_as

pytestmark = pytest.mark.skipif(not LINUX, reason="finds the processes of a job in /proc")
SOON = 30.0  # seconds: far more than a busy machine needs


@pytest.mark.parametrize(
    ("name", "code", "loss", "schedule", "resumed_by"),
    [("SIGTERM", 143, "logistic", "poisson", 2), ("SIGINT", 130, "hinge", "auto", 0)],
)
def test_a_signal_to_the_launcher_saves_and_leaves(runs, name, code, loss, schedule, resumed_by):
    run = runs(loss, schedule)
    job = run.start(2)
    job.wait_for(lambda: any(at > N_EVENTS[loss] // 5 for at in positions(run.kept)))
    job.process.send_signal(getattr(signal, name))
    found, out, err, seconds = job.end()
    assert (found, seconds < SOON) == (code, True)
    (line,) = err.splitlines()
    assert line.startswith("adfs: interrupted at relative gap ")
    assert line.endswith("; what exists was kept.")
    # Hydra speaks on stdout when it is interrupted, which is none of our words.
    ours = [line for line in out.splitlines() if not line.startswith("[mpiexec@")]
    model, _, numbers = found_in(run.folder / "killed", "\n".join(ours))
    assert model[1]["status"] == numbers["status"] == "interrupted"
    last = positions(run.kept)[-1]
    if schedule != "poisson":
        assert numbers["iterations"] == last  # kept where it was left, not some events before
    code, err, same = run.resume(resumed_by)
    assert (code, same) == (3, True)
    assert f"continued from position {last}, " in err


@pytest.fixture(scope="module")
def interrupted(mpiexec, home, tmp_path_factory):
    """A run of two ranks that was left with two whole checkpoints; copy it before use."""
    run = Runs(mpiexec.command, home, tmp_path_factory.mktemp("left"), "hinge", "poisson")
    job = run.start(2)
    job.wait_for(lambda: any(at > N_EVENTS["hinge"] // 3 for at in positions(run.kept)))
    job.process.send_signal(signal.SIGTERM)
    assert job.end()[0] == 143
    assert len(list(run.kept.iterdir())) == 4
    return run.kept


@pytest.fixture
def left(runs, interrupted, tmp_path):
    """A copy of it, with the files of its newest position."""
    run = runs("hinge", "poisson")
    shutil.copytree(interrupted, run.kept)
    newest = positions(run.kept)[-1]
    return run, [run.kept / f"checkpoint-{newest:012}-{rank}-of-2.adfs" for rank in (0, 1)]


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-7])


def empty(path):
    path.write_bytes(b"")


def replace(path):
    path.write_text("not a checkpoint\n" * 100)


@pytest.mark.parametrize(
    ("damage", "size"),
    [
        (truncate, 0), (flip, 2), (Path.unlink, 0),
        *(pytest.param(*each, marks=pytest.mark.soak)
          for each in ((flip, 0), (Path.unlink, 3), (empty, 0), (replace, 0))),
    ],
)  # fmt: skip
def test_where_the_newest_checkpoint_is_damaged_the_one_before_is_used(left, damage, size):
    run, files = left
    before, newest = positions(run.kept)
    damage(files[1])
    code, err, same = run.resume(size)
    assert (code, same) == (3, True)
    assert f"continued from position {before}, " in err
    assert str(newest) in err


@pytest.mark.parametrize("size", [0, 2])
def test_another_problem_is_refused_and_nothing_is_touched(left, size):
    run, _ = left
    before = {path: path.read_bytes() for path in run.kept.iterdir()}
    code, err, same = run.resume(size, "--sigma", "2e-4")
    assert (code, bool(same)) == (2, False)
    (line,) = err.splitlines()
    assert "sigma" in line
    assert "0.0001" in line
    assert "0.0002" in line
    assert {path: path.read_bytes() for path in run.kept.iterdir()} == before


def on_own_disks(mpiexec, folders, *arguments):
    """Ranks that each work in a folder of their own, where a relative path means another place."""
    parts = []
    for folder in folders:
        parts += [":", "-n", "1", "-wdir", str(folder), sys.executable, *arguments]
    return [mpiexec.path, *parts[1:]]


def test_hosts_that_share_no_disk_go_on_from_their_own_files(hydra, runs, tmp_path):
    run = runs("logistic", "shared")
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    arguments = [str(each) for each in run.arguments]
    arguments[arguments.index(str(run.kept))] = "kept"
    given = ["-m", "adfs", *arguments, *written_as("found"), "--engine", "mpi"]
    job = run.adopt(on_own_disks(hydra, folders, *given))
    job.wait_for(
        lambda: any(at > N_EVENTS["logistic"] // 3 for at in positions(folders[1] / "kept"))
    )
    assert job.strike(0)
    assert job.end()[0] == 1
    job = run.adopt(on_own_disks(hydra, folders, *given, "--resume"))
    code, out, err, _ = job.end(300)
    assert code == 3
    assert "continued from position" in err
    assert found_in(folders[0] / "found", out) == run.expected
    assert not (folders[1] / "found.npz").exists()
    for rank, folder in enumerate(folders):
        names = [path.name for path in (folder / "kept").iterdir()]
        assert {name.partition("-of-")[0][-1] for name in names} == {str(rank)}
        assert len(names) < 20  # of 50 that were written

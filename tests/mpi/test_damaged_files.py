"""Ranks that read a damaged archive end with one sentence and exit code 2, without a traceback."""

import numpy as np
import pytest

from support.archives import archive, encrypted, header, with_method
from support.selection import soak_except
from support.thread_commands import on_thread_ranks

SAMPLES = {"X": np.arange(12.0).reshape(6, 2), "y": np.arange(6.0) % 2}
SCHEDULE = {"edges": np.array([[0, 1]], np.int32), "n_nodes": np.array(2),
            "which": np.zeros(3, np.int32), "sample": np.full(3, -1, np.int32)}  # fmt: skip
HUGE = header(f"({10**15}, 2)")
DAMAGE = {
    "encrypted": lambda content: encrypted(archive(**content)),
    "unknown compression": lambda content: with_method(archive("deflate", **content), 98),
    "LZMA error": lambda content: with_method(archive("deflate", **content), 14),
    "shape beyond memory": lambda content: archive(**{name: HUGE for name in content}),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_samples_are_one_sentence_of_all_ranks(tmp_path, damage):
    path = tmp_path / "damaged.npz"
    path.write_bytes(DAMAGE[damage](SAMPLES))
    code, out, err = on_thread_ranks(2, "train", path)
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert "damaged.npz" in line


@pytest.mark.parametrize("damage", soak_except(("encrypted",), DAMAGE))
@pytest.mark.parametrize("what", soak_except(("samples",), ("samples", "schedule")))
def test_a_damaged_archive_is_one_sentence_on_ranks(hydra, tmp_path, what, damage):
    path = tmp_path / "damaged.npz"
    path.write_bytes(DAMAGE[damage](SAMPLES if what == "samples" else SCHEDULE))
    words = {"samples": ["train", "--engine", "mpi"], "schedule": ["schedule", "show"]}[what]
    run = hydra.run(2, "-m", "adfs", *words, path)
    assert run.returncode == 2
    # `schedule show` has no ranks: both processes run the whole command, and say the same.
    said = {line for line in run.stderr.split("adfs: ") if line.strip()}
    assert len({line.strip() for line in said}) == 1
    assert "damaged.npz" in said.pop()
    assert "Traceback" not in run.stderr
    assert run.stdout == ""

"""`adfs train --resume` says where it begins; `--timeline` is checked before any work."""

import fcntl
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

from adfs.engine import checkpoint_file as checkpoint


def test_a_resumed_run_says_where_it_begins(adfs, dense):
    command = ("train", dense[0], "--checkpoint", "kept", "--checkpoint-every", "500", "--resume")
    first = adfs(*command, "--tol", "1e-4", "--json")
    assert first.err.strip() == "kept has no checkpoint yet: starts at 0"
    assert json.loads(first.out)["resumed"] is None
    second = adfs(*command, "--tol", "1e-8", "--json")
    position = json.loads(second.out)["resumed"]
    assert position > 0
    assert position % 500 == 0
    assert second.err.strip() == f"continued from position {position}, saved in kept"


def test_the_summary_of_a_resumed_run_says_so_and_others_do_not(adfs, dense):
    command = ("train", dense[0], "--checkpoint", "kept", "--checkpoint-every", "500")
    first = adfs(*command, "--tol", "1e-4")
    assert (first.err, "resumed" in first.out) == ("", False)
    second = adfs(*command, "--tol", "1e-8", "--resume")
    assert "resumed     continued from position " in second.out


def without_one(header, arrays):
    arrays.pop(next(iter(arrays)))


def with_another_shape(header, arrays):
    arrays[next(iter(arrays))] = np.zeros(3)


def with_an_endless_goal(header, arrays):
    header["run"]["controller"]["goal"] = math.inf


@pytest.mark.parametrize("change", [without_one, with_another_shape, with_an_endless_goal])
def test_a_checkpoint_with_other_content_is_one_sentence(adfs, dense, change):
    """Its checksum is right, so somebody made it so."""
    command = ("train", dense[0], "--checkpoint", "kept", "--checkpoint-every", "500")
    adfs(*command, "--tol", "1e-4")
    for path in Path("kept").iterdir():
        header, arrays = checkpoint.unpack(path)
        change(header, arrays)
        path.write_bytes(b"".join(bytes(part) for part in checkpoint.pack(header, arrays)))
    outcome = adfs(*command, "--tol", "1e-8", "--resume")
    assert outcome.code == 2
    assert "kept holds something else at position" in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_timeline_of_ranks_is_refused_before_the_data_is_read(adfs):
    outcome = adfs("train", "no-such-file", "--timeline", "t.json")
    assert outcome.code == 2
    assert "--timeline shows what ranks did, so it needs --engine mpi" in outcome.err


def test_a_folder_in_use_by_another_run_is_refused(adfs, dense, home):
    (home / "kept").mkdir()
    held = os.open(home / "kept", os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        outcome = adfs("train", dense[0], "--checkpoint", "kept")
    finally:
        os.close(held)
    assert (outcome.code, outcome.out) == (2, "")
    assert "--checkpoint kept is in use by another run" in outcome.err
    assert adfs("train", dense[0], "--checkpoint", "kept", "--quiet").code == 0

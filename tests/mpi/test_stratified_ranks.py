"""Ranks go over to independent draws at the event at which one process does."""

import json
import runpy
from pathlib import Path

import pytest

import adfs
from adfs.engine import run_controller

SCRIPT = Path(__file__).with_name("stratified_script.py")


@pytest.mark.parametrize("size", [2, 3])
def test_ranks_fall_back_as_one_process_does(mpiexec, monkeypatch, size):
    monkeypatch.setattr(run_controller, "PATIENCE", run_controller.PATIENCE)  # restored later
    script = runpy.run_path(str(SCRIPT))
    expected = script["found"](adfs.Problem(script["shards"](), sigma=0.1))
    run = mpiexec.run(size, SCRIPT)
    assert (run.returncode, run.stderr) == (0, "")
    assert json.loads(run.stdout) == expected
    assert 0 < expected[2] < expected[1]

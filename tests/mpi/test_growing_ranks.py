"""Newton on growing samples: ranks have the bits of one process, resumed at any level too."""

import json
import runpy
from pathlib import Path

import pytest

import adfs

SCRIPT = Path(__file__).with_name("growing_script.py")


@pytest.mark.parametrize("size", [2, 3])
def test_ranks_choose_the_rounds_of_one_process(mpiexec, tmp_path, size):
    script = runpy.run_path(str(SCRIPT))

    def make(layout):
        return adfs.Problem(script["shards"](layout), sigma=1.0)

    expected = script["found"](make, tmp_path / "one")
    run = mpiexec.run(size, SCRIPT, tmp_path / "ranks")
    assert (run.returncode, run.stderr) == (0, "")
    assert json.loads(run.stdout) == expected
    for whole in (expected[0], expected[5]):
        assert whole[-1] > 1
    assert all(each == expected[0][:4] for each in expected[1:5])
    assert all(each == expected[5][:4] for each in expected[6:])

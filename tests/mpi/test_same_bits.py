"""Ranks that MPI carries messages between have the bits of the local engine."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from support.ranks import EVENTS, found_locally, make_shards_of, require_same_bits
from support.same_bits import CASES, PARTS, RUNS, TINY, WIDE, bits_of, differences, locally

SCRIPT = Path(__file__).with_name("same_bits_script.py")


def runs(*kinds):
    """Parametrize by the runs of some kinds, few of them outside the soak lane."""
    return pytest.mark.parametrize("run", [
        pytest.param(run, marks=[pytest.mark.soak] * (run in PARTS["rest"]))
        for run in RUNS if run.kind in kinds
    ], ids=str)  # fmt: skip


@cache
def expected_of(case):
    """The local engine's run of a case."""
    return bits_of(locally(case))


def words_of(case):
    """Its status and trace."""
    return json.loads(str(expected_of(case)["words"]))


@pytest.fixture(scope="module")
def launched(mpiexec, tmp_path_factory):
    """What the ranks of one launch found, by kind and case; each launch is made once."""

    @cache
    def launch(size, part, **environment):
        path = tmp_path_factory.mktemp("ranks") / "found.npz"
        run = mpiexec.run(size, SCRIPT, path, part, **environment)
        assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
        with np.load(path) as kept:
            found = {}
            for name in kept.files:
                case, _, array = name.rpartition("/")
                found.setdefault(case, {})[array] = kept[name]
        return found

    return launch


@pytest.fixture
def found(launched):
    """What the ranks of a run found."""

    def find(run):
        part = "rest" if run in PARTS["rest"] else "few"
        return launched(run.size, part)[f"{run.kind}/{run.case}"]

    return find


@runs("compiled", "plain")
def test_ranks_have_the_bits_of_the_local_engine(found, run):
    assert differences(found(run), expected_of(run.case)) == []


@runs("rounds")
def test_every_other_method_has_the_bits_of_one_process(found, run):
    assert differences(found(run), expected_of(run.case)) == []


def test_cases_end_at_a_tolerance_and_at_a_limit_after_several_readings():
    runs = [words_of(case) for case in CASES]
    for status in ("converged", "max_iter"):
        assert sum(run["status"] == status for run in runs) > 10
    assert sum(len(run["trace"]["iteration"]) for run in runs) > 5 * len(runs)


@runs("transport")
def test_the_transport_over_mpi_passes_what_the_others_pass(found, run):
    problem = make_shards_of(run.case)[1]
    require_same_bits(found(run), found_locally(problem, run.case.setting, EVENTS))


def test_messages_of_a_million_numbers_are_among_them():
    # As many numbers as no buffer of MPI has: they must not deadlock.
    assert WIDE in [run.case for run in PARTS["few"]]
    assert words_of(WIDE)["trace"]["n_comm"][-1] >= 40


def test_without_the_compiler_ranks_take_the_readable_carrier(launched, tmp_path):
    found = launched(2, "tiny", NUMBA_DISABLE_JIT="1")
    # NumPy's exp is not the compiler's: both engines have to run uncompiled.
    code = (
        "import sys, numpy as np; sys.path.insert(0, sys.argv[1])\n"
        "from support.same_bits import TINY, bits_of, locally\n"
        "np.savez(sys.argv[2], **bits_of(locally(TINY)))"
    )
    path = tmp_path / "local.npz"
    subprocess.run(
        [sys.executable, "-c", code, SCRIPT.parents[1], path], check=True,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    with np.load(path) as local:
        assert differences(found[f"plain/{TINY}"], dict(local)) == []

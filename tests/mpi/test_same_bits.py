"""Ranks that MPI carries messages between have the bits of the local engine."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from support.ranks import (
    EVENTS,
    all_cases,
    found_locally,
    make_shards_of,
    require_same_bits,
)
from support.same_bits import CASES, ROUNDS, TINY, WIDE, bits_of, differences, locally

SCRIPT = Path(__file__).with_name("same_bits_script.py")
RANKS = (1, 2, 3, 4)
FEW = (2, 3)  # numbers of ranks outside the soak lane


def params(sizes_and_cases):
    """Parameters (size, ..., case) of which few numbers of ranks stay outside the soak lane."""
    return [
        pytest.param(*each, marks=[pytest.mark.soak] * (each[0] not in FEW))
        for each in sizes_and_cases
        if each[-1].n_nodes >= each[0]
    ]


@cache
def expected_of(case):
    """The local engine's run of a case."""
    return bits_of(locally(case))


def words_of(case):
    """Its status and trace."""
    return json.loads(str(expected_of(case)["words"]))


@pytest.fixture(scope="module")
def launched(mpiexec, tmp_path_factory):
    """What the ranks of one launch found, by case; each launch is made once."""

    @cache
    def launch(size, kind, **environment):
        path = tmp_path_factory.mktemp("ranks") / "found.npz"
        run = mpiexec.run(size, SCRIPT, path, kind, **environment)
        assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
        with np.load(path) as kept:
            found = {}
            for name in kept.files:
                case, _, part = name.rpartition("/")
                found.setdefault(case, {})[part] = kept[name]
        return found

    return launch


@pytest.mark.parametrize(
    ("size", "kind", "case"),
    params(
        (size, kind, case)
        for size, kind in [*((size, "compiled") for size in RANKS), (2, "plain")]
        for case in CASES
    ),
    ids=str,
)
def test_ranks_have_the_bits_of_the_local_engine(launched, size, kind, case):
    assert differences(launched(size, kind)[str(case)], expected_of(case)) == []


@pytest.mark.parametrize(
    ("size", "case"),
    params((size, case) for size in RANKS for case in ROUNDS),
    ids=str,
)
def test_every_other_method_has_the_bits_of_one_process(launched, size, case):
    assert differences(launched(size, "rounds")[str(case)], expected_of(case)) == []


@pytest.mark.soak
@pytest.mark.parametrize("case", [case for case in ROUNDS if case.n_nodes == 9][::3], ids=str)
def test_one_node_per_rank_has_the_bits_of_one_process(launched, case):
    assert differences(launched(9, "rounds")[str(case)], expected_of(case)) == []


def test_cases_end_at_a_tolerance_and_at_a_limit_after_several_readings():
    runs = [words_of(case) for case in CASES]
    for status in ("converged", "max_iter"):
        assert sum(run["status"] == status for run in runs) > 10
    assert sum(len(run["trace"]["iteration"]) for run in runs) > 5 * len(runs)


@pytest.mark.parametrize("case", all_cases((4, 9)), ids=str)
def test_the_transport_over_mpi_passes_what_the_others_pass(launched, case):
    found = launched(3, "transport")[str(case)]
    require_same_bits(found, found_locally(make_shards_of(case)[1], case.setting, EVENTS))


def test_messages_of_a_million_numbers_do_not_deadlock(launched):
    found = launched(2, "wide")
    assert differences(found[str(WIDE)], expected_of(WIDE)) == []
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
        assert differences(found[str(TINY)], dict(local)) == []

"""Trainings keep their numbers: in one process and on ranks, from one version to the next.

`pins.json` says what the models and traces of some small trainings were. They are equal to the last
bit where versions, rounding and parameters are those the pins were made with, elsewhere to 1e-10. A
launch of ranks costs seconds, and ``mpi/test_same_bits.py`` shows that ranks have the bits of one
process, so two cases run on two ranks, and all on 1, 2, 3 and 4 in the soak lane. `make_pins.py`
makes the file again.
"""

import numpy as np
import pytest

from support.pins import (
    CASES,
    changed_surroundings,
    differences,
    found_by_command,
    found_by_solve,
    make_samples,
    parameters_digest,
    read_pins,
)

RANKS = (1, 2, 3, 4)
# Together they have both algorithms, both layouts and both schedules.
FEW = {("logistic-dense-poisson-4", 2), ("hinge-csr-shared-4", 2)}
ON_RANKS = [
    pytest.param(
        case,
        size,
        id=f"{case}-on-{size}",
        marks=[pytest.mark.soak] * ((str(case), size) not in FEW),
    )
    for case in CASES
    for size in RANKS
]


@pytest.fixture(scope="module")
def require_pinned():
    """Holds what a run found to the pin of its case."""
    pins = read_pins()
    elsewhere = changed_surroundings(pins)

    def require(case, found):
        pinned = pins["cases"][str(case)]
        others = ["parameters"] * (parameters_digest(case) != pinned["parameters"])
        told = differences(found, pinned, elsewhere + others)
        assert not told, "\n".join([f"{case}: {' '.join(case.command)}", *told])

    return require


@pytest.mark.parametrize("case", CASES, ids=str)
def test_one_process_has_the_pinned_numbers(require_pinned, tmp_path, case):
    require_pinned(case, found_by_command(case, tmp_path))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_solve_has_the_pinned_numbers(require_pinned, case):
    require_pinned(case, found_by_solve(case))


@pytest.mark.parametrize(("case", "size"), ON_RANKS)
def test_ranks_have_the_pinned_numbers(require_pinned, mpiexec, tmp_path, case, size):
    def launch(words):
        run = mpiexec.run(size, "-m", "adfs", *words, "--engine", "mpi")
        return run.returncode, run.stderr

    require_pinned(case, found_by_command(case, tmp_path, launch))


def test_pins_are_those_of_these_cases():
    pinned = {name: case["command"] for name, case in read_pins()["cases"].items()}
    assert pinned == {str(case): " ".join(case.command) for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_samples_are_dense_or_sparse_as_the_case_says(case):
    X, _ = make_samples(case)
    assert (2 * np.count_nonzero(X) >= X.size) == (case.layout == "dense")


def test_a_moved_bit_is_seen_here_and_a_moved_digit_elsewhere():
    pinned = read_pins()["cases"][str(CASES[0])]
    assert differences(pinned, pinned) == []
    for factor, elsewhere, seen in [
        (1 + 2e-16, (), True), (1 + 1e-14, ["numpy"], False), (1 + 1e-9, ["numpy"], True)
    ]:  # fmt: skip
        thetas = np.array(pinned["thetas"])
        thetas.flat[np.argmax(np.abs(thetas))] *= factor
        told = differences(pinned | {"thetas": thetas.tolist()}, pinned, elsewhere)
        assert bool(told) == seen
        assert not seen or "thetas: 1 of" in told[0]

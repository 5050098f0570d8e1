"""What fuzzing ever found stays fixed; and the fuzzer finds what it is there to find."""

import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from adfs.errors import DataError
from fuzz import calls, oracle, sandbox, targets
from fuzz.case import Case
from oracles import losses
from support.limits import HANG

FOLDER = Path(__file__).parent
CORPUS = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.glob("corpus/*/*.json"))


@pytest.fixture(scope="module")
def found():
    """The faults of every case of the corpus, all run by one process."""
    environment = {**os.environ, "PYTHONPATH": str(FOLDER.parent)}
    run = subprocess.run(
        [sys.executable, "-m", "fuzz", *CORPUS], cwd=FOLDER, env=environment, text=True,
        capture_output=True, timeout=HANG,
    )  # fmt: skip
    assert run.returncode in (0, 1), run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize("name", CORPUS)
def test_a_case_of_the_corpus_keeps_the_contract(found, name):
    assert found[name] == []


@pytest.mark.parametrize("target", targets.TARGETS)
def test_a_seed_and_a_number_name_a_case(target):
    first, again = (targets.draw(target, 7, 3) for _ in range(2))
    assert first == again
    assert first != targets.draw(target, 7, 4)


def kill_itself():
    os.kill(os.getpid(), signal.SIGSEGV)


def take_memory():
    return len(bytearray(2 * sandbox.MEMORY))


def leave_a_file():
    Path("new.txt").write_text("")
    raise DataError("X must be a matrix, but is none; give one.")


def overwrite_another():
    Path("bystander.txt").write_text("")


def say_much():
    error = DataError()  # which would cut what it is given
    error.args = ("x" * 400 + ".",)
    raise error


BAD = {
    kill_itself: "SIGSEGV",
    leave_a_file: "files",
    overwrite_another: "files",
    say_much: "long line",
    (lambda: {}["a"]): "KeyError from outside adfs",
}


@pytest.mark.parametrize(("function", "cause"), BAD.items())
def test_the_contract_notices(monkeypatch, tmp_path, function, cause):
    monkeypatch.setitem(calls.CALLS, "bad", function)
    case = Case("arrays", call={"function": "bad"})
    assert [fault.cause for fault in targets.faults(case, sandbox.run(case, tmp_path))] == [cause]


def test_a_child_that_wants_too_much_memory_is_refused_it(monkeypatch, tmp_path):
    monkeypatch.setitem(calls.CALLS, "greedy", take_memory)
    outcome = sandbox.run(Case("arrays", call={"function": "greedy"}), tmp_path)
    assert (outcome.code, "memory" in outcome.err) == (1, True)


def test_an_endless_case_is_ended(monkeypatch, tmp_path):
    monkeypatch.setattr(sandbox, "PROCESSOR_SECONDS", 1)
    monkeypatch.setitem(calls.CALLS, "endless", lambda: all(itertools.repeat(True)))
    case = Case("arrays", call={"function": "endless"})
    assert targets.faults(case, sandbox.run(case, tmp_path))[0].cause == "time"


@pytest.fixture(params=losses.LOSSES)
def problem(request):
    generator = np.random.default_rng(0)
    X, weights = generator.standard_normal((12, 3)), generator.uniform(0.5, 2.0, 12)
    y = generator.choice([-1.0, 1.0], 12)
    return oracle.Sum.of(X, y, weights, request.param, [0.1, 0.2])


def test_the_oracle_evaluates_the_textbook_formula(problem):
    theta = np.array([0.5, -1.0, 2.0])
    X, y, weights = (np.asarray(part, dtype=float) for part in problem[:3])
    values = losses.value(problem.loss, X @ theta, y, weights)
    expected = values.sum() + 0.15 * theta @ theta
    assert float(problem(theta)) == pytest.approx(expected, rel=1e-12)


def test_a_claim_just_above_the_optimum_is_refuted(problem):
    best = problem.improved(np.zeros(3, oracle.REAL))
    tol = 1e-6
    for relative, words in ((0.5 * tol, []), (4.0 * tol, ["gap claimed"])):
        theta, step = best, np.ones(3)
        low, high = 0.0, 1.0  # bisect for a model whose F is above the best by that much
        for _ in range(60):
            middle = (low + high) / 2
            theta = best + middle * step
            above = (problem(theta) - problem(best)) / problem(best)
            low, high = (middle, high) if above < relative else (low, middle)
        claim = {"status": "converged", "objective": problem(theta),
                 "duality_gap": 0.9 * tol * problem(theta)}  # fmt: skip
        found = list(oracle.refutations(problem, theta, claim, tol))
        assert len(found) == len(words)
        assert all(word in sentence for word, sentence in zip(words, found, strict=True))

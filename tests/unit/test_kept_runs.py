"""A run that stops anywhere and goes on from its checkpoints gives the bits of one that did not."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import adfs
from adfs.engine.checkpointer import Checkpoints
from adfs.errors import CheckpointError, ParameterError
from support.problems import gaussian_problem

pytestmark = pytest.mark.slow  # writes hundreds of files
EVERY = 700


def make(loss, sparse=False, sigma=0.02):
    def convert(X):
        return csr_matrix(np.where(np.abs(X) > 0.7, X, 0.0)) if sparse else X

    return gaussian_problem("ring:4", loss, sigma, convert, samples=(120, 6), seed=3)


def bits(result):
    columns = result.trace.to_dict()
    del columns["wall_time"]
    return result.theta.tobytes(), result.thetas.tobytes(), result.status, columns


class Crash(Exception):
    """The end of a run that nobody foresaw."""


@pytest.mark.parametrize("schedule", ["shared", "poisson", "stratified"])
@pytest.mark.parametrize(
    ("loss", "sparse"), [("logistic", False), ("squared", True), ("hinge", False)]
)
def test_a_crash_costs_nothing(tmp_path, loss, sparse, schedule):
    problem = make(loss, sparse)
    options = {"tol": 1e-7, "max_iter": 40_000, "schedule": schedule, "seed": 5}
    options["evaluate_every"] = 1_500 if loss == "hinge" else None
    whole = adfs.solve(problem, **options)
    for crash_at in sorted({1, len(whole.trace) - 1}):
        folder = tmp_path / str(crash_at)
        seen = 0

        def crash(progress, crash_at=crash_at):
            nonlocal seen
            seen += 1
            if seen > crash_at:
                raise Crash

        with pytest.raises(Crash):
            adfs.solve(problem, callback=crash, checkpoints=Checkpoints(folder, EVERY), **options)
        resumed = adfs.solve(
            problem, checkpoints=Checkpoints(folder, EVERY, resume=True), **options
        )
        assert resumed.resumed > 0
        assert bits(resumed) == bits(whole)


def test_where_it_is_saved_changes_nothing(tmp_path):
    problem = make("logistic")
    plain = adfs.solve(problem, tol=1e-8)
    kept = adfs.solve(problem, tol=1e-8, checkpoints=Checkpoints(tmp_path, 333))
    assert bits(kept) == bits(plain)
    assert kept.resumed is None


def test_an_interrupted_run_goes_on_as_if_it_had_not_been(tmp_path):
    import signal

    problem = make("logistic")
    whole = adfs.solve(problem, tol=1e-9, evaluate_every=3_000)

    def stop(progress):
        if progress.iteration >= 6_000:
            signal.raise_signal(signal.SIGINT)

    options = {"tol": 1e-9, "evaluate_every": 3_000}
    stopped = adfs.solve(problem, callback=stop, checkpoints=Checkpoints(tmp_path, 900), **options)
    assert stopped.status == "interrupted"
    assert len(stopped.trace) < len(whole.trace)
    resumed = adfs.solve(problem, checkpoints=Checkpoints(tmp_path, 900, resume=True), **options)
    assert bits(resumed) == bits(whole)


def test_without_a_checkpoint_a_resumed_run_starts_at_zero(tmp_path):
    problem = make("logistic")
    result = adfs.solve(problem, checkpoints=Checkpoints(tmp_path / "new", resume=True))
    assert result.resumed is None
    assert bits(result) == bits(adfs.solve(problem))


def test_a_smaller_tol_goes_on_where_the_larger_ended(tmp_path):
    problem = make("logistic")
    adfs.solve(problem, tol=1e-4, checkpoints=Checkpoints(tmp_path, 500))
    further = adfs.solve(problem, tol=1e-9, checkpoints=Checkpoints(tmp_path, 500, resume=True))
    assert further.resumed > 0
    assert further.status == "converged"
    assert further.relative_gap <= 1e-9


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"sigma": 0.05}, "sigma=0.02 but this run has sigma=0.05"),
        ({"loss": "squared_hinge"}, "loss=logistic but this run has loss=squared_hinge"),
    ],
)
def test_another_problem_is_refused(tmp_path, change, named):
    adfs.solve(make("logistic"), checkpoints=Checkpoints(tmp_path, 500))
    other = make(**({"loss": "logistic"} | change))
    with pytest.raises(ParameterError, match=named):
        adfs.solve(other, checkpoints=Checkpoints(tmp_path, 500, resume=True))


@pytest.mark.parametrize(
    ("option", "named"), [({"seed": 1}, "seed=0"), ({"tau": 7.0}, "tau=5"),
                          ({"schedule": "poisson"}, "schedule=stratified")],
)  # fmt: skip
def test_another_run_is_refused(tmp_path, option, named):
    problem = make("logistic")
    adfs.solve(problem, checkpoints=Checkpoints(tmp_path, 500))
    with pytest.raises(ParameterError, match=f"was made with {named} but this run has"):
        adfs.solve(problem, checkpoints=Checkpoints(tmp_path, 500, resume=True), **option)


def test_other_samples_are_refused(tmp_path):
    problem = make("logistic")
    adfs.solve(problem, checkpoints=Checkpoints(tmp_path, 500))
    X, y = adfs.generators.two_gaussians(120, 6, seed=3)
    X[60, 2] = np.nextafter(X[60, 2], math.inf)
    other = adfs.Problem(
        adfs.partition(X, y, 4), sigma=0.02, topology=adfs.Topology.ring(4)
    )  # fmt: skip
    with pytest.raises(ParameterError, match="other samples, labels or weights at node"):
        adfs.solve(other, checkpoints=Checkpoints(tmp_path, 500, resume=True))


@pytest.mark.parametrize("name", [*sorted({*adfs.algorithms.NAMES} - {"ns-adfs"}), "extra"])
def test_every_algorithm_goes_on_from_what_was_kept(tmp_path, name):
    problem = make("logistic")
    options = {"algorithm": name, "tol": 1e-300, "evaluate_every": 3}
    whole = adfs.solve(problem, max_iter=9, **options)
    kept = Checkpoints(tmp_path, every=4)
    adfs.solve(problem, max_iter=6, checkpoints=kept, **options)
    again = adfs.solve(problem, max_iter=9, checkpoints=kept._replace(resume=True), **options)
    assert again.resumed == 6
    assert again.thetas.tobytes() == whole.thetas.tobytes()
    columns, expected = again.trace.to_dict(), whole.trace.to_dict()
    assert {n: c for n, c in columns.items() if n != "wall_time"} == {
        n: c for n, c in expected.items() if n != "wall_time"
    }


def test_a_folder_that_another_run_writes_to_is_refused(tmp_path):
    problem, refused = make("logistic"), []

    def second(progress):
        with pytest.raises(ParameterError, match=r"is in use by another run; .*name another"):
            adfs.solve(problem, checkpoints=Checkpoints(tmp_path, 500))
        refused.append(progress)

    adfs.solve(problem, checkpoints=Checkpoints(tmp_path, 500), callback=second)
    assert refused


def test_a_run_that_was_refused_does_not_keep_the_folder(tmp_path):
    problem = make("logistic")
    first = adfs.solve(problem, checkpoints=Checkpoints(tmp_path, 500))
    with pytest.raises(ParameterError, match="add --resume"):
        adfs.solve(problem, checkpoints=Checkpoints(tmp_path, 500))
    again = adfs.solve(problem, checkpoints=Checkpoints(tmp_path, 500, resume=True))
    assert again.thetas.tobytes() == first.thetas.tobytes()


def test_a_disk_that_refuses_costs_the_checkpoint_not_the_run(tmp_path, monkeypatch):
    problem, told = make("logistic"), []

    def full(self, *args, **kwargs):
        raise CheckpointError("the disk is full; the checkpoints before it are intact.")

    monkeypatch.setattr("adfs.engine.checkpoint_folder.CheckpointFolder.save", full)
    result = adfs.solve(problem, tol=1e-8, checkpoints=Checkpoints(tmp_path, 500, warn=told.append))
    assert told == ["the disk is full; the checkpoints before it are intact."]
    assert bits(result) == bits(adfs.solve(problem, tol=1e-8))


def test_the_newest_whole_checkpoint_is_taken(tmp_path):
    problem = make("logistic")
    whole = adfs.solve(problem, tol=1e-8, checkpoints=Checkpoints(tmp_path, 500))
    newest = max(tmp_path.iterdir())
    newest.write_bytes(newest.read_bytes()[:-1])
    resumed = adfs.solve(problem, tol=1e-8, checkpoints=Checkpoints(tmp_path, 500, resume=True))
    assert resumed.resumed == int(newest.name.split("-")[1]) - 500
    assert bits(resumed) == bits(whole)


@pytest.mark.parametrize(("before", "after"), [(1_000, None), (None, 1_000)])
def test_readings_may_be_placed_otherwise_after_a_resume(tmp_path, before, after):
    problem = make("logistic")
    kept, options = Checkpoints(tmp_path, 500), {"tol": 1e-8}
    adfs.solve(problem, evaluate_every=before, max_iter=3_000, checkpoints=kept, **options)
    resumed = adfs.solve(
        problem, evaluate_every=after, checkpoints=kept._replace(resume=True), **options
    )
    assert resumed.resumed > 0
    assert resumed.status == "converged"


def test_a_run_that_was_kept_is_not_begun_anew_by_mistake(tmp_path):
    problem, kept = make("logistic"), Checkpoints(tmp_path, 500)
    adfs.solve(problem, checkpoints=kept)
    before = sorted(path.read_bytes() for path in tmp_path.iterdir())
    with pytest.raises(ParameterError, match=r"holds this run up to position \d+; add --resume"):
        adfs.solve(problem, checkpoints=kept)
    assert sorted(path.read_bytes() for path in tmp_path.iterdir()) == before


def test_a_smaller_budget_is_kept_after_a_resume(tmp_path):
    problem, kept = make("logistic"), Checkpoints(tmp_path, 1_000)
    adfs.solve(problem, tol=1e-12, max_iter=2_500, checkpoints=kept)
    max(tmp_path.iterdir()).unlink()  # the end, which is kept too
    resumed = adfs.solve(problem, tol=1e-12, max_iter=2_200, checkpoints=kept._replace(resume=True))
    assert (resumed.resumed, resumed.status, resumed.iterations) == (2_000, "max_iter", 2_200)


def test_files_that_are_not_trusted_are_named(tmp_path):
    problem, told = make("logistic"), []
    adfs.solve(problem, checkpoints=Checkpoints(tmp_path, 500))
    for path in tmp_path.iterdir():
        path.write_bytes(b"")
    result = adfs.solve(problem, checkpoints=Checkpoints(tmp_path, resume=True, report=told.append))
    assert result.resumed is None
    *passed_over, last = told
    assert all(line.startswith("skipped: ") for line in passed_over)
    assert all(any(path.name in line for line in passed_over) for path in tmp_path.iterdir())
    assert last == f"{tmp_path} has no complete checkpoint: starts at 0"


def test_the_end_of_a_budget_is_kept_and_a_larger_one_goes_on_from_there(tmp_path):
    problem, kept = make("logistic"), Checkpoints(tmp_path, 5_000_000)
    adfs.solve(problem, tol=1e-9, max_iter=2_500, checkpoints=kept)
    resumed = adfs.solve(problem, tol=1e-9, checkpoints=kept._replace(resume=True))
    assert (resumed.resumed, resumed.status) == (2_500, "converged")

"""`fit` on local rows under mpiexec: one model of all rows, on all ranks."""

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import sklearn.linear_model
import sklearn.svm

import adfs
from support.estimators import TIGHT
from support.fits import bits_of, cancer, fits, heavy, iris

EVERY = tuple(fits())
# Four ranks take turns on two cores, so they do a few, and only in the soak lane.
NAMES = {1: ("logistic-words", "ridge-csr"), 2: EVERY, 4: ("svc-words", "ridge-csr")}
SCRIPT = Path(__file__).with_name("fit_script.py")
REFUSALS = Path(__file__).with_name("fit_refusals_script.py")
FITS = [
    pytest.param(size, name, marks=[pytest.mark.soak] * (size == 4))
    for size in NAMES
    for name in NAMES[size]
]


@pytest.fixture(scope="module")
def launched(mpiexec, tmp_path_factory):
    """What each rank of a launch found, by fit; each launch is made once."""

    @cache
    def launch(size):
        path = tmp_path_factory.mktemp("ranks") / "found"
        run = mpiexec.run(size, "-W", "error", SCRIPT, path, *NAMES[size])
        assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
        return [json.loads(Path(f"{path}.{rank}").read_text()) for rank in range(size)]

    return launch


@cache
def in_one_process(name):
    """The same fit without ranks."""
    return bits_of(fits()[name].fit())


@pytest.mark.parametrize(("size", "name"), FITS)
def test_all_ranks_have_the_bits_of_one_process_with_all_rows(launched, name, size):
    for found in launched(size):
        for attribute, bits in in_one_process(name).items():
            assert found[name][attribute] == bits, attribute


@pytest.fixture(scope="module")
def together(mpiexec, tmp_path_factory):
    """What three ranks met in each case of the script, rank 0 first."""
    path = tmp_path_factory.mktemp("ranks") / "found.json"
    run = mpiexec.run(3, REFUSALS, path)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    return json.loads(path.read_text())


SENTENCES = {
    "folds_of_scikit_learn": "engine='mpi' has no folds.*choose C with adfs.regularization_path",
    "nan_on_rank_1": "rank 1: Input X contains NaN",
    "other_features_on_rank_2": "n_features is 6 on rank 0 and 4 on rank 2",
    "other_names_of_features_on_rank_1": "feature_names is .* on rank 0 and .* on rank 1",
    "no_rows_on_rank_1": r"rank 1: Found array with 0 sample\(s\)",
    "one_class_everywhere": "^Among the rows of weight > 0 there is only one class, 'yes'",
    "weights_of_zero_everywhere": "^All sample weights are zero",
    "a_negative_weight_on_rank_2": "^rank 2: sample_weight has -1",
    "other_C_on_rank_1": "need the same parameters: C is 1 on rank 0 and 2 on rank 1",
    "another_estimator_on_rank_2": "estimator is .* and LinearSVC on rank 2; call the same fit",
    "fewer_nodes_than_ranks": "^n_nodes=2 is less than the 3 ranks, .*; raise n_nodes",
    "more_nodes_than_rows_on_rank_0": "^rank 0: n_nodes=9, 3 of them on this rank, must not exceed",
    "one_group_on_two_ranks": "the group Oslo are on the ranks 0 and 2, but a node is on one",
    "groups_on_rank_0_only": "groups is True on rank 0 and False on rank 1",
    "words_and_numbers": "^Labels are words on rank 0 but numbers on rank 1",
    "point_saga": "^Algorithm 'point-saga' is for one machine.*choose engine local, or another",
    "other_columns_of_targets": r"columns is \(\) on rank 0 and \(2,\) on rank 1",
    "a_warm_start_from_other_models": "continues from one model on all ranks: start is an array",
    "no_such_engine": "^engine='cloud' is unknown; choose one of local, mpi",
}


@pytest.mark.parametrize("name", SENTENCES)
def test_what_is_wrong_on_one_rank_is_the_same_sentence_on_all(together, name):
    kinds, sentences = zip(*together[name], strict=True)
    assert set(kinds) <= {"DataError", "ParameterError", "ValueError"}
    assert len(set(zip(kinds, sentences, strict=True))) == 1
    assert re.search(SENTENCES[name], sentences[0])


def the_same_on_all(found):
    """What came of a fit, once it is known to be the same on each rank."""
    assert [kind for kind, _ in found] == ["fine"] * 3
    assert found[0] == found[1] == found[2]
    return found[0][1]


def test_an_early_stop_warns_on_every_rank(together):
    (sentence,) = the_same_on_all(together["an_early_stop"])
    assert "stopped with 'max_iter' after 100 iterations at relative duality gap" in sentence


def test_ctrl_c_on_one_rank_keeps_the_model_on_all(together):
    status, n_iter, coef = the_same_on_all(together["ctrl_c_on_rank_1"])
    assert status == "interrupted"
    assert n_iter > 0
    assert np.any(coef)


def test_a_plain_fit_of_a_rank_is_its_own(together):
    coefs = [coef for _, (coef,) in together["each_rank_by_itself"]]
    X, y = cancer()
    for rank, own in enumerate(np.array_split(np.arange(len(y)), 3)):
        alone = adfs.Ridge(alpha=1.0 + rank).fit(X[own], y[own])
        assert coefs[rank] == alone.coef_[0]


def test_ranks_with_one_class_each_have_scikit_learns_model_of_all(together):
    classes, coef, intercept = the_same_on_all(together["words_one_class_a_rank"])
    X, names = iris()
    assert classes == np.unique(names).tolist()
    for k, name in enumerate(classes):
        own, weights = names == name, heavy(150)
        mass = np.where(own, weights[own].sum(), weights[~own].sum())
        model = sklearn.linear_model.LogisticRegression(solver="liblinear", **TIGHT)
        model.fit(X, own, weights * weights.sum() / (2 * mass))
        np.testing.assert_allclose(coef[k], model.coef_[0], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(intercept[k], model.intercept_[0], rtol=1e-4)


def test_seven_nodes_on_three_ranks_have_scikit_learns_model(together):
    coef, intercept, predicted, history = the_same_on_all(together["svc_on_more_nodes"])
    X, y = cancer()
    model = sklearn.svm.LinearSVC(dual=False, **TIGHT).fit(X, y)
    np.testing.assert_allclose(coef, model.coef_, rtol=1e-5)
    np.testing.assert_allclose(intercept, model.intercept_, rtol=1e-5)
    assert predicted == model.predict(X).tolist()
    assert history["wall_time"][-1] > 0.0  # seconds too are the same on all ranks


def test_csr_dense_and_float32_ranks_have_scikit_learns_model_of_all(together):
    coef, intercept = the_same_on_all(together["ridge_csr_on_rank_0_and_float32_on_rank_1"])
    X, y = cancer()
    rows = X.copy()
    rows[30:60] = X[30:60].astype(np.float32)
    model = sklearn.linear_model.Ridge().fit(rows, y, heavy(len(y)))
    np.testing.assert_allclose(coef, model.coef_, rtol=1e-5)
    np.testing.assert_allclose(intercept, model.intercept_, rtol=1e-5)


def test_a_grid_search_on_all_ranks_makes_the_same_fits(together):
    assert the_same_on_all(together["cross_validation"]) == 2


def test_fits_use_up_no_communicators(together):
    assert the_same_on_all(together["communicators_are_given_back"]) == 0


def test_ranks_draw_one_seed(together):
    drawn, of_rank_0, given = the_same_on_all(together["seeds_of_rank_0"])
    assert (
        of_rank_0
        == adfs.LogisticRegression(random_state=np.random.RandomState(0), tol=0.1)
        .fit(*cancer())
        .result_.seed
    )
    assert given == 7
    assert drawn != 7


def test_numbers_that_are_equal_are_the_same_parameter(together):
    assert the_same_on_all(together["equal_numbers"]) == "converged"


def test_two_threads_cannot_fit_at_a_time(together):
    assert "engine='mpi' makes one fit at a time" in the_same_on_all(together["two_at_a_time"])


FALL = """\
import sys
import numpy as np
import adfs
from adfs.estimators import fitting
from adfs.mpi.launcher import rank_by_environment

def fail(*_, **__):
    raise ZeroDivisionError("a bug")

rank = rank_by_environment()
X, y = np.random.default_rng(rank).standard_normal((20, 3)), np.arange(20)
adfs.LogisticRegression(tol=1e-2, engine="mpi").fit(X, y % 2)
if rank == 1:
    fail() if sys.argv[1] == "between" else setattr(fitting, "MethodSetting", fail)
adfs.LogisticRegression(tol=1e-2, engine="mpi").fit(X, y % 3)
"""


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("between", "rank 1 ended with ZeroDivisionError while others may wait for it"),
        (
            "within",
            r"rank 1 \(node 1\) failed .* ZeroDivisionError.* and rank 0 \(node 0\) waits",
        ),
    ],
)
def test_a_rank_that_fails_alone_ends_the_job(hydra, tmp_path, where, sentence):
    path = tmp_path / "fall.py"
    path.write_text(FALL)
    run = hydra.run(2, path, where)
    assert run.returncode == 1
    assert "ZeroDivisionError: a bug" in run.stderr
    assert re.search(sentence, run.stderr)

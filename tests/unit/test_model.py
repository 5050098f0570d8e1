"""A model's file: plain arrays and text; everything else is refused with a sentence."""

import json
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import adfs
from adfs.errors import DataError, ParameterError
from adfs.model import Model, summary

META = {
    "format": 1, "loss": "logistic", "classes": ["cat", "dog"], "intercept": True, "n_features": 2,
}  # fmt: skip
COEF = np.array([1.0, -2.0, 0.5])


def make(coef=COEF, thetas=None, **changes):
    return Model(coef, coef[None] if thetas is None else thetas, META | changes)


def save_raw(path, **arrays):
    arrays = {"coef": COEF, "thetas": COEF[None], "meta": np.array(json.dumps(META))} | arrays
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


def refused(path, sentence):
    with pytest.raises(DataError, match=sentence) as caught:
        Model.load(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_what_is_saved_is_loaded_bit_for_bit_and_without_pickle(tmp_path):
    make().save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz", allow_pickle=False) as file:
        assert set(file.files) == {"coef", "thetas", "meta"}
        assert json.loads(str(file["meta"])) == META
    loaded = Model.load(tmp_path / "m.npz")
    assert loaded.coef.tobytes() == COEF.tobytes()
    assert loaded.meta == META
    assert make().to_bytes() == make().to_bytes()


def test_predictions_are_the_classes_of_the_signs():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.25]])
    np.testing.assert_allclose(make().decision(X), [1.5, -1.5, 0.0])
    assert make().predict(X).tolist() == ["dog", "cat", "cat"]
    assert make().predict(csr_matrix(X)).tolist() == ["dog", "cat", "cat"]


def test_float32_rows_are_summed_in_float64():
    X = np.array([[1e8, 1.0]], dtype=np.float32)
    model = make(np.array([1.0, 1.0, 0.0]))
    assert model.decision(X)[0] == 1e8 + 1


def test_probabilities_stay_accurate_far_from_one_half():
    X = np.array([[-1e3, 0.0], [40.0, 0.0]])
    proba = make(np.array([1.0, 0.0, 0.0])).predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert proba[0].tolist() == [1.0, 0.0]
    assert proba[1, 0] == pytest.approx(np.exp(-40.0), rel=1e-12)


def test_probabilities_of_another_loss_are_refused():
    with pytest.raises(ParameterError, match="need the loss 'logistic'"):
        make(loss="squared_hinge").predict_proba(np.ones((1, 2)))


def test_missing_columns_count_as_zero_and_more_are_refused():
    np.testing.assert_allclose(make().decision(np.array([[3.0]])), [3.5])
    with pytest.raises(DataError, match="trained on 2 features"):
        make().decision(np.ones((1, 3)))


def test_a_regression_predicts_its_score():
    model = make(loss="squared", classes=[])
    assert model.classes is None
    assert model.predict(np.array([[1.0, 1.0]])).tolist() == [-0.5]


@pytest.mark.parametrize("labels", [["no", "yes"], [0, 1], [2.5, 3.0]])
def test_a_model_of_a_run_knows_its_problem(tmp_path, labels):
    X, y = np.array([[1.0], [-1.0], [2.0], [-2.0]]), np.array(labels)[[1, 0, 1, 0]]
    problem = adfs.Problem([(X[:2], y[:2]), (X[2:], y[2:])], sigma=[0.5, 1.0])
    result = adfs.solve(problem, tol=1e-8)
    Model.from_result(result, problem).save(tmp_path / "m.npz")
    model = Model.load(tmp_path / "m.npz")
    assert model.predict(X).tolist() == y.tolist()
    assert model.meta["sigma"] == [0.5, 1.0]
    assert model.meta["parameters"]["rho"] == result.parameters.rho
    np.testing.assert_array_equal(model.thetas, result.thetas)


def test_what_parameters_were_chosen_for_is_kept_even_if_the_run_was_timed_otherwise():
    X, y = np.array([[1.0], [-1.0], [2.0], [-2.0]]), np.array([1, 0, 1, 0])
    problem = adfs.Problem([(X[:2], y[:2]), (X[2:], y[2:])])
    chosen = adfs.Parameters.choose(problem, "exact", tau=3.0)
    ours = summary(adfs.solve(problem, parameters=chosen, tau=7.0))
    assert (ours["how"], ours["tau"], ours["p_comm"]) == ("exact", 3.0, chosen.p_comm)
    theirs = summary(adfs.solve(problem, "newton", tau=7.0))
    assert (theirs["how"], theirs["tau"], theirs["p_comm"]) == ("tuned", 7.0, None)
    assert theirs["text"].startswith("Newton's method")


RAW = {
    "no meta": ({"meta": None}, "it holds no meta"),
    "nothing of ours": ({"coef": None, "thetas": None}, "it holds no coef"),
    "pickled objects": ({"coef": np.array([{}], dtype=object)}, "allow_pickle=False"),
    "text for numbers": ({"coef": np.array(["a"])}, "coef must be finite floating-point"),
    "NaN": ({"coef": np.array([1.0, np.nan, 1.0])}, "coef must be finite"),
    "infinity": ({"thetas": np.array([[1.0, np.inf, 1.0]])}, "thetas must be finite"),
    "too few numbers": ({"coef": np.ones(2)}, r"coef has shape \(2,\) where meta promises \(3,\)"),
    "coef of two dimensions": ({"coef": np.ones((3, 1))}, "coef has shape"),
    "thetas of one dimension": ({"thetas": np.ones(3)}, "thetas has shape"),
    "thetas of another width": ({"thetas": np.ones((4, 2))}, "thetas has shape"),
    "meta of numbers": ({"meta": np.ones(2)}, "meta must be one text"),
    "bad JSON": ({"meta": np.array("{")}, "is not a model"),
    "JSON that is a list": ({"meta": np.array("[1]")}, "meta is not a JSON object"),
}


@pytest.mark.parametrize("case", RAW)
def test_archives_that_are_no_models(tmp_path, case):
    arrays, sentence = RAW[case]
    save_raw(tmp_path / "m.npz", **arrays)
    refused(tmp_path / "m.npz", sentence)


METAS = {
    "no loss": ({"loss": None}, "no 'loss' of type str"),
    "an unknown loss": ({"loss": "log"}, "loss 'log' is not known"),
    "a later format": ({"format": 2}, "format 2, this version of adfs reads format 1"),
    "a number for a flag": ({"intercept": 1}, "no 'intercept' of type bool"),
    "no features": ({"n_features": -1}, "on -1 features"),
    "three classes": ({"classes": [1, 2, 3]}, "where meta promises"),
    "classes of a regression": ({"loss": "squared"}, "2 classes with the loss 'squared'"),
}


@pytest.mark.parametrize("case", METAS)
def test_meta_that_does_not_fit(tmp_path, case):
    changes, sentence = METAS[case]
    save_raw(tmp_path / "m.npz", meta=np.array(json.dumps(META | changes)))
    refused(tmp_path / "m.npz", sentence)


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 100, b"PK\x03\x04 and then nothing", pickle.dumps({"coef": [1.0]})]
)
def test_bytes_that_are_no_archive(tmp_path, content):
    (tmp_path / "m.npz").write_bytes(content)
    refused(tmp_path / "m.npz", "is not a model")


def test_a_lone_array_a_folder_and_nothing_at_all(tmp_path):
    np.save(tmp_path / "m.npy", COEF)
    refused(tmp_path / "m.npy", "is not a model")
    refused(tmp_path, "must be a model file, but there is none")
    refused(tmp_path / "missing", "must be a model file, but there is none")


def test_a_model_cut_or_changed_anywhere_is_refused_or_the_same(tmp_path):
    whole = make().to_bytes()
    path = tmp_path / "m.npz"
    random = np.random.default_rng(0)
    for cut in range(0, len(whole), 37):
        path.write_bytes(whole[:cut])
        refused(path, "is not a model")
    for _ in range(300):
        changed = bytearray(whole)
        changed[random.integers(len(whole))] ^= 1 << random.integers(8)
        path.write_bytes(bytes(changed))
        try:
            model = Model.load(path)
        except DataError:
            continue
        assert model.coef.tobytes() == COEF.tobytes()
        assert model.meta == META

"""`adfs train` and `adfs predict` on tables: words, many classes, scaled columns."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from adfs.model import Model

NUMBERS, WORDS = ["age", "income"], ["city"]


@pytest.fixture(scope="module")
def people():
    """Columns of a table: two scales, words, two and three classes."""
    random = np.random.default_rng(0)
    n = 300
    columns = {
        "age": random.normal(40, 12, n),
        "income": random.normal(5e4, 2e4, n),
        "city": random.choice(["Oslo", "Rome", "Paris"], n),
    }
    score = (columns["age"] - 40) / 12 + (columns["city"] == "Rome") + random.normal(0, 1, n)
    columns["buys"] = np.where(score > 0, "yes", "no")
    columns["level"] = np.array(["low", "mid", "top"])[np.digitize(score, [-0.5, 1.0])]
    columns["spends"] = 100 + 20 * score
    return columns


@pytest.fixture
def table(people, home):
    pyarrow.csv.write_csv(pa.table(people), "people.csv")
    pq.write_table(pa.table(people), "people.parquet", row_group_size=70)
    return "people.csv"


FEATURES = ("--features", "age,income,city", "--standardize", "--tol", "1e-18")


def pipeline(people, classifier, target):
    """scikit-learn on the same columns; coefficients in units of the data."""
    X = np.column_stack([people["age"], people["income"]])
    encode = make_column_transformer(
        (StandardScaler(), [0, 1]), (OneHotEncoder(sparse_output=False), [2])
    )
    rows = np.column_stack([X.astype(object), people["city"]])
    fitted = make_pipeline(encode, classifier).fit(rows, people[target])
    scaler = encode.named_transformers_["standardscaler"]
    coef = np.atleast_2d(fitted[-1].coef_ if hasattr(fitted[-1], "coef_") else stacked(fitted[-1]))
    coef = coef.copy()
    coef[:, :2] /= scaler.scale_
    return coef, -coef[:, :2] @ scaler.mean_, fitted.predict(rows)


def stacked(classifier):
    return np.vstack([each.coef_ for each in classifier.estimators_])


def logistic(**options):
    return LogisticRegression(fit_intercept=False, tol=1e-12, max_iter=10_000, **options)


def test_a_scaled_model_with_words_is_that_of_scikit_learn(adfs, people, table):
    assert adfs("train", table, "--target", "buys", *FEATURES, "--out", "m.npz").code == 0
    model = Model.load("m.npz")
    coef, shift, predicted = pipeline(people, logistic(solver="newton-cholesky"), "buys")
    np.testing.assert_allclose(model.coef[:-1], coef[0], rtol=1e-6)
    np.testing.assert_allclose(model.coef[-1], shift[0], rtol=1e-6)
    assert model.feature_names == ["age", "income", "city=Oslo", "city=Paris", "city=Rome"]
    assert adfs("predict", "m.npz", table).out.split() == predicted.tolist()


def test_many_classes_are_those_of_scikit_learn(adfs, people, table):
    found = adfs("train", table, "--target", "level", *FEATURES, "--out", "m.npz", "--json")
    facts, model = json.loads(found.out), Model.load("m.npz")
    one_each = OneVsRestClassifier(logistic(solver="newton-cholesky"))
    coef, shift, predicted = pipeline(people, one_each, "level")
    assert model.coef.shape == (3, 6)
    np.testing.assert_allclose(model.coef[:, :-1], coef, rtol=1e-6)
    np.testing.assert_allclose(model.coef[:, -1], shift, rtol=1e-6)
    assert adfs("predict", "m.npz", table).out.split() == predicted.tolist()
    assert [each["class"] for each in facts["classes"]] == ["low", "mid", "top"]
    assert facts["relative_gap"] == max(each["relative_gap"] for each in facts["classes"])
    assert facts["iterations"] == sum(each["iterations"] for each in facts["classes"])


def test_wine_has_the_probabilities_of_scikit_learn(adfs, home):
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    np.savez("wine.npz", X=X, y=y)
    assert adfs("train", "wine.npz", "--tol", "1e-18", "--out", "m.npz").code == 0
    theirs = OneVsRestClassifier(logistic(solver="newton-cholesky")).fit(X, y)
    np.testing.assert_allclose(
        Model.load("m.npz").predict_proba(X), theirs.predict_proba(X), atol=1e-6
    )
    lines = adfs("predict", "m.npz", "wine.npz", "--proba").out.splitlines()
    np.testing.assert_allclose(
        [float(v) for v in lines[0].split()], theirs.predict_proba(X)[0], atol=1e-6
    )
    accuracy = f"accuracy {100 * theirs.score(X, y):.2f} %"
    assert accuracy in adfs("predict", "m.npz", "wine.npz").err


def test_balanced_weights_of_many_classes(adfs, people, table):
    arguments = ("--target", "level", *FEATURES, "--class-weight", "balanced", "--out", "m.npz")
    assert adfs("train", table, *arguments).code == 0
    one_each = OneVsRestClassifier(logistic(solver="newton-cholesky", class_weight="balanced"))
    np.testing.assert_allclose(
        Model.load("m.npz").coef[:, :-1], pipeline(people, one_each, "level")[0], rtol=1e-6
    )


def test_a_regression_on_a_table(adfs, people, table):
    arguments = ("--target", "spends", "--loss", "squared", *FEATURES, "--out", "m.npz")
    assert adfs("train", table, *arguments).code == 0
    coef, _, _ = pipeline(people, Ridge(1.0, fit_intercept=False), "spends")
    np.testing.assert_allclose(Model.load("m.npz").coef[:-1], coef[0], rtol=1e-5)


def test_formats_give_the_same_model(adfs, table):
    for name in ("people.csv", "people.parquet"):
        assert adfs("train", name, "--target", "level", *FEATURES, "--out", f"{name}.npz").code == 0
    first, second = Model.load("people.csv.npz"), Model.load("people.parquet.npz")
    assert first.thetas.tobytes() == second.thetas.tobytes()


def test_a_model_of_many_classes_starts_where_another_ended(adfs, table):
    arguments = ("train", table, "--target", "level", *FEATURES, "--intercept", "--out", "m.npz")
    assert adfs(*arguments).code == 0
    again = adfs(*arguments[:-2], "--warm-start", "m.npz", "--max-iter", "0", "--json")
    gaps = [each["relative_gap"] for each in json.loads(again.out)["classes"]]
    assert max(gaps) < 1e-3


def test_traces_and_checkpoints_of_many_classes(adfs, table, home):
    arguments = ("train", table, "--target", "level", *FEATURES)
    whole = adfs(*arguments, "--out", "whole.npz", "--trace", "t.csv")
    assert whole.code == 0
    lines = (home / "t.csv").read_text().splitlines()
    assert lines[0].endswith(",class")
    assert {line.split(",")[-1] for line in lines[1:]} == {"low", "mid", "top"}
    some = adfs(*arguments, "--checkpoint", "kept", "--max-iter", "2000")
    assert some.code == 3
    assert adfs(*arguments, "--checkpoint", "kept", "--resume", "--out", "resumed.npz").code == 0
    first, second = Model.load("whole.npz"), Model.load("resumed.npz")
    assert first.thetas.tobytes() == second.thetas.tobytes()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["people.csv"], "--target must name the column to predict"),
        (["people.csv", "--target", "by"], "--target by must be a column"),
        (["people.csv", "--target", "spends"], "There are 300 different labels"),
        (["people.csv", "--target", "buys", "--loss", "squared"], "needs numbers as targets"),
        (["people.csv", "--target", "buys", "--n-features", "9"], "--n-features 9"),
        (["wine.npz", "--target", "y"], "have no names"),
    ],
)
def test_bad_arguments_have_one_sentence(adfs, table, arguments, sentence):
    np.savez("wine.npz", X=np.eye(2), y=[0, 1])
    outcome = adfs("train", *arguments)
    assert outcome.code == 2
    assert sentence in outcome.err
    assert outcome.err.count("\n") == 1


def test_predict_refuses_what_the_model_does_not_know(adfs, table, home):
    adfs("train", table, "--target", "buys", *FEATURES, "--out", "m.npz")
    (home / "new.csv").write_text("age,income,city\n30,1e4,Oslo\n30,1e4,Bergen\n")
    outcome = adfs("predict", "m.npz", "new.csv")
    assert outcome.code == 2
    assert "new.csv, line 3, column 'city': 'Bergen' is a category" in outcome.err
    np.savez("rows.npz", X=np.eye(2), y=[0, 1])
    adfs("train", "rows.npz", "--out", "plain.npz", "--nodes", "1")
    assert "trained on columns without names" in adfs("predict", "plain.npz", "new.csv").err


@pytest.mark.parametrize("proba", [(), ("--proba",)], ids=["labels", "probabilities"])
def test_predictions_are_written_in_the_format_of_the_suffix(adfs, table, home, proba):
    adfs("train", table, "--target", "level", *FEATURES, "--out", "m.npz")
    lines = adfs("predict", "m.npz", table, *proba).out.splitlines()
    for suffix in ("csv", "parquet", "npy"):
        assert adfs("predict", "m.npz", table, *proba, "--out", f"p.{suffix}").code == 0
    rows = [line.split(" ") for line in lines]
    read = pyarrow.csv.read_csv("p.csv")
    assert read.equals(pq.read_table("p.parquet"))
    assert np.array_equal(
        np.column_stack(list(read.to_pydict().values())), np.load("p.npy").reshape(len(rows), -1)
    )
    assert [[str(value) for value in row.values()] for row in read.to_pylist()] == rows

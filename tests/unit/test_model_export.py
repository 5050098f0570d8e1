"""A model as scikit-learn's pipeline, and its coefficients as CSV."""

import csv

import numpy as np
import pandas as pd
import pytest

from adfs.losses import LOSSES
from adfs.model import Model

COLUMNS = {
    "target": "y", "target_kind": "word", "kinds": {"age": "number", "city": "word"},
    "categories": {"city": ["Oslo", "Rome"]},
}  # fmt: skip


def model_of(loss="logistic", classes=("no", "yes"), intercept=True, columns=None, n_features=3):
    """A model with random coefficients."""
    random = np.random.default_rng(0)
    several = (len(classes),) if len(classes) > 2 else ()
    coef = random.normal(size=(*several, n_features + intercept))
    meta = {
        "format": 1, "loss": loss, "classes": list(classes) if LOSSES[loss].binary else [],
        "intercept": intercept, "n_features": n_features, "sigma": 0.25, "n_nodes": 8,
    }  # fmt: skip
    if columns is not None:
        meta |= {"columns": columns, "feature_names": ["age", "city=Oslo", "city=Rome"]}
    return Model(coef, coef[..., None, :], meta)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("classes", [("no", "yes"), (1, 2, 5)], ids=["two", "three"])
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_the_pipeline_predicts_the_same(loss, classes, intercept):
    if not LOSSES[loss].binary and len(classes) > 2:
        classes = ()
    model, X = model_of(loss, classes, intercept), np.random.default_rng(1).normal(size=(20, 3))
    pipeline = model.to_sklearn()
    found, expected = pipeline.predict(X), model.predict(X)
    if LOSSES[loss].binary:
        assert found.tolist() == expected.tolist()
        np.testing.assert_allclose(pipeline.decision_function(X), model.decision(X))
    else:
        np.testing.assert_allclose(found, expected)
    if loss == "logistic":
        np.testing.assert_allclose(pipeline.predict_proba(X), model.predict_proba(X))
        made = getattr(pipeline[-1], "estimator", pipeline[-1])
        assert pytest.approx(0.5) == made.C


def test_a_pipeline_takes_the_columns_of_the_table_by_name():
    model = model_of(columns=COLUMNS)
    table = pd.DataFrame({"city": ["Rome", "Oslo"], "more": [1, 2], "age": [30.0, 50.0]})
    rows = np.array([[30.0, 0.0, 1.0], [50.0, 1.0, 0.0]])
    pipeline = model.to_sklearn()
    np.testing.assert_allclose(pipeline.predict_proba(table), model.predict_proba(rows))
    with pytest.raises(ValueError, match="unknown categories"):
        pipeline.predict(table.assign(city="Bergen"))


def read(path):
    return list(csv.reader(path.read_text().splitlines()))


def test_coefficients_are_lines_with_names(tmp_path):
    model = model_of(columns=COLUMNS)
    model.to_csv(tmp_path / "c.csv")
    header, *rows = read(tmp_path / "c.csv")
    assert header == ["feature", "coefficient"]
    assert {name: float(value) for name, value in rows} == model.coefficients()


def test_several_classes_are_columns(tmp_path):
    model = model_of(classes=("a", "b,c", "d"))
    model.to_csv(tmp_path / "c.csv")
    header, *rows = read(tmp_path / "c.csv")
    assert header == ["feature", "a", "b,c", "d"]
    assert [row[0] for row in rows] == ["x1", "x2", "x3", "intercept"]
    np.testing.assert_array_equal(np.array([row[1:] for row in rows], float).T, model.coef)

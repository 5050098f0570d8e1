"""Measures of predictions: those of scikit-learn, however the samples are divided among nodes."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn import metrics

from adfs.graphs.topology import Topology
from adfs.model import Model
from adfs.network import Network
from adfs.quality import MOST_POINTS, area_under_curve, phrase, quality, roc_curve


def model_of(classes, loss="logistic"):
    meta = {"format": 1, "loss": loss, "classes": classes, "intercept": False, "n_features": 1}
    shape = (len(classes), 1) if len(classes) > 2 else (1,)
    return Model(np.zeros(shape), np.zeros((*shape[:-1], 1, 1)), meta)


def judged(model, scores, labels, n_nodes=3, **options):
    parts = [np.array_split(each, n_nodes) for each in (scores, labels)]
    return quality(model, Network(Topology.ring(n_nodes)), *parts, **options)


def test_two_classes():
    random = np.random.default_rng(0)
    scores = np.round(random.normal(size=200), 1)  # with ties
    labels = np.where(scores + random.normal(size=200) > 0, "yes", "no")
    found = judged(model_of(["no", "yes"]), scores, labels)
    chosen = np.where(scores > 0, "yes", "no")
    assert found["accuracy"] == metrics.accuracy_score(labels, chosen)
    assert found["confusion"] == metrics.confusion_matrix(labels, chosen).tolist()
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(labels, scores), rel=1e-12)
    precision, recall, _, _ = metrics.precision_recall_fscore_support(
        labels, chosen, labels=["yes"]
    )
    assert [found["precision"], found["recall"]] == pytest.approx([precision[0], recall[0]])
    assert found["log_loss"] == pytest.approx(metrics.log_loss(labels, expit(scores)))
    assert phrase(found).startswith(f"accuracy {100 * found['accuracy']:.2f} %, AUC 0.")


def test_three_classes():
    random = np.random.default_rng(1)
    scores, labels = random.normal(size=(90, 3)), random.integers(0, 3, 90)
    found = judged(model_of([0, 1, 2]), scores, labels)
    chosen = scores.argmax(axis=1)
    assert found["confusion"] == metrics.confusion_matrix(labels, chosen).tolist()
    theirs = metrics.precision_recall_fscore_support(labels, chosen, average="macro")
    assert [found["precision"], found["recall"]] == pytest.approx(theirs[:2])
    shares = expit(scores) / expit(scores).sum(axis=1, keepdims=True)
    assert found["log_loss"] == pytest.approx(metrics.log_loss(labels, shares))
    assert "auc" not in found


def test_values():
    random = np.random.default_rng(2)
    scores, labels = random.normal(size=50), random.normal(5, 2, 50)
    found = judged(model_of([], "squared"), scores, labels)
    assert found["r2"] == pytest.approx(metrics.r2_score(labels, scores))
    assert found["root_mean_squared_error"] ** 2 == pytest.approx(found["mean_squared_error"])
    assert found["mean_squared_error"] == pytest.approx(metrics.mean_squared_error(labels, scores))
    assert found["mean_absolute_error"] == pytest.approx(
        metrics.mean_absolute_error(labels, scores)
    )


def test_what_cannot_be_measured_is_unknown():
    assert area_under_curve(np.ones(3), np.ones(3, bool)) is None
    found = judged(model_of([], "squared"), np.full(3, 1e200), np.ones(3))
    assert found["r2"] is None
    assert found["mean_squared_error"] is None
    assert "R2 unknown" in phrase(found)


def test_a_label_that_the_model_does_not_know_is_a_wrong_prediction():
    scores, labels = np.array([1.0, -1.0, 2.0]), np.array(["yes", "no", "maybe"])
    found = judged(model_of(["no", "yes"]), scores, labels, n_nodes=3)
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert np.sum(found["confusion"]) == 2


@pytest.mark.parametrize("n_samples", [40, 5_000])
def test_the_roc_curve_has_points_of_the_whole_one_and_both_ends(n_samples):
    random = np.random.default_rng(3)
    scores = np.round(random.normal(size=n_samples), 2)
    is_second = random.random(n_samples) < expit(scores)
    found = roc_curve(scores, is_second)
    theirs = np.column_stack(metrics.roc_curve(is_second, scores, drop_intermediate=False)[:2])
    places = np.abs(found[:, None] - theirs).max(axis=2).argmin(axis=1)
    assert found == pytest.approx(theirs[places], abs=1e-12)
    assert (found[0] == 0.0).all()
    assert (found[-1] == 1.0).all()
    assert len(found) <= MOST_POINTS
    assert metrics.auc(*found.T) == pytest.approx(area_under_curve(scores, is_second), abs=0.005)


def test_curves_come_only_when_asked_for():
    scores, words = np.array([1.0, -1.0, 2.0, -2.0]), np.array(["yes", "no", "no", "yes"])
    assert "roc" not in judged(model_of(["no", "yes"]), scores, words)
    assert len(judged(model_of(["no", "yes"]), scores, words, with_curves=True)["roc"]) == 5
    assert "residuals" not in judged(model_of([], "squared"), scores, scores)
    one = judged(model_of(["no", "yes"]), scores, np.full(4, "no"), with_curves=True)
    assert "roc" not in one, "there is no curve of one class"


def test_residuals_are_counted_the_same_on_any_number_of_nodes():
    random = np.random.default_rng(4)
    scores, labels = random.normal(size=300), random.normal(1, 2, 300)
    scores[0] = 1e3
    one, three = (
        judged(model_of([], "squared"), scores, labels, n, with_curves=True)["residuals"]
        for n in (1, 3)
    )
    assert one == three
    counts, edges = np.array(one["counts"]), np.array(one["edges"])
    assert counts.sum() == 300
    assert counts[0] == 1, "what lies beyond is in the outer bin"
    expected = np.histogram((labels - scores)[1:], edges)[0]
    assert (counts - expected).tolist() == [1] + [0] * (len(counts) - 1)


def test_residuals_that_are_zero_or_overflow_have_no_picture():
    for scores in (np.ones(3), np.full(3, 1e200)):
        found = judged(model_of([], "squared"), scores, np.ones(3), with_curves=True)
        assert found["residuals"] is None

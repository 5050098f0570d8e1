"""What is refused, and the sentence: the rule, the value, the way out."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import adfs

X = np.random.default_rng(0).standard_normal((30, 3))
Y = np.arange(30) % 2
COMMON = [
    ({"tol": 0.0}, "tol=0 must be a finite number > 0"),
    ({"tol": "small"}, "tol='small' must be a finite number"),
    ({"tol": float("nan")}, "tol=nan must be a finite number"),
    ({"max_iter": -1}, "max_iter=-1 must be a whole number >= 0"),
    ({"max_iter": 2.5}, "max_iter=2.5 must be a whole number"),
    ({"max_iter": True}, "max_iter=True must be a whole number"),
    ({"tau": -1.0}, "tau"),
    ({"tau": "fast"}, "tau='fast' must be a finite number"),
    ({"algorithm": "sgd"}, "algorithm='sgd' is not known .*; choose auto, best or one of .*adfs"),
    ({"algorithm": None}, "algorithm=None must be a name"),
    ({"n_nodes": 0}, "n_nodes=0 must be a whole number >= 1; or leave it at None"),
    ({"n_nodes": 31}, "n_nodes=31 must not exceed n_samples=30"),
    ({"n_nodes": 5, "graph": "grid:2x2"}, "has 4 nodes, but 5 were asked for"),
    ({"graph": "mesh"}, "Graph 'mesh' is not known"),
    ({"graph": nx.path_graph(4)}, "graph=Graph must be a name such as 'grid' or an adfs.Topology"),
    ({"graph": adfs.Topology.ring(5), "n_nodes": 4}, "ring:5 has 5 nodes but 4 were asked for"),
    ({"fit_intercept": "yes"}, "fit_intercept='yes' must be True or False"),
    ({"warm_start": 2}, "warm_start=2 must be True or False"),
    ({"random_state": -3}, "random_state=-3 must be a whole number >= 0"),
    ({"random_state": "dice"}, "random_state='dice' must be a whole number >= 0"),
    ({"verbose": -1}, "verbose=-1 must be a whole number >= 0"),
    ({"verbose": "loud"}, "verbose='loud' must be a whole number >= 0"),
]
OWN = [
    (adfs.LogisticRegression, {"C": 0.0}, "C=0 must be a finite number > 0"),
    (adfs.LogisticRegression, {"C": float("inf")}, "C=inf must be a finite number > 0"),
    (adfs.LogisticRegression, {"C": "1"}, "C='1' must be a finite number"),
    (adfs.LinearSVC, {"C": -1}, "C=-1 must be a finite number > 0"),
    (adfs.LinearSVC, {"loss": "log"}, "loss='log' is unknown; choose one of squared_hinge, hinge"),
    (adfs.LinearSVC, {"intercept_scaling": 0}, "intercept_scaling=0 must be a finite number > 0"),
    (adfs.LinearSVC, {"class_weight": "even"}, "class_weight='even' must be None, 'balanced' or"),
    (
        adfs.LinearSVC,
        {"class_weight": [1, 2]},
        r"class_weight=\[1, 2\] must be None, 'balanced' or",
    ),
    (
        adfs.LinearSVC,
        {"class_weight": {0: -1}},
        r"class_weight\[0\]=-1 must be a finite number >= 0",
    ),
    (adfs.LinearSVC, {"class_weight": {0: "a"}}, r"class_weight\[0\]='a' must be a finite number"),
    (adfs.LinearSVC, {"class_weight": {0: 1, 7: 2}}, "the label 1 has none; the labels are 0, 1"),
    (adfs.LinearSVC, {"loss": "hinge", "algorithm": "adfs"}, "needs a smooth loss"),
    (adfs.Ridge, {"alpha": 0}, "alpha=0 must be a finite number > 0"),
    (adfs.Ridge, {"algorithm": "ns-adfs"}, "'squared' is smooth; choose algorithm adfs"),
    (adfs.HuberRegressor, {"delta": 0}, "delta=0 must be a finite number > 0"),
    (adfs.HuberRegressor, {"alpha": -1}, "alpha=-1 must be a finite number > 0"),
    (adfs.LinearSVR, {"C": None}, "C=None must be a finite number"),
    (adfs.LinearSVR, {"loss": "huber"}, "choose one of epsilon_insensitive, squared_epsilon"),
]


@pytest.mark.parametrize("kind", [adfs.LogisticRegression, adfs.Ridge])
@pytest.mark.parametrize(("options", "sentence"), COMMON)
def test_options_of_all_estimators_are_judged(kind, options, sentence):
    with pytest.raises(adfs.AdfsError, match=sentence):
        kind(**options).fit(X, Y)


@pytest.mark.parametrize(("kind", "options", "sentence"), OWN)
def test_options_of_one_estimator_are_judged(kind, options, sentence):
    with pytest.raises(adfs.AdfsError, match=sentence):
        kind(**options).fit(X, Y)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"sample_weight": np.ones(29)}, r"sample_weight.shape is \(29,\) for 30 rows"),
        ({"sample_weight": -np.ones(30)}, "sample_weight has -1; weights are finite and >= 0"),
        ({"sample_weight": np.full(30, np.nan)}, "sample_weight has nan"),
        ({"sample_weight": np.zeros(30)}, "All sample weights are zero"),
        ({"sample_weight": ["a"] * 30}, "sample_weight must be numbers"),
        ({"groups": np.zeros(29)}, r"groups must name one node per row, but has shape \(29,\)"),
        ({"groups": np.full(30, np.nan)}, "groups has a NaN"),
        ({"groups": np.array(["a", None] * 15, dtype=object)}, "groups mixes names"),
    ],
)
@pytest.mark.parametrize("kind", [adfs.LinearSVC, adfs.LinearSVR, adfs.Ridge])
def test_weights_and_groups_are_judged(kind, given, sentence):
    with pytest.raises(adfs.AdfsError, match=sentence):
        kind().fit(X, Y, **given)


def test_groups_and_nodes_must_not_contradict_each_other():
    with pytest.raises(adfs.AdfsError, match="n_nodes=4 must equal the number of different groups"):
        adfs.Ridge(n_nodes=4).fit(X, Y, groups=np.arange(30) % 3)
    with pytest.raises(adfs.AdfsError, match="ring:5 has 5 nodes but 3 were asked for"):
        adfs.Ridge(graph=adfs.Topology.ring(5)).fit(X, Y, groups=np.arange(30) % 3)


def test_one_class_is_refused_also_where_weights_leave_one():
    with pytest.raises(adfs.AdfsError, match="only one class, 'a'"):
        adfs.LogisticRegression().fit(X, ["a"] * 30)
    with pytest.raises(adfs.AdfsError, match="only one class"):
        adfs.LogisticRegression().fit(X, Y, sample_weight=Y)


def test_a_warm_start_needs_the_same_features_and_classes():
    model = adfs.LinearSVC(warm_start=True).fit(X, Y)
    with pytest.raises(adfs.AdfsError, match="continues from the classes"):
        model.fit(X, Y + 1)
    with pytest.raises(
        adfs.AdfsError, match=r"coefficients of shape \(1, 3\), but this data needs"
    ):
        model.fit(X[:, :2], Y)
    ridge = adfs.Ridge(warm_start=True).fit(sp.csr_array(X), Y)
    with pytest.raises(adfs.AdfsError, match="Set warm_start=False"):
        ridge.fit(sp.csr_array(X[:, :2]), Y)


def test_an_unknown_argument_is_an_error():
    with pytest.raises(TypeError, match="epsilon"):
        adfs.LinearSVR(epsilon=0.1)
    with pytest.raises(TypeError, match="penalty"):
        adfs.LogisticRegression(penalty="l1")


def test_rows_that_centring_leaves_nothing_of_are_refused():
    with pytest.raises(adfs.AdfsError, match="All rows are zero"):
        adfs.Ridge().fit(np.ones((5, 2)), np.arange(5))
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        adfs.Ridge().fit(X[:1], Y[:1])

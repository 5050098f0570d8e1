"""What must agree for a resume, and the sentence that names what does not."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import adfs
from adfs.engine.run_identity import check, data_fingerprint, fingerprint
from adfs.errors import ParameterError

CONFIG = {
    "loss": "logistic", "sigma": [1.0, 1.0, 2.0], "graph": "ring:3", "delays": {"tau": 5.0},
    "intercept": False, "class_weight": None, "limit": float("nan"),
}  # fmt: skip
DATA = {"0": "aa", "1": "bb", "2": "cc"}


def make(data=DATA, seed=0, version=adfs.__version__, **changes):
    return {"adfs": version, "seed": seed, "config": CONFIG | changes, "data": data}


def without(name):
    return make() | {"config": {k: v for k, v in CONFIG.items() if k != name}}


def test_the_same_run_may_be_resumed():
    check(make(), make(), "run")
    check(make(), make(sigma=[1, 1, np.float64(2)]), "run")
    check(json.loads(json.dumps(make())), make(), "run")


def test_only_nodes_that_both_hold_are_compared():
    check(make(data={"1": "bb"}), make(data={"0": "other", "1": "bb"}), "run")


@pytest.mark.parametrize(
    ("stored", "current", "sentence"),
    [(make(sigma=1.0), make(sigma=2.0), "made with sigma=1 but this run has sigma=2; use the "
      "same, or another --checkpoint folder."),
     (make(sigma=1.0), make(sigma=1.0 + 2**-52), "sigma=1 but this run has "
      "sigma=1.0000000000000002;"),
     (make(sigma=1.0), make(), r"sigma=1 but this run has sigma=[1.0, 1.0, 2.0];"),
     (make(sigma=[1.0, 1.0, 3.0]), make(), "sigma[2]=3 but this run has sigma[2]=2;"),
     (make(seed=7), make(sigma=9.0), "seed=7 but this run has seed=0;"),
     (make(loss="hinge"), make(graph="path:3"), "loss=hinge but this run has loss=logistic;"),
     (make(delays={"tau": 0.5}), make(), "delays.tau=0.5 but this run has delays.tau=5;"),
     (make(intercept=True), make(), "intercept=True but this run has intercept=False;"),
     (without("class_weight"), make(class_weight="balanced"), "class_weight=(not given) but this "
      "run has class_weight=balanced;"),
     (make(), without("limit"), "limit=nan but this run has limit=(not given);"),
     (make(graph="x" * 99), make(graph=""), "graph=" + "x" * 80 + "... ("),
     (make(data=DATA | {"1": "xx", "2": "yy"}), make(), "made with other samples, labels or "
      "weights at node 1 than this run has; use the same, or another --checkpoint folder."),
     (make(version="0.0.9", seed=3), make(), f"made with adfs 0.0.9 but this is adfs "
      f"{adfs.__version__}, whose bits may differ; use the same version, or another")],
)  # fmt: skip
def test_the_sentence_names_the_first_thing_that_differs(stored, current, sentence):
    with pytest.raises(ParameterError) as caught:
        check(stored, current, "a/folder")
    assert str(caught.value).startswith("The checkpoint in a/folder was made with ")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def samples(m=5, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, d)), np.sign(rng.standard_normal(m)), rng.random(m)


def test_every_value_of_the_data_counts_to_the_bit():
    X, y, w = samples()
    base = fingerprint((X,), y, w)
    assert base == fingerprint((X.copy(order="F"),), y.copy(), w.copy())
    found = {base}
    for array in (X, y, w):
        for place in range(array.size):
            kept = array.flat[place]
            array.flat[place] = np.nextafter(kept, 9.0)
            found.add(fingerprint((X,), y, w))
            array.flat[place] = kept
    assert len(found) == 1 + X.size + y.size + w.size
    assert fingerprint((X,), y, w) == base


def test_type_shape_and_order_of_the_data_count():
    X, y, w = samples(4, 3)
    variants = [(X, y, w), (X.reshape(6, 2), y, w), (X[::-1], y, w), (X.astype("f4"), y, w),
                (X, w, y), (X[:3], y, w), (X[:0], y, w)]  # fmt: skip
    assert len({fingerprint((rows,), a, b) for rows, a, b in variants}) == len(variants)


def test_a_node_of_a_sparse_matrix_has_one_digest_whoever_holds_it():
    X, y, w = samples(9, 6)
    X[np.abs(X) < 0.7] = 0.0
    whole, part = csr_matrix(X), csr_matrix(X[3:7])
    own = fingerprint((part.data, part.indices, part.indptr), y[3:7], w[3:7])
    of_whole = (whole.data, whole.indices.astype(np.int64), whole.indptr[3:8].astype(np.int64))
    assert own == fingerprint(of_whole, y[3:7], w[3:7])
    moved = part.indices.copy()
    moved[0] += 1
    lengths = part.indptr.copy()
    lengths[1] += 1
    assert own != fingerprint((part.data, moved, part.indptr), y[3:7], w[3:7])
    assert own != fingerprint((part.data, part.indices, lengths), y[3:7], w[3:7])


def test_large_data_are_hashed_in_pieces_without_a_seam():
    values = np.arange(300_001.0)
    base = fingerprint((values.reshape(-1, 1),), values, values)
    for place in (0, 131_071, 131_072, 300_000):
        changed = values.copy()
        changed[place] += 0.5
        assert fingerprint((values.reshape(-1, 1),), changed, values) != base


def test_a_fingerprint_of_the_data_changes_with_a_sample_or_a_label():
    X, y = adfs.generators.two_gaussians(40, 3, seed=0)
    first = adfs.Problem(adfs.partition(X, y, 4))
    again = adfs.Problem(adfs.partition(X.copy(), y, 4), sigma=2.0)
    assert data_fingerprint(first) == data_fingerprint(again)
    codes = np.arange(40)
    found = {data_fingerprint(first), data_fingerprint(first, codes)}
    X[7, 1] += 1e-12
    found.add(data_fingerprint(adfs.Problem(adfs.partition(X, y, 4))))
    codes[39] = 0
    found.add(data_fingerprint(first, codes))
    assert len(found) == 4

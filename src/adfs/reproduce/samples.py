"""Samples to draw from: the paper's sets where they are on disk, else generated; they say so."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.errors import DataError
from adfs.problems import datasets
from adfs.problems.generators import higgs_like, sparse_text, two_gaussians

# As many rows as the part of Higgs that is commonly at hand.
ROWS = 57_594
COVTYPE_FEATURES = 54
TEXT_ROWS, TEXT_FEATURES = 7_770, 8_315


class Pool(NamedTuple):
    """Rows and labels, and a phrase that says where they come from."""

    X: Any
    y: NDArray[np.float64]
    words: str


def missing(names: tuple[str, ...]) -> list[str]:
    """Those of the named sets that are not on disk."""
    found = {dataset.name for dataset, path in datasets.available() if path is not None}
    return [name for name in names if name not in found]


def require(name: str, sets: tuple[str, ...]) -> None:
    """Refuse the reproduction ``name`` where its data are not on disk."""
    absent = missing(sets)
    if absent:
        raise DataError(
            f"{name} needs the data set {absent[0]}, which is not on disk; put its file into the "
            "folder named by ADFS_DATA, or give --quick for a small version on generated data."
        )


def higgs() -> Pool:
    """The Higgs set, or collisions that look like it."""
    if missing(("higgs",)):
        X, y = higgs_like(ROWS, seed=0)
        return Pool(X, y, f"generated rows that look like Higgs ({ROWS:,}; the set is not on disk)")
    path = datasets.locate("higgs")
    X, y = datasets.load("higgs")
    return Pool(X, y, f"Higgs, {len(y):,} rows of {path.name}")


def covtype() -> Pool:
    """The Covtype set, or as many features of two Gaussian clouds."""
    if missing(("covtype",)):
        X, y = two_gaussians(ROWS, COVTYPE_FEATURES, seed=0)
        return Pool(X, y, f"two Gaussian clouds ({ROWS:,} rows; Covtype is not on disk)")
    path = datasets.locate("covtype")
    X, y = datasets.load("covtype")
    return Pool(X, y, f"Covtype, {len(y):,} rows of {path.name}")


def text() -> Pool:
    """Reuters' money-fx, or sparse rows that look like text."""
    if missing(("reuters-money-fx",)):
        X, y = sparse_text(TEXT_ROWS, TEXT_FEATURES, seed=0)
        return Pool(X, y, f"generated sparse text ({TEXT_ROWS:,} rows; Reuters is not on disk)")
    path = datasets.locate("reuters-money-fx")
    X, y = datasets.load("reuters-money-fx")
    return Pool(X, y, f"Reuters money-fx, {len(y):,} rows of {path.name}")

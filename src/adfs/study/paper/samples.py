"""Samples to draw from: the paper's data sets where they are on disk, else generated ones."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.data import datasets
from adfs.data.generators import higgs_like, sparse_text, two_gaussians
from adfs.errors import DataError

# As many rows as the part of Higgs that is commonly at hand.
ROWS = 57_594
COVTYPE_FEATURES = 54
TEXT_ROWS, TEXT_FEATURES = 7_770, 8_315


class Pool(NamedTuple):
    """Rows and labels, and a phrase that says where they come from."""

    X: Any
    y: NDArray[np.float64]
    source: str


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
    return _pool("higgs", lambda: higgs_like(ROWS, seed=0), "generated rows that look like Higgs")


def covtype() -> Pool:
    """The Covtype set, or as many features of two Gaussian clouds."""
    return _pool(
        "covtype", lambda: two_gaussians(ROWS, COVTYPE_FEATURES, seed=0), "two Gaussian clouds"
    )


def text() -> Pool:
    """Reuters' money-fx, or sparse rows that look like text."""
    return _pool(
        "reuters-money-fx", lambda: sparse_text(TEXT_ROWS, TEXT_FEATURES, seed=0),
        "generated sparse text",
    )  # fmt: skip


def _pool(name: str, generate: Callable[[], tuple[Any, Any]], like: str) -> Pool:
    """The named set if it is on disk, else what ``generate`` makes."""
    if missing((name,)):
        X, y = generate()
        return Pool(X, y, f"{like} ({len(y):,} rows; {name} is not on disk)")
    path = datasets.locate(name)
    X, y = datasets.load(name)
    return Pool(X, y, f"{name}, {len(y):,} rows of {path.name}")

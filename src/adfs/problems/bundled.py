"""Small data sets that scikit-learn ships: something to train on without a network.

They are written as LIBSVM files like any other set, so that everything that reads files, byte
ranges of ranks included, works on them. Columns are scaled to mean 0 and variance 1.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

LOADERS = {"breast-cancer": "load_breast_cancer", "diabetes": "load_diabetes"}


def write_bundled(name: str, path: Path) -> None:
    """Write a set of ``LOADERS`` as a LIBSVM file; two classes become -1 and 1."""
    from sklearn import datasets
    from sklearn.preprocessing import StandardScaler

    X, y = getattr(datasets, LOADERS[name])(return_X_y=True)
    if len(np.unique(y)) == 2:
        y = np.where(y == y.max(), 1, -1)
    datasets.dump_svmlight_file(StandardScaler().fit_transform(X), y, str(path), zero_based=False)

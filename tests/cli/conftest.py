"""Runs commands in this process, in a folder of their own."""

from typing import NamedTuple

import pytest

from adfs.cli.main import main
from adfs.problems.generators import sparse_text, two_gaussians


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADFS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ADFS_DATA", raising=False)
    return tmp_path


@pytest.fixture
def adfs(capsys):
    def run(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Outcome(code, *capsys.readouterr())

    return run


def write_libsvm(path, X, y):
    X = X if hasattr(X, "toarray") else _sparse(X)
    lines = []
    for k, label in enumerate(y):
        row = X[k]
        pairs = zip(row.indices, row.data, strict=True)
        lines.append(f"{label:g} " + " ".join(f"{j + 1}:{float(v)!r}" for j, v in pairs))
    path.write_text("\n".join(lines) + "\n")


def _sparse(X):
    from scipy.sparse import csr_matrix

    return csr_matrix(X)


@pytest.fixture
def dense(home):
    """A dense LIBSVM file: 60 samples, 4 features, one of its labels rare, not centred."""
    X, y = two_gaussians(60, 4, seed=3)
    y[:8] = 1.0
    write_libsvm(home / "dense.txt", X + 0.5, y)
    return "dense.txt", X + 0.5, y


@pytest.fixture
def sparse(home):
    """A sparse one: 80 documents over 50 words."""
    X, y = sparse_text(80, 50, words_per_row=6, seed=1)
    write_libsvm(home / "sparse.txt", X, y)
    return "sparse.txt", X, y

"""Samples that need no download: made from a seed, with labels -1 and +1."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix

from adfs import checks
from adfs.data.matrices import Samples, csr_of
from adfs.errors import ParameterError
from adfs.randomness import generator

HIGGS_SIGNAL = 0.53
HIGGS_ANGLE = 1.74


def two_gaussians(
    n_samples: int,
    n_features: int,
    seed: int = 0,
    separation: float = 2.0,
    condition: float = 1.0,
) -> Samples:
    """Two Gaussian clouds of equal size, one per label.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of ``X``, a dense float64 array.
    seed : int
        The same seed gives the same samples.
    separation : float
        Distance of the two means, along a random direction, before features are scaled.
    condition : float
        Largest over smallest standard deviation of a feature; they fall geometrically from 1.

    Examples
    --------
    >>> X, y = two_gaussians(6, 2, seed=1)
    >>> X.shape, sorted(y.tolist())
    ((6, 2), [-1.0, -1.0, -1.0, 1.0, 1.0, 1.0])
    """
    n_samples = checks.whole("n_samples", n_samples, 1, hint="try n_samples=100")
    n_features = checks.whole("n_features", n_features, 1, hint="try n_features=100")
    if not (np.isfinite(separation) and np.isfinite(condition) and condition >= 1):
        raise ParameterError(
            f"separation={separation} must be finite and condition={condition} at least 1; "
            "leave them out for 2 and 1."
        )
    random = generator(seed, "generators/two_gaussians")
    y = _labels(n_samples, 0.5, random)
    direction = random.standard_normal(n_features)
    direction *= separation / (2 * np.linalg.norm(direction))
    X = random.standard_normal((n_samples, n_features)) + y[:, None] * direction
    return Samples(X * np.geomspace(1.0, 1.0 / condition, n_features), y)


def higgs_like(n_samples: int, seed: int = 0) -> Samples:
    """Collisions similar to the paper's Higgs set: 28 features in the same order of columns.

    Momenta are skewed to the right, angles flat, jet tags take three values, and the seven masses
    have heavy tails and carry what little a linear model can learn: it is right about two times in
    three, as on the real set.

    Examples
    --------
    >>> X, y = higgs_like(1000)
    >>> X.shape, float(y.mean())
    ((1000, 28), 0.06)
    """
    n_samples = checks.whole("n_samples", n_samples, 1, hint="try n_samples=100")
    random = generator(seed, "generators/higgs_like")
    y = _labels(n_samples, HIGGS_SIGNAL, random)
    columns = [*_particle(y, random), *_particle(y, random, slope=False)]  # lepton, missing energy
    for tag in (2.17, 2.21, 2.55, 3.10):  # jets
        columns += _particle(y, random)
        columns.append(random.choice([0.0, tag / 2, tag], p=[0.52, 0.08, 0.40], size=n_samples))
    return Samples(np.column_stack([*columns, _masses(y, random)]), y)


def sparse_text(
    n_samples: int, n_features: int, words_per_row: float = 50.0, seed: int = 0
) -> Samples:
    """Documents as bags of words: tf-idf rows of norm one, word frequencies by Zipf's law.

    Parameters
    ----------
    n_samples, n_features : int
        Number of documents and size of the vocabulary.
    words_per_row : float
        Mean number of words drawn for a document; repeated words share an entry, so a row has
        fewer non-zeros.
    seed : int
        The same seed gives the same samples.

    Returns
    -------
    Samples
        ``X`` a ``csr_matrix`` with int32 indices; ``y`` the side of a planted hyperplane, with
        noise, half of the documents on each side.

    Examples
    --------
    >>> X, y = sparse_text(100, 1000, words_per_row=20)
    >>> X.shape, bool(X.nnz < 100 * 21)
    ((100, 1000), True)
    """
    n_samples = checks.whole("n_samples", n_samples, 1, hint="try n_samples=100")
    n_features = checks.whole("n_features", n_features, 1, hint="try n_features=100")
    if not (np.isfinite(words_per_row) and words_per_row >= 1):
        raise ParameterError(f"words_per_row={words_per_row} must be at least 1; try 50.")
    random = generator(seed, "generators/sparse_text")
    X = _tf_idf(_word_counts(n_samples, n_features, words_per_row, random))
    score = np.asarray(X @ random.standard_normal(n_features))
    score += 0.3 * score.std() * random.standard_normal(n_samples)
    y = np.full(n_samples, -1.0)
    y[np.argsort(score, kind="stable")[n_samples // 2 :]] = 1.0
    return Samples(X, y)


def random_features(
    samples: Samples, n_features: int, n_samples: int, random: np.random.Generator
) -> Samples:
    """Random Fourier features of some rows: linear models of them are models of a Gaussian kernel.

    Parameters
    ----------
    samples : Samples
        ``X`` (dense or CSR) and ``y``; columns are standardised, so that the kernel is
        ``exp(-|x - x'|^2 / (2 p))`` of standardised rows with ``p`` columns.
    n_features : int
        How many features ``sqrt(2 / d) cos(w . x + b)`` (Rahimi and Recht, 2007).
    n_samples : int
        How many rows are drawn, without repetition; all if there are fewer.
    random : numpy.random.Generator
        Draws rows, then frequencies and phases.

    Examples
    --------
    >>> X, y = random_features(two_gaussians(100, 3), 8, 50, np.random.default_rng(0))
    >>> X.shape, y.shape
    ((50, 8), (50,))
    """
    d = checks.whole("n_features", n_features, 1, hint="try n_features=100")
    most = checks.whole("n_samples", n_samples, 1, hint="try n_samples=1000")
    chosen = random.permutation(len(samples.y))[:most]
    rows: Any = samples.X[chosen]
    X = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)
    X = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-12)
    frequencies = random.standard_normal((X.shape[1], d)) / np.sqrt(X.shape[1])
    phases = random.uniform(0.0, 2.0 * np.pi, d)
    return Samples(np.sqrt(2.0 / d) * np.cos(X @ frequencies + phases), samples.y[chosen])


def _labels(n_samples: int, share: float, random: np.random.Generator) -> NDArray[np.float64]:
    """Labels in random order, a fixed ``share`` of them +1."""
    y = np.where(np.arange(n_samples) < round(share * n_samples), 1.0, -1.0)
    return random.permutation(y)


def _particle(
    y: NDArray[np.float64], random: np.random.Generator, slope: bool = True
) -> list[NDArray[np.float64]]:
    """Momentum, slope (not of missing energy), angle."""
    columns = [random.lognormal(-0.12 - 0.02 * y, 0.5)]
    if slope:
        columns.append(random.standard_normal(y.size).clip(-2.9, 2.9))
    return [*columns, random.uniform(-HIGGS_ANGLE, HIGGS_ANGLE, y.size)]


def _masses(y: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
    """Seven masses near 1, correlated, heavy-tailed above, those of the signal narrower."""
    scale = np.array([0.35, 0.22, 0.08, 0.25, 0.35, 0.25, 0.22])
    shared = random.standard_normal((y.size, 1))
    spread = (0.6 * shared + 0.8 * random.standard_t(6, (y.size, 7))).clip(-8.0, 8.0)
    return np.exp(scale * (spread * (1 - 0.15 * y[:, None]) - 0.18 * y[:, None]))


def _word_counts(
    n_samples: int, n_features: int, words_per_row: float, random: np.random.Generator
) -> csr_matrix[np.float64]:
    """How often each word occurs in each document; none is empty."""
    lengths = 1 + random.poisson(words_per_row - 1, n_samples)
    frequencies = 1.0 / (np.arange(n_features) + 2.7)
    cumulated = np.cumsum(frequencies / frequencies.sum())
    ranks = np.searchsorted(cumulated, random.random(lengths.sum()) * cumulated[-1], side="right")
    words = random.permutation(n_features)[np.minimum(ranks, n_features - 1)]
    rows = np.repeat(np.arange(n_samples), lengths)
    shape = (n_samples, n_features)
    return coo_matrix((np.ones(len(words)), (rows, words)), shape=shape).tocsr()


def _tf_idf(counts: csr_matrix[np.float64]) -> csr_matrix[np.float64]:
    """(1 + log count) log-discounted by the number of documents with the word, rows of norm one."""
    documents = np.bincount(counts.indices, minlength=counts.shape[1])
    discount = 1.0 + np.log((1 + counts.shape[0]) / (1 + documents))
    values = (1.0 + np.log(counts.data)) * discount[counts.indices]
    squares = np.add.reduceat(values**2, counts.indptr[:-1])
    values /= np.repeat(np.sqrt(squares), np.diff(counts.indptr))
    return csr_of(values, counts.indices, counts.indptr, counts.shape)

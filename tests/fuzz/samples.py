"""Small problems of every unpleasant kind, as lists of samples ``[label, weight, features...]``."""

import numpy as np

BINARY = ("logistic", "squared_hinge", "smoothed_hinge", "hinge")
REGRESSION = ("squared", "huber", "absolute")
LOSSES = BINARY + REGRESSION
GRAPHS = ("grid", "ring", "path", "star", "complete")


def columns_of(samples):
    """``X, y, weights`` of some samples."""
    table = np.array(samples, dtype=np.float64)
    return table[:, 2:], table[:, 0], table[:, 1]


def text_of(samples):
    """The samples as LIBSVM text, every digit kept; weights are left out."""
    lines = []
    for label, _, *features in samples:
        pairs = (f"{k}:{value!r}" for k, value in enumerate(features, 1))
        lines.append(" ".join([f"{label!r}", *pairs]))
    return "\n".join(lines) + "\n"


def samples_of(text):
    """The samples of a good LIBSVM text, with weight one."""
    rows = [line.split() for line in text.splitlines()]
    pairs = [[pair.split(":") for pair in row[1:]] for row in rows]
    table = np.zeros((len(rows), 2 + max(int(index) for row in pairs for index, _ in row)))
    table[:, 0], table[:, 1] = [float(row[0]) for row in rows], 1.0
    for samples, row in zip(table, pairs, strict=True):
        for index, value in row:
            samples[1 + int(index)] = float(value)
    return table.tolist()


def draw_graph(generator, n_nodes):
    """A graph on so many nodes."""
    names = ["single"] if n_nodes == 1 else [*GRAPHS] + ["hypercube"] * (n_nodes in (2, 4, 8))
    return str(generator.choice(names))


def draw_shards(generator, loss, n_nodes, weighted=True):
    """One list of samples per node."""
    width = int(generator.integers(1, 7))
    sizes = generator.integers(1, 7, n_nodes)
    X = _draw_rows(generator, int(sizes.sum()), width)
    y = _draw_labels(generator, loss, X)
    weights = _draw_weights(generator, len(y)) if weighted else np.ones(len(y))
    table = np.column_stack([y, weights, X])
    if generator.random() < 0.15:
        table = table[np.argsort(table[:, 0], kind="stable")]  # one class per shard
    return [part.tolist() for part in np.split(table, np.cumsum(sizes)[:-1])]


def _draw_rows(generator, count, width):
    X = generator.standard_normal((count, width))
    for change in ROW_CHANGES:
        if generator.random() < 0.12:
            X = change(generator, X)
    return np.nan_to_num(X, posinf=1e300, neginf=-1e300)


def _collinear(generator, X):
    return np.outer(X[:, 0], X[0])


def _nearly_collinear(generator, X):
    return np.outer(X[:, 0], X[0]) + 10.0 ** generator.integers(-14, -3) * X


def _repeated(generator, X):
    return X[generator.integers(0, max(1, len(X) // 3), len(X))]


def _zero_rows(generator, X):
    return X * (generator.random((len(X), 1)) < 0.6)


def _zero_columns(generator, X):
    return X * (generator.random(X.shape[1]) < 0.6)


def _sparse(generator, X):
    return X * (generator.random(X.shape) < 0.3)


def _whole(generator, X):
    return np.round(3 * X)


def _scaled(generator, X):
    return X * _scale(generator)


def _scaled_rows(generator, X):
    return X * np.array([[_scale(generator)] for _ in X])


def _scaled_columns(generator, X):
    return X * np.array([_scale(generator) for _ in X.T])


def _shifted(generator, X):
    return X + _scale(generator)


ROW_CHANGES = (_collinear, _nearly_collinear, _repeated, _zero_rows, _zero_columns, _sparse, _whole,
               _scaled, _scaled_rows, _scaled_columns, _shifted)  # fmt: skip


def _scale(generator):
    """A power of ten: most often one at which numbers are common."""
    reach = generator.choice([2, 8, 30, 160, 300], p=[0.45, 0.25, 0.1, 0.1, 0.1])
    return float(10.0 ** generator.integers(-reach, reach + 1))


def _draw_labels(generator, loss, X):
    if loss in BINARY:
        y = np.sign(X[:, 0]) if generator.random() < 0.3 else generator.choice([-1.0, 1.0], len(X))
        y[y == 0] = 1.0
        if len(y) > 1:
            y[0], y[-1] = -1.0, 1.0
        return y
    y = generator.standard_normal(len(X))
    change = generator.random()
    if change < 0.15:
        return np.clip(X @ generator.standard_normal(X.shape[1]), -1e300, 1e300)  # a perfect fit
    return y * _scale(generator) if change < 0.4 else np.round(y) if change < 0.5 else y


def _draw_weights(generator, count):
    how = generator.integers(6)
    if how < 3:
        return np.ones(count)
    if how == 3:
        return generator.uniform(0.1, 3.0, count)
    if how == 4:
        return generator.uniform(0.1, 3.0, count) * (generator.random(count) < 0.6)
    return np.array([_scale(generator) for _ in range(count)])


def draw_sigma(generator, n_nodes):
    """One number per node, the same for all or not."""
    total = _scale(generator) if generator.random() < 0.4 else 10.0 ** generator.uniform(-3, 1)
    if generator.random() < 0.3:
        return (total * generator.uniform(0.1, 2.0, n_nodes)).tolist()
    return [total] * n_nodes

"""LIBSVM files for commands to read."""

from scipy.sparse import csr_matrix


def write_libsvm(path, X, y):
    """One line per sample, every digit kept."""
    X = csr_matrix(X)
    lines = []
    for k, label in enumerate(y):
        row = X[k]
        pairs = zip(row.indices, row.data, strict=True)
        lines.append(f"{label:g} " + " ".join(f"{j + 1}:{float(v)!r}" for j, v in pairs))
    path.write_text("\n".join(lines) + "\n")

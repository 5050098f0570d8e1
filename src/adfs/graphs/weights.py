"""Mixing matrices of a graph: what nodes average with their neighbours."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from adfs.errors import GraphError
from adfs.randomness import generator
from adfs.threads import one_blas_thread

if TYPE_CHECKING:
    from adfs.graphs.topology import Topology

KINDS = ("metropolis", "laplacian", "max-degree")
DENSE_LIMIT = 1_500  # nodes up to which all eigenvalues are computed


@dataclass(frozen=True, eq=False, repr=False)
class MixingWeights:
    """A symmetric matrix ``W`` with ``W 1 = 1``, zero where nodes are not neighbours.

    Attributes
    ----------
    name : str
    matrix : scipy.sparse.csr_array of shape (n, n)
        Columns in increasing order.
    second, least : float
        The second largest and the least eigenvalue; both are 0 for a single node.

    Examples
    --------
    >>> from adfs import Topology
    >>> weights = Topology.ring(4).weights("metropolis")
    >>> weights
    MixingWeights(metropolis, 4 nodes, eigenvalues 1, 0.333333 ... -0.333333)
    >>> weights.matrix.toarray()[0].round(3).tolist()
    [0.333, 0.333, 0.0, 0.333]
    """

    name: str
    matrix: sp.csr_array
    second: float
    least: float

    @property
    def slem(self) -> float:
        """The second largest modulus: disagreement falls at least by this in a round of gossip."""
        return max(abs(self.second), abs(self.least))

    @property
    def gap(self) -> float:
        """``1 - slem``."""
        return 1.0 - self.slem

    def lazy(self) -> "MixingWeights":
        """``(I + W) / 2``, whose eigenvalues are not negative."""
        half = sp.csr_array((sp.eye_array(self.matrix.shape[0]) + self.matrix) / 2.0)
        half.sort_indices()
        return MixingWeights(
            f"lazy {self.name}", half, 0.5 + 0.5 * self.second, 0.5 + 0.5 * self.least
        )

    def __repr__(self) -> str:
        return (
            f"MixingWeights({self.name}, {self.matrix.shape[0]} nodes, eigenvalues 1, "
            f"{self.second:.6g} ... {self.least:.6g})"
        )


def mixing_weights(graph: "Topology", kind: str) -> MixingWeights:
    """The mixing matrix of a graph by one of `KINDS`; see `Topology.weights`."""
    if kind not in KINDS:
        raise GraphError(f"weights={kind!r} are not known; choose {', '.join(KINDS)}.")
    n = graph.n_nodes
    if n == 1:
        return MixingWeights(kind, sp.csr_array(np.ones((1, 1))), 0.0, 0.0)
    first, second = graph.edges[:, 0], graph.edges[:, 1]
    spectrum, degrees = graph.spectrum, graph.degrees
    if kind == "metropolis":
        values = 1.0 / (1.0 + np.maximum(degrees[first], degrees[second]))
    elif kind == "laplacian":
        values = np.full(len(first), 2.0 / (spectrum.lambda_min + spectrum.lambda_max))
    else:
        values = np.full(len(first), 1.0 / (1.0 + float(degrees.max())))
    loops = np.ones(n)
    np.subtract.at(loops, first, values)
    np.subtract.at(loops, second, values)
    nodes = np.arange(n)
    rows, columns = np.r_[first, second, nodes], np.r_[second, first, nodes]
    matrix = sp.csr_array((np.r_[values, values, loops], (rows, columns)), shape=(n, n))
    matrix.sort_indices()
    if kind == "metropolis":
        return MixingWeights(kind, matrix, *_outer_eigenvalues(matrix))
    ends = 1.0 - values[0] * np.array([spectrum.lambda_min, spectrum.lambda_max])
    return MixingWeights(kind, matrix, *ends.tolist())


def _outer_eigenvalues(matrix: sp.csr_array) -> tuple[float, float]:
    """The second largest and the least eigenvalue."""
    n = matrix.shape[0]
    with one_blas_thread():
        if n <= DENSE_LIMIT:
            values = np.linalg.eigvalsh(matrix.toarray())
            return float(values[-2]), float(values[0])
        start = generator(0, "graph/weights").standard_normal(n)
        top = eigsh(matrix, k=2, which="LA", v0=start, return_eigenvectors=False)
        low = eigsh(matrix, k=1, which="SA", v0=start, return_eigenvectors=False)
    return float(np.min(top)), float(low[0])

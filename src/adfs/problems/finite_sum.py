"""The problem of equation (1): regularised losses summed over samples that live on many nodes."""

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adfs.errors import DataError, GraphError, ParameterError
from adfs.graphs.topology import Topology
from adfs.kernels import certificate
from adfs.losses import Loss, get_loss
from adfs.problems.conditioning import Conditioning
from adfs.problems.labels import encode
from adfs.problems.reach import Reach
from adfs.problems.shards import Vector, join_shards

if TYPE_CHECKING:
    from adfs.problems.optimum import Optimum

COLUMNS_AT_ONCE = 4096
NOTHING_LIVE = "All rows are zero or have weight zero, so nothing can be learnt; check the data."


class Problem:
    """``F(theta) = sum_i [ sum_j w_ij l(x_ij . theta, y_ij) + sigma_i / 2 |theta|^2 ]``: sums.

    Parameters
    ----------
    shards : sequence of (X, y) or (X, y, weights)
        One for each node; X dense or sparse, float32 or float64. Shards that are consecutive views
        of one array (as `adfs.partition` makes them) are not copied.
    loss : str
    sigma : float or one a node
        Regularisation, > 0. The total is the sum over nodes.
    topology : Topology, optional
        The communication graph; the most square grid by default.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [3.0, 1.0]])
    >>> problem = Problem([(X[:2], [1, 0]), (X[2:], [1, 0])], sigma=0.5)
    >>> problem.n_nodes, problem.n_samples, problem.n_features
    (2, 4, 2)
    >>> round(problem.objective(np.zeros(2)), 6)  # 4 log 2
    2.772589
    """

    def __init__(
        self,
        shards: Sequence[Any],
        loss: str | Loss = "logistic",
        sigma: ArrayLike = 1.0,
        topology: Topology | None = None,
    ) -> None:
        joined = join_shards(shards)
        self.loss = get_loss(loss)
        self.rows = joined.rows
        self.offsets = joined.offsets
        self.weights = joined.weights
        self.n_nodes = len(joined.offsets) - 1
        self.n_samples = int(joined.offsets[-1])
        self.n_features = joined.n_features
        self.labels, self.classes = encode(joined.targets, self.loss)
        self.sigma = _checked_sigma(sigma, self.n_nodes)
        self.topology = _checked_topology(topology, self.n_nodes)
        self._measure_rows()
        if not self.live.any():
            raise DataError(NOTHING_LIVE)

    def _measure_rows(self) -> None:
        self.squared_norms = np.empty(self.n_samples)
        certificate.squared_norms(self.rows, 0, self.n_samples, self.squared_norms)
        if not np.isfinite(self.squared_norms).all():
            raise DataError(
                f"Row {int(np.argmin(np.isfinite(self.squared_norms)))} has a squared norm beyond "
                "1e308; scale the features."
            )

    @property
    def live(self) -> NDArray[np.bool_]:
        """Samples that depend on theta: the others leave the augmented graph."""
        return (self.squared_norms > 0.0) & (self.weights > 0.0)

    @property
    def n_numbers(self) -> int:
        """Numbers stored for the features: all of them, or those that are not zero."""
        return int(self.rows.values.size)

    def node_rows(self, node: int) -> slice:
        """Rows of a node among all rows."""
        return slice(int(self.offsets[node]), int(self.offsets[node + 1]))

    @property
    def total_sigma(self) -> float:
        """``sum_i sigma_i``, scikit-learn's ``1 / C``."""
        return float(np.sum(self.sigma))

    @functools.cached_property
    def conditioning(self) -> Conditioning:
        """Smoothness and condition numbers."""
        return Conditioning.of(self)

    @functools.cached_property
    def reach(self) -> Reach:
        """How far the samples' duals can move a model."""
        return Reach.of(self)

    def sums_at_zero(self) -> Iterator[NDArray[np.float64]]:
        """``sum_j c_ij x_ij`` of every node, for the duals that belong to the model 0.

        In blocks of columns, so that nobody has to hold all nodes' at once.
        """
        from adfs.problems.dual_points import dual_point

        sums = dual_point(self, np.zeros(self.n_features)).sums
        for first in range(0, self.n_features, COLUMNS_AT_ONCE):
            yield sums[:, first : first + COLUMNS_AT_ONCE].copy()

    def sum_over_nodes(self, rows: NDArray[np.float64]) -> Vector:
        """Sum of one row a node, added in node order."""
        total = np.zeros(rows.shape[1])
        for row in rows:
            total += row
        return total

    def objective(self, theta: ArrayLike) -> float:
        """``F(theta)``, partial sums added in node order."""
        return self._value_and_gradient(self.vector(theta))[0]

    def gradient(self, theta: ArrayLike) -> Vector:
        """Gradient of ``F``; where the loss is not smooth, one subgradient."""
        return self._value_and_gradient(self.vector(theta))[1]

    def objective_and_gradient(self, theta: ArrayLike) -> tuple[float, Vector]:
        """Both in one pass over the samples."""
        return self._value_and_gradient(self.vector(theta))

    @functools.cached_property
    def _optimum(self) -> "Optimum":
        from adfs.problems.optimum import find_optimum

        return find_optimum(self)

    def optimum(self) -> "Optimum":
        """The minimiser, certified by a duality gap; computed once."""
        return self._optimum

    @property
    def optimum_is_known(self) -> bool:
        """Whether `optimum` was computed already."""
        return "_optimum" in self.__dict__

    def vector(self, theta: ArrayLike) -> Vector:
        """``theta`` as the kernels want it, its length checked."""
        vector = np.ascontiguousarray(theta, dtype=np.float64)
        if vector.shape != (self.n_features,):
            raise DataError(
                f"theta has shape {vector.shape}; this problem has {self.n_features} features."
            )
        if not np.isfinite(vector).all():
            raise DataError("theta has a NaN or an infinity; give finite numbers.")
        return vector

    def _value_and_gradient(self, theta: Vector) -> tuple[float, Vector]:
        total, gradient = 0.0, np.zeros(self.n_features)
        for node in range(self.n_nodes):
            part = np.zeros(self.n_features)
            total += certificate.objective_gradient(
                self.loss.code, self.rows, self.labels, self.weights,
                self.offsets[node], self.offsets[node + 1], theta, part,
            )  # fmt: skip
            gradient += part
        total += 0.5 * self.total_sigma * certificate.square(theta)
        return total, gradient + self.total_sigma * theta

    def __repr__(self) -> str:
        kind = "dense" if len(self.rows) == 1 else "sparse"
        return (
            f"Problem({self.loss.name}, {self.n_samples} x {self.n_features} {kind}, "
            f"{self.n_nodes} nodes, {self.topology.name})"
        )


def _checked_sigma(sigma: ArrayLike, n_nodes: int) -> Vector:
    values = np.asarray(sigma, dtype=np.float64)
    if values.ndim == 0:
        values = np.full(n_nodes, float(values))
    if values.shape != (n_nodes,):
        raise ParameterError(
            f"sigma has shape {values.shape}; give one number, or one for each of {n_nodes} nodes."
        )
    if not np.isfinite(values).all() or (values <= 0).any():
        worst = values[~(np.isfinite(values) & (values > 0))][0]
        raise ParameterError(
            f"sigma={worst:g} must be a finite number > 0: without regularisation there is no "
            "rate and no certificate. Try a small one such as 1e-3."
        )
    return values


def _checked_topology(topology: Topology | None, n_nodes: int) -> Topology:
    if topology is None:
        return Topology.parse("grid", n_nodes=n_nodes)
    if topology.n_nodes != n_nodes:
        raise GraphError(
            f"The graph {topology.name} has {topology.n_nodes} nodes but there are {n_nodes} "
            "shards; make the two numbers equal."
        )
    return topology

"""The problem of equation (1): regularised losses summed over samples on many nodes."""

import copy
import functools
import importlib
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adfs.agreement import attempt, require_same
from adfs.data.matrices import Vector
from adfs.data.shards import Joined, classes_of, encode, join_shards
from adfs.errors import DataError, GraphError, ParameterError, shortened
from adfs.graphs.topology import Topology
from adfs.kernels import certificate
from adfs.kernels.rows import CsrRows, DenseRows
from adfs.losses import Loss, get_loss, names
from adfs.network import Network, connect
from adfs.problem.conditioning import Conditioning, DualBounds

if TYPE_CHECKING:
    from adfs.problem.optimum import Optimum

COLUMNS_AT_ONCE = 4096
NOTHING_LIVE = (
    "All rows are zero or have weight zero, or are so small that their squares vanish in double "
    "precision, so nothing can be learnt; check the data, or scale the features."
)
RANGE = (1e-100, 1e100)  # of sigma and of weights: outside, rates and steps leave the floats
SMALLEST_SUM = (
    1e-290  # of losses, or of squares of a row: some digits above where double precision ends
)


class Problem:
    """The problem: the sum of all losses plus ``sigma_i / 2 |theta|^2`` per node.

    ``F(theta) = sum_i [ sum_j w_ij l(x_ij . theta, y_ij) + sigma_i / 2 |theta|^2 ]``.

    It holds the rows of the nodes in this process, which are all of them unless ``engine="mpi"``,
    and a few numbers about every node. Attributes never communicate. With ``engine="mpi"`` the
    constructor and the methods that sum over nodes (`objective`, `gradient`) are called on all
    ranks.

    Parameters
    ----------
    shards : sequence of (X, y) or (X, y, weights)
        One for each node here; X dense or sparse, float32 or float64. Shards that are consecutive
        views of one array (as `adfs.partition` makes them) are not copied.
    loss : str or Loss
        A name of `adfs.losses.LOSSES`, or a loss of one's own.
    sigma : float or one per node of the graph
        Regularisation, > 0, from 1e-100 to 1e100. The total is the sum over nodes.
    topology : Topology, optional
        The communication graph; the most square grid by default.
    nodes : sequence of int, optional
        With ``engine="mpi"``, the numbers of the nodes whose shards these are, ascending;
        consecutive over the ranks by default.
    engine : {"local", "mpi"}
    network : Network, optional
        In place of ``topology``, ``nodes`` and ``engine``.

    Attributes
    ----------
    n_nodes, n_samples, n_features : int
        Of all nodes together.
    n_numbers : int
        Numbers stored for the features of all samples: all of them, or those that are not zero.
    sizes : array of shape (n_nodes,)
        Samples of each node.
    sigma : array of shape (n_nodes,)
    nodes : array
        Nodes in this process; the arrays below have their rows only.
    rows, labels, weights, squared_norms, offsets
        Samples of these nodes, one node after another.

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

    _optimum: "Optimum | None" = None

    def __init__(
        self,
        shards: Sequence[Any],
        loss: str | Loss = "logistic",
        sigma: ArrayLike = 1.0,
        topology: Topology | None = None,
        nodes: Sequence[int] | None = None,
        engine: str = "local",
        network: Network | None = None,
    ) -> None:
        self.network = network = network or connect(engine, topology, len(shards), nodes)
        self.topology, self.nodes = network.topology, network.nodes
        self.n_nodes = self.topology.n_nodes
        self.loss = attempt(network.peers, lambda: get_loss(loss))
        identity = attempt(network.peers, lambda: self.loss.identity)
        require_same(network.peers, {"topology": self.topology, "loss": identity})
        self.sigma = attempt(network.peers, lambda: check_sigma(sigma, self.n_nodes))
        one_sigma = (self.sigma == self.sigma[0]).all()
        require_same(network.peers, {"sigma": self.sigma[0] if one_sigma else self.sigma})
        joined = attempt(network.peers, lambda: _joined(shards, network))
        self.rows, self.offsets, self.weights = joined.rows, joined.offsets, joined.weights
        self.n_features = joined.n_features
        widths = network.gather(self.n_features)
        others = [width for width in widths if width != widths[0]]
        if others:
            raise DataError(
                f"The shards of rank 0 have {widths[0]} features but those of another rank have "
                f"{others[0]}; all shards need the same columns."
            )
        self.classes = classes_of(joined.targets, self.loss, network.peers)
        coded = attempt(network.peers, lambda: encode(joined.targets, self.loss, self.classes))
        self.labels = coded
        self.sizes: NDArray[np.int64] = network.facts(np.diff(self.offsets))
        self.n_samples = int(self.sizes.sum())
        self.n_numbers = int(sum(network.gather(int(self.rows.values.size))))
        attempt(network.peers, self._measure_rows)
        self._require_live()
        self._require_size()
        self._measure_nodes()

    @classmethod
    def from_files(
        cls,
        source: str | os.PathLike[str],
        loss: str | Loss = "logistic",
        sigma: ArrayLike = 1.0,
        topology: Topology | None = None,
        engine: str = "local",
        n_features: int | None = None,
        how: str = "even",
        seed: int = 0,
        m: int | None = None,
        n_nodes: int | None = None,
        target: str | None = None,
        features: Sequence[str] | None = None,
        categorical: Sequence[str] = (),
    ) -> "Problem":
        r"""The problem of samples in files; with ``engine="mpi"`` a rank reads its own nodes' rows.

        Under mpiexec all ranks call it together. Nodes go to ranks in pieces of consecutive
        numbers, or to a rank that sees their file where hosts share no file system.

        Parameters
        ----------
        source : str or path
            A pattern that holds ``{node}`` (from 0) with one file per node; or one file, or a name
            from `adfs.datasets.available`, whose rows are divided among the nodes.
        loss, sigma, engine
            As for `Problem`.
        topology : Topology, optional
            The communication graph; the most square grid by default.
        n_features : int, optional
            Number of columns; else the largest number over all files.
        how, seed, m
            How one file is divided, as by `adfs.partition`.
        n_nodes : int, optional
            Number of nodes; by default that of the topology or of the files, else 4, or as many as
            there are ranks.
        target, features, categorical
            Columns of a table (.csv, .tsv, .parquet), as for `adfs.load_data`.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for node in range(2):
        ...         path = pathlib.Path(folder, f"shard-{node}.svm")
        ...         _ = path.write_text("+1 1:1\n-1 2:0.5\n")
        ...     Problem.from_files(f"{folder}/shard-{{node}}.svm", sigma=0.1)
        Problem(logistic, 4 x 2 dense, 2 nodes, grid:1x2)
        """
        # Reading and ranks build on problems, so they are imported by name when they are needed,
        # as `adfs.network.connect` imports the network of ranks.
        loading = importlib.import_module("adfs.mpi.problem_loading")
        problem: Problem = loading.problem_from_files(
            os.fspath(source), loss, sigma, topology, engine, n_nodes,
            n_features=n_features, how=how, seed=seed, m=m, target=target, features=features,
            categorical=categorical,
        )  # fmt: skip
        return problem

    def _measure_rows(self) -> None:
        self.squared_norms = np.empty(self.n_rows)
        certificate.squared_norms(self.rows, 0, self.n_rows, self.squared_norms)
        if not np.isfinite(self.squared_norms).all():
            raise DataError(
                f"Row {int(np.argmin(np.isfinite(self.squared_norms)))} has a squared norm beyond "
                "1e308; scale the features."
            )
        low, high = RANGE
        outside = (self.weights > 0.0) & ((self.weights < low) | (self.weights > high))
        if outside.any():
            raise DataError(
                f"A weight of {self.weights[outside][0]:g} is outside the range from {low:g} to "
                f"{high:g}; scale the weights, and set those to 0 that count for nothing."
            )

    def _require_live(self) -> None:
        sizes = np.minimum(self.weights, 1.0) * self.squared_norms
        if not any(self.network.gather(bool((sizes > SMALLEST_SUM).any()))):
            raise DataError(NOTHING_LIVE)

    def _require_size(self) -> None:
        """Refuse targets whose losses are lost to underflow: any model would seem perfect."""
        own = bool(self.labels[self.weights > 0.0].any()), float(self.at_zero[:, 0].sum())
        targets, losses = zip(*self.network.gather(own), strict=True)
        if any(targets) and sum(losses) < SMALLEST_SUM:
            raise DataError(
                f"The losses of the model 0 sum up to {sum(losses):g}, too little for double "
                f"precision, which needs {SMALLEST_SUM:g}; scale the targets or the weights."
            )

    def _measure_nodes(self) -> None:
        self._conditioning = Conditioning(self) if self.loss.smooth else None
        self._dual_bounds = None if self.loss.smooth else DualBounds(self)

    def with_targets(self, labels: Vector, weights: Vector) -> "Problem":
        """The same rows with other coded labels and other weights; called on all ranks."""
        other = copy.copy(self)
        other._optimum = None
        other.__dict__.pop("at_zero", None)
        other.labels = np.ascontiguousarray(labels)
        if any(self.network.gather(not np.array_equal(weights, self.weights))):
            other.weights = np.ascontiguousarray(weights)
            other._require_live()
            other._measure_nodes()
        other._require_size()
        return other

    def with_sigma(self, sigma: ArrayLike) -> "Problem":
        """The same rows, labels and weights with another regularisation; called on all ranks.

        Examples
        --------
        >>> import adfs
        >>> X, y = adfs.generators.two_gaussians(40, 3, seed=0)
        >>> problem = adfs.Problem(adfs.partition(X, y, 4), sigma=1.0)
        >>> other = problem.with_sigma(0.1)
        >>> other.rows is problem.rows, round(other.total_sigma, 6)
        (True, 0.4)
        """
        other = copy.copy(self)
        other._optimum = None
        other.sigma = attempt(self.network.peers, lambda: check_sigma(sigma, self.n_nodes))
        require_same(self.network.peers, {"sigma": other.sigma})
        other._measure_nodes()
        return other

    def on_one_node(self) -> "Problem":
        """The same samples and regularisation on a single node, for methods without a network.

        Examples
        --------
        >>> import adfs
        >>> X, y = adfs.generators.two_gaussians(40, 3, seed=0)
        >>> problem = adfs.Problem(adfs.partition(X, y, 4), sigma=1.0)
        >>> whole = problem.on_one_node()
        >>> whole.n_nodes, whole.n_samples, whole.total_sigma
        (1, 40, 4.0)
        """
        if self.n_nodes == 1:
            return self
        other = copy.copy(self)
        other.network = network = Network(Topology.single())
        other.topology, other.nodes, other.n_nodes = network.topology, network.nodes, 1
        other.sigma, other.sizes = np.array([self.total_sigma]), np.array([self.n_samples])
        other.offsets = np.array([0, self.n_samples], self.offsets.dtype)
        for name in ("at_zero", "row_sizes"):
            other.__dict__.pop(name, None)
        other._measure_nodes()
        return other

    @property
    def n_rows(self) -> int:
        """Samples of the nodes in this process."""
        return int(self.offsets[-1])

    @property
    def live(self) -> NDArray[np.bool_]:
        """Samples that depend on theta: the others leave the augmented graph.

        Rows so small that their squares are zero leave it too; certificates still count them.
        """
        return (self.squared_norms > 0.0) & (self.weights > 0.0)

    @property
    def samples(self) -> tuple[int, DenseRows | CsrRows, Vector, Vector]:
        """What kernels read of the losses here: the code of the loss, rows, labels and weights."""
        return self.loss.code, self.rows, self.labels, self.weights

    @functools.cached_property
    def at_zero(self) -> NDArray[np.float64]:
        """Losses and Fenchel gaps of the model 0 and duals 0, one row per node here."""
        samples = (*self.samples, self.squared_norms)
        found = np.empty((len(self.offsets) - 1, 2))
        certificate.gaps_at_zero(*samples, self.offsets, found)
        return found

    @property
    def numbers_per_row(self) -> float:
        """Numbers stored for the features of a sample, in the mean."""
        return self.n_numbers / self.n_samples

    @functools.cached_property
    def row_sizes(self) -> tuple[Vector, Vector]:
        """Mean features in a row, and pairs of them (each with itself too), of each node here."""
        if not isinstance(self.rows, CsrRows):
            size = np.full(len(self.nodes), float(self.n_features))
            return size, size * (size + 1.0) / 2.0
        sizes = np.diff(self.rows.indptr).astype(np.float64)
        totals = np.zeros((2, len(sizes) + 1))
        np.cumsum([sizes, sizes * (sizes + 1.0) / 2.0], axis=1, out=totals[:, 1:])
        size, pairs = np.diff(totals[:, self.offsets]) / np.diff(self.offsets)
        return size, pairs

    def node_rows(self, node: int) -> slice:
        """Rows of a node that is here."""
        own = self.network.here[node]
        return slice(int(self.offsets[own]), int(self.offsets[own + 1]))

    @property
    def own_sigma(self) -> Vector:
        """``sigma_i`` of the nodes in this process."""
        return np.asarray(self.sigma[self.nodes])

    @property
    def total_sigma(self) -> float:
        """``sum_i sigma_i``, scikit-learn's ``1 / C``."""
        return float(np.sum(self.sigma))

    @property
    def conditioning(self) -> Conditioning:
        """Smoothness and condition numbers."""
        if self._conditioning is None:
            raise ParameterError(
                f"loss {self.loss.name!r} is not smooth, so it has no condition number; choose one "
                f"of {', '.join(names(smooth=True))}, or NonSmoothParameters instead of Parameters."
            )
        return self._conditioning

    @property
    def dual_bounds(self) -> DualBounds:
        """Bounds on how far the duals of the samples can move a model."""
        if self._dual_bounds is None:
            if not self.network.is_whole:
                raise ParameterError(
                    f"loss {self.loss.name!r} is smooth, so ranks have not computed bounds on its "
                    f"duals; choose one of {', '.join(names(smooth=False))}."
                )
            self._dual_bounds = DualBounds(self)
        return self._dual_bounds

    def sums_at_zero(self) -> Iterator[NDArray[np.float64]]:
        """``sum_j c_ij x_ij`` of every node of the graph, for the duals that belong to the model 0.

        In blocks of columns, so that no process holds those of all nodes at once.
        """
        from adfs.problem.certificate import dual_point

        sums = dual_point(self, np.zeros(self.n_features)).sums
        for first in range(0, self.n_features, COLUMNS_AT_ONCE):
            yield self.network.facts(sums[:, first : first + COLUMNS_AT_ONCE].copy())

    def objective(self, theta: ArrayLike) -> float:
        """``F(theta)``."""
        return self.objective_and_gradient(theta)[0]

    def gradient(self, theta: ArrayLike) -> Vector:
        """Gradient of ``F``; where the loss is not smooth, one subgradient."""
        return self.objective_and_gradient(theta)[1]

    def objective_and_gradient(self, theta: ArrayLike) -> tuple[float, Vector]:
        """Both in one pass over the samples, and one sum over all nodes."""
        point, d = self.vector(theta), self.n_features
        stack = np.empty((self.network.n_levels, d + 1))
        certificate.objective_gradients(
            *self.samples, self.offsets, point, self.network.links, stack
        )  # fmt: skip
        objective = float(stack[0, d] + 0.5 * self.total_sigma * certificate.square(point))
        return objective, stack[0, :d] + self.total_sigma * point

    def optimum(self) -> "Optimum":
        """The minimiser, certified by a duality gap; computed once."""
        if self._optimum is None:
            from adfs.problem.optimum import find_optimum

            if not self.network.is_whole:
                raise ParameterError(
                    "The optimum is computed from all rows in one process; make the problem with "
                    "engine='local'."
                )
            self._optimum = find_optimum(self)
        return self._optimum

    @property
    def optimum_is_known(self) -> bool:
        """Whether `optimum` was computed already."""
        return self._optimum is not None

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

    def __repr__(self) -> str:
        kind = "dense" if len(self.rows) == 1 else "sparse"
        return (
            f"Problem({self.loss.name}, {self.n_samples} x {self.n_features} {kind}, "
            f"{self.n_nodes} nodes, {self.topology.name})"
        )


def _joined(shards: Sequence[Any], network: Network) -> Joined:
    joined = join_shards(shards)
    graph, n_own = network.topology, len(network.nodes)
    if len(shards) != n_own:
        here = "" if network.is_whole else f", {n_own} of them here,"
        raise GraphError(
            f"The graph {graph.name} has {graph.n_nodes} nodes{here} but there are {len(shards)} "
            "shards; make the two numbers equal."
        )
    return joined


def check_sigma(sigma: ArrayLike, n_nodes: int) -> Vector:
    """One regularisation per node, from one number or one for each."""
    try:
        values = np.asarray(sigma).astype(np.float64, casting="same_kind")
    except (TypeError, ValueError):
        raise ParameterError(
            f"sigma={shortened(repr(sigma), 40)} must be a real number, or one per node."
        ) from None
    if values.ndim == 0:
        values = np.full(n_nodes, float(values))
    if values.shape != (n_nodes,):
        raise ParameterError(
            f"sigma has shape {values.shape}; give one number, or one for each of {n_nodes} nodes."
        )
    low, high = RANGE
    inside = (values >= low) & (values <= high)
    if not inside.all():
        raise ParameterError(
            f"sigma={values[~inside][0]:g} must be a finite number > 0, from {low:g} to {high:g}: "
            "without regularisation there is no rate and no certificate. Try a small one such as "
            "1e-3."
        )
    return values

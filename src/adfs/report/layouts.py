"""Where to draw the nodes of a graph: by its family where it has one, by springs otherwise."""

import math

import numpy as np
from numpy.typing import NDArray

from adfs.errors import GraphError
from adfs.graphs.naming import Recipe, read
from adfs.graphs.topology import Topology

Points = NDArray[np.float64]

STEPS = 60  # of the springs
SPRINGS_UP_TO = 400  # nodes: beyond, springs cost more than the picture is worth


def positions(topology: Topology) -> Points:
    """One point a node, in any unit; (n_nodes, 2)."""
    recipe = recipe_of(topology)
    family = "" if recipe is None else recipe.family
    n = topology.n_nodes
    if recipe is not None and family in ("grid", "torus"):
        return _lattice(n, recipe.sizes[1])
    if family in ("ring", "complete"):
        return _circle(n)
    if family == "star":
        return np.concatenate([np.zeros((1, 2)), _circle(n - 1)])
    if family == "path":
        return _serpentine(n)
    if recipe is not None and family == "hypercube":
        return _shadow(n, recipe.sizes[0])
    return _springs(topology)


def recipe_of(topology: Topology) -> Recipe | None:
    """Family and sizes that the graph's name tells, if it tells any."""
    try:
        return read(topology.name, topology.n_nodes)
    except GraphError:
        return None


def _lattice(n: int, columns: int) -> Points:
    return np.array([divmod(node, columns)[::-1] for node in range(n)], dtype=np.float64)


def _circle(n: int) -> Points:
    angles = 2.0 * math.pi * np.arange(n) / max(1, n) - math.pi / 2.0
    return np.column_stack([np.cos(angles), np.sin(angles)])


def _serpentine(n: int) -> Points:
    """A long path folds like a river: every other line runs backwards."""
    columns = n if n <= 12 else math.ceil(math.sqrt(2.0 * n))
    points = _lattice(n, columns)
    back = points[:, 1] % 2 == 1
    points[back, 0] = columns - 1 - points[back, 0]
    return points


def _shadow(n: int, dimensions: int) -> Points:
    """A cube of any dimension, projected: each dimension has its own direction in the plane."""
    angles = math.pi * (np.arange(dimensions) + 0.35) / max(1, dimensions)
    lengths = 1.0 / (1.0 + 0.35 * np.arange(dimensions))
    directions = np.column_stack([np.cos(angles), -np.sin(angles)]) * lengths[:, None]
    bits = (np.arange(n)[:, None] >> np.arange(dimensions)) & 1
    return np.asarray(bits @ directions, dtype=np.float64)


def _springs(topology: Topology) -> Points:
    """Springs, from a circle; a large graph stays on its circle."""
    n = topology.n_nodes
    start = _circle(n)
    if n < 3 or n > SPRINGS_UP_TO:
        return start
    import networkx as nx

    given = dict(enumerate(start))
    placed = nx.spring_layout(
        topology.to_networkx(), pos=given, iterations=STEPS, seed=0, k=1.6 / math.sqrt(n)
    )
    return np.array([placed[node] for node in range(n)])

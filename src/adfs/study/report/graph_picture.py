"""The communication graph as a picture: the shapes of the inline SVG."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from adfs.graphs.topology import Topology
from adfs.study.plots.graph_plot import family_of, positions
from adfs.theory.description import BindingPlace

Points = NDArray[np.float64]

MOST_NODES, MOST_EDGES = 1_000, 6_000  # drawn; a larger picture would be a blot, and large
WIDTH, MARGIN = 420.0, 22.0
LARGEST, SMALLEST = 13.0, 1.6  # radius of a node
BEND = 0.1  # of the length of an edge that would cover others


def draw_graph(topology: Topology, binding: BindingPlace | None = None) -> dict[str, Any]:
    """What the template ``graph`` draws, in pixels; ``nodes`` is empty for too large a graph.

    ``edges`` is one SVG path for all edges; ``binding``, which limits the rate, is marked.
    """
    about = {"topology": topology, "binding": binding}
    if topology.n_nodes > MOST_NODES or topology.n_edges > MOST_EDGES:
        return {**about, "nodes": []}
    points = _scaled(positions(topology))
    # The nearest neighbour of a single node is infinitely far away.
    nearest = np.minimum(WIDTH, cKDTree(points).query(points, k=2)[0][:, 1])
    radius = float(np.clip(0.3 * np.quantile(nearest, 0.1), SMALLEST, LARGEST))
    height, path = float(points[:, 1].max()) + MARGIN, _edge_path(topology, points)
    return {**about, "nodes": points.tolist(), "radius": radius, "height": height, "edges": path}


def _scaled(points: Points) -> Points:
    """Points in the picture: it is as wide as `WIDTH`, and at most as high."""
    low, size = points.min(axis=0), np.ptp(points, axis=0)
    if size.max() <= 0.0:
        return np.full(points.shape, [WIDTH / 2.0, MARGIN + LARGEST])
    inside = WIDTH - 2.0 * MARGIN
    scale = inside / float(size.max())
    shift = MARGIN + np.array([(inside - size[0] * scale) / 2.0, 0.0])
    return np.asarray((points - low) * scale + shift)


def _edge_path(topology: Topology, points: Points) -> str:
    """All edges as one path, which a browser draws at once.

    An edge that closes a torus would cover the others of its line: it is bent.
    """
    starts, ends = points[topology.edges[:, 0]], points[topology.edges[:, 1]]
    lengths = np.hypot(*(ends - starts).T)
    bent = np.zeros(len(lengths), dtype=bool)
    if family_of(topology)[0] == "torus":
        bent = lengths > 1.5 * lengths.min()
    normals = (ends - starts)[:, ::-1] * [1.0, -1.0]
    middles = (starts + ends) / 2 + BEND * bent[:, None] * normals
    return "".join(
        f"M{x0:.1f} {y0:.1f}" + (f"Q{x:.1f} {y:.1f} " if bend else "L") + f"{x1:.1f} {y1:.1f}"
        for (x0, y0), (x, y), (x1, y1), bend in zip(starts, middles, ends, bent, strict=True)
    )

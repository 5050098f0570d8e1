"""The communication graph as a picture: inline SVG, in the page's own colours."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.graphs.topology import Topology
from adfs.report.layouts import positions, recipe_of
from adfs.report.markup import Markup, tag
from adfs.report.words import count
from adfs.theory.facts import Place

MOST_NODES, MOST_EDGES = 1_000, 6_000  # drawn; beyond, a picture is a blot and a burden
WIDTH, MARGIN = 420.0, 22.0
LARGEST, SMALLEST = 13.0, 1.6  # radius of a node
LABELLED = 8.5  # radius from which a number fits inside


def draw_graph(topology: Topology, binding: Place | None = None) -> Markup:
    """The graph with the part that limits the rate marked, or a sentence if it is too large."""
    n, n_edges = topology.n_nodes, topology.n_edges
    about = f"{count(n, 'node')} and {count(n_edges, 'edge')}"
    if n > MOST_NODES or n_edges > MOST_EDGES:
        words = f"{topology.name} has {about}: too many to be drawn."
        return tag("p", words, class_="note", data_graph="omitted")
    points = _scaled(positions(topology))
    radius = _radius(points)
    height = float(points[:, 1].max()) + MARGIN
    words = f"The graph {topology.name}: {about}{_binds(topology, binding)}."
    drawing = tag(
        "svg",
        tag("title", f"Graph {topology.name}"),
        tag("desc", words),
        tag("path", d=_lines(topology, points), class_="edge dense" if n_edges > 400 else "edge"),
        _bound_edge(topology, points, binding),
        tag("g", *_nodes(points, radius, binding)),
        viewBox=f"0 0 {WIDTH:g} {height:.0f}",
        role="img",
        class_="graph",
    )
    return tag("figure", drawing, tag("figcaption", words), class_="picture")


def _binds(topology: Topology, binding: Place | None) -> str:
    if binding is None:
        return ""
    if binding.kind == "edge":
        k, l = topology.edges[binding.number].tolist()
        return f"; the edge between nodes {k} and {l}, marked, limits the rate"
    return f"; the samples of node {binding.number}, marked, limit the rate"


def _scaled(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points into the picture: as wide as it is, but not higher than that."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = high - low
    room = WIDTH - 2.0 * MARGIN
    scale = room / max(float(size.max()), 1e-12)
    if size.max() <= 0.0:
        return np.full(points.shape, [WIDTH / 2.0, MARGIN + LARGEST])
    placed = (points - low) * scale + MARGIN
    placed[:, 0] += (room - size[0] * scale) / 2.0
    return np.asarray(placed)


def _radius(points: NDArray[np.float64]) -> float:
    """As large as the nearest two nodes allow."""
    if len(points) < 2:
        return LARGEST
    from scipy.spatial import cKDTree

    nearest = cKDTree(points).query(points, k=2)[0][:, 1]
    return float(np.clip(0.3 * np.quantile(nearest, 0.1), SMALLEST, LARGEST))


def _lines(topology: Topology, points: NDArray[np.float64]) -> str:
    """All edges as one path, which a browser draws at once."""
    recipe = recipe_of(topology)
    # Where a torus closes, an edge would run over all others of its line: it takes a bow.
    bows = recipe is not None and recipe.family == "torus"
    step = float(np.min(_lengths(topology, points), initial=math.inf))
    parts = []
    for (k, l), length in zip(topology.edges.tolist(), _lengths(topology, points), strict=True):
        (x0, y0), (x1, y1) = points[k], points[l]
        if bows and length > 1.5 * step:
            bend = 0.1
            middle = (x0 + x1) / 2 + bend * (y1 - y0), (y0 + y1) / 2 - bend * (x1 - x0)
            parts.append(f"M{x0:.1f} {y0:.1f}Q{middle[0]:.1f} {middle[1]:.1f} {x1:.1f} {y1:.1f}")
        else:
            parts.append(f"M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}")
    return "".join(parts)


def _lengths(topology: Topology, points: NDArray[np.float64]) -> NDArray[np.float64]:
    ends = points[topology.edges]
    return np.asarray(np.hypot(*(ends[:, 0] - ends[:, 1]).T))


def _bound_edge(
    topology: Topology, points: NDArray[np.float64], binding: Place | None
) -> Markup | str:
    if binding is None or binding.kind != "edge":
        return ""
    (x0, y0), (x1, y1) = points[topology.edges[binding.number]]
    return tag("line", x1=float(x0), y1=float(y0), x2=float(x1), y2=float(y1), class_="binding")


def _nodes(points: NDArray[np.float64], radius: float, binding: Place | None) -> list[Markup]:
    bound = binding.number if binding is not None and binding.kind == "node" else None
    found: list[Markup] = []
    for node, (x, y) in enumerate(points.tolist()):
        look: dict[str, Any] = {"class_": "node binding" if node == bound else "node"}
        circle = tag("circle", tag("title", f"node {node}"), cx=x, cy=y, r=radius, **look)
        found.append(circle)
        if radius >= LABELLED:
            found.append(tag("text", node, x=x, y=y, dy="0.35em"))
    return found

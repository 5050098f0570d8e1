"""A communication graph as a figure, positions of its nodes, and what they do in a schedule."""

import math

import numpy as np
from numpy.typing import NDArray

from adfs.errors import GraphError
from adfs.graphs.graph_names import read
from adfs.graphs.topology import Topology
from adfs.schedule.clock import Clock
from adfs.schedule.delays import Delays
from adfs.schedule.schedule import Schedule
from adfs.schedule.timeline import intervals
from adfs.study.plots.style import BLUE, GREY, Axes, new_axes
from adfs.study.plots.timeline_plot import draw_timeline

Points = NDArray[np.float64]

NUMBERED = 60  # nodes; the numbers of more nodes would overlap
SPRING_STEPS = 60
SPRINGS_UP_TO = 400  # nodes; a larger graph without a known shape is drawn as a circle


def draw_topology(topology: Topology, ax: Axes | None = None) -> Axes:
    """Draw nodes as numbered discs and edges as lines."""
    ax = new_axes(5.0, 5.0) if ax is None else ax
    points, few = positions(topology), topology.n_nodes <= NUMBERED
    for k, l in topology.edges:
        ax.plot(*points[[k, l]].T, color=GREY, linewidth=1.2, zorder=1)
    ax.scatter(points[:, 0], points[:, 1], s=320 if few else 20, color=BLUE, zorder=2)
    for node, place in enumerate(points if few else ()):
        ax.annotate(str(node), place, color="white", ha="center", va="center", zorder=3)
    ax.set_title(f"{topology.name}: {topology.n_nodes} nodes, {topology.n_edges} edges")
    ax.set_aspect("equal")
    ax.margins(0.1)
    ax.axis("off")
    return ax


def draw_schedule(
    schedule: Schedule, tau: float, clock: str, n_events: int, ax: Axes | None = None
) -> Axes:
    """Draw what each node does during the first events of a schedule."""
    start = Clock(schedule.edges, schedule.n_nodes, Delays(tau=tau), clock)
    return draw_timeline(intervals(schedule.events(0, n_events), start), schedule.n_nodes, ax)


def positions(topology: Topology) -> Points:
    """One point per node, in any unit; shape (n_nodes, 2)."""
    n = topology.n_nodes
    family, sizes = family_of(topology)
    match family:
        case "grid" | "torus":
            return _lattice(n, sizes[1])
        case "ring" | "complete":
            return _circle(n)
        case "star":
            return np.concatenate([np.zeros((1, 2)), _circle(n - 1)])
        case "path":
            return _folded_line(n)
        case "hypercube":
            return _projected_cube(n, sizes[0])
    return _springs(topology)


def family_of(topology: Topology) -> tuple[str, tuple[int, ...]]:
    """Family and sizes of the graph; an empty text if its name does not contain them."""
    try:
        return read(topology.name, topology.n_nodes)[:2]
    except GraphError:
        return "", ()


def _lattice(n: int, columns: int) -> Points:
    return np.array([divmod(node, columns)[::-1] for node in range(n)], dtype=np.float64)


def _circle(n: int) -> Points:
    angles = 2.0 * math.pi * np.arange(n) / max(1, n) - math.pi / 2.0
    return np.column_stack([np.cos(angles), np.sin(angles)])


def _folded_line(n: int) -> Points:
    """A path; if it is long, in several lines of which every second one runs backwards."""
    columns = n if n <= 12 else math.ceil(math.sqrt(2.0 * n))
    points = _lattice(n, columns)
    back = points[:, 1] % 2 == 1
    points[back, 0] = columns - 1 - points[back, 0]
    return points


def _projected_cube(n: int, dimensions: int) -> Points:
    """A cube of any dimension: each dimension has its own direction in the plane."""
    angles = math.pi * (np.arange(dimensions) + 0.35) / max(1, dimensions)
    lengths = 1.0 / (1.0 + 0.35 * np.arange(dimensions))
    directions = np.column_stack([np.cos(angles), -np.sin(angles)]) * lengths[:, None]
    bits = (np.arange(n)[:, None] >> np.arange(dimensions)) & 1
    return np.asarray(bits @ directions, dtype=np.float64)


def _springs(topology: Topology) -> Points:
    n = topology.n_nodes
    start = _circle(n)
    if n < 3 or n > SPRINGS_UP_TO:
        return start
    import networkx as nx

    placed = nx.spring_layout(
        topology.to_networkx(), pos=dict(enumerate(start)), iterations=SPRING_STEPS, seed=0,
        k=1.6 / math.sqrt(n),
    )  # fmt: skip
    return np.array([placed[node] for node in range(n)])

"""What each rank of a run did when: one line per rank, filled by shares of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from adfs.engine.execution import KINDS, Execution, Span
from adfs.study.numbers import percent
from adfs.study.plots.style import BLUE, GREEN, HALF, HATCHED, INK, PINK, VERMILION, draw_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Vector = NDArray[np.float64]

AREAS: dict[str, dict[str, Any]] = {
    "computing": {"facecolor": BLUE},
    "waiting": HATCHED,
    "scheduling": {"facecolor": GREEN},
    "reading": {"facecolor": PINK},
    "saving": {"facecolor": VERMILION},
}
COLUMNS = 1_000  # about one per pixel: shorter spans cannot be seen one by one
MOST_LABELS = 32  # ranks with a label
WIDTH = 36.0  # points, of a column of shares


def draw_ranks(ranks: Sequence[Execution], ax: Axes) -> Axes:
    """Draw the spans of all ranks on one axis of seconds: one filled area per rank and kind.

    If spans are shorter than a pixel, its column is split from top to bottom by the share of each
    kind. The shares of the whole time of a rank are beside its line. Each rank counts from its own
    beginning of the loop; ranks begin it within about one message of each other.
    """
    end = max((span[2] for each in ranks for span in each.spans), default=1.0)
    edges = np.linspace(0.0, end, COLUMNS + 1)
    for line, each in enumerate(ranks):
        _draw_line(ax, line, edges, column_shares(each.spans, edges))
    draw_lines(ax, 0.0, end, [name_of(each) for each in ranks], MOST_LABELS)
    ax.set_xlim(0.0, end)
    whole = max((sum(each.seconds.values()) for each in ranks), default=0.0)
    # A rank keeps a limited number of spans, so the picture of a long run shows its beginning.
    part = f", the first {end:.3g} of {whole:.3g}" if end < 0.95 * whole else ""
    ax.set_xlabel(f"seconds in the loop{part}")
    _draw_legend(ax, ranks)
    return ax


def column_shares(spans: Sequence[Span], edges: Vector) -> dict[str, Vector]:
    """The share of each kind in the time of each column; a wait does not count as computing.

    Examples
    --------
    >>> spans = [("computing", 0.0, 2.0), ("waiting", 0.5, 1.0), ("reading", 2.0, 3.0)]
    >>> shares = column_shares(spans, np.array([0.0, 1.0, 2.0, 4.0]))
    >>> {kind: values.tolist() for kind, values in shares.items() if values.any()}
    {'computing': [0.5, 1.0, 0.0], 'waiting': [0.5, 0.0, 0.0], 'reading': [0.0, 0.0, 0.5]}
    """
    own = {
        kind: np.array([span[1:] for span in spans if span[0] == kind], dtype=float).reshape(-1, 2)
        for kind in KINDS
    }
    shares = {kind: _share(rows, edges) for kind, rows in own.items()}
    waits, computing = own["waiting"], own["computing"]
    if len(computing):  # a wait of compiled code lies inside a span of computing
        place = np.searchsorted(computing[:, 0], waits[:, 0], side="right") - 1
        inside = (place >= 0) & (waits[:, 0] < computing[place, 1])
        shares["computing"] -= _share(waits[inside], edges)
    return {kind: np.clip(values, 0.0, 1.0) for kind, values in shares.items()}


def _share(spans: NDArray[np.float64], edges: Vector) -> Vector:
    """Share of each column that the spans cover; they are in order and do not overlap."""
    if not len(spans):
        return np.zeros(len(edges) - 1)
    covered = np.concatenate([[0.0], np.cumsum(spans[:, 1] - spans[:, 0])])
    so_far = np.repeat(covered, 2)[1:-1]  # at each start and each end
    return np.asarray(np.diff(np.interp(edges, spans.ravel(), so_far)) / np.diff(edges))


def _draw_line(ax: Axes, line: int, edges: Vector, shares: dict[str, Vector]) -> None:
    """One kind on top of the other in every column; the axis points down."""
    base = np.full(len(edges) - 1, line + HALF)
    for kind in KINDS:
        if not shares[kind].any():
            continue
        top = base - 2.0 * HALF * shares[kind]
        low, high = (np.append(values, values[-1]) for values in (base, top))  # one per edge
        ax.fill_between(
            edges, low, high, step="post", linewidth=0.0, label=f"_{kind}", zorder=3, **AREAS[kind]
        )
        base = top


def name_of(rank: Execution) -> str:
    """The rank and its nodes.

    Examples
    --------
    >>> name_of(Execution(0, [0, 1], {})), name_of(Execution(1, [3], {}))
    ('rank 0 (nodes 0, 1)', 'rank 1 (node 3)')
    >>> name_of(Execution(2, [4, 5, 6, 7, 9], {}))
    'rank 2 (5 nodes)'
    """
    listed = ", ".join(map(str, rank.nodes))
    one = f"node{'s' * (len(rank.nodes) > 1)} {listed}"
    return f"rank {rank.rank} ({one if len(rank.nodes) <= 4 else f'{len(rank.nodes)} nodes'})"


def used_kinds(ranks: Sequence[Execution]) -> list[str]:
    """Kinds of work that at least one rank did."""
    return [kind for kind in KINDS if any(each.seconds.get(kind) for each in ranks)]


def time_share(rank: Execution, kind: str) -> float:
    """The share of one kind in all seconds of a rank."""
    return rank.seconds.get(kind, 0.0) / (sum(rank.seconds.values()) or 1.0)


def _draw_legend(ax: Axes, ranks: Sequence[Execution]) -> None:
    """Colours above, and at the right a table of shares below the same colours."""
    from matplotlib.patches import Patch

    used = used_kinds(ranks)
    patches = [Patch(label=kind, **{"edgecolor": "none", **AREAS[kind]}) for kind in used]
    ax.legend(
        handles=patches, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=len(KINDS),
        frameon=False, fontsize=9.0, handlelength=1.3, columnspacing=1.3,
    )  # fmt: skip
    if len(ranks) <= MOST_LABELS:
        for column, kind in enumerate(used):
            _draw_shares(ax, ranks, kind, WIDTH * (column + 1))


def _draw_shares(ax: Axes, ranks: Sequence[Execution], kind: str, place: float) -> None:
    """A column of the table, that many points to the right of the lines."""
    options: dict[str, Any] = {
        "textcoords": "offset points", "ha": "right", "va": "center", "size": 8.5, "color": INK,
        "annotation_clip": False,
    }  # fmt: skip
    sign = "\u25a8" if "hatch" in AREAS[kind] else "\u25a0"
    colour = AREAS[kind].get("edgecolor", AREAS[kind]["facecolor"])
    head = {**options, "size": 13.0, "color": colour}
    ax.annotate(sign, (1.0, 1.0), (place, 11.0), xycoords="axes fraction", **head)
    for line, each in enumerate(ranks):
        share, where = percent(time_share(each, kind)), ax.get_yaxis_transform()
        ax.annotate(share, (1.0, line), (place, 0.0), xycoords=where, **options)

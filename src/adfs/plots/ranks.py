"""What each rank of a run did when: one line a rank, on which areas are times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from adfs.plots.timeline import BLUE, GREY, HALF, INK
from adfs.runtime.spans import KINDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from adfs.runtime.execution import Execution

Vector = NDArray[np.float64]
Span = tuple[str, float, float]

# The rest is from the palette of `adfs.plots.timeline`, too.
LOOKS: dict[str, dict[str, Any]] = {
    "computing": {"facecolor": BLUE},
    "waiting": {"facecolor": "#F6F7F8", "edgecolor": GREY, "hatch": "////"},
    "scheduling": {"facecolor": "#009E73"},
    "reading": {"facecolor": "#CC79A7"},
    "saving": {"facecolor": "#D55E00"},
}
COLUMNS = 1_000  # about one a pixel: what is shorter cannot be seen on its own
MOST_LABELS = 32  # ranks that have room for words beside them
WIDTH = 36.0  # points, of a column of shares
INSIDE = {"waiting": "computing"}  # compiled code waits while it computes


def draw_ranks(ranks: Sequence[Execution], ax: Axes) -> Axes:
    """Draw the spans of all ranks on one axis of seconds.

    Where spans are shorter than a pixel, its column is split from top to bottom in proportion to
    the time that each kind took in it. Beside each rank stand the shares of its whole time. Each
    rank counts from its own beginning of the loop, which ranks reach together within a message or
    so.

    Parameters
    ----------
    ranks : sequence of Execution
        With spans.
    ax : matplotlib Axes

    Returns
    -------
    Axes
        With one filled area a rank and a kind.
    """
    ends = [span[2] for each in ranks for span in each.spans]
    end = max(ends, default=1.0)
    edges = np.linspace(0.0, end, COLUMNS + 1)
    for line, each in enumerate(ranks):
        _draw_line(ax, line, edges, column_shares(each.spans, edges))
    _draw_frame(ax, ranks, end)
    _draw_legend(ax, ranks)
    return ax


def column_shares(spans: Sequence[Span], edges: Vector) -> dict[str, Vector]:
    """The share of each column's time that each kind took; a wait is no computing.

    Examples
    --------
    >>> spans = [("computing", 0.0, 2.0), ("waiting", 0.5, 1.0), ("reading", 2.0, 3.0)]
    >>> shares = column_shares(spans, np.array([0.0, 1.0, 2.0, 4.0]))
    >>> {kind: values.tolist() for kind, values in shares.items() if values.any()}
    {'computing': [0.5, 1.0, 0.0], 'waiting': [0.5, 0.0, 0.0], 'reading': [0.0, 0.0, 0.5]}
    """
    shares = {kind: np.zeros(len(edges) - 1) for kind in KINDS}
    computing = _of_kind(spans, "computing")
    for kind in KINDS:
        own = _of_kind(spans, kind)
        shares[kind] += _share(own, edges)
        if kind in INSIDE:
            shares[INSIDE[kind]] -= _share(_within(own, computing), edges)
    return {kind: np.clip(values, 0.0, 1.0) for kind, values in shares.items()}


def _of_kind(spans: Sequence[Span], kind: str) -> NDArray[np.float64]:
    rows = [(start, end) for name, start, end in spans if name == kind]
    return np.array(rows, dtype=np.float64).reshape(-1, 2)


def _within(inner: NDArray[np.float64], outer: NDArray[np.float64]) -> NDArray[np.float64]:
    """Those of ``inner`` that begin inside one of ``outer``; both are in order."""
    if not len(outer):
        return inner[:0]
    place = np.searchsorted(outer[:, 0], inner[:, 0], side="right") - 1
    inside = (place >= 0) & (inner[:, 0] < outer[place, 1])
    return np.asarray(inner[inside])


def _share(spans: NDArray[np.float64], edges: Vector) -> Vector:
    """Share of each column that the spans cover; they are in order and do not overlap."""
    if not len(spans):
        return np.zeros(len(edges) - 1)
    covered = np.concatenate([[0.0], np.cumsum(spans[:, 1] - spans[:, 0])])
    so_far = np.repeat(covered, 2)[1:-1]  # at each start and each end
    return np.asarray(np.diff(np.interp(edges, spans.ravel(), so_far)) / np.diff(edges))


def _draw_line(ax: Axes, line: int, edges: Vector, shares: dict[str, Vector]) -> None:
    """Kinds on top of each other in every column, the first below; the axis points down."""
    base = np.full(len(edges) - 1, line + HALF)
    for kind in KINDS:
        if not shares[kind].any():
            continue
        top = base - 2.0 * HALF * shares[kind]
        ax.fill_between(
            edges, _steps(base), _steps(top), step="post", linewidth=0.0, label=f"_{kind}",
            zorder=3, **LOOKS[kind],
        )  # fmt: skip
        base = top


def _steps(values: Vector) -> Vector:
    """Values of columns as those of their left edges, the last one held to the right edge."""
    return np.append(values, values[-1])


def _draw_frame(ax: Axes, ranks: Sequence[Execution], end: float) -> None:
    ax.hlines(np.arange(len(ranks)), 0.0, end, color=GREY, linewidth=1.0, zorder=1)
    ax.set_xlim(0.0, end)
    ax.set_ylim(len(ranks) - 0.5, -0.5)
    every = -(-len(ranks) // MOST_LABELS)
    chosen = range(0, len(ranks), every)
    ax.set_yticks(list(chosen), [name_of(ranks[k]) for k in chosen])
    ax.tick_params(axis="y", length=0)
    whole = max((sum(each.seconds.values()) for each in ranks), default=0.0)
    # Only so many spans are kept, so that a long run shows its beginning.
    part = f", the first {end:.3g} of {whole:.3g}" if end < 0.95 * whole else ""
    ax.set_xlabel(f"seconds in the loop{part}")
    for side in ("top", "left", "right"):
        ax.spines[side].set_visible(False)


def name_of(rank: Execution) -> str:
    """The rank and its nodes.

    Examples
    --------
    >>> from adfs.runtime.execution import Execution
    >>> name_of(Execution(0, [0, 1], {})), name_of(Execution(1, [3], {}))
    ('rank 0 (nodes 0, 1)', 'rank 1 (node 3)')
    >>> name_of(Execution(2, [4, 5, 6, 7, 9], {}))
    'rank 2 (5 nodes)'
    """
    nodes = rank.nodes
    if len(nodes) == 1:
        return f"rank {rank.rank} (node {nodes[0]})"
    if len(nodes) > 4:
        return f"rank {rank.rank} ({len(nodes)} nodes)"
    return f"rank {rank.rank} (nodes {', '.join(map(str, nodes))})"


def _draw_legend(ax: Axes, ranks: Sequence[Execution]) -> None:
    """Colours above, and at the right a table of shares below the same colours."""
    from matplotlib.patches import Patch

    used = [kind for kind in KINDS if any(each.seconds.get(kind) for each in ranks)]
    patches = [Patch(label=kind, **{"edgecolor": "none", **LOOKS[kind]}) for kind in used]
    ax.legend(
        handles=patches, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=len(KINDS),
        frameon=False, fontsize=9.0, handlelength=1.3, columnspacing=1.3,
    )  # fmt: skip
    if len(ranks) <= MOST_LABELS:
        for column, kind in enumerate(used):
            _draw_shares(ax, ranks, kind, WIDTH * (column + 1))


def _draw_shares(ax: Axes, ranks: Sequence[Execution], kind: str, place: float) -> None:
    """A column of the table, ``place`` points to the right of the lines."""
    look: dict[str, Any] = {
        "textcoords": "offset points", "ha": "right", "va": "center", "size": 8.5, "color": INK,
        "annotation_clip": False,
    }  # fmt: skip
    sign = "\u25a8" if "hatch" in LOOKS[kind] else "\u25a0"
    colour = LOOKS[kind].get("edgecolor", LOOKS[kind]["facecolor"])
    head = {**look, "size": 13.0, "color": colour}
    ax.annotate(sign, (1.0, 1.0), (place, 11.0), xycoords="axes fraction", **head)
    for line, each in enumerate(ranks):
        share = each.seconds.get(kind, 0.0) / (sum(each.seconds.values()) or 1.0)
        where = ax.get_yaxis_transform()
        ax.annotate(percent(share), (1.0, line), (place, 0.0), xycoords=where, **look)


def percent(share: float) -> str:
    """A share for people.

    Examples
    --------
    >>> percent(0.873), percent(0.0123), percent(0.0)
    ('87 %', '1.2 %', '0')
    """
    if share <= 0.0:
        return "0"
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.2g} %"

"""Traces as the page carries them: thinned if long, with the columns one may choose to look at."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adfs.plots.comparison import looks
from adfs.plots.timeline import INK
from adfs.report.chart import Line, draw_chart
from adfs.report.markup import Markup, table, tag
from adfs.report.words import count, number
from adfs.runtime.trace import COLUMNS, Trace, Value

ROWS = 20_000  # of all traces of a page together
FEWEST = 100  # rows of a trace, however many traces there are
X_AXES = {
    "iteration": "iterations",
    "idealized_time": "idealized time, in units of one proximal step",
    "wall_time": "wall time, in seconds",
    "passes": "passes over the data",
    "n_prox": "proximal steps",
    "n_grad": "sample gradients",
    "n_comm": "messages",
    "bytes": "bytes sent",
}
Y_AXES = {
    "relative_gap": "relative duality gap, gap / max(1, |F|)",
    "duality_gap": "duality gap",
    "suboptimality": "suboptimality, (F(θ_i) − F*) / max(1, |F*|), mean over nodes",
    "consensus_error": "consensus error, root mean square of |θ_i − θ|",
    "objective": "objective F(θ)",
}
# Okabe and Ito's hues, each with a lighter one for a dark page.
PALETTE = {
    "#0072B2": "#58B0EA", "#E69F00": "#F2B63C", "#D55E00": "#F28B50", "#CC79A7": "#E79FC9",
    "#009E73": "#35C9A0", "#56B4E9": "#93D2F5", INK: "#E4E7EB", "#8C6D31": "#CBAA63",
}  # fmt: skip
THEORY = ("#6B7280", "#9AA3AF")
DASHES = {"-": "", "--": "7 4"}


@dataclass(frozen=True)
class Curve:
    """A run's columns under a name; ``seed`` tells runs of one name apart."""

    label: str
    columns: Mapping[str, Sequence[Value]]
    seed: int = 0
    theory: bool = False


def columns_of(trace: Trace, n_samples: int, most: int = ROWS) -> dict[str, list[Value]]:
    """All columns of a trace and two that follow from them, at ``most`` rows or fewer."""
    keep = thinned(len(trace), most)
    found: dict[str, list[Value]] = {
        name: [trace[name][k] for k in keep] for name in COLUMNS
    }  # fmt: skip
    found["relative_gap"] = [
        None if gap is None or value is None else gap / max(1.0, abs(value))
        for gap, value in zip(found["duality_gap"], found["objective"], strict=True)
    ]
    work = zip(found["n_prox"], found["n_grad"], strict=True)
    found["passes"] = [((a or 0) + (b or 0)) / n_samples for a, b in work]
    return found


def thinned(length: int, most: int) -> list[int]:
    """At most that many places among ``length``, evenly; the first and the last always.

    Examples
    --------
    >>> thinned(4, 10), thinned(9, 3)
    ([0, 1, 2, 3], [0, 4, 8])
    """
    if length <= most:
        return list(range(length))
    return sorted({int(k) for k in np.rint(np.linspace(0, length - 1, max(2, most)))})


def theory_curve(curve: Curve, rho: float) -> Curve:
    """What falls by ``1 - rho`` an iteration from the run's first errors."""
    columns = dict(curve.columns)
    iterations = [float(value or 0) for value in columns["iteration"]]
    for name in Y_AXES:
        first = next((v for v in columns[name] if v is not None), None)
        falls = name in ("relative_gap", "duality_gap", "suboptimality") and first is not None
        columns[name] = [
            first * math.exp(t * math.log1p(-rho)) if falls and first is not None else None
            for t in iterations
        ]
    return Curve("proven slope, (1 − ρ)ᵗ", columns, curve.seed, theory=True)


def rows_for(n_runs: int) -> int:
    """Rows that each of so many runs may have."""
    return max(FEWEST, ROWS // max(1, n_runs))


def chart(
    curves: Sequence[Curve], x: str, y: str, tol: float | None, thinned_from: int
) -> tuple[Markup, dict[str, Any]]:
    """The figure, and the data from which scripts draw it again with other axes.

    ``thinned_from`` is the length of the longest trace if rows were left out, else 0.
    """
    xs = _choices(curves, X_AXES, lambda v: v != 0)
    ys = _choices(curves, Y_AXES, lambda v: True)
    # A run without a single event has nothing but zeros on every axis.
    xs = xs or {"iteration": X_AXES["iteration"]}
    ys = ys or {"relative_gap": Y_AXES["relative_gap"]}
    x = x if x in xs else next(iter(xs))
    y = y if y in ys else next(iter(ys))
    styles = _styles(curves)
    words = f"{Y_AXES[y]} against {X_AXES[x]}"
    still = draw_chart(_still(curves, styles, x, y), X_AXES[x], _short(Y_AXES[y]), words)
    note = "Drag over the chart to zoom, double-click to see all again."
    if thinned_from:
        kept = max(len(curve.columns["iteration"]) for curve in curves)
        note += f" Long traces were thinned for this page: {kept:,} of {thinned_from:,} rows."
    figure = tag(
        "figure",
        tag("div", still, id="chart-still"),
        tag("div", id="chart", hidden=True),
        tag("figcaption", words, ". ", tag("span", note, class_="script-only")),
        class_="picture wide",
        id="chart-figure",
    )
    data = {
        "xAxes": xs, "yAxes": ys, "x": x, "y": y, "linear": ["objective"], "tol": tol,
        "tolAxis": y, "runs": [_run(c, style) for c, style in zip(curves, styles, strict=True)],
    }  # fmt: skip
    return figure, data


def _short(title: str) -> str:
    return title.partition(",")[0]


def _choices(curves: Sequence[Curve], axes: dict[str, str], counts: Any) -> dict[str, str]:
    """Axes on which at least one run has something to show."""
    return {
        name: title
        for name, title in axes.items()
        if any(
            value is not None and math.isfinite(value) and counts(value)
            for curve in curves
            if not curve.theory
            for value in curve.columns[name]
        )
    }


def _styles(curves: Sequence[Curve]) -> list[dict[str, Any]]:
    """Colours for light and dark pages, dash and width; runs of one label look alike."""
    labels = list(dict.fromkeys(c.label for c in curves if not c.theory))
    by_label = dict(zip(labels, looks(labels), strict=True))
    found = []
    for curve in curves:
        if curve.theory:
            found.append({"color": THEORY, "dash": "3 5", "width": 1.5, "index": "t"})
            continue
        look = by_label[curve.label]
        color, line = look["color"], look["linestyle"]
        dash = DASHES[line] if isinstance(line, str) else " ".join(str(3 * k) for k in line[1])
        index = str(list(PALETTE).index(color)) if color in PALETTE else "7"
        both = (color, PALETTE.get(color, color))
        found.append({"color": both, "dash": dash, "width": look["linewidth"], "index": index})
    return found


def _still(
    curves: Sequence[Curve], styles: list[dict[str, Any]], x: str, y: str
) -> list[Line]:  # fmt: skip
    lines = []
    for curve, style in zip(curves, styles, strict=True):
        pairs = zip(curve.columns[x], curve.columns[y], strict=True)
        points = [(float(a), float(b)) for a, b in pairs if a is not None and b is not None]
        lines.append(Line(curve.label, style["index"], style["dash"], points))
    return lines


def _run(curve: Curve, style: dict[str, Any]) -> dict[str, Any]:
    names = [*X_AXES, *Y_AXES]
    return {
        "label": curve.label, "seed": curve.seed, "theory": curve.theory,
        "color": style["color"], "width": style["width"],
        "dash": [int(k) for k in style["dash"].split()],
        "columns": {name: list(curve.columns[name]) for name in names},
    }  # fmt: skip


def legend(curves: Sequence[Curve]) -> Markup:
    """Names beside their colours, for the still picture."""
    seen: dict[str, Markup] = {}
    for curve, style in zip(curves, _styles(curves), strict=True):
        key = tag("span", "", class_=f"key c{style['index']}{' dashed' if style['dash'] else ''}")
        seen.setdefault(curve.label, tag("li", key, curve.label))
    return tag("ul", *seen.values(), class_="keys still-only")


def trace_table(curve: Curve, most: int = 40) -> Markup:
    """The numbers behind the curve."""
    names = [n for n in ("iteration", "idealized_time", "wall_time", "n_prox", "n_grad", "n_comm",
                         "bytes", "objective", "suboptimality", "relative_gap", "consensus_error")
             if any(v is not None and v != 0 for v in curve.columns[n])]  # fmt: skip
    length = len(curve.columns["iteration"])
    rows = [[number(curve.columns[name][k], 6) for name in names] for k in thinned(length, most)]
    shown = f"{len(rows)} of " if len(rows) < length else ""
    summary = f"The numbers: {shown}{count(length, 'evaluation')}"
    headers = [name.replace("_", " ") for name in names]
    inner = table("One row an evaluation", headers, rows)
    return tag("details", tag("summary", summary), inner)

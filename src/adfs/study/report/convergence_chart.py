"""Traces as curves: the data of the interactive chart, and a picture for paper."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adfs.engine.trace import COLUMNS, Trace, Value
from adfs.problem.certificate import relative
from adfs.storage import json_value
from adfs.study.comparison import AXES
from adfs.study.numbers import number
from adfs.study.plots.style import HUES, line_styles
from adfs.study.report.render import thinned, visible

Columns = Mapping[str, Sequence[Value]]

ROWS = 20_000  # of all traces of a page together
X_AXES = {**AXES, "n_prox": "proximal steps", "n_grad": "sample gradients"}
Y_AXES = {
    "relative_gap": "relative duality gap, gap / |F|",
    "duality_gap": "duality gap",
    "suboptimality": "suboptimality, (F(θ_i) − F*) / |F*|, mean over nodes",
    "consensus_error": "consensus error, root mean square of |θ_i − θ|",
    "objective": "objective F(θ)",
}
ERRORS = ("relative_gap", "duality_gap", "suboptimality")  # a proven rate is about these
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760.0, 360.0, 62.0, 620.0, 12.0, 316.0
LINE, LETTER = 15.0, 7.0  # pixels of a label at a curve
LONGEST_LABEL = 18  # letters
MOST_DECADES = 8  # labels of a logarithmic axis


@dataclass(frozen=True)
class PageCurve:
    """The columns of a run under a label; several runs of one label differ by their seed."""

    label: str
    columns: Columns
    seed: int
    theory: bool = False

    def proven(self, rho: float) -> "PageCurve":
        """A curve that falls by ``1 - rho`` per iteration from the first errors of the run."""
        columns = dict(self.columns)
        for name in Y_AXES:
            first = next((v for v in columns[name] if v is not None and name in ERRORS), None)
            columns[name] = [
                None if first is None else first * math.exp(float(t or 0) * math.log1p(-rho))
                for t in columns["iteration"]
            ]
        return PageCurve("proven slope, (1 − ρ)ᵗ", columns, self.seed, theory=True)

    def known_columns(self) -> list[str]:
        """Names of the columns of a trace that have values here, with the gap as relative."""
        names = ["relative_gap" if name == "duality_gap" else name for name in COLUMNS]
        return [name for name in names if any(self.columns[name])]


def page_curve(label: str, seed: int, trace: Trace, n_samples: int, most: int = ROWS) -> PageCurve:
    """All columns of a trace and two that follow from them, at ``most`` rows or fewer."""
    keep, columns = thinned(len(trace), most), trace.to_dict()
    found: dict[str, list[Value]] = {name: [columns[name][k] for k in keep] for name in COLUMNS}
    found["relative_gap"] = [
        None if gap is None or value is None else relative(gap, value)
        for gap, value in zip(found["duality_gap"], found["objective"], strict=True)
    ]
    work = zip(found["n_prox"], found["n_grad"], strict=True)
    found["passes"] = [((a or 0) + (b or 0)) / n_samples for a, b in work]
    return PageCurve(label, found, seed)


def make_chart(
    curves: Sequence[PageCurve], x: str, y: str, tol: float | None, longest: int
) -> dict[str, Any]:
    """What the template ``chart`` shows; ``data`` is for the script that draws other axes.

    ``longest`` is the length of the longest trace before it was thinned.
    """
    # A run without a single event has only zeros on every axis.
    xs = _axes_with(curves, X_AXES, zero=False) or {"iteration": X_AXES["iteration"]}
    ys = _axes_with(curves, Y_AXES, zero=True) or {"relative_gap": Y_AXES["relative_gap"]}
    x = x if x in xs else next(iter(xs))
    y = y if y in ys else next(iter(ys))
    styled = list(zip(curves, _styles(curves), strict=True))
    kept = max(len(curve.columns["iteration"]) for curve in curves)
    data = {"xAxes": xs, "yAxes": ys, "x": x, "y": y, "linear": ["objective"], "tol": tol}
    return {
        "caption": f"{Y_AXES[y]} against {X_AXES[x]}",
        "thinned": f"{kept:,} of {longest:,} rows" if kept < longest else "",
        "still": draw_chart(styled, x, y, tol),
        "data": {**data, "tolAxis": y, "runs": [_run(*each) for each in styled]},
    }


def _axes_with(curves: Sequence[PageCurve], axes: dict[str, str], zero: bool) -> dict[str, str]:
    """Axes on which at least one run has a finite value, which may be ``zero`` or not."""

    def has_values(name: str) -> bool:
        columns = [curve.columns[name] for curve in curves if not curve.theory]
        values = np.concatenate([np.array(each, dtype=float) for each in columns])
        return bool(np.any(np.isfinite(values) & (zero | (values != 0))))

    return {name: title for name, title in axes.items() if has_values(name)}


def _styles(curves: Sequence[PageCurve]) -> list[dict[str, Any]]:
    """Colour, as its number in the style sheet, dash in pixels, and width; one style per label."""
    labels = list(dict.fromkeys(curve.label for curve in curves if not curve.theory))
    found = {
        label: {"color": str(HUES.index(line.color)), "width": line.width,
                "dash": [round(2 * length) for length in line.dash]}
        for label, line in zip(labels, line_styles(labels), strict=True)
    }  # fmt: skip
    theory = {"color": "t", "width": 1.5, "dash": [3, 5]}
    return [theory if curve.theory else found[curve.label] for curve in curves]


def _run(curve: PageCurve, style: dict[str, Any]) -> dict[str, Any]:
    """A run for JSON: numbers to seven digits, None for those that are not finite."""
    about = {"label": visible(curve.label), "seed": curve.seed, "theory": curve.theory}
    columns = json_value({name: curve.columns[name] for name in (*X_AXES, *Y_AXES)})
    for name, values in columns.items():
        columns[name] = [float(f"{v:.7g}") if isinstance(v, float) else v for v in values]
    return {**about, **style, "columns": columns}


def draw_chart(
    styled: Sequence[tuple[PageCurve, dict[str, Any]]], x: str, y: str, tol: float | None
) -> dict[str, Any] | None:
    """Curves on a logarithmic scale over a linear one, in pixels; None without a positive value."""
    lines, ends = [], dict[str, tuple[float, float, str]]()
    for curve, style in styled:
        a, b = (np.array(curve.columns[name], dtype=float) for name in (x, y))
        shown = np.isfinite(a) & (b > 0.0) & (b < math.inf)
        if shown.any():
            lines.append((style, a[shown], np.log10(b[shown])))
            label = curve.label.partition(",")[0] if curve.theory else curve.label
            ends.setdefault(label, (a[shown][-1], np.log10(b[shown][-1]), style["color"]))
    if not lines:
        return None
    end = max(float(a.max()) for _, a, _ in lines) or 1.0
    low = min(float(b.min()) for _, _, b in lines)
    high = max(float(b.max()) for _, _, b in lines)
    margin = math.log10(1.3 if high - low >= 1.0 else 3.0)
    low, high = low - margin, high + margin

    def place(a: Any, b: Any) -> tuple[Any, Any]:
        down = (b - low) / (high - low) * (BOTTOM - TOP)
        return LEFT + a / end * (RIGHT - LEFT), BOTTOM - down

    def path(a: Any, b: Any) -> str:
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(*place(a, b), strict=True))

    wanted = [(*place(*end[:2]), label, end[2]) for label, end in ends.items()]
    wanted.sort(key=lambda each: -each[1])
    level = None
    if tol and low < math.log10(tol) < high:
        level = place(0.0, math.log10(tol))[1]
        wanted.insert(0, (RIGHT, level, f"tol {tol:g}", "t"))
    return {
        "labels": place_labels(wanted), "level": level,
        "width": WIDTH, "height": HEIGHT, "left": LEFT, "right": RIGHT, "top": TOP,
        "bottom": BOTTOM, "x_title": X_AXES[x], "y_title": Y_AXES[y].partition(",")[0],
        "x_ticks": [(place(value, 0.0)[0], number(value)) for value in ticks(end)],
        "y_ticks": [(place(0.0, power)[1], f"1e{power}") for power in decades(low, high)],
        "lines": [(style, path(a, b)) for style, a, b in lines],
    }  # fmt: skip


def place_labels(
    wanted: Sequence[tuple[float, float, str, str]],
) -> list[tuple[float, float, str, str]]:
    """Labels right of where their curves end, moved up until none covers another one."""
    placed: list[tuple[float, float, str, str]] = []
    for x, y, label, color in wanted:
        text = label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…"
        x = min(x + 6.0, WIDTH - LETTER * len(text))
        for other in sorted(placed, key=lambda each: -each[1]):
            ends = x + LETTER * len(text), other[0] + LETTER * len(other[2])
            if abs(other[1] - y) < LINE and other[0] < ends[0] and x < ends[1]:
                y = other[1] - LINE
        placed.append((x, y, text, color))
    return placed


def ticks(end: float, most: int = 6) -> list[float]:
    """Round numbers from zero to ``end``.

    Examples
    --------
    >>> ticks(100.0), ticks(0.07, most=3)
    ([0.0, 20.0, 40.0, 60.0, 80.0, 100.0], [0.0, 0.05])
    """
    rough = end / (most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in (1.0, 2.0, 5.0, 10.0) if power * each >= rough * 0.999)
    return [round(k * step, 12) for k in range(math.floor(end / step + 1e-9) + 1)]


def decades(low: float, high: float) -> range:
    """Whole powers of ten between two powers, not too many.

    Examples
    --------
    >>> list(decades(-6.7, 0.5))
    [-6, -5, -4, -3, -2, -1, 0]
    """
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    return range(first, last + 1, max(1, math.ceil((last - first + 1) / MOST_DECADES)))

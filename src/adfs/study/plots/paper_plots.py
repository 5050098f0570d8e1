"""Figures of the paper's results: rates, scaling, stragglers and the constant of Theorem 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from adfs.study.plots.style import GREY, HUES, INK, horizontal_line, line_styles, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = Sequence[tuple[float, float]]
MARKERS = "osD^vP*X"


def draw_rates(points: Mapping[str, Points], ax: Axes) -> Axes:
    """Draw measured against predicted times on logarithmic axes, with the diagonal.

    ``points`` maps the name of an algorithm to pairs (predicted, measured).
    """
    for pairs, style in zip(points.values(), line_styles(list(points)), strict=True):
        x, y = zip(*sorted(pairs), strict=True)
        ax.plot(x, y, **{**style.options(), "linestyle": "none", "markersize": 7})
    ends = [value for pairs in points.values() for pair in pairs for value in pair]
    low, high = min(ends) / 1.5, max(ends) * 1.5
    for factor, dash, text in ((1.0, "-", "measured = theory"), (0.1, ":", "ten times less"),
                               (10.0, ":", "")):  # fmt: skip
        ax.plot([low, high], [factor * low, factor * high], color=GREY, linewidth=1.0,
                linestyle=dash, zorder=0)  # fmt: skip
        if text:
            ax.annotate(text, (high / 1.1, factor * high / 1.1), rotation=45, color=INK, va="top",
                        rotation_mode="anchor", ha="right")  # fmt: skip
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), aspect="equal")
    ax.set_xlabel("time for a factor e by Table 1, constants left out")
    ax.set_ylabel("measured time for a factor e")
    tidy(ax, legend="beside")
    return ax


def draw_scaling(
    measured: Mapping[str, Points],
    ax: Axes,
    theory: Mapping[str, Points],
    critical: Mapping[str, float],
    allowed: float,
) -> Axes:
    """Draw idealized time against the number of nodes on logarithmic axes.

    ``measured`` maps a label to points (n, time), lines with markers; ``theory`` has the same
    labels, dashed lines of the same colour. ``critical`` maps a label to a number of nodes, a
    named vertical line. ``allowed`` is the time that still counts as the same, a grey line.
    """
    colors = _draw_lines(ax, measured)
    for label, points in theory.items():
        x, y = zip(*points, strict=True)
        ax.plot(x, y, color=colors[label], linewidth=1.0, dashes=(4, 3), zorder=1)
    ax.plot([], [], color=INK, linewidth=1.0, dashes=(4, 3), label="theory, set at n = 1")
    horizontal_line(ax, allowed, "twice the time of one node")
    ax.set_xscale("log", base=4)
    ax.set_yscale("log")
    for label, n in critical.items():
        ax.axvline(n, color=colors[label], linewidth=1.2, linestyle=":")
        ax.annotate(f"critical size of the {label.partition(', ')[2] or label}: {n:.0f}", (n, 1.0),
                    xycoords=("data", "axes fraction"), xytext=(4, -4), va="top",
                    textcoords="offset points", color=colors[label])  # fmt: skip
    ax.set_xticks(sorted({n for points in measured.values() for n, _ in points}))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.minorticks_off()
    ax.set_xlabel("number of nodes n, each with its own m samples")
    ax.set_ylabel("idealized time")
    tidy(ax, grid="both", legend="beside")
    return ax


def _draw_lines(ax: Axes, lines: Mapping[str, Points]) -> dict[str, str]:
    """Lines with markers, up to eight; the same order gives the same colours, which it returns."""
    for (label, points), color, marker in zip(lines.items(), HUES, MARKERS, strict=False):
        x, y = zip(*points, strict=True)
        ax.plot(x, y, color=color, marker=marker, markersize=5, linewidth=1.6, label=label)
    return dict(zip(lines, HUES, strict=False))


def draw_slowdowns(
    slowdowns: Mapping[str, Sequence[float]], worlds: Sequence[str], ax: Axes, title: str = ""
) -> Axes:
    """Draw one point per method and delay model; none where a method did not converge.

    ``slowdowns`` maps a label to multiples of its usual time, one per delay model; ``worlds`` are
    the names of the delay models, left to right.
    """
    positions = np.arange(len(worlds), dtype=float)
    shown = [label for label, values in slowdowns.items() if np.isfinite(values).any()]
    for k, (label, style) in enumerate(zip(shown, line_styles(shown), strict=True)):
        shift = 0.6 * ((k + 0.5) / len(shown) - 0.5)
        # Related methods differ by their dash, which points do not have.
        options = {**style._replace(hollow=bool(style.dash)).options(), "linestyle": "none"}
        ax.plot(positions + shift, slowdowns[label], **options)
    ax.axhline(1.0, color=GREY, linewidth=1.0, zorder=0)
    ax.set_yscale("log")
    ax.set_xticks(positions, list(worlds))
    ax.set_ylabel("multiple of the time under constant delays")
    ax.set_title(title, loc="left", fontsize=10)
    tidy(ax)
    ax.legend(frameon=False, fontsize=8, ncols=2)
    return ax


def draw_constants(lines: Mapping[str, Points], ax: Axes, xlabel: str, bound: float) -> Axes:
    """Draw the constant against ``tau`` or another number on logarithmic axes.

    ``lines`` maps the label of a graph to points (x, constant); ``bound`` is a dashed line.
    """
    _draw_lines(ax, lines)
    horizontal_line(ax, bound, f"bound {bound:g}", color=INK, linewidth=1.2, dashes=(5, 3))
    ax.set(xscale="log", yscale="log", xlabel=xlabel)
    tidy(ax, grid="both")
    return ax

"""Figures of the paper's results: rates, scaling, stragglers and the constant of Theorem 2."""

from collections.abc import Mapping, Sequence

import numpy as np

from adfs.study.plots.style import GREY, HUES, INK, Axes, Figure, horizontal_line, line_styles, tidy

Points = Sequence[tuple[float, float]]
MARKERS = "osD^vP*X"


def draw_rates(points: Mapping[str, Points], figure: Figure) -> None:
    """Draw measured against predicted times of algorithms, pairs (predicted, measured)."""
    ax = figure.add_subplot()
    for pairs, style in zip(points.values(), line_styles(list(points)), strict=True):
        x, y = zip(*sorted(pairs), strict=True)
        ax.plot(x, y, **{**style.options(), "linestyle": "none", "markersize": 7})
    ends = [value for pairs in points.values() for pair in pairs for value in pair]
    low, high = min(ends) / 1.5, max(ends) * 1.5
    texts = {1.0: "measured = theory", 0.1: "ten times less", 10.0: ""}
    for factor, text in texts.items():
        dash = "-" if factor == 1.0 else ":"
        ax.plot([low, high], [factor * low, factor * high], color=GREY, linewidth=1.0,
                linestyle=dash, zorder=0)  # fmt: skip
        ax.annotate(text, (high / 1.1, factor * high / 1.1), rotation=45, color=INK, va="top",
                    rotation_mode="anchor", ha="right")  # fmt: skip
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), aspect="equal")
    ax.set_xlabel("time for a factor e by Table 1, constants left out")
    ax.set_ylabel("measured time for a factor e")
    tidy(ax, legend="beside")


def draw_scaling(
    measured: Mapping[str, Points],
    theory: Mapping[str, Points],
    critical: Mapping[str, float],
    allowed: float,
    figure: Figure,
) -> None:
    """Draw idealized time against the number of nodes; lines of a label have the same colour.

    ``critical`` are numbers of nodes; ``allowed`` is the time that still counts as the same.
    """
    ax = figure.add_subplot()
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
        ax.annotate(f"critical size of the {label.partition(', ')[2]}: {n:.0f}", (n, 1.0),
                    xycoords=("data", "axes fraction"), xytext=(4, -4), va="top",
                    textcoords="offset points", color=colors[label])  # fmt: skip
    ax.set_xticks(sorted({n for points in measured.values() for n, _ in points}))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.minorticks_off()
    ax.set_xlabel("number of nodes n, each with its own m samples")
    ax.set_ylabel("idealized time")
    tidy(ax, grid="both", legend="beside")


def _draw_lines(ax: Axes, lines: Mapping[str, Points]) -> dict[str, str]:
    """Lines with markers, up to eight; the same order gives the same colours, which it returns."""
    for (label, points), color, marker in zip(lines.items(), HUES, MARKERS, strict=False):
        x, y = zip(*points, strict=True)
        ax.plot(x, y, color=color, marker=marker, markersize=5, linewidth=1.6, label=label)
    return dict(zip(lines, HUES, strict=False))


def draw_slowdowns(
    problems: Mapping[str, Mapping[str, Mapping[str, float | None]]], figure: Figure
) -> None:
    """Draw how much longer methods take, by problem, method and delay model; None is left out."""
    axes = np.atleast_1d(figure.subplots(1, len(problems), sharey=True))
    for ax, (title, slowdowns) in zip(axes, problems.items(), strict=True):
        shown = [label for label, values in slowdowns.items() if any(values.values())]
        for k, (label, style) in enumerate(zip(shown, line_styles(shown), strict=True)):
            shift = 0.6 * ((k + 0.5) / len(shown) - 0.5)
            # Related methods differ by their dash, which points do not have.
            options = {**style._replace(hollow=bool(style.dash)).options(), "linestyle": "none"}
            values = [value or np.nan for value in slowdowns[label].values()]
            ax.plot(np.arange(len(values)) + shift, values, **options)
        worlds = list(next(iter(slowdowns.values())))
        ax.axhline(1.0, color=GREY, linewidth=1.0, zorder=0)
        ax.set_yscale("log")
        ax.set_xticks(range(len(worlds)), worlds)
        ax.set_ylabel("multiple of the time under constant delays")
        ax.set_title(title, loc="left", fontsize=10)
        tidy(ax)
        ax.legend(frameon=False, fontsize=8, ncols=2)


def draw_constants(
    inside: Mapping[str, Points], outside: Mapping[str, Points], bound: float, tau: float,
    figure: Figure,
) -> None:  # fmt: skip
    """Draw the constant of Theorem 2 by graph, where it holds against ``tau``, and beyond."""
    axes = figure.subplots(1, 2, sharey=True)
    panels = (
        (axes[0], inside, "tau", "covered by the theorem, or nearly: p_comm = 1/2"),
        (axes[1], outside, "p_comm / p_comp", f"outside of it: tau = {tau:g}"),
    )
    for ax, lines, xlabel, title in panels:
        _draw_lines(ax, {graph.partition(",")[0]: points for graph, points in lines.items()})
        horizontal_line(ax, bound, f"bound {bound:g}", color=INK, linewidth=1.2, dashes=(5, 3))
        ax.set(xscale="log", yscale="log", xlabel=xlabel)
        ax.set_title(title, loc="left")
        tidy(ax, grid="both")
    axes[0].set_ylabel("C, rendezvous clock")
    axes[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)

"""Colours, line styles and frames that all figures share."""

import io
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:  # matplotlib is optional, and imported when something is drawn
    Axes = Figure = object

# From the palette of Okabe and Ito: different for colour-blind readers and on a grey printer.
BLUE, AMBER, GREY, INK = "#0072B2", "#F3C25B", "#A9AFB5", "#2B2F36"
VERMILION, GREEN, PINK, ORANGE, SKY = "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
BROWN = "#8C6D31"
HATCHED = {"facecolor": "#F6F7F8", "edgecolor": GREY, "hatch": "////"}
HUES = (BLUE, ORANGE, VERMILION, PINK, GREEN, SKY, INK, BROWN)  # --c0 to --c7 in report.css
KINDS = ("png", "pdf")  # formats of a figure's files
HALF = 0.29  # of the height of a box in a timeline, where lines are 1 apart


class LineStyle(NamedTuple):
    """The line of a method and its name in legends.

    ``dash`` is in multiples of the width, empty for a solid line.
    """

    name: str
    color: str
    dash: tuple[float, ...]
    marker: str
    width: float = 1.6
    hollow: bool = False

    def options(self) -> dict[str, Any]:
        """Keyword arguments of ``ax.plot``."""
        label = self.name.replace("$", r"\$")  # or it would be typeset as mathematics
        hidden = label.startswith("_")  # from a legend
        return {
            "label": f" {label}" if hidden else label, "color": self.color, "marker": self.marker,
            "markerfacecolor": "white" if self.hollow else self.color,
            "linewidth": self.width, "linestyle": (0, self.dash) if self.dash else "-",
        }  # fmt: skip


SOLID: tuple[float, ...] = ()
DASHED = (3.7, 1.6)
# A method has the same style in every figure. Related methods share a colour and differ by dash
# and marker.
STYLES = {
    "adfs": LineStyle("ADFS", BLUE, SOLID, "o", 2.4),
    "ns-adfs": LineStyle("NS-ADFS", BLUE, DASHED, "o"),
    "point-saga": LineStyle("Point-SAGA", ORANGE, SOLID, "s"),
    "msda": LineStyle("MSDA", VERMILION, SOLID, "^"),
    "ssda": LineStyle("SSDA", VERMILION, DASHED, "v"),
    "esdacd": LineStyle("ESDACD", PINK, SOLID, "D"),
    "dsba": LineStyle("DSBA", GREEN, SOLID, "P"),
    "katyusha": LineStyle("Katyusha", SKY, SOLID, "X"),
    "l-katyusha": LineStyle("L-Katyusha", SKY, DASHED, "X"),
    "newton": LineStyle("Newton", INK, SOLID, "*"),
    "lbfgs": LineStyle("L-BFGS", INK, DASHED, "p"),
    "tron": LineStyle("TRON", INK, (1.0, 1.0), "d"),
}
# Markers and dashes of methods that have no style of their own: a round of colours each.
OTHERS = (("h", SOLID), (">", DASHED), ("<", (1.0, 1.0)))
# Dashes of further rules of a method that is drawn already.
VARIANTS = ((1.0, 1.0), (4.0, 1.0, 1.0, 1.0), (6.0, 3.0))


def line_styles(labels: Sequence[str]) -> list[LineStyle]:
    """The style of each label such as ``dsba:theory``; further rules of a method are hollow.

    Examples
    --------
    >>> [style.name for style in line_styles(["adfs", "dsba:theory", "mine"])]
    ['ADFS', 'DSBA (theory)', 'mine']
    """
    found = []
    seen: Counter[str] = Counter()
    for label in labels:
        method, _, rule = label.partition(":")
        # Methods of other people, and classes, take the colours from the last one on.
        others = len([name for name in seen if name not in STYLES and name != method])
        marker, dash = OTHERS[others // len(HUES) % len(OTHERS)]
        style = STYLES.get(method, LineStyle(method, HUES[-1 - others % len(HUES)], dash, marker))
        if rule:
            style = style._replace(name=f"{style.name} ({rule})")
        if seen[method]:
            style = style._replace(dash=VARIANTS[(seen[method] - 1) % len(VARIANTS)], hollow=True)
        seen[method] += 1
        found.append(style)
    return found


def new_axes(width: float, height: float, columns: int = 1) -> Any:
    """Axes on a new figure of pyplot, in inches; several side by side as an array."""
    import matplotlib.pyplot as plt

    return plt.subplots(1, columns, figsize=(width, height), layout="constrained")[1]


def figure_images(
    size: tuple[float, float], draw: Callable[[Figure], object], kinds: Sequence[str] = KINDS
) -> dict[str, bytes]:
    """A figure, ``size`` in inches, in each format; empty where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return {}
    figure = Figure(figsize=size, layout="constrained")
    draw(figure)
    images = {}
    for kind in kinds:
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, dpi=150)
        images[kind] = buffer.getvalue()
    return images


def tidy(ax: Axes, grid: str = "", legend: str = "", left: bool = True) -> None:
    """Remove the frame, and add a grid along an axis and a legend, ``inside`` or ``beside``."""
    ax.spines[["top", "right"] if left else ["top", "right", "left"]].set_visible(False)
    if grid:
        ax.grid(axis=grid, color=GREY, alpha=0.35, linewidth=0.6)  # type: ignore[arg-type]
    if legend == "inside":
        ax.legend(frameon=False)
    elif legend and ax.lines:
        count = max(1, len(ax.get_legend_handles_labels()[1]))  # many names in small letters
        ax.legend(
            frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5),
            fontsize=min(10.0, 230.0 / count), labelspacing=min(0.5, 6.0 / count),
        )  # fmt: skip


def one_unit(ax: Axes) -> None:
    """Write the ticks of the x axis with commas; from a million on, in millions."""
    unit = 1.0 if ax.get_xlim()[1] < 1e6 else 1e6
    ax.xaxis.set_major_formatter(lambda value, _: f"{value / unit:,.6g}")
    ax.set_xlabel(ax.get_xlabel() + " (millions)" * (unit > 1.0))


def horizontal_line(ax: Axes, y: float, text: str, **options: Any) -> None:
    """A horizontal line with a text at its left end."""
    ax.axhline(y, **{"color": GREY, "linewidth": 1.0, "zorder": 0, **options})
    ax.annotate(text, (0.02, y), xycoords=("axes fraction", "data"), xytext=(0, 3),
                textcoords="offset points", color=INK)  # fmt: skip


def draw_lines(ax: Axes, start: float, end: float, labels: Sequence[str], most: int) -> None:
    """The frame of a timeline: one grey line per label, of which at most ``most`` are written."""
    ax.hlines(range(len(labels)), start, end, color=GREY, linewidth=1.0, zorder=1)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    every = -(-len(labels) // most)
    ax.set_yticks(range(0, len(labels), every), labels[::every])
    ax.tick_params(axis="y", length=0)
    tidy(ax, left=False)

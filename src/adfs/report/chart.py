"""Convergence as a still picture: for readers without scripts, and on paper."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from adfs.report.markup import Markup, tag
from adfs.report.words import number

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760.0, 360.0, 62.0, 14.0, 12.0, 44.0
DECADES = 8  # labels of a logarithmic axis, at most


@dataclass(frozen=True)
class Line:
    """A curve: ``color`` is its number among the page's colours, ``dash`` as SVG has it."""

    label: str
    color: str
    dash: str
    points: Sequence[tuple[float, float]]


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers between two others.

    Examples
    --------
    >>> ticks(0.0, 100.0), ticks(0.0, 0.07, most=3)
    ([0.0, 20.0, 40.0, 60.0, 80.0, 100.0], [0.0, 0.05])
    """
    if not high > low:
        return [low]
    rough = (high - low) / max(1, most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in (1.0, 2.0, 5.0, 10.0) if power * each >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def decades(low: float, high: float) -> list[float]:
    """Powers of ten between two positive numbers, not too many.

    Examples
    --------
    >>> decades(2e-7, 3.0)
    [1e-06, 1e-05, 0.0001, 0.001, 0.01, 0.1, 1.0]
    """
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    every = max(1, math.ceil((last - first + 1) / DECADES))
    return [float(f"1e{k}") for k in range(first, last + 1, every)]


def draw_chart(lines: Sequence[Line], x_title: str, y_title: str, words: str) -> Markup:
    """Curves on a logarithmic scale over a linear one; what is not positive is left out."""
    shown = [
        Line(line.label, line.color, line.dash, [p for p in line.points if _drawable(p)])
        for line in lines
    ]
    shown = [line for line in shown if line.points]
    if not shown:
        return tag("p", "There is nothing to draw: no value is positive and finite.")
    right = max(point[0] for line in shown for point in line.points) or 1.0
    values = [point[1] for line in shown for point in line.points]
    low, high = min(values), max(values)
    low, high = (low / 3.0, high * 3.0) if high < 10.0 * low else (low / 1.3, high * 1.3)
    frame = _Frame(right, math.log10(low), math.log10(high))
    curves = [
        tag("path", d=frame.path(line.points), class_=f"curve c{line.color}",
            stroke_dasharray=line.dash or None)
        for line in shown
    ]  # fmt: skip
    return tag(
        "svg", tag("title", words), *_axes(frame, low, high, x_title, y_title), *curves,
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}", role="img", class_="chart",
    )  # fmt: skip


def _drawable(point: tuple[float, float]) -> bool:
    return math.isfinite(point[0]) and math.isfinite(point[1]) and point[1] > 0.0


@dataclass(frozen=True)
class _Frame:
    """From numbers to places in the picture."""

    right: float
    low: float
    high: float

    def x(self, value: float) -> float:
        return LEFT + value / self.right * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        return "M" + "L".join(f"{self.x(a):.1f} {self.y(b):.1f}" for a, b in points)


def _axes(frame: _Frame, low: float, high: float, x_title: str, y_title: str) -> list[Markup]:
    foot = HEIGHT - BOTTOM
    parts = []
    for value in decades(low, high):
        y = frame.y(value)
        parts.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid"))
        parts.append(tag("text", f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e"),
                         x=LEFT - 8.0, y=y, dy="0.35em", class_="left"))  # fmt: skip
    for value in ticks(0.0, frame.right):
        parts.append(tag("text", number(value), x=frame.x(value), y=foot + 16.0, class_="middle"))
    centre = (LEFT + WIDTH - RIGHT) / 2.0
    parts.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=foot, y2=foot, class_="axis"))
    parts.append(tag("text", x_title, x=centre, y=HEIGHT - 8.0, class_="middle title"))
    parts.append(tag("text", y_title, x=14.0, y=(TOP + foot) / 2, class_="middle title",
                     transform=f"rotate(-90 14 {(TOP + foot) / 2:g})"))  # fmt: skip
    return parts

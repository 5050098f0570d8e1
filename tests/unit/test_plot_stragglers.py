"""The picture of slowdowns: one point a method and world, nothing where nothing is known."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

from adfs.study.plots.paper_plots import draw_slowdowns


def test_points_stand_where_the_numbers_say_and_unknown_methods_are_left_out():
    values = {"adfs": [1.5, 3.0], "katyusha": [2.5, None], "l-katyusha": [2.0, 4.0],
              "esdacd": [None, None]}  # fmt: skip
    worlds = ("exponential", "slow")
    by_world = {name: dict(zip(worlds, each, strict=True)) for name, each in values.items()}
    figure = Figure()
    draw_slowdowns({"a title": by_world}, figure)
    (ax,) = figure.axes
    lines = {line.get_label(): line for line in ax.get_lines()}
    drawn = {label: line for label, line in lines.items() if not label.startswith("_")}
    assert set(drawn) == {"ADFS", "Katyusha", "L-Katyusha"}
    values = {"ADFS": [1.5, 3.0], "Katyusha": [2.5, np.nan], "L-Katyusha": [2.0, 4.0]}
    for label, line in drawn.items():
        np.testing.assert_array_equal(line.get_ydata(), values[label])
        assert np.abs(line.get_xdata() - [0.0, 1.0]).max() < 0.5
    faces = {label: line.get_markerfacecolor() for label, line in drawn.items()}
    assert faces["Katyusha"] != faces["L-Katyusha"] == "white"
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["exponential", "slow"]
    assert ax.get_yscale() == "log"

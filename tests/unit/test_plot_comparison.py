"""The figure of a comparison: what is drawn is what was measured."""

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import adfs
from adfs.algorithms.base import BY_NAME
from adfs.errors import ParameterError
from adfs.study.comparison import AXES
from adfs.study.plots.comparison_plot import draw_comparison
from adfs.study.plots.style import STYLES, figure_images, line_styles
from support.comparisons import make_comparison, make_trace

matplotlib.use("Agg")

RUNS = {
    "adfs": [("converged", make_trace([0, 10 + k, 20 + k], [1.0, 1e-3, 1e-6])) for k in range(3)],
    "dsba:theory": [("time_limit", make_trace([0, 50, 100], [1.0, 0.1, 0.01]))],
}


def axes():
    return Figure(layout="constrained").add_subplot()


def images(comparison):
    return figure_images(
        (9.0, 5.0), lambda figure: draw_comparison(comparison, figure.add_subplot())
    )


def test_lines_are_medians_and_bands_are_quartiles():
    comparison = make_comparison(RUNS)
    ax = draw_comparison(comparison, axes())
    for line, label in zip(ax.lines, comparison.labels, strict=True):
        x, (_, middle, _) = comparison.band(label)
        assert np.array_equal(line.get_xdata(), x)
        assert np.array_equal(line.get_ydata(), middle)
    (band,) = ax.collections  # one seed has no band
    x, (low, _, high) = comparison.band("adfs")
    corners = band.get_paths()[0].vertices
    for place, bottom, top in zip(x, low, high, strict=True):
        here = corners[corners[:, 0] == place, 1]
        assert here.min() == pytest.approx(bottom)
        assert here.max() == pytest.approx(top)
    assert ax.get_yscale() == "log"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["ADFS", "DSBA (theory)"]


@pytest.mark.parametrize("axis", AXES)
def test_each_axis_is_named(axis):
    ax = draw_comparison(make_comparison(RUNS), axes(), axis)
    assert ax.get_xlabel().removesuffix(" (millions)") == AXES[axis]


def test_an_unknown_axis_is_refused():
    with pytest.raises(ParameterError, match="axis='time' is unknown; choose one of idealized"):
        draw_comparison(make_comparison(RUNS), axes(), "time")


def test_an_algorithm_has_the_same_style_in_every_figure_and_its_own():
    (alone,) = line_styles(["msda"])
    assert line_styles(["adfs", "point-saga", "msda:theory"])[2][1:] == alone[1:]
    assert set(STYLES) >= set(adfs.algorithms.NAMES)
    assert len({style[1:4] for style in STYLES.values()}) == len(STYLES)
    rules = line_styles(["dsba", "dsba:theory", "dsba:paper"])
    assert len({style.color for style in rules}) == 1
    assert len({style.dash for style in rules}) == 3


def seen_by(deficiency, color):
    """Viénot's approximation of what a dichromat sees, in linear light."""
    linear = np.array(to_rgb(color)) ** 2.2
    if deficiency == "protan":
        matrix = [[0.112, 0.888, 0], [0.112, 0.888, 0], [0.004, -0.004, 1]]
    else:
        matrix = [[0.293, 0.707, 0], [0.293, 0.707, 0], [-0.021, 0.021, 1]]
    return np.clip(np.array(matrix) @ linear, 0, 1) ** (1 / 2.2)


@pytest.mark.parametrize("deficiency", ["protan", "deutan"])
def test_hues_are_told_apart_by_colour_blind_readers(deficiency):
    hues = sorted({style.color for style in STYLES.values()})
    seen = [seen_by(deficiency, hue) for hue in hues]
    apart = [np.linalg.norm(a - b) for k, a in enumerate(seen) for b in seen[:k]]
    assert min(apart) > 0.14  # of sqrt(3); matplotlib's first seven colours fall to 0.04


@pytest.mark.slow
@pytest.mark.parametrize("label", ["$x^{$", "_hidden", "a$b", "<b>&", "\\frac{"])
def test_a_hostile_label_is_drawn_as_text(label):
    comparison = make_comparison({label: RUNS["adfs"]})
    ax = draw_comparison(comparison, axes())
    ax.figure.canvas.draw()
    assert len(ax.get_legend().get_texts()) == 1
    assert images(comparison)["pdf"].startswith(b"%PDF")


def test_a_run_that_blows_up_does_not_flatten_the_others():
    runs = {**RUNS, "msda": [("diverged", make_trace([0, 5, 10], [1.0, 1e200, np.inf]))]}
    ax = draw_comparison(make_comparison(runs), axes())
    assert ax.get_ylim()[1] <= 10.0
    ax.figure.canvas.draw()


def test_zero_and_less_leave_the_picture_but_not_the_line():
    runs = {"adfs": [("converged", make_trace([0, 5, 10], [1.0, 1e-9, -1e-17]))]}
    ax = draw_comparison(make_comparison(runs), axes())
    assert np.isnan(ax.lines[0].get_ydata()[-1])


def test_nothing_to_draw_is_an_empty_figure():
    empty = make_comparison(RUNS)
    empty.records.clear()
    assert images(empty)["png"].startswith(b"\x89PNG")


def test_without_axes_a_figure_is_made_and_tol_is_drawn():
    import matplotlib.pyplot as plt

    ax = draw_comparison(make_comparison(RUNS), tol=1e-6)
    assert ax.lines[-1].get_ydata() == [1e-6, 1e-6]
    plt.close(ax.figure)


def test_an_axis_has_one_unit():
    runs = {"adfs": [("converged", make_trace([0, 5e5, 2.5e6], [1.0, 1e-3, 1e-6]))]}
    ax = draw_comparison(make_comparison(runs), axes())
    assert ax.get_xlabel() == f"{AXES['idealized_time']} (millions)"
    assert [ax.xaxis.get_major_formatter()(value) for value in (0, 5e5, 2.5e6)] == [
        "0",
        "0.5",
        "2.5",
    ]
    ax = draw_comparison(make_comparison(RUNS), axes())
    assert ax.xaxis.get_major_formatter()(20_000) == "20,000"


def test_with_tol_the_axes_end_where_the_last_run_reaches_it():
    ax = draw_comparison(make_comparison(RUNS), axes(), tol=1e-5)
    assert 21 < ax.get_xlim()[1] < 30 < 100  # the run without an end is cut
    assert ax.get_ylim()[0] == pytest.approx(1e-6)
    none = draw_comparison(make_comparison(RUNS), axes(), tol=1e-9)
    assert none.get_xlim()[1] >= 100


def test_added_methods_have_lines_that_can_be_told_apart():
    adfs.algorithms()  # fills the registry
    labels = sorted(BY_NAME)
    looks = {(each.color, each.marker, each.dash) for each in line_styles(labels)}
    assert len(looks) == len(labels) >= 17

"""What results, comparisons, parameters and graphs show: one screen, tables, figures, frames."""

import sys

import numpy as np
import pytest

import adfs

WIDEST = 200  # characters of a repr: two lines of a terminal


@pytest.fixture(scope="module")
def problem():
    X, y = adfs.generators.two_gaussians(120, 30, seed=0)
    graph = adfs.Topology.ring(12)
    return adfs.Problem(adfs.partition(X, y, 12), sigma=0.5, topology=graph)


@pytest.fixture(scope="module")
def result(problem):
    return adfs.solve(problem, tol=1e-4)


@pytest.fixture(scope="module")
def comparison(problem):
    return adfs.compare(problem, ["adfs", "newton"], tol=1e-4)


def test_reprs_fit_on_a_screen(problem, result, comparison):
    X, y = adfs.generators.two_gaussians(60, 30, seed=0)
    hinge = adfs.Problem(adfs.partition(X, y, 12), loss="hinge", topology=problem.topology)
    chosen = (result.parameters, adfs.NonSmoothParameters.choose(hinge))
    for each in (*chosen, result, result.trace, adfs.Trace(), comparison, problem.topology):
        text = repr(each)
        assert len(text) <= WIDEST, text
        assert "array(" not in text


def test_notebooks_show_tables(problem, result, comparison):
    for each in (result, result.trace, comparison, problem.topology):
        html = each._repr_html_()
        assert html.startswith("<table>")
        assert html.endswith("</table>")
    assert "newton" in comparison._repr_html_()


def test_figures_have_what_they_show(problem, result, comparison):
    plt = pytest.importorskip("matplotlib.pyplot")
    assert result.plot().get_lines()
    assert comparison.plot().get_lines()
    assert len(problem.topology.plot().get_lines()) == problem.topology.n_edges
    schedule = adfs.Schedule.sample(result.parameters, 100)
    assert schedule.plot(tau=2.0, n_events=40).get_yticks().size >= problem.n_nodes
    plt.close("all")


def test_frames_have_the_columns_of_the_trace_and_a_row_per_run(result, comparison):
    pytest.importorskip("pandas")
    frame = result.to_frame()
    assert list(frame.columns) == list(result.trace.to_dict())
    assert len(frame) == len(result.trace)
    assert list(comparison.to_frame()["label"]) == ["adfs", "newton"]


@pytest.mark.parametrize(("module", "call"), [("pandas", "to_frame"), ("matplotlib", "plot")])
def test_what_is_not_installed_is_named(module, call, result, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(adfs.AdfsError, match=f"{module}; install it"):
        getattr(result, call)()


def test_a_model_names_its_coefficients(tmp_path):
    meta = {"format": 1, "loss": "squared", "classes": [], "intercept": True, "n_features": 2}
    model = adfs.Model(np.array([1.0, 2.0, 3.0]), np.zeros((1, 3)), meta)
    model.save(tmp_path / "model.npz")
    loaded = adfs.Model.load(tmp_path / "model.npz")
    assert loaded.coefficients() == {"x1": 1.0, "x2": 2.0, "intercept": 3.0}
    named = adfs.Model(model.coef, model.thetas, {**meta, "feature_names": ["age", "height"]})
    assert named.coefficients() == {"age": 1.0, "height": 2.0, "intercept": 3.0}

"""What a fit guarantees: its bits, its gap, which node has which rows, how it stops."""

import os
import signal

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import adfs
from adfs.estimators import fitting
from support.estimators import relative, rows

ALL = [adfs.LogisticRegression, adfs.LinearSVC, adfs.Ridge, adfs.HuberRegressor, adfs.LinearSVR]


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_the_same_fit_twice_has_the_same_bits(kind, layout):
    X, y = rows("breast-cancer")
    first, second = (kind(tol=1e-4).fit(layout(X), y) for _ in range(2))
    assert first.coef_.tobytes() == second.coef_.tobytes()
    assert np.asarray(first.intercept_).tobytes() == np.asarray(second.intercept_).tobytes()
    assert first.history_["duality_gap"] == second.history_["duality_gap"]


def test_another_seed_gives_other_bits_and_the_same_model():
    X, y = rows("breast-cancer")
    models = [adfs.LogisticRegression(random_state=seed, tol=1e-13).fit(X, y) for seed in (0, 1)]
    assert models[0].coef_.tobytes() != models[1].coef_.tobytes()
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-4, atol=1e-6)
    state = np.random.RandomState(5)
    drawn = [adfs.LogisticRegression(random_state=state).fit(X, y).result_.seed for _ in range(2)]
    assert drawn[0] != drawn[1]
    unknown = [adfs.LogisticRegression(random_state=None).fit(X, y).result_.seed for _ in range(2)]
    assert unknown[0] != unknown[1]


def test_a_fit_is_solve_on_the_same_problem_to_the_bit():
    X, y = rows("breast-cancer")
    model = adfs.LogisticRegression(2.0, n_nodes=4, fit_intercept=False, random_state=7)
    model.fit(X, y)
    shards = adfs.partition(X, y, 4, seed=7)
    problem = adfs.Problem(shards, sigma=1 / (4 * 2.0), topology=adfs.Topology.grid(2, 2))
    result = adfs.solve(problem, seed=7)
    assert model.coef_[0].tobytes() == result.theta.tobytes()
    assert model.n_iter_ == result.iterations
    assert model.dual_gap_ == result.duality_gap
    assert set(result.trace["objective"]) < set(model.history_["objective"])
    assert 8 <= len(model.history_["objective"]) <= 30  # a curve
    assert model.result_.parameters == str(result.parameters)


def test_groups_keep_rows_on_their_node(monkeypatch):
    X, y = rows("breast-cancer")
    names = np.array(["Rome", "Oslo", "Lima"])[np.digitize(X[:, 0], [-0.5, 0.5])]  # far from iid
    seen = []
    run = fitting.run_named
    monkeypatch.setattr(fitting, "run_named", lambda p, *a, **k: seen.append(p) or run(p, *a, **k))
    model = adfs.LogisticRegression(graph="path", fit_intercept=False, tol=1e-13)
    model.fit(X, y, groups=names)
    problem = seen[0]
    assert problem.topology == adfs.Topology.path(3)
    for node, name in enumerate(["Lima", "Oslo", "Rome"]):
        np.testing.assert_array_equal(
            problem.rows.values[problem.node_rows(node)], X[names == name]
        )
        np.testing.assert_array_equal(
            problem.labels[problem.node_rows(node)], 2.0 * y[names == name] - 1.0
        )
    dealt = adfs.LogisticRegression(fit_intercept=False, tol=1e-13).fit(X, y)
    np.testing.assert_allclose(model.coef_, dealt.coef_, rtol=1e-4, atol=1e-6)


def test_a_node_whose_rows_weigh_nothing_still_passes_messages_on():
    X, y = rows("breast-cancer")
    nodes = np.arange(len(y)) % 3
    model = adfs.Ridge(graph="path:3", tol=1e-13)
    model.fit(X, y, sample_weight=(nodes != 1).astype(float), groups=nodes)
    without = adfs.Ridge(n_nodes=1, tol=1e-13).fit(X[nodes != 1], y[nodes != 1])
    np.testing.assert_allclose(model.coef_, without.coef_, rtol=1e-4, atol=1e-6)
    assert model.result_.thetas.shape == (3, 30)


@pytest.mark.parametrize("kind", ALL)
def test_an_early_stop_warns_with_the_gap_and_keeps_the_model(kind):
    X, y = rows("breast-cancer")
    model = kind(max_iter=500, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="relative duality gap .*, above tol=1e-09"):
        model.fit(X, y)
    assert model.n_iter_ == 500
    assert model.coef_.any()
    assert model.dual_gap_ > 1e-9
    assert model.dual_gap_ == model.result_.duality_gap


def test_the_gap_bounds_what_an_early_stop_lacks():
    X, y = rows("breast-cancer")
    signs = 2.0 * y - 1.0

    def objective(theta):
        return np.sum(np.logaddexp(0.0, -signs * (X @ theta))) + 0.5 * theta @ theta

    best = objective(adfs.LogisticRegression(fit_intercept=False, tol=1e-14).fit(X, y).coef_[0])
    for max_iter in (1000, 3000, 10_000):
        model = adfs.LogisticRegression(fit_intercept=False, max_iter=max_iter, tol=1e-14)
        with pytest.warns(ConvergenceWarning, match="raise max_iter or tol"):
            model.fit(X, y)
        assert 0.0 < objective(model.coef_[0]) - best <= model.dual_gap_


def test_a_warning_of_several_classes_names_the_worst():
    X, y = rows("digits")
    words = np.array([f"digit {k}" for k in range(10)])[y]
    with pytest.warns(ConvergenceWarning, match=r"the worst of 10: digit \d"):
        adfs.LinearSVC(max_iter=100).fit(X, words)


def test_a_warm_start_saves_iterations_and_changes_nothing_else():
    X, y = rows("breast-cancer")
    model = adfs.LogisticRegression(warm_start=True, tol=1e-13).fit(X, y)
    warm = model.set_params(C=1.02, tol=1e-8).fit(X, y)
    cold = adfs.LogisticRegression(C=1.02, tol=1e-8).fit(X, y)
    assert warm.n_iter_ < 0.6 * cold.n_iter_
    assert relative(warm, np.column_stack([cold.coef_, cold.intercept_])) < 1e-3
    again = warm.set_params(warm_start=False).fit(X, y)
    assert again.coef_.tobytes() == cold.coef_.tobytes()


def test_ctrl_c_keeps_the_model_and_is_passed_on(monkeypatch):
    X, y = rows("digits")

    def interrupt(progress):
        if progress.iteration > 0:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(fitting, "progress_printers", lambda *_: (interrupt,))
    model = adfs.LogisticRegression(tol=1e-12)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.result_[0].status == "interrupted"
    assert model.coef_[0].any()
    assert model.n_iter_[1:].sum() == 0  # what had not begun stays where it starts
    assert model.predict(X).shape == y.shape


def test_ctrl_c_ends_all_columns_of_sparse_ridge(monkeypatch):
    X, y = rows("digits")
    stop = lambda progress: progress.iteration and os.kill(os.getpid(), signal.SIGINT)  # noqa: E731
    monkeypatch.setattr(fitting, "progress_printers", lambda *_: (stop,))
    model = adfs.Ridge(tol=1e-12)
    with pytest.raises(KeyboardInterrupt):
        model.fit(sp.csr_array(X), np.eye(10)[y])
    assert [result.status for result in model.result_] == ["interrupted"] + 9 * ["max_iter"]
    assert model.n_iter_[0] > 0
    assert model.n_iter_[1:].sum() == 0


def test_verbose_prints_a_line_per_evaluation(capsys):
    X, y = rows("breast-cancer")
    adfs.LogisticRegression().fit(X, y)
    assert capsys.readouterr().out == ""
    model = adfs.LogisticRegression(verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(model.history_["iteration"])
    assert lines[-1].startswith(f"[adfs] iteration {model.n_iter_}: objective ")
    adfs.Ridge(verbose=True).fit(sp.csr_array(X), y)
    assert "relative gap" in capsys.readouterr().out


def test_best_finds_the_same_model_and_says_why():
    X, y = rows("breast-cancer")
    model = adfs.LogisticRegression(algorithm="best", tol=1e-10).fit(X, y)
    usual = adfs.LogisticRegression(tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.coef_, usual.coef_, atol=1e-4)
    assert model.result_.algorithm in model.result_.choice.reason

"""A loss of one's own: the generic steps, the same runs as with ours, and what is refused."""

import itertools
import json
import math
import pickle
import re

import numba
import numpy as np
import pytest
import scipy.sparse as sp

import adfs
from adfs.algorithms.base import MethodSetting
from adfs.errors import AdfsError, DataError, ParameterError
from adfs.kernels import loss_functions, plugin_loss, prox
from adfs.losses import LOSSES, get_loss
from oracles import log_cosh as literal
from support.own_losses import (
    forget_own_losses,  # noqa: F401  (a fixture)
    log_cosh,
    log_cosh_bend,
    log_cosh_conjugate,
    logistic,
    logistic_bend,
    logistic_slope,
    make,
    squared,
    squared_slope,
)
from support.peers import on_ranks, succeed
from support.problems import make_case, make_data
from support.ranks import (
    EVENTS,
    ThreadNetwork,
    found_by,
    found_locally,
    loopback,
    make_ranks,
    merged,
    require_same_bits,
    run_ranks,
    share_of,
)
from support.selection import covering

uncompiled = pytest.mark.uncompiled
RATIOS = (1e-6, 0.01, 0.999, 1.0, 1.9, 30.0, 1e4)
METHODS = ("adfs", "dsba", "point-saga", "msda", "katyusha", "newton", "lbfgs", "tron")
PAIRS = {"my-logistic": "logistic", "my-squared": "squared"}


def problem_of(loss, convert=np.asarray, n_nodes=4, sigma=0.5, **options):
    classes = get_loss(loss).binary
    X, y = make_data("logistic" if classes else "squared", n_samples=60, n_features=4, seed=2)
    shards = adfs.partition(convert(X), y, n_nodes)
    return adfs.Problem(shards, loss, sigma, **options)


# The generic steps


@uncompiled
@pytest.mark.parametrize("ratio", RATIOS)
def test_the_dual_step_is_the_minimiser_found_by_brute_force(ratio):
    """Also with eta > L, from a good, a bad and an absurd start."""
    code = make("log-cosh").code
    for w, q, b, z in itertools.product((0.03, 1.0, 7.0), (1e-3, 3.7), (-1.7, 0.6), (-9, 0.4, 2)):
        eta = ratio * w * q
        expected = literal.prox_tilde_star(b, w, q, eta, w * z)
        for warm in (0.0, 3.0, -1e8):
            found, s = prox.dual_prox(code, b, w, q, eta, w * z * q, warm, 0.0)
            assert found == pytest.approx(expected, abs=1e-11 * w * (1.0 + ratio)), (w, q, b, z)
            assert found == w * loss_functions.derivative(code, s, b)


@uncompiled
@pytest.mark.parametrize("k", [0.0, 1e-3, 1.0, 1e6])
def test_the_plain_step_is_the_minimiser_found_by_bisection(k):
    code = make("log-cosh").code
    for b, target in itertools.product((-1.7, 0.6), (-1e3, -2.0, 0.1, 40.0)):
        found, _ = prox.slope_after(code, b, k, target, 0.0, 0.0)
        assert found == pytest.approx(literal.prox(b, k, target), rel=1e-12, abs=1e-15)


@uncompiled
@pytest.mark.parametrize("name", PAIRS)
def test_both_steps_are_those_of_the_closed_forms(name):
    own, ours, generator = make(name), get_loss(PAIRS[name]), np.random.default_rng(0)
    for ratio in RATIOS:
        for b, w, q in itertools.product(own.labels, (0.05, 2.0), (1e-2, 4.0)):
            eta = ratio * w * own.max_curvature * q
            u = float(eta * generator.normal(0, 5) + q * w * generator.normal())
            steps = [prox.dual_prox(each.code, b, w, q, eta, u, 0.0, 0.0) for each in (own, ours)]
            assert steps[0][0] == pytest.approx(steps[1][0], abs=1e-11 * (w + abs(u) / q + ratio))
            steps = [prox.slope_after(each.code, b, ratio, u, 0.0, 0.0) for each in (own, ours)]
            assert steps[0][0] == pytest.approx(steps[1][0], rel=1e-11, abs=1e-13)


@uncompiled
def test_a_slow_tail_is_reached_in_few_steps(monkeypatch):
    """Newton's steps alone go by 1 in an exponential tail: they would need hundreds."""
    calls = []

    def counted(s, b):
        calls.append(s)
        return logistic_slope(s, b)

    functions = plugin_loss.Functions(logistic, counted, lambda s, b: 0.25, logistic, 0.25, False)
    monkeypatch.setattr(plugin_loss, "call", lambda code, k, a, b: float(functions[k](a, b)))
    monkeypatch.setattr(plugin_loss, "entry", lambda code, k: float(functions[k]))
    monkeypatch.setattr(plugin_loss, "bend", lambda code, s, b: logistic_bend(s, b))
    root = getattr(plugin_loss.root, "py_func", plugin_loss.root)
    s, slope, found = root(8, 1.0, 0.0, 1.0, -1e-200, 0.0, 1e6)
    assert slope == pytest.approx(-1e-200, rel=1e-12)
    assert s == pytest.approx(200 * math.log(10))
    assert found
    assert len(calls) < 100


@uncompiled
def test_the_conjugate_is_solved_for_where_it_is_not_given():
    solved = make("log-cosh").code
    given = make("log-cosh", conjugate=log_cosh_conjugate).code
    for b, c in itertools.product((-1.7, 0.6), (-0.999, -0.3, 0.0, 0.8)):
        exact = literal.conjugate(c, b)
        assert loss_functions.conjugate(solved, b, c) == pytest.approx(exact, abs=1e-13)
        assert loss_functions.conjugate(given, b, c) == pytest.approx(exact, abs=1e-13)
        for s in (-8.0, 0.1, 3.0):
            gap = literal.value(s, b) + exact - c * s
            for code in (solved, given):
                assert loss_functions.fenchel_gap(code, s, b, c) == pytest.approx(gap, abs=1e-13)


@uncompiled
@pytest.mark.parametrize("options", [{}, {"conjugate": log_cosh_conjugate}])
def test_a_gap_is_never_negative_and_zero_at_the_derivative(options):
    code = make("log-cosh", **options).code
    for b, s in itertools.product((-1.7, 1e5), (-1e4, -3.0, 0.0, 0.7, 1e5 + 0.3)):
        slope = loss_functions.derivative(code, s, b)
        assert loss_functions.fenchel_gap(code, s, b, slope) == 0.0
        for c in (-0.7, slope * (1 - 1e-9), 0.2):
            assert loss_functions.fenchel_gap(code, s, b, c) >= 0.0


@uncompiled
def test_a_dual_outside_the_range_of_the_derivative_is_clipped_to_it():
    code, flat = make("log-cosh").code, adfs.Loss(
        "fair", 1.0, value=lambda s, b: abs(s - b) - math.log1p(abs(s - b)),
        derivative=lambda s, b: (s - b) / (1.0 + abs(s - b)),
    ).code  # fmt: skip
    for b in (-1.7, 300.0):
        assert loss_functions.clip(code, b, 0.4) == 0.4
        assert loss_functions.clip(code, b, 1.3) == 1.0
        assert loss_functions.clip(code, b, -1e9) == -1.0
        assert 0.9999 < loss_functions.clip(flat, b, 1.0) < 1.0  # its range is open
        assert loss_functions.fenchel_gap(flat, 0.0, b, 1.0) == math.inf
        assert math.isnan(loss_functions.clip(code, b, math.nan))


@uncompiled
def test_a_second_derivative_that_is_not_given_is_a_difference():
    code = make("log-cosh").code
    for s in (-3.0, 0.0, 0.4, 50.0):
        assert loss_functions.curvature(code, s, 0.1) == pytest.approx(
            log_cosh_bend(s, 0.1), abs=1e-8
        )


# Whole runs


@covering(method=METHODS, name=tuple(PAIRS), convert=(np.asarray, sp.csr_matrix))
def test_a_loss_of_ones_own_runs_as_the_same_loss_of_the_package(method, name, convert):
    make(name)
    results = [
        adfs.solve(problem_of(loss, convert), method, tol=1e-9, max_iter=100_000)
        for loss in (name, PAIRS[name])
    ]
    assert [each.status for each in results] == ["converged"] * 2
    assert results[0].iterations == results[1].iterations
    assert np.allclose(results[0].thetas, results[1].thetas, rtol=0, atol=1e-10)
    assert results[0].objective == pytest.approx(results[1].objective, rel=1e-12)


@pytest.mark.parametrize("schedule", ["shared", "poisson", "stratified"])
def test_a_certified_gap_is_a_bound_although_the_conjugate_is_solved_for(schedule):
    problem = problem_of(make("log-cosh"))
    best = problem.optimum().objective
    coarse = adfs.solve(problem, "adfs", tol=1e-3, schedule=schedule)
    fine = adfs.solve(problem, "adfs", tol=1e-11, schedule=schedule)
    assert 0.0 <= coarse.objective - best <= coarse.duality_gap
    assert fine.status == "converged"
    assert fine.duality_gap <= 1e-11 * fine.objective


def shards_for_ranks():
    """Shards, the problem with its log-cosh loss, and two ranks for its four nodes."""
    case = make_case("grid:2x2", "squared", sizes=[5, 3, 7, 4])
    problem = adfs.Problem(case.shards, make("log-cosh"), 0.5, case.problem.topology)
    return case.shards, problem, np.array([0, 1, 1, 0])


@pytest.mark.parametrize("schedule", ["shared", "poisson", "stratified"])
def test_adfs_on_two_ranks_has_the_bits_of_one_process(schedule):
    shards, problem, mapping = shards_for_ranks()
    setting = MethodSetting("tuned", seed=3, schedule=schedule)
    ranks = make_ranks(shards, problem, setting, mapping)
    run_ranks(ranks, loopback(2, 0), EVENTS)
    found = merged([found_by(rank) for rank in ranks], 4)
    require_same_bits(found, found_locally(problem, setting, EVENTS))


@pytest.mark.parametrize("name", ["msda", "dsba", "katyusha", "newton", "tron"])
def test_rounds_on_two_ranks_have_the_bits_of_one_process(name):
    shards, problem, mapping = shards_for_ranks()

    def output(share):
        method = adfs.prepare(share, name)
        state = method.algorithm.step(method.algorithm.init(), method.source.draw(0, 20))
        return share.nodes, method.algorithm.output(state)

    def work(peers):
        return output(share_of(ThreadNetwork(peers, problem.topology, mapping), shards, problem))

    _, expected = output(problem)
    for nodes, found in succeed(2, work):
        assert found.tobytes() == expected[nodes].tobytes()


def test_ranks_that_define_one_name_differently_are_refused():
    shards = adfs.partition(*make_data("squared", n_samples=8, seed=0), 2)
    other = make("log-cosh", value=lambda s, b: 2.0 * log_cosh(s, b))
    losses = [make("log-cosh"), other]

    def work(peers):
        network = ThreadNetwork(peers, adfs.Topology.path(2), np.arange(2))
        return adfs.Problem([shards[peers.rank]], losses[peers.rank], 1.0, network=network)

    for error in on_ranks(2, work)[0]:
        assert re.search(r"loss is log-cosh \(\w+\) on rank 0 and log-cosh \(\w+\) on", str(error))


def test_a_run_is_resumed_with_the_same_functions_only(tmp_path):
    whole = adfs.solve(problem_of(make("log-cosh")), "adfs", tol=1e-9, evaluate_every=500)
    stored = adfs.Checkpoints(tmp_path / "run", every=500)
    adfs.solve(problem_of(make("log-cosh")), "adfs", tol=1e-9, max_iter=1_000,
               evaluate_every=500, checkpoints=stored)  # fmt: skip
    again = adfs.Checkpoints(tmp_path / "run", every=500, resume=True)
    other = make("log-cosh", second_derivative=lambda s, b: 0.5)
    with pytest.raises(ParameterError, match="loss=log-cosh"):
        adfs.solve(problem_of(other), "adfs", tol=1e-9, evaluate_every=500, checkpoints=again)
    same = problem_of(make("log-cosh"))
    resumed = adfs.solve(same, "adfs", tol=1e-9, evaluate_every=500, checkpoints=again)
    assert resumed.thetas.tobytes() == whole.thetas.tobytes()


def test_a_model_is_stored_read_and_judged(tmp_path):
    problem = problem_of(make("my-logistic"))
    model = adfs.Model.from_result(adfs.solve(problem, tol=1e-6), problem)
    model.save(tmp_path / "m.npz")
    X, y = make_data("logistic", n_samples=60, n_features=4, seed=2)
    loaded = adfs.Model.load(tmp_path / "m.npz")
    assert loaded.loss is LOSSES["my-logistic"]
    assert (loaded.predict(X) == y).mean() > 0.8
    assert (loaded.to_sklearn().predict(X) == loaded.predict(X)).all()
    del LOSSES["my-logistic"]
    with pytest.raises(DataError, match="'my-logistic' is not known; load the file that defines"):
        adfs.Model.load(tmp_path / "m.npz")


def test_a_regression_of_ones_own_is_exported():
    problem = problem_of(make("log-cosh"))
    model = adfs.Model.from_result(adfs.solve(problem, tol=1e-6), problem)
    X, _ = make_data("squared", n_samples=9, n_features=4, seed=1)
    assert np.allclose(model.to_sklearn().predict(X), model.predict(X))


def test_plan_compare_and_a_path_take_it():
    problem = problem_of(make("log-cosh"))
    assert adfs.plan(problem).best.algorithm in adfs.algorithms()
    records = adfs.compare(problem, ["adfs", "msda"], tol=1e-6, progress=False).records
    assert [record.status for record in records] == ["converged"] * 2


def test_commands_take_its_name_once_it_is_made(tmp_path, monkeypatch, capsys):
    from adfs.cli.main import main

    monkeypatch.chdir(tmp_path)
    X, y = make_data("squared", n_samples=30, n_features=3, seed=1)
    np.savez("data.npz", X=X, y=y)
    words = ["train", "data.npz", "--loss", "log-cosh", "--json", "--quiet", "--out", "m.npz"]
    assert main(words) == 2
    assert "invalid choice: 'log-cosh'" in capsys.readouterr().err
    make("log-cosh")
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "converged"
    assert main(["predict", "m.npz", "data.npz"]) == 0
    assert "R2 0.9" in capsys.readouterr().err


# What is refused


BAD = {
    "a loss that is not smooth": ({"max_curvature": math.inf}, "one's own has to be smooth"),
    "no curvature": ({"max_curvature": 0.0}, "max_curvature=0 must be a finite number > 0"),
    "no derivative": ({"derivative": None}, r"'log-cosh' needs derivative=, a function of \(s, b"),
    "a number": ({"value": 3.0}, "value=3.0 must be a function of"),
    "one argument": ({"value": abs}, "must be a function of"),
    "three arguments": ({"conjugate": lambda c, b, w: c}, r"must be a function of \(c, b\)"),
    "targets backwards": ({"targets": (1.0, 0.0)}, "lowest < largest"),
    "no flag": ({"binary": 1}, "binary"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_definition_that_cannot_be_used_is_refused(case):
    changes, sentence = BAD[case]
    with pytest.raises(ParameterError, match=sentence):
        make("log-cosh", **changes)
    assert "log-cosh" not in LOSSES


def test_names_are_checked():
    facts = {"value": squared, "derivative": squared_slope}
    with pytest.raises(ParameterError, match="is a loss of the package"):
        adfs.Loss("logistic", 1.0, **facts)
    with pytest.raises(ParameterError, match="letters, digits"):
        adfs.Loss("two words", 1.0, **facts)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_a_function_that_numba_cannot_compile_is_refused_at_its_first_use():
    loss = make("log-cosh", value=lambda s, b: print(s, file=b))
    with pytest.raises(ParameterError, match="must be ones that Numba can compile"):
        problem_of(loss)


def test_targets_that_it_does_not_take_are_refused():
    with pytest.raises(DataError, match="is made for targets from 0 to inf, and one is -"):
        problem_of(make("log-cosh", targets=(0.0, math.inf)))


@uncompiled
def test_a_function_that_raises_an_error_gives_nan():
    def value(s, b):
        if s > 3.0:
            raise ValueError("too large")
        return 1.0 / (s - 2.0)

    code = make("log-cosh", value=value).code
    assert loss_functions.value(code, 1.0, 0.0) == -1.0
    assert math.isnan(loss_functions.value(code, 4.0, 0.0))


def test_functions_may_call_others_that_numba_compiles():
    @numba.njit
    def residual(s, b):
        return s - b

    loss = make("log-cosh", derivative=lambda s, b: math.tanh(residual(s, b)))
    assert loss_functions.derivative(loss.code, 1.0, 0.5) == math.tanh(0.5)
    assert loss.identity == make("log-cosh").identity


def test_a_copy_for_another_process_is_what_has_the_name_there():
    loss = make("log-cosh")
    assert pickle.loads(pickle.dumps(loss)) is loss
    stored = pickle.dumps(loss)
    del LOSSES["log-cosh"]
    with pytest.raises(ParameterError, match="loss='log-cosh' is not known"):
        pickle.loads(stored)


# The check


def faults_of(loss):
    with pytest.raises(AdfsError) as caught:
        adfs.check_loss(loss)
    return list(caught.value.faults)


@pytest.mark.parametrize("name", ["squared", "huber", "squared_hinge", "hinge", "absolute"])
def test_losses_of_the_package_pass(name):
    assert adfs.check_loss(name) is None


@pytest.mark.parametrize("name", ["log-cosh", "my-logistic", "my-squared"])
def test_good_losses_of_ones_own_pass(name):
    adfs.check_loss(make(name))


@uncompiled
def test_all_facts_of_a_good_loss_pass():
    adfs.check_loss(make("log-cosh", second_derivative=log_cosh_bend, conjugate=log_cosh_conjugate))


def half_right(s, b):
    """The conjugate of squared, without its linear term."""
    return 0.5 * s * s


FAULTS = {
    "value overflows": (
        "log-cosh", {"value": lambda s, b: math.log(math.cosh(s - b))},
        r"value\(.*\) must be finite",
    ),
    "derivative overflows": (
        "my-logistic",
        {"derivative": lambda s, b: -b * math.exp(-b * s) / (1.0 + math.exp(-b * s))},
        r"derivative\(.*\) must be finite",
    ),
    "grows like an exponential": (
        "log-cosh", {"value": lambda s, b: math.exp(s) - b * s,
                     "derivative": lambda s, b: math.exp(s) - b},
        "no smooth one grows faster than a square",
    ),
    "labels outside its domain": (
        "my-squared", {"value": lambda s, b: squared(s, b) + math.log(b)},
        r"at every s; give targets=\(lowest, largest\)",
    ),
    "value is negative": (
        "my-squared", {"value": lambda s, b: 0.5 * s * s - b * s},
        "value must be >= 0",
    ),
    "value is not convex": (
        "log-cosh", {"value": lambda s, b: log_cosh(s, b) + 0.5 * math.cos(2.0 * s),
                     "derivative": lambda s, b: math.tanh(s - b) - math.sin(2.0 * s),
                     "max_curvature": 9.0},
        "value must be convex in s",
    ),
    "derivative of another loss": (
        "log-cosh", {"derivative": lambda s, b: 0.98 * math.tanh(s - b)},
        "derivative must be that of value",
    ),
    "derivative with the wrong sign": (
        "my-logistic", {"derivative": lambda s, b: -logistic_slope(s, b)},
        "derivative must be that of value",
    ),
    "second derivative too small": (
        "log-cosh", {"second_derivative": lambda s, b: 0.5 * log_cosh_bend(s, b)},
        "second_derivative must be that of derivative",
    ),
    "curvature too small": (
        "my-logistic", {"max_curvature": 0.2}, "max_curvature=0.2 must be an upper bound",
    ),
    "conjugate without its linear term": (
        "my-squared", {"conjugate": half_right}, r"must be c s - value\(s, b\) at c",
    ),
    "conjugate too large": (
        "my-squared", {"conjugate": lambda c, b: 0.5 * c * c + b * c + 0.01},
        r"must be c s - value\(s, b\) at c",
    ),
    "conjugate without its domain": (
        "log-cosh", {"conjugate": lambda c, b: log_cosh_conjugate(min(1.0, max(-1.0, c)), b)},
        r"must be at least c s - value\(s, b\) for every s",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS)
def test_each_fault_has_its_own_sentence(case):
    name, changes, sentence = FAULTS[case]
    found = faults_of(make(name, **changes))
    assert any(re.search(sentence, fault) for fault in found), found


def test_all_faults_are_listed_at_once():
    wrong = make(
        "my-squared", max_curvature=0.5, second_derivative=lambda s, b: 0.1, conjugate=half_right
    )
    found = faults_of(wrong)
    assert len(found) >= 2
    assert any("max_curvature=0.5" in fault for fault in found)
    assert any("conjugate(c, b)" in fault for fault in found)


def test_a_fault_that_only_a_training_shows_is_found(monkeypatch):
    """The steps and the training are checks of their own: they need no other check to fail."""
    from adfs import loss_contract

    last = loss_contract.STAGES[-1]
    monkeypatch.setattr(loss_contract, "STAGES", (last,))
    (step,) = faults_of(make("log-cosh", max_curvature=0.3))[:1]
    assert "proximal step" in step
    twice = make("my-squared", derivative=lambda s, b: 2.0 * (s - b), max_curvature=2.0,
                 second_derivative=lambda s, b: 2.0, conjugate=None)  # fmt: skip
    assert any("small training" in fault for fault in faults_of(twice))

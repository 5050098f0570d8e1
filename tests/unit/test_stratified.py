"""Stratified draws: the shared events, and each epoch of a node visits samples evenly."""

import itertools
import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import adfs
from adfs.algorithms.adfs import Adfs
from adfs.algorithms.base import MethodSetting
from adfs.algorithms.pairwise import source_of
from adfs.engine import run_controller
from adfs.engine.checkpointer import Checkpoints
from adfs.engine.run_controller import DrawWatch
from adfs.kernels import strata
from adfs.randomness import stream_key
from adfs.schedule.sampling_law import Drawer
from adfs.schedule.stratified import StratifiedDrawer
from oracles.strata import epoch_of, local_samples
from support.peers import succeed
from support.ranks import Case, ThreadNetwork, make_shards_of, random_mapping, share_of

WEIGHTS = {
    "equal": np.ones(7),
    "one": np.ones(1),
    "unequal": np.array([0.1, 5.0, 0.3, 0.3, 1.0, 0.02, 2.0]),
    "zeros": np.array([0.0, 1.0, 0.0, 3.0, 0.5, 0.0]),
    "many": np.random.default_rng(0).pareto(1.5, 300) + 0.05,
}


def line_of(weights, key):
    line, ends = np.empty(len(weights), np.int32), np.empty(len(weights))
    strata.lay_out(weights, key, line, ends)
    return line, ends


def epochs(weights, n_epochs, seed=0):
    """Samples of the first epochs, one row per epoch."""
    key = stream_key(seed, "test")
    line, ends = line_of(weights, key)
    found = np.empty((n_epochs, len(weights)), np.int32)
    for epoch in range(n_epochs):
        strata.fill_epoch(found[epoch], line, ends, key, epoch)
    return found


def counts_of(found, m):
    return np.array([np.bincount(each, minlength=m) for each in found])


@pytest.fixture(scope="module")
def law():
    X, y = adfs.generators.two_gaussians(90, 4, seed=0)
    X[::3] *= 4.0
    sizes = np.cumsum([3, 10, 30, 7, 5, 5, 10, 11])
    shards = list(zip(np.split(X, sizes), np.split(y, sizes), strict=True))
    problem = adfs.Problem(shards, sigma=0.1, topology=adfs.Topology.grid(3, 3))
    return adfs.Parameters.choose(problem, "exact")


@pytest.mark.parametrize("name", WEIGHTS)
def test_an_epoch_has_each_sample_as_often_as_is_due(name):
    weights = WEIGHTS[name]
    due = weights / weights.sum() * len(weights)
    counts = counts_of(epochs(weights, 200), len(weights))
    assert (counts >= np.floor(due - 1e-9)).all()
    assert (counts <= np.ceil(due + 1e-9)).all()


@pytest.mark.parametrize("name", ["unequal", "zeros", "many"])
def test_in_the_mean_each_sample_comes_up_m_q_times(name):
    weights, n_epochs = WEIGHTS[name], 20_000
    due = weights / weights.sum() * len(weights)
    mean = counts_of(epochs(weights, n_epochs), len(weights)).mean(axis=0)
    # A count is floor or ceil, so its variance is that of one coin.
    part = due - np.floor(due)
    error = np.sqrt(part * (1.0 - part) / n_epochs)
    assert (np.abs(mean - due) <= 5.0 * error + 1e-9).all()


def test_all_orders_of_an_epoch_are_equally_likely():
    found = [tuple(each) for each in epochs(np.ones(4), 24_000).tolist()]
    counts = np.array([found.count(order) for order in itertools.permutations(range(4))])
    chi2 = np.sum((counts - 1_000) ** 2 / 1_000)  # 23 degrees of freedom
    assert chi2 < 60.0


def test_every_place_of_an_epoch_has_the_law_of_one_draw():
    weights = WEIGHTS["unequal"]
    found, q = epochs(weights, 20_000, seed=1), weights / weights.sum()
    for place in range(len(weights)):
        share = np.bincount(found[:, place], minlength=len(weights)) / len(found)
        assert (np.abs(share - q) <= 5.0 * np.sqrt(q / len(found))).all()


@pytest.mark.parametrize("name", WEIGHTS)
def test_epochs_are_those_of_the_oracle(name):
    key = stream_key(5, "test")
    line, ends = line_of(WEIGHTS[name], key)
    order = np.empty(len(line), np.int32)
    for epoch in (0, 1, 17):
        strata.fill_epoch(order, line, ends, key, epoch)
        assert order.tolist() == epoch_of(WEIGHTS[name], int(key), epoch)


def test_the_events_are_those_of_the_shared_schedule(law):
    shared, own = Drawer(law, 3).draw(0, 5_000), StratifiedDrawer(law, 3).draw(0, 5_000)
    np.testing.assert_array_equal(own.which, shared.which)
    np.testing.assert_array_equal(own.sample < 0, shared.sample < 0)


def test_a_nodes_samples_are_its_epochs_one_after_another(law):
    events = StratifiedDrawer(law, 3).draw(0, 5_000)
    for node in range(9):
        mine = events.sample[events.which == len(law.edges) + node]
        expected = local_samples(law.importance_of(node), 3, node, len(mine))
        assert mine.tolist() == expected


@pytest.mark.parametrize("split", [None, 1_234])
def test_blocks_are_the_same_however_they_are_cut(law, split):
    def drawer():
        found = StratifiedDrawer(law, 3)
        if split is not None:
            found.independent_from = split
        return found

    whole, again = drawer().draw(0, 6_000), drawer()
    cuts = [0, 1, 1, 700, 701, 1_200, 1_500, 6_000]
    blocks = list(itertools.pairwise(cuts))
    for start, stop in [*blocks, *reversed(blocks), (70, 90), (20, 30), (5_000, 5_999)]:
        np.testing.assert_array_equal(again.draw(start, stop).sample, whole.sample[start:stop])


def test_from_the_switch_on_samples_are_the_independent_ones(law):
    shared, before, after = Drawer(law, 3), StratifiedDrawer(law, 3), StratifiedDrawer(law, 3)
    after.independent_from = 1_000
    found = after.draw(0, 3_000).sample
    np.testing.assert_array_equal(found[:1_000], before.draw(0, 1_000).sample)
    np.testing.assert_array_equal(found[1_000:], shared.draw(1_000, 3_000).sample)


@pytest.mark.parametrize("split", [None, 900])
@pytest.mark.parametrize("size", [2, 4])
def test_a_rank_draws_the_samples_of_one_process(size, split):
    shards, problem = make_shards_of(Case("logistic", "dense", "shared", 9))
    setting = MethodSetting("exact", seed=3, schedule="stratified")

    def source(share, network):
        found = source_of(adfs.Parameters.choose(share, "exact", 5.0), setting, network)
        if split is not None:
            found.independent_from = split
        return found

    everybody = source(problem, problem.network)
    blocks = [(0, 1), (1, 700), (700, 3_000), (50_000, 51_000), (10, 20)]
    events = {block: everybody.draw(*block) for block in blocks}
    mapping = random_mapping(9, size, seed=size)

    def compare(peers):
        network = ThreadNetwork(peers, problem.topology, mapping)
        own_source = source(share_of(network, shards, problem), network)
        for block, expected in events.items():
            own = own_source.draw(*block)
            place = own.ticks - block[0]
            np.testing.assert_array_equal(own.which, expected.which[place])
            local = own.which >= problem.topology.n_edges
            np.testing.assert_array_equal(own.sample[local], expected.sample[place][local])

    succeed(size, compare)


def solve(problem, **options):
    return adfs.solve(problem, schedule="stratified", progress=False, **options)


def bits_of(result):
    return result.thetas.tobytes(), result.duals.tobytes(), result.independent_from, result.status


@pytest.fixture(scope="module")
def problem():
    X, y = adfs.generators.two_gaussians(400, 6, seed=1, condition=10.0)
    return adfs.Problem(adfs.partition(X, y, 4), sigma=0.1)


@pytest.fixture
def impatient(monkeypatch):
    """No gain is enough, so that every run falls back."""
    monkeypatch.setattr(run_controller, "PATIENCE", 1e-3)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_it_reaches_the_tolerance_and_claims_no_theorem(loss):
    X, y = adfs.generators.two_gaussians(200, 4, seed=1)
    result = solve(adfs.Problem(adfs.partition(X, y, 4), loss, sigma=0.1), tol=1e-4)
    assert (result.status, result.schedule) == ("converged", "stratified")
    assert (result.proven, result.proven_rate, result.independent_from) == (False, None, None)
    assert "no theorem covers" in result.theorem


@pytest.mark.parametrize(
    ("loss", "algorithm", "schedule"),
    [("logistic", "auto", "stratified"), ("hinge", "auto", "stratified"),
     ("hinge", "best", "stratified"), ("logistic", "adfs", "shared"),
     ("hinge", "ns-adfs", "shared"), ("logistic", "newton", "shared")],
)  # fmt: skip
def test_it_is_what_auto_and_best_use_and_a_name_does_not(loss, algorithm, schedule):
    X, y = adfs.generators.two_gaussians(100, 4, seed=1)
    problem = adfs.Problem(adfs.partition(X, y, 4), loss, sigma=0.1)
    result = adfs.solve(problem, algorithm, tol=1e-3, progress=False)
    assert result.schedule == schedule
    assert result.proven == (schedule == "shared" and algorithm == "adfs")
    again = adfs.solve(problem, result.algorithm, tol=1e-3, schedule=schedule, progress=False)
    assert again.theta.tobytes() == result.theta.tobytes()


def test_estimators_and_paths_have_it_unless_a_method_is_named():
    X, y = adfs.generators.two_gaussians(120, 3, seed=1)
    found = {
        name: adfs.LogisticRegression(n_nodes=4, algorithm=name).fit(X, y).result_.schedule
        for name in ("auto", "adfs")
    }
    assert found == {"auto": "stratified", "adfs": "shared"}
    path = adfs.regularization_path(adfs.Problem(adfs.partition(X, y, 4)), [0.1, 1.0])
    assert path.model.meta["schedule"] == "stratified"


def test_looks_for_a_picture_change_no_bit_nor_does_saving(problem, impatient, tmp_path):
    plain = solve(problem, tol=1e-8)
    assert plain.independent_from is not None
    assert plain.independent_from < plain.iterations
    assert bits_of(solve(problem, tol=1e-8, evaluate_every="curve")) == bits_of(plain)
    kept = solve(problem, tol=1e-8, checkpoints=Checkpoints(tmp_path, 333))
    assert bits_of(kept) == bits_of(plain)


def test_a_run_that_fell_back_says_so(problem, impatient):
    result = solve(problem, tol=1e-8)
    assert f"event {result.independent_from:,} on" in result.theorem


def test_a_run_that_falls_back_has_the_samples_of_both(problem, impatient):
    result = solve(problem, tol=1e-8)
    source = StratifiedDrawer(result.parameters, 0)
    source.independent_from = result.independent_from
    algorithm = Adfs(problem, result.parameters)
    state = algorithm.step(algorithm.init(), source.draw(0, result.iterations))
    assert algorithm.output(state).tobytes() == result.thetas.tobytes()


def test_it_goes_on_from_a_checkpoint_before_and_after_the_switch(problem, impatient, tmp_path):
    whole = solve(problem, tol=1e-8)
    switch = whole.independent_from
    for stop in (switch - 700, switch + 700):
        where = Checkpoints(tmp_path / str(stop), 500)
        solve(problem, tol=1e-8, max_iter=stop, checkpoints=where)
        resumed = solve(problem, tol=1e-8, checkpoints=where._replace(resume=True))
        assert 0 < resumed.resumed <= stop
        assert bits_of(resumed) == bits_of(whole)


def watch(rate, rho=1e-3):
    """Look every 1 / rho events at an error that falls at a rate; the source, with its switch."""
    source = SimpleNamespace(independent_from=sys.maxsize)
    found = DrawWatch(source, lambda error: math.log(1.0 / error) / rho, rho)
    for k in range(20):
        found.look(k * 1_000, math.exp(-rate * k * 1_000), least=1_000)
    return found.independent_from


@pytest.mark.parametrize("share", [0.55, 1.0, 4.0])
def test_draws_that_are_half_as_fast_as_theory_stay(share):
    assert watch(share * 1e-3) is None


@pytest.mark.parametrize("share", [0.45, 0.0, -1.0])
def test_slower_draws_end_after_four_factors_e_of_theory(share):
    assert watch(share * 1e-3) == 4_000 + 1_000


def test_a_schedule_of_them_is_saved_and_read(law, tmp_path):
    schedule = adfs.Schedule.sample(law, 2_000, seed=3, stratified=True)
    schedule.save(tmp_path / "s.npz")
    again = adfs.Schedule.load(tmp_path / "s.npz").events(500, 900)
    np.testing.assert_array_equal(again.sample, StratifiedDrawer(law, 3).draw(500, 900).sample)
    np.testing.assert_array_equal(again.sample, schedule.events(500, 900).sample)

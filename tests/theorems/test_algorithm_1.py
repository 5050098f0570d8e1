"""The lazy kernel is Algorithm 1, and Algorithm 1 is APCG on the dual problem."""

import numpy as np
import pytest
import scipy.sparse as sp

import adfs
from adfs.algorithms.adfs import Adfs
from adfs.kernels import edge
from adfs.schedule.events import Events
from adfs.theory import parameters, rules, sigma_a
from oracles import algorithm1, apcg, augmented, losses
from support.problems import (
    RULES,
    all_duals,
    augmented_edges,
    bits,
    differences,
    literal,
    make_case,
    make_shards,
    node_rows,
    run,
    stored_as,
    sums,
)

N_EVENTS = 2000
GRAPHS = ("single", "grid:2x2", "grid:3x3", "star:5", "ring:6", "complete:5")
# Every graph with every smooth loss; the four rules take turns, so that each meets each graph.
COMBINATIONS = [
    (graph, loss, RULES[(g + k) % len(RULES)])
    for g, graph in enumerate(GRAPHS)
    for k, loss in enumerate(losses.SMOOTH)
]


def checkpoints(seed):
    """Iterations at which states are compared: the first ones, then irregular steps to the end."""
    steps = np.random.default_rng(seed).integers(1, 120, 200).cumsum() + 12
    return [*range(13), *(int(t) for t in steps if t < N_EVENTS), N_EVENTS]


def assert_close(actual, expected, what):
    """Agreement to 1e-12 of the largest number involved (at least 1)."""
    scale = max(1.0, float(np.max(np.abs(expected))))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12 * scale, err_msg=what)


@pytest.mark.parametrize(("graph", "loss", "how"), COMBINATIONS)
def test_lazy_kernel_is_literal_algorithm_1_is_a_times_edge_space_apcg(graph, loss, how):
    case = make_case(graph, loss, seed=len(graph), density=0.6)
    chosen = adfs.Parameters.choose(case.problem, how, tau=3.0)
    oracle = literal(case, chosen)
    # Steps beyond eta~ = L are among the events; they cannot occur at n = 1.
    assert (oracle.eta_over_smoothness.max() > 1.0) == (graph != "single")
    schedule = adfs.Schedule.sample(chosen, N_EVENTS, seed=5)
    sequence = augmented_edges(case.problem, schedule.events())
    lazy = [Adfs(stored_as(case, kind), chosen) for kind in ("dense", "csr")]
    states = [algorithm.init() for algorithm in lazy]

    dense = algorithm1.iterates(*oracle, sequence)
    a = oracle.incidence
    dual = apcg.dual_problem(*oracle[:6])
    r = augmented.resistances(a)
    shape = (a.shape[1], oracle.rows.shape[1])
    edge_space = apcg.strongly_convex(
        *dual, shape, r, oracle.p, oracle.rho, oracle.sigma_a, sequence
    )

    wanted, moved = set(checkpoints(3)), 0.0
    for t, (node, (x, v)) in enumerate(zip(dense, edge_space, strict=True)):
        if t not in wanted:
            continue
        assert_close(a @ x, node[0], f"APCG, x at {t}")
        assert_close(a @ v, node[1], f"APCG, v at {t}")
        for k, algorithm in enumerate(lazy):
            states[k] = algorithm.step(states[k], schedule.events(states[k].t, t))
            found = node_rows(algorithm, states[k], oracle.rows)
            for name, mine, theirs in zip("xvy", found, node, strict=True):
                assert_close(mine, theirs, f"{['dense', 'csr'][k]}, {name} at {t}")
        moved = max(moved, float(np.max(np.abs(node[1]))))
    assert moved > 0.1


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "huber"])
def test_from_a_model_it_is_apcg_from_that_models_dual_point(loss):
    case = make_case("grid:2x2", loss, seed=1)
    chosen = adfs.Parameters.choose(case.problem, "exact")
    oracle = literal(case, chosen)
    theta = np.random.default_rng(8).standard_normal(4)
    # Rows c x at virtual nodes; centres balance their sum, in proportion to sigma: they agree.
    rows = augmented.optimal_rows(case.shards, case.problem.sigma, loss, theta)
    rows[:4] = -np.outer(case.problem.sigma / case.problem.sigma.sum(), rows[4:].sum(axis=0))
    x = v = np.linalg.pinv(oracle.incidence) @ rows
    algorithm = Adfs(case.problem, chosen)
    state = algorithm.init(theta)
    schedule = adfs.Schedule.sample(chosen, 600, seed=2)
    a = oracle.incidence
    r = augmented.resistances(a)
    dual = apcg.dual_problem(*oracle[:6])
    for t, i in enumerate(augmented_edges(case.problem, schedule.events())):
        found = node_rows(algorithm, state, oracle.rows)
        assert_close(found[0], a @ x, f"x at {t}")
        assert_close(found[1], a @ v, f"v at {t}")
        eta = chosen.rho / (chosen.sigma_A * oracle.p[i])
        x, v = apcg.step(*dual, x, v, i, chosen.rho, chosen.rho, eta, r[i], oracle.p[i])
        state = algorithm.step(state, schedule.events(t, t + 1))


def test_float32_rows_are_used_in_float64_arithmetic():
    case = make_case("grid:2x2", "logistic", seed=2)
    single = [(np.float32(features), *rest) for features, *rest in case.shards]
    widened = [(features.astype(np.float64), *rest) for features, *rest in single]
    wide = make_case("grid:2x2", "logistic", seed=2, shards=widened)
    narrow = adfs.Problem(single, "logistic", wide.problem.sigma, wide.problem.topology)
    assert narrow.rows.values.dtype == np.float32
    states = []
    for problem in (wide.problem, narrow):
        chosen = adfs.Parameters.choose(problem, "exact")
        states.append(run(problem, chosen, 1000)[1])
    assert bits(states[0]) == bits(states[1])


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("graph", ["single", "grid:3x3"])
def test_the_block_length_never_changes_a_bit(graph, kind):
    problem = stored_as(make_case(graph, density=0.5), kind)
    chosen = adfs.Parameters.choose(problem, "exact")
    n_events = 3000
    whole = bits(run(problem, chosen, n_events)[1])
    random_cuts = np.sort(np.random.default_rng(0).integers(0, n_events, 60)).tolist()
    for cuts in (*(range(size, n_events, size) for size in (1, 7, 64, 1000)), random_cuts):
        assert bits(run(problem, chosen, n_events, cuts=cuts)[1]) == whole


def test_reading_changes_neither_the_state_nor_what_follows():
    problem = make_case("grid:2x2").problem
    chosen = adfs.Parameters.choose(problem, "exact")
    silent = bits(run(problem, chosen, 900)[1])
    algorithm, state = run(problem, chosen, 500)
    before = bits(state)
    first = algorithm.output(state), all_duals(algorithm, state)
    second = algorithm.output(state), all_duals(algorithm, state)
    assert bits(state) == before
    for one, other in zip(first, second, strict=True):
        assert one.tobytes() == other.tobytes()
    schedule = adfs.Schedule.sample(chosen, 900, seed=0)
    assert bits(algorithm.step(state, schedule.events(500))) == silent


def test_the_output_is_the_same_whenever_its_rows_were_last_touched():
    # y_t of a node that slept for 200 iterations: line 4, 6 and 11 applied 200 times by hand.
    case = make_case("star:5")
    chosen = adfs.Parameters.choose(case.problem, "exact")
    algorithm, state = run(case.problem, chosen, 300)
    x, v, _ = node_rows(algorithm, state, np.vstack([rows for rows, *_ in case.shards]))
    n_edges, rho = case.problem.topology.n_edges, chosen.rho
    elsewhere = Events(300, np.full(200, n_edges + 4, np.int32), np.zeros(200, np.int32))
    state = algorithm.step(state, elsewhere)
    for _ in range(200):
        y = (x + rho * v) / (1 + rho)
        x, v = y, (1 - rho) * v + rho * y
    y = (x + rho * v) / (1 + rho)
    still = [0, 1, 2, 3]  # node 4 and its virtual nodes moved
    np.testing.assert_allclose(algorithm.nodes(state)[0][still], y[still], rtol=0, atol=1e-13)
    np.testing.assert_allclose(algorithm.nodes(state)[1][still], v[still], rtol=0, atol=1e-13)
    first = case.problem.offsets[4]
    found = algorithm.virtual(state)[0][:first]
    rows = case.shards[0][0]
    np.testing.assert_allclose(
        found[: len(rows), None] * rows, y[5 : 5 + len(rows)], rtol=0, atol=1e-13
    )


@pytest.mark.parametrize("idle", [1, 1023, 1024, 1025, 70_000, 4_194_303, 4_194_304, 30_000_000])
def test_sleep_of_any_length_shrinks_x_minus_v_by_r_to_the_k(idle):
    # Beyond the tables too; rho is so small that something is left of the difference.
    problem = make_case("path:2").problem
    chosen = adfs.Parameters.choose(problem, "exact", rho=3e-8)
    algorithm, state = run(problem, chosen, 400)
    rho = np.longdouble(chosen.rho)
    r = np.exp(idle * (np.log1p(-rho) - np.log1p(rho)))
    for read in (algorithm.nodes, algorithm.virtual):
        state.t = 400
        y, v = (np.longdouble(part) for part in read(state))
        x = (1 + rho) * y - rho * v
        state = algorithm.step(state, Events(400 + idle, *np.empty((2, 0), np.int32)))
        y_late, v_late = read(state)
        x_late, v_exact = (x + v + r * (x - v)) / 2, (x + v - r * (x - v)) / 2
        assert np.max(np.abs(x - v)) > 1e-8
        y_exact = (x_late + rho * v_exact) / (1 + rho)
        scale = np.max(np.abs(v)) * 1e-14
        np.testing.assert_allclose(v_late, np.float64(v_exact), rtol=0, atol=scale)
        np.testing.assert_allclose(y_late, np.float64(y_exact), rtol=0, atol=scale)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_a_scale_that_underflows_many_times_leaves_no_trace(kind):
    # n = 1 and rho near 0.5: the scale shrinks threefold an event, so passes 1e-90 every 190.
    shards = make_shards(1, "logistic", seed=4, n_features=40, sizes=[2], density=0.1)
    case = make_case("single", sigma=5.0, shards=shards)
    chosen = adfs.Parameters.choose(case.problem, "exact")
    assert chosen.rho > 0.45
    oracle = literal(case, chosen)
    schedule = adfs.Schedule.sample(chosen, N_EVENTS, seed=1)
    algorithm = Adfs(stored_as(case, kind), chosen)
    state, renormalised = algorithm.init(), 0
    iterates = algorithm1.iterates(*oracle, augmented_edges(case.problem, schedule.events()))
    for t, node in enumerate(iterates):
        if t > 0:
            before = state.centres.scale[0]
            state = algorithm.step(state, schedule.events(t - 1, t))
            renormalised += state.centres.scale[0] > before
        for mine, theirs in zip(node_rows(algorithm, state, oracle.rows), node, strict=True):
            assert_close(mine, theirs, f"at {t}")
    assert renormalised >= 8


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("factor", [1e-80, 2.0**-298, 1e-91, 1e-120])
def test_a_centre_means_scale_times_delta_on_both_sides_of_the_smallest_scale(factor, kind):
    problem = stored_as(make_case("grid:2x2", density=0.5), kind)
    chosen = adfs.Parameters.choose(problem, "exact")
    schedule = adfs.Schedule.sample(chosen, 700, seed=0)
    expected = run(problem, chosen, 700)
    algorithm, state = run(problem, chosen, 200)
    assert np.max(np.abs(differences(state))) > 1e-3
    differences(state)[:] /= factor
    state.centres.scale[:] *= factor
    for first in range(200, 700):
        state = algorithm.step(state, schedule.events(first, first + 1))
    assert state.centres.scale.min() >= edge.TINY_SCALE * 0.9
    for mine, theirs in zip(algorithm.nodes(state), expected[0].nodes(expected[1]), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-13)


def test_a_local_event_on_sparse_rows_touches_only_their_non_zeros():
    shards = make_shards(2, "logistic", n_features=30, density=0.1)
    case = make_case("path:2", shards=shards)
    problem = stored_as(case, "csr")
    chosen = adfs.Parameters.choose(problem, "exact")
    algorithm, state = run(problem, chosen, 100)
    s, delta = sums(state).copy(), differences(state).copy()
    event = Events(100, np.array([1], np.int32), np.array([1], np.int32))
    state = algorithm.step(state, event)
    touched = np.zeros((2, 30), bool)
    touched[0] = shards[0][0][1] != 0.0
    assert touched.any()
    assert ((sums(state) != s) == touched).all()
    assert ((differences(state) != delta) == touched).all()


@pytest.mark.parametrize("how", ["paper", "exact", "projector"])
def test_iterates_do_not_depend_on_mu_of_communication_edges(how, monkeypatch):
    problem = make_case("grid:3x3").problem
    outputs = []
    for mu2 in (0.5, 1.0, 7.0):
        for room in (sigma_a, parameters, rules):
            monkeypatch.setattr(room, "EDGE_MU2", mu2)
        chosen = adfs.Parameters.choose(problem, how)
        algorithm, state = run(problem, chosen, N_EVENTS)
        outputs.append((chosen.rho, *algorithm.nodes(state)))
    for rho, y, v in outputs[1:]:
        assert rho == pytest.approx(outputs[0][0], rel=1e-9)
        np.testing.assert_allclose(y, outputs[0][1], rtol=0, atol=1e-9)
        np.testing.assert_allclose(v, outputs[0][2], rtol=0, atol=1e-9)


@pytest.mark.parametrize("loss", losses.SMOOTH)
def test_all_rows_of_v_x_and_y_sum_to_zero_all_along(loss):
    case = make_case("ring:6", loss)
    chosen = adfs.Parameters.choose(case.problem, "exact")
    rows = np.vstack([features for features, *_ in case.shards])
    algorithm = Adfs(case.problem, chosen)
    state = algorithm.init()
    for block in adfs.Schedule.sample(chosen, 20_000, seed=3).blocks(size=97):
        state = algorithm.step(state, block)
        for matrix in node_rows(algorithm, state, rows):
            assert np.max(np.abs(matrix.sum(axis=0))) < 1e-12
    assert np.max(np.abs(algorithm.nodes(state)[1])) > 0.1


def test_samples_outside_the_augmented_graph_are_never_touched():
    shards = make_shards(4, "logistic")
    shards[1][0][1] = 0.0
    shards[2][2][0] = 0.0
    case = make_case("grid:2x2", shards=shards)
    chosen = adfs.Parameters.choose(case.problem, "exact")
    algorithm, state = run(case.problem, chosen, 5000)
    dead = np.flatnonzero(~case.problem.live)
    assert len(dead) == 2
    assert (state.lines[dead, edge.LAST] == 0).all()
    assert np.isfinite(state.lines).all()
    kept = [
        tuple(np.asarray(part)[(rows**2).sum(axis=1) * weights > 0] for part in (rows, y, weights))
        for rows, y, weights in shards
    ]
    smaller = make_case("grid:2x2", shards=kept)
    theta = augmented.minimiser(kept, smaller.problem.sigma, "logistic")
    algorithm, state = run(case.problem, chosen, int(50 / chosen.rho))
    np.testing.assert_allclose(algorithm.output(state), np.tile(theta, (4, 1)), rtol=0, atol=1e-10)


def test_csr_with_explicit_zeros_and_unsorted_indices_is_the_same_data():
    case = make_case("path:2", density=0.5)
    messy = []
    for features, *rest in case.shards:
        matrix = sp.csr_matrix(features)
        order = np.concatenate(
            [np.arange(*matrix.indptr[[k, k + 1]])[::-1] for k in range(matrix.shape[0])]
        )
        parts = (matrix.data[order], matrix.indices[order], matrix.indptr)
        messy.append((sp.csr_matrix(parts, shape=matrix.shape), *rest))
    problem = adfs.Problem(messy, "logistic", case.problem.sigma, case.problem.topology)
    chosen = adfs.Parameters.choose(problem, "exact")
    clean = stored_as(case, "csr")
    expected = run(clean, adfs.Parameters.choose(clean, "exact"), 500)[1]
    assert bits(run(problem, chosen, 500)[1]) == bits(expected)

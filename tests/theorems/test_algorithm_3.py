"""The lazy kernel is Algorithm 3 (NS-ADFS), and Algorithm 3 is convex APCG on the dual problem."""

import numpy as np
import pytest

import adfs
from adfs.algorithms.ns_adfs import NsAdfs
from adfs.schedule.events import Events
from adfs.theory import non_smooth_parameters, parameters, rules
from adfs.theory.non_smooth_parameters import RULES
from oracles import algorithm3, apcg, augmented, losses, theory
from support.non_smooth import bits, literal, node_rows, run
from support.problems import (
    all_duals,
    augmented_edges,
    homogeneous_shards,
    make_case,
    make_shards,
    stored_as,
)

N_EVENTS = 2000
GRAPHS = ("single", "grid:2x2", "grid:3x3", "star:5", "ring:6", "complete:5")
CASES = [(graph, loss, how) for graph in GRAPHS for loss in losses.NON_SMOOTH for how in RULES]


def checkpoints(seed):
    """Iterations at which states are compared: the first ones, then irregular steps to the end."""
    steps = np.random.default_rng(seed).integers(1, 60, 200).cumsum() + 12
    return [*range(13), *(int(t) for t in steps if t < N_EVENTS), N_EVENTS]


def assert_close(actual, expected, what):
    """Agreement to 1e-12 of the largest number involved (at least 1)."""
    scale = max(1.0, float(np.max(np.abs(expected))))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12 * scale, err_msg=what)


@pytest.mark.parametrize(("graph", "loss", "how"), CASES)
def test_lazy_kernel_is_literal_algorithm_3(graph, loss, how):
    # Steps a mu^2 / (p sigma) of v are up to t p / 2 long, and so is the growth of rounding errors:
    # with more than two samples p is small enough for 1e-12 (x, their mean, has 1e-14 anyway).
    sizes = [7] if graph == "single" else None
    case = make_case(graph, loss, seed=len(graph), density=0.6, sizes=sizes)
    chosen = adfs.NonSmoothParameters.choose(case.problem, how, tau=3.0)
    oracle = literal(case, chosen)
    schedule = adfs.Schedule.sample(chosen, N_EVENTS, seed=5)
    sequence = augmented_edges(case.problem, schedule.events())
    lazy = [NsAdfs(stored_as(case, kind), chosen) for kind in ("dense", "csr")]
    states = [algorithm.init() for algorithm in lazy]
    growth = algorithm3.weights(oracle.a_0, oracle.s, N_EVENTS)

    wanted, moved, before = set(checkpoints(3)), 0.0, 0
    for t, (x, v, _) in enumerate(algorithm3.iterates(*oracle, sequence)):
        if t not in wanted:
            continue
        for k, algorithm in enumerate(lazy):
            states[k] = algorithm.step(states[k], schedule.events(before, t))
            mine = node_rows(algorithm, states[k], oracle.rows)
            for name, found, expected in zip("xv", mine, (x, v), strict=True):
                assert_close(found, expected, f"{['dense', 'csr'][k]}, {name} at {t}")
            output = algorithm3.output(x, oracle.sigma)
            assert_close(algorithm.output(states[k]), output, f"output at {t}")
            assert states[k].growth == pytest.approx(growth[t], rel=1e-13)
        moved, before = max(moved, float(np.max(np.abs(v)))), t
    assert moved > 0.5
    assert set(range(len(oracle.p))) == set(sequence)  # every edge of the augmented graph was drawn


@pytest.mark.parametrize(("graph", "loss", "how"), CASES)
def test_s_p_r_and_a_0_are_the_literal_ones(graph, loss, how):
    case = make_case(graph, loss, seed=len(graph))
    chosen = adfs.NonSmoothParameters.choose(case.problem, how, tau=3.0)
    oracle = literal(case, chosen)
    assert oracle.p.sum() == pytest.approx(1.0, rel=1e-13)
    shards, edges, mu2_edge, mu2_virtual = oracle.graph
    s = algorithm3.smoothness_constant(shards, oracle.sigma, edges, mu2_edge, mu2_virtual, oracle.p)
    p_r = algorithm3.p_r(*oracle.graph, oracle.p)
    assert s <= oracle.s <= s * (1 + 1e-8)  # Theorem 4 allows any S that is not smaller
    assert chosen.p_least == pytest.approx(p_r, rel=1e-11)
    assert oracle.a_0 == pytest.approx(algorithm3.start(oracle.s, p_r), rel=1e-11)


@pytest.mark.parametrize("graph", ["grid:2x2", "grid:3x3", "star:5"])
def test_the_papers_rule_is_appendix_b_5(graph):
    topology = adfs.Topology.parse(graph)
    n_nodes, m = topology.n_nodes, 6
    case = make_case(graph, "hinge", shards=homogeneous_shards(n_nodes, m))
    chosen = adfs.NonSmoothParameters.choose(case.problem, "paper")
    oracle = literal(case, chosen)
    lap = theory.laplacian(n_nodes, oracle.edges, oracle.mu2_edge)
    np.testing.assert_allclose(oracle.mu2_virtual, theory.lambda_min_plus(lap) / (1 + m))
    gamma_tilde = theory.gamma_tilde(n_nodes, oracle.edges, oracle.mu2_edge)
    p_comm = algorithm3.p_comm(gamma_tilde, m)
    assert p_comm < 0.5
    np.testing.assert_allclose(oracle.p[: len(oracle.edges)], p_comm / len(oracle.edges))
    np.testing.assert_allclose(oracle.p[len(oracle.edges) :], (1 - p_comm) / (n_nodes * m))


@pytest.mark.parametrize("graph", ["grid:3x3", "star:5"])
def test_the_tuned_rule_puts_every_edge_of_the_augmented_graph_at_its_limit(graph):
    case = make_case(graph, "hinge", seed=1)
    chosen = adfs.NonSmoothParameters.choose(case.problem, "tuned")
    oracle = literal(case, chosen)
    shards, edges, mu2_edge, mu2_virtual = oracle.graph
    for index in range(len(oracle.p)):
        # Where all other probabilities are large, S is the limit of this edge alone.
        p = np.where(np.arange(len(oracle.p)) == index, oracle.p, 1e9)
        alone = algorithm3.smoothness_constant(
            shards, oracle.sigma, edges, mu2_edge, mu2_virtual, p
        )
        assert alone == pytest.approx(oracle.s, rel=1e-8)
    np.testing.assert_allclose(oracle.p[len(edges) :], oracle.p[-1])


@pytest.mark.parametrize("loss", losses.NON_SMOOTH)
def test_from_a_model_it_is_apcg_from_that_models_dual_point(loss):
    case = make_case("grid:2x2", loss, seed=1)
    chosen = adfs.NonSmoothParameters.choose(case.problem, "tuned")
    oracle = literal(case, chosen)
    theta = np.random.default_rng(8).standard_normal(4)
    # Rows c x at virtual nodes; centres balance their sum, in proportion to sigma: they agree.
    rows = augmented.optimal_rows(case.shards, oracle.sigma, loss, theta)
    rows[:4] = -np.outer(oracle.sigma / oracle.sigma.sum(), rows[4:].sum(axis=0))
    a = augmented.incidence(*oracle.graph)
    x = v = np.linalg.pinv(a) @ rows
    r = augmented.resistances(a)
    dual = apcg.dual_problem(*oracle[:6])
    algorithm = NsAdfs(case.problem, chosen)
    state, growth = algorithm.init(theta), oracle.a_0
    schedule = adfs.Schedule.sample(chosen, 600, seed=2)
    for t, i in enumerate(augmented_edges(case.problem, schedule.events())):
        found = node_rows(algorithm, state, oracle.rows)
        assert_close(found[0], a @ x, f"x at {t}")
        assert_close(found[1], a @ v, f"v at {t}")
        step, growth = algorithm3.next_a(growth, oracle.s)
        x, v = apcg.step(*dual, x, v, i, step / growth, 0.0, step / oracle.p[i], r[i], oracle.p[i])
        state = algorithm.step(state, schedule.events(t, t + 1))


def test_float32_rows_are_used_in_float64_arithmetic():
    case = make_case("grid:2x2", "hinge", seed=2)
    single = [(np.float32(features), *rest) for features, *rest in case.shards]
    widened = [(features.astype(np.float64), *rest) for features, *rest in single]
    wide = make_case("grid:2x2", "hinge", seed=2, shards=widened)
    narrow = adfs.Problem(single, "hinge", wide.problem.sigma, wide.problem.topology)
    assert narrow.rows.values.dtype == np.float32
    states = []
    for problem in (wide.problem, narrow):
        states.append(run(problem, adfs.NonSmoothParameters.choose(problem, "paper"), 1000)[1])
    assert bits(states[0]) == bits(states[1])


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize(("graph", "loss"), [("single", "absolute"), ("grid:3x3", "hinge")])
def test_the_block_length_never_changes_a_bit(graph, loss, kind):
    problem = stored_as(make_case(graph, loss, density=0.5), kind)
    chosen = adfs.NonSmoothParameters.choose(problem, "tuned")
    n_events = 3000
    whole = bits(run(problem, chosen, n_events)[1])
    random_cuts = np.sort(np.random.default_rng(0).integers(0, n_events, 60)).tolist()
    for cuts in (*(range(size, n_events, size) for size in (1, 7, 64, 1000)), random_cuts):
        assert bits(run(problem, chosen, n_events, cuts=cuts)[1]) == whole
    assert bits(run(problem, chosen, n_events, seed=1)[1]) != whole


def test_reading_changes_neither_the_state_nor_what_follows():
    problem = make_case("grid:2x2", "hinge").problem
    chosen = adfs.NonSmoothParameters.choose(problem, "paper")
    silent = bits(run(problem, chosen, 900)[1])
    algorithm, state = run(problem, chosen, 500)
    before = bits(state)
    for first, second in zip(readings(algorithm, state), readings(algorithm, state), strict=True):
        assert first.tobytes() == second.tobytes()
    assert bits(state) == before
    schedule = adfs.Schedule.sample(chosen, 900, seed=0)
    assert bits(algorithm.step(state, schedule.events(500))) == silent


def readings(algorithm, state):
    """Everything one can read from a state."""
    points = *algorithm.nodes(state), *algorithm.virtual(state)
    return *points, algorithm.output(state), all_duals(algorithm, state)


@pytest.mark.parametrize("idle", [1, 200, 300_000])
def test_the_reading_is_the_same_whenever_its_rows_were_last_touched(idle):
    # Lines 3 to 5 and 12, applied to rows that sleep: v stays, x - v shrinks by 1 - alpha_t.
    case = make_case("star:5", "absolute")
    chosen = adfs.NonSmoothParameters.choose(case.problem, "paper")
    oracle = literal(case, chosen)
    algorithm, state = run(case.problem, chosen, 300)
    x, v = node_rows(algorithm, state, oracle.rows)
    growth = state.growth
    which = np.full(idle, case.problem.topology.n_edges + 4, np.int32)
    state = algorithm.step(state, Events(300, which, np.zeros(idle, np.int32)))
    left = 1.0
    for _ in range(idle):
        step, growth = algorithm3.next_a(growth, oracle.s)
        left *= 1 - step / growth
    assert state.growth == pytest.approx(growth, rel=1e-11)
    assert np.max(np.abs(x - v)) > 0.1
    still = np.r_[0:4, 5 : 5 + case.problem.offsets[4]]  # node 4 and its virtual nodes moved
    found = node_rows(algorithm, state, oracle.rows)
    np.testing.assert_allclose(found[0][still], (v + left * (x - v))[still], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found[1][still], v[still], rtol=0, atol=1e-13)


def test_a_local_event_on_sparse_rows_touches_only_their_non_zeros():
    shards = make_shards(2, "hinge", n_features=30, density=0.1)
    problem = stored_as(make_case("path:2", "hinge", shards=shards), "csr")
    chosen = adfs.NonSmoothParameters.choose(problem, "paper")
    algorithm, state = run(problem, chosen, 100)
    before = state.pairs.copy()
    state = algorithm.step(state, Events(100, np.array([1], np.int32), np.array([1], np.int32)))
    touched = np.zeros((2, 30), bool)
    touched[0] = shards[0][0][1] != 0.0
    assert touched.any()
    changed = (state.pairs != before).reshape(2, 30, 2).any(axis=2)
    assert (changed == touched).all()


def test_at_one_node_iterates_do_not_depend_on_mu():
    case = make_case("single", "hinge", sizes=[6])
    ours = adfs.NonSmoothParameters.choose(case.problem, "paper")
    other = adfs.NonSmoothParameters(
        "paper", ours.topology, ours.reach, 37.0 * ours.mu2, ours.p_edge, ours.p_node
    )
    expected = node_rows(*run(case.problem, ours, N_EVENTS), case.shards[0][0])
    found = node_rows(*run(case.problem, other, N_EVENTS), case.shards[0][0])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("how", RULES)
def test_iterates_do_not_depend_on_mu_of_communication_edges(how, monkeypatch):
    problem = make_case("grid:3x3", "hinge").problem
    outputs = []
    for mu2 in (0.5, 1.0, 7.0):
        for room in (parameters, non_smooth_parameters, rules):
            monkeypatch.setattr(room, "EDGE_MU2", mu2)
        chosen = adfs.NonSmoothParameters.choose(problem, how, p_comm=0.3)
        algorithm, state = run(problem, chosen, N_EVENTS)
        outputs.append((chosen.smoothness, *algorithm.nodes(state)))
    for k, (smoothness, x, v) in enumerate(outputs[1:], 1):
        assert smoothness == pytest.approx(outputs[0][0] * (0.5, 1.0, 7.0)[k] / 0.5, rel=1e-9)
        np.testing.assert_allclose(x, outputs[0][1], rtol=0, atol=1e-9)
        np.testing.assert_allclose(v, outputs[0][2], rtol=0, atol=1e-9)


@pytest.mark.parametrize("loss", losses.NON_SMOOTH)
def test_all_rows_sum_to_zero_and_all_duals_stay_in_the_box_all_along(loss):
    case = make_case("ring:6", loss)
    chosen = adfs.NonSmoothParameters.choose(case.problem, "tuned")
    rows = np.vstack([features for features, *_ in case.shards])
    box = [losses.conjugate_domain(loss, y, w) for _, _, y, w in augmented.samples(case.shards)]
    low, high = np.array(box).T
    algorithm = NsAdfs(case.problem, chosen)
    state = algorithm.init()
    for block in adfs.Schedule.sample(chosen, 20_000, seed=3).blocks(size=97):
        state = algorithm.step(state, block)
        for matrix in node_rows(algorithm, state, rows):
            assert np.max(np.abs(matrix.sum(axis=0))) < 1e-12
        x, v = algorithm.virtual(state)
        assert np.all((low - 1e-13 <= x) & (x <= high + 1e-13))
        assert np.all((low <= v) & (v <= high))
        assert (all_duals(algorithm, state) == v).all()
    assert np.max(np.abs(v)) > 0.1


def test_samples_outside_the_augmented_graph_are_never_touched():
    # A zero row, a zero weight, and a node none of whose rows is left.
    shards = make_shards(4, "hinge")
    shards[1][0][1] = 0.0
    shards[2][2][0] = 0.0
    shards[3][0][:] = 0.0
    case = make_case("grid:2x2", "hinge", shards=shards)
    chosen = adfs.NonSmoothParameters.choose(case.problem, "paper")
    kept = [
        tuple(np.asarray(part)[(rows**2).sum(axis=1) * weights > 0] for part in (rows, y, weights))
        for rows, y, weights in shards
    ]
    assert len(kept[3][1]) == 0
    oracle = literal(case, chosen, kept)
    assert oracle.p.sum() == pytest.approx(1.0, rel=1e-13)
    algorithm, state = run(case.problem, chosen, N_EVENTS)
    live = np.flatnonzero(case.problem.live)
    indices = np.full(len(case.problem.live), -1)
    indices[live] = np.arange(len(live))
    n_edges = len(oracle.edges)
    events = adfs.Schedule.sample(chosen, N_EVENTS, seed=0).events()
    sequence = augmented_edges(case.problem, events)
    local = sequence >= n_edges
    sequence[local] = n_edges + indices[sequence[local] - n_edges]
    assert (sequence >= 0).all()
    assert (sequence[local] >= n_edges).all()
    *_, (x, v, _) = algorithm3.iterates(*oracle, sequence)
    for k, expected in enumerate((x, v)):
        assert_close(algorithm.nodes(state)[k], expected[:4], "centres")
        virtual = algorithm.virtual(state)[k][live, None] * oracle.rows
        assert_close(virtual, expected[4:], "virtual nodes")

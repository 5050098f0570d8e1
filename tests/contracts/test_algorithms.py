"""Whatever is registered as an algorithm keeps these promises."""

import copy
import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import adfs
from adfs.algorithms.base import Counts, get_algorithm
from adfs.errors import ParameterError
from adfs.problems.certificates import certify
from problems_for_tests import all_duals, make_case, stored_as

NAMES = adfs.algorithms()
GRAPHS = ("single", "path:2", "grid:2x2", "star:5")


def make(name, graph="grid:2x2", kind="dense", loss="logistic"):
    """A fresh algorithm on a small problem, and its parameters."""
    problem = stored_as(make_case(graph, loss, density=0.7), kind)
    chosen = adfs.Parameters.choose(problem, "exact")
    return get_algorithm(name)(problem, chosen), problem, chosen


def reading(algorithm, state):
    """Everything an observer can see of a state, as bytes."""
    duals = all_duals(algorithm, state)
    return algorithm.output(state).tobytes(), None if duals is None else duals.tobytes()


def advance(algorithm, state, chosen, bounds, seed=0):
    """Step through a drawn schedule cut at ``bounds``."""
    schedule = adfs.Schedule.sample(chosen, bounds[-1], seed=seed)
    for first, last in itertools.pairwise(bounds):
        state = algorithm.step(state, schedule.events(first, last))
    return state


def test_names_can_be_listed_again_and_the_package_is_still_a_package():
    # The room and the function share a name: importing one must not hide the other.
    assert "adfs" in NAMES
    assert adfs.algorithms() == NAMES == sorted(NAMES)
    assert adfs.algorithms.base.get_algorithm is get_algorithm


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match=r"'sgd' is not known; choose auto or one of .*adfs"):
        get_algorithm("sgd")


@pytest.mark.parametrize("name", NAMES)
def test_it_carries_the_name_it_is_registered_under(name):
    assert make(name)[0].name == name


@pytest.mark.parametrize("kind", ["dense", "csr", "float32"])
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", NAMES)
def test_readings_have_the_promised_shapes_and_are_finite(name, graph, kind):
    algorithm, problem, chosen = make(name, graph, kind)
    for state in (algorithm.init(), advance(algorithm, algorithm.init(), chosen, [0, 300])):
        theta, duals = algorithm.output(state), all_duals(algorithm, state)
        assert theta.shape == (problem.n_nodes, problem.n_features)
        assert theta.dtype == np.float64
        assert np.isfinite(theta).all()
        assert duals is None or duals.shape == (problem.n_samples,)
        assert duals is None or np.isfinite(duals).all()


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", NAMES)
def test_cutting_the_schedule_elsewhere_changes_no_bit(name, graph):
    algorithm, _, chosen = make(name, graph)
    whole = reading(algorithm, advance(algorithm, algorithm.init(), chosen, [0, 900]))
    random_cuts = np.sort(np.random.default_rng(1).integers(0, 901, 30)).tolist()
    for cuts in (range(0, 901, 1), range(0, 901, 9), [0, 450, 450, 900], [0, *random_cuts, 900]):
        state = advance(algorithm, algorithm.init(), chosen, list(cuts))
        assert reading(algorithm, state) == whole


@pytest.mark.parametrize("name", NAMES)
def test_reading_a_state_changes_nothing(name):
    algorithm, _, chosen = make(name)
    silent = reading(algorithm, advance(algorithm, algorithm.init(), chosen, [0, 400]))
    schedule = adfs.Schedule.sample(chosen, 400, seed=0)
    state = algorithm.init()
    for events in schedule.blocks(size=13):
        assert reading(algorithm, state) == reading(algorithm, state)
        state = algorithm.step(state, events)
    assert reading(algorithm, state) == silent


@pytest.mark.parametrize("name", NAMES)
def test_what_was_read_does_not_move_when_the_state_does(name):
    algorithm, _, chosen = make(name)
    state = advance(algorithm, algorithm.init(), chosen, [0, 100])
    theta, duals = algorithm.output(state), all_duals(algorithm, state)
    before = copy.deepcopy((theta, duals))
    algorithm.step(state, adfs.Schedule.sample(chosen, 300).events(100))
    np.testing.assert_array_equal(theta, before[0])
    assert duals is None or (duals == before[1]).all()


@pytest.mark.parametrize("name", NAMES)
def test_two_runs_of_one_object_do_not_disturb_each_other(name):
    algorithm, _, chosen = make(name)
    alone = reading(algorithm, advance(algorithm, algorithm.init(), chosen, [0, 300], seed=1))
    schedules = [adfs.Schedule.sample(chosen, 300, seed=seed) for seed in (1, 2)]
    states = [algorithm.init(), algorithm.init()]
    for first in range(0, 300, 50):
        for k, schedule in enumerate(schedules):
            states[k] = algorithm.step(states[k], schedule.events(first, first + 50))
    assert reading(algorithm, states[0]) == alone
    assert reading(algorithm, states[1]) != alone


@pytest.mark.parametrize("name", NAMES)
def test_the_problem_is_left_as_it_was(name):
    algorithm, problem, chosen = make(name, kind="csr")
    arrays = [*problem.rows, problem.labels, problem.weights, problem.sigma, chosen.p_edge]
    before = [array.copy() for array in arrays]
    algorithm.output(advance(algorithm, algorithm.init(), chosen, [0, 500]))
    for array, copy_of_it in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy_of_it)


@pytest.mark.parametrize("name", NAMES)
def test_no_events_are_no_work(name):
    algorithm, _, chosen = make(name)
    state = advance(algorithm, algorithm.init(), chosen, [0, 50])
    before = reading(algorithm, state)
    nothing = adfs.Schedule.sample(chosen, 50).events(50, 50)
    assert reading(algorithm, algorithm.step(state, nothing)) == before
    assert algorithm.counts(nothing) == Counts()


@pytest.mark.parametrize("name", NAMES)
def test_counts_add_up_over_blocks_and_an_event_is_never_free(name):
    algorithm, _, chosen = make(name)
    schedule = adfs.Schedule.sample(chosen, 700)
    total = Counts()
    for events in schedule.blocks(size=31):
        total = total.plus(algorithm.counts(events))
    assert total == algorithm.counts(schedule.events())
    for events in schedule.blocks(size=1):
        work = algorithm.counts(events)
        assert work.n_prox + work.n_grad + work.n_comm > 0
        assert min(work) >= 0


@pytest.mark.parametrize("name", NAMES)
def test_messages_carry_at_most_d_numbers(name):
    algorithm, problem, chosen = make(name)
    counts = algorithm.counts(adfs.Schedule.sample(chosen, 500).events())
    assert counts.n_comm > 0
    assert 0 < counts.bytes <= 8 * problem.n_features * counts.n_comm


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", NAMES)
def test_it_ends_at_the_certified_optimum(name, graph, kind):
    algorithm, problem, chosen = make(name, graph, kind)
    best = problem.optimum()
    state = advance(algorithm, algorithm.init(), chosen, [0, int(60.0 / chosen.rho)])
    thetas = algorithm.output(state)
    np.testing.assert_allclose(thetas, np.tile(best.theta, (problem.n_nodes, 1)), atol=1e-9)
    found = certify(
        problem, problem.sigma @ thetas / problem.total_sigma, all_duals(algorithm, state)
    )
    assert 0.0 <= found.duality_gap < 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_a_model_to_start_from_is_a_better_start(name):
    algorithm, problem, chosen = make(name)
    best = problem.optimum().theta
    near = best + 1e-6
    budget = int(6.0 / chosen.rho)
    errors = []
    for start in (None, near):
        state = advance(algorithm, algorithm.init(start), chosen, [0, budget])
        errors.append(np.linalg.norm(algorithm.output(state) - best))
    assert errors[1] <= errors[0] * 1.5
    state = advance(algorithm, algorithm.init(near), chosen, [0, int(60.0 / chosen.rho)])
    np.testing.assert_allclose(algorithm.output(state), np.tile(best, (4, 1)), atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_zero_and_weights_of_zero_do_no_harm(name):
    case = make_case("path:2", density=0.7)
    shards = [tuple(np.array(part) for part in shard) for shard in case.shards]
    extra = np.zeros((1, 4)), np.array([1.0]), np.array([2.0])
    weightless = np.ones((1, 4)), np.array([-1.0]), np.array([0.0])
    shards[0] = tuple(
        np.concatenate(parts) for parts in zip(shards[0], extra, weightless, strict=True)
    )
    best = case.problem.optimum().theta
    for convert in (np.asarray, sp.csr_matrix):
        data = [(convert(rows), *rest) for rows, *rest in shards]
        problem = adfs.Problem(data, "logistic", case.problem.sigma, case.problem.topology)
        chosen = adfs.Parameters.choose(problem, "exact")
        algorithm = get_algorithm(name)(problem, chosen)
        state = advance(algorithm, algorithm.init(), chosen, [0, int(60.0 / chosen.rho)])
        np.testing.assert_allclose(algorithm.output(state), np.tile(best, (2, 1)), atol=1e-9)


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_adfs_refuses_a_loss_that_is_not_smooth(loss):
    _, _, chosen = make("adfs", "path:2")
    problem = make_case("path:2", loss).problem
    with pytest.raises(ParameterError, match=f"'adfs' needs a smooth loss and '{loss}' is not"):
        get_algorithm("adfs")(problem, chosen)

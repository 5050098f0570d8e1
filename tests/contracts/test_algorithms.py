"""Whatever is registered as an algorithm keeps these promises."""

import copy
import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

import adfs
from adfs.algorithms.base import Counts, MethodSetting, executed, get_algorithm
from adfs.errors import ParameterError
from adfs.problem.certificate import certify
from support.problems import all_duals, gaussian_problem, make_case, stored_as
from support.selection import covering

NAMES = sorted(adfs.algorithms.NAMES)  # test_methods.py has the added ones
GRAPHS = ("single", "path:2", "grid:2x2", "star:5")
LONG, SHORT = 400, 100
NON_SMOOTH = {"ns-adfs"}
WITHOUT_A_THEOREM = {"newton", "lbfgs", "ns-adfs", "tron"}  # about the rate per iteration


def loss_for(name):
    """A loss that the algorithm takes."""
    return "hinge" if name in NON_SMOOTH else "logistic"


def accuracy(name):
    """How close to the optimum it is after `long_enough`: without a linear rate, less close."""
    return 1e-6 if name in NON_SMOOTH else 1e-9


def make(name, graph="grid:2x2", kind="dense", rule="tuned", seed=0):
    """A method on a small problem, and the problem."""
    problem = stored_as(make_case(graph, loss_for(name), density=0.7), kind)
    return get_algorithm(name)(problem, MethodSetting(rule=rule, seed=seed)), problem


def reading(algorithm, state):
    """Everything an observer can see of a state, as bytes."""
    duals = all_duals(algorithm, state)
    return algorithm.output(state).tobytes(), None if duals is None else duals.tobytes()


def advance(method, state, bounds):
    """Step through the method's own schedule cut at ``bounds``."""
    for first, last in itertools.pairwise(bounds):
        state = method.algorithm.step(state, method.source.draw(first, last))
    return state


def run(method, n_events, theta=None):
    """State after so many events."""
    return advance(method, method.algorithm.init(theta), [0, n_events])


def long_enough(method):
    """Events after which theory leaves nothing of the error, or as many as make it small."""
    if hasattr(method.parameters, "gap_exponent"):
        return math.ceil(30_000 / method.parameters.p_least)
    return math.ceil(60.0 / method.rho)


def test_names_can_be_listed_again_and_the_package_is_still_a_package():
    # The room and the function share a name: importing one must not hide the other.
    assert "adfs" in NAMES
    assert set(adfs.algorithms()) >= set(NAMES)
    assert adfs.algorithms.base.get_algorithm is get_algorithm


@pytest.mark.parametrize("name", NAMES)
def test_a_rate_is_called_proven_where_there_is_a_theorem(name):
    method, _ = make(name)
    assert method.proven == (name not in WITHOUT_A_THEOREM)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_describe_themselves(name):
    method, _ = make(name)
    told = method.parameters.description()
    assert str(method.parameters) == str(told)
    rates = ("rho", "theta") if method.needed is None else ("A_0",)
    assert any(fact.name in rates for fact in told.facts)


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match=r"'sgd' is not known .*; choose auto, .*adfs"):
        get_algorithm("sgd")


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_rule_is_refused_with_the_known_ones(name):
    with pytest.raises(ParameterError, match=r"parameters='magic' is not a rule.*tuned"):
        make(name, rule="magic")


@pytest.mark.parametrize("name", NAMES)
def test_its_parameters_explain_themselves(name):
    method, _ = make(name)
    assert 0.0 < method.rho < 1.0
    text = str(method.parameters)
    assert "\n" in text
    assert "object at 0x" not in text


@covering(name=NAMES, graph=GRAPHS, kind=("dense", "csr", "float32"))
def test_readings_have_the_promised_shapes_and_are_finite(name, graph, kind):
    method, problem = make(name, graph, kind)
    algorithm = method.algorithm
    for state in (algorithm.init(), run(method, LONG)):
        theta, duals = algorithm.output(state), all_duals(algorithm, state)
        assert theta.shape == (problem.n_nodes, problem.n_features)
        assert theta.dtype == np.float64
        assert np.isfinite(theta).all()
        assert duals is None or duals.shape == (problem.n_samples,)
        assert duals is None or np.isfinite(duals).all()


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", NAMES)
def test_cutting_the_schedule_elsewhere_changes_no_bit(name, graph):
    method, _ = make(name, graph)
    whole = reading(method.algorithm, run(method, LONG))
    cuts = np.sort(np.random.default_rng(1).integers(0, LONG + 1, 30)).tolist()
    half = LONG // 2
    for bounds in (range(LONG + 1), range(0, LONG + 1, 8), [0, half, half, LONG], [0, *cuts, LONG]):
        state = advance(method, method.algorithm.init(), list(bounds))
        assert reading(method.algorithm, state) == whole


def spent(method, bounds):
    """Time and counts of the events as they were executed, the schedule cut at ``bounds``."""
    algorithm, clock, counts = method.algorithm, method.clock.copy(), Counts()
    state = algorithm.init()
    for first, last in itertools.pairwise(bounds):
        events = method.source.draw(first, last)
        state = algorithm.step(state, events)
        done = executed(algorithm, state, events)
        assert (done.start, done.stop) == (events.start, events.stop)
        clock.advance(done)
        counts = counts.plus(algorithm.counts(done))
    return clock.time, counts


@pytest.mark.parametrize("name", NAMES)
def test_cutting_the_schedule_elsewhere_changes_no_time(name):
    method, _ = make(name)
    whole = spent(method, [0, LONG])
    assert spent(method, [*range(0, LONG, 7), LONG, LONG]) == whole
    assert whole[0] > 0.0


@pytest.mark.parametrize("law", ["constant", "exponential"])
def test_cutting_the_schedule_elsewhere_changes_no_round_that_was_chosen(law):
    """Newton on growing samples chooses its kinds of rounds on its way."""
    problem = gaussian_problem(samples=(2_000, 3), sigma=0.01)
    setting = MethodSetting(tau=0.1, delays=adfs.Delays(tau=0.1, law=law))
    method = get_algorithm("newton")(problem, setting)
    assert hasattr(method.algorithm, "executed")
    whole = spent(method, [0, 12])
    assert spent(method, range(13)) == whole
    assert spent(method, [0, 1, 1, 4, 12]) == whole


@pytest.mark.parametrize("name", NAMES)
def test_reading_a_state_changes_nothing(name):
    method, _ = make(name)
    algorithm = method.algorithm
    silent = reading(algorithm, run(method, LONG))
    state = algorithm.init()
    for first in range(0, LONG, 16):
        assert reading(algorithm, state) == reading(algorithm, state)
        state = algorithm.step(state, method.source.draw(first, min(LONG, first + 16)))
    assert reading(algorithm, state) == silent


@pytest.mark.parametrize("name", NAMES)
def test_what_was_read_does_not_move_when_the_state_does(name):
    method, _ = make(name)
    algorithm = method.algorithm
    state = run(method, SHORT)
    theta, duals = algorithm.output(state), all_duals(algorithm, state)
    before = copy.deepcopy((theta, duals))
    algorithm.step(state, method.source.draw(SHORT, LONG))
    np.testing.assert_array_equal(theta, before[0])
    assert duals is None or (duals == before[1]).all()


@pytest.mark.parametrize("name", NAMES)
def test_two_runs_of_one_object_do_not_disturb_each_other(name):
    method, _ = make(name)
    algorithm = method.algorithm
    alone = reading(algorithm, run(method, LONG))
    states = [algorithm.init(), algorithm.init()]
    for first in range(0, LONG, 50):
        states[0] = algorithm.step(states[0], method.source.draw(first, first + 50))
        states[1] = algorithm.step(states[1], method.source.draw(first, first + 50))
    assert reading(algorithm, states[0]) == reading(algorithm, states[1]) == alone


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_bits(name):
    first, second = make(name, seed=3)[0], make(name, seed=3)[0]
    assert reading(first.algorithm, run(first, LONG)) == reading(
        second.algorithm, run(second, LONG)
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_problem_is_left_as_it_was(name):
    method, problem = make(name, kind="csr")
    arrays = [*problem.rows, problem.labels, problem.weights, problem.sigma]
    before = [array.copy() for array in arrays]
    method.algorithm.output(run(method, LONG))
    for array, copy_of_it in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy_of_it)


@pytest.mark.parametrize("name", NAMES)
def test_no_events_are_no_work(name):
    method, _ = make(name)
    state = run(method, 50)
    before = reading(method.algorithm, state)
    nothing = method.source.draw(50, 50)
    assert reading(method.algorithm, method.algorithm.step(state, nothing)) == before
    assert method.algorithm.counts(nothing) == Counts()


@pytest.mark.parametrize("name", NAMES)
def test_counts_add_up_over_blocks_and_an_event_is_never_free(name):
    method, _ = make(name)
    counts = method.algorithm.counts
    total = Counts()
    for first in range(0, 700, 35):
        total = total.plus(counts(method.source.draw(first, first + 35)))
    assert total == counts(method.source.draw(0, 700))
    for t in range(700):
        work = counts(method.source.draw(t, t + 1))
        assert work.n_prox + work.n_grad + work.n_comm > 0
        assert min(work) >= 0


@pytest.mark.parametrize("name", NAMES)
def test_messages_carry_at_most_d_numbers(name):
    method, problem = make(name)
    counts = method.algorithm.counts(method.source.draw(0, 500))
    assert counts.bytes <= 8 * problem.n_features * counts.n_comm
    assert (counts.bytes > 0) == (counts.n_comm > 0) == (name != "point-saga")


@covering(name=NAMES, graph=GRAPHS, kind=("dense", "csr"))
def test_it_ends_at_the_certified_optimum(name, graph, kind):
    method, problem = make(name, graph, kind)
    best = problem.optimum()
    state = run(method, long_enough(method))
    thetas = method.algorithm.output(state)
    expected = np.tile(best.theta, (problem.n_nodes, 1))
    np.testing.assert_allclose(thetas, expected, atol=accuracy(name))
    mean = problem.sigma @ thetas / problem.total_sigma
    found = certify(problem, mean, all_duals(method.algorithm, state))
    assert 0.0 <= found.duality_gap < 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_a_model_to_start_from_is_a_better_start(name):
    method, problem = make(name)
    best = problem.optimum().theta
    near = best + 1e-6
    budget = long_enough(method) // 10
    errors = [
        np.linalg.norm(method.algorithm.output(run(method, budget, start)) - best)
        for start in (None, near)
    ]
    assert errors[1] <= max(1.5 * errors[0], 1e-12)
    state = run(method, long_enough(method), near)
    thetas = method.algorithm.output(state)
    np.testing.assert_allclose(thetas, np.tile(best, (4, 1)), atol=accuracy(name))


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_zero_and_weights_of_zero_do_no_harm(name):
    case = make_case("path:2", loss_for(name), density=0.7)
    shards = [tuple(np.array(part) for part in shard) for shard in case.shards]
    extra = np.zeros((1, 4)), np.array([1.0]), np.array([2.0])
    weightless = np.ones((1, 4)), np.array([-1.0]), np.array([0.0])
    shards[0] = tuple(
        np.concatenate(parts) for parts in zip(shards[0], extra, weightless, strict=True)
    )
    best = case.problem.optimum().theta
    for convert in (np.asarray, sp.csr_matrix):
        data = [(convert(rows), *rest) for rows, *rest in shards]
        problem = adfs.Problem(data, loss_for(name), case.problem.sigma, case.problem.topology)
        method = get_algorithm(name)(problem, MethodSetting())
        thetas = method.algorithm.output(run(method, long_enough(method)))
        np.testing.assert_allclose(thetas, np.tile(best, (2, 1)), atol=accuracy(name))


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
@pytest.mark.parametrize("name", sorted(set(NAMES) - NON_SMOOTH))
def test_a_loss_that_is_not_smooth_is_refused_with_the_choices(name, loss):
    problem = make_case("path:2", loss).problem
    sentence = (
        f"'{name}' needs a smooth loss and '{loss}' is not; choose algorithm ns-adfs, or one of "
        "the losses logistic, squared, squared_hinge, smoothed_hinge, huber"
    )
    with pytest.raises(ParameterError, match=sentence):
        get_algorithm(name)(problem, MethodSetting())


@pytest.mark.parametrize("loss", ["logistic", "squared", "squared_hinge", "huber"])
@pytest.mark.parametrize("name", sorted(NON_SMOOTH))
def test_a_smooth_loss_is_sent_to_the_linear_rate(name, loss):
    sentence = f"'{name}' is for the losses hinge, absolute and '{loss}' is smooth; choose.* adfs"
    with pytest.raises(ParameterError, match=sentence):
        get_algorithm(name)(make_case("path:2", loss).problem, MethodSetting())


@pytest.mark.parametrize("name", NAMES)
def test_every_shared_number_of_a_checkpoint_is_taken_back(name):
    algorithm = make(name)[0].algorithm
    state = algorithm.init()
    stored = {key: array + 1 for key, array in algorithm.arrays(state).shared.items()}
    algorithm.restore(state, {key: array.copy() for key, array in stored.items()})
    restored = algorithm.arrays(state).shared
    assert restored.keys() == stored.keys()
    for key, array in stored.items():
        np.testing.assert_array_equal(restored[key], array)

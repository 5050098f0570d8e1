"""A run that goes on from a checkpoint's arrays has every number of one that was never stopped."""

import numpy as np
import pytest

import adfs
from adfs.algorithms.base import Arrays, MethodSetting, get_algorithm
from adfs.engine.steppers import BlockStepper
from support.problems import make_case
from support.ranks import (
    Case,
    found_by,
    found_locally,
    loopback,
    make_ranks,
    make_shards_of,
    merged,
    random_mapping,
    require_same_bits,
    run_ranks,
)

NAMES = adfs.algorithms()


def stepper_of(name, clock):
    loss = "hinge" if name == "ns-adfs" else "logistic"
    problem = make_case("grid:2x2", loss).problem
    method = get_algorithm(name)(problem, MethodSetting(clock=clock, seed=2))
    stepper = BlockStepper(problem, method)
    stepper.keeps_tally = True
    return stepper


def run_to(stepper, stop):
    stepper.load(stop)
    stepper.serve()


def resume(stepper, position, stored):
    """As from a file: the state's arrays are put in place, then the stepper takes the rest."""
    of_state = stepper.algorithm.arrays(stepper.state)
    for views, arrays in ((of_state.samples, stored.samples), (of_state.nodes, stored.nodes)):
        for name, view in views.items():
            view[...] = arrays[name]
    stepper.restore(position, stored)


def saved(stepper):
    groups = stepper.arrays()
    return Arrays(*({name: np.array(a) for name, a in group.items()} for group in groups))


def numbers_of(stepper):
    """What a run shows of itself: models, counts, and every time of its clock."""
    per_node, shared = stepper.clock.arrays()
    times = per_node | shared
    return {
        "thetas": stepper.algorithm.output(stepper.state).tolist(), "counts": stepper.counts,
        "iteration": stepper.iteration, "time": stepper.clock.time,
        **{name: each.tolist() for name, each in times.items()},
    }  # fmt: skip


@pytest.mark.parametrize("clock", ["nonblocking", "rendezvous"])
@pytest.mark.parametrize("name", NAMES)
def test_a_resumed_run_has_every_number_of_one_that_went_through(name, clock):
    through, first, second = (stepper_of(name, clock) for _ in range(3))
    run_to(through, 300)
    run_to(first, 120)
    resume(second, 120, saved(first))
    assert numbers_of(second) == numbers_of(first)
    run_to(second, 300)
    assert numbers_of(second) == numbers_of(through)
    if hasattr(through.clock, "waiting"):
        assert through.clock.waiting.max() > 0.0


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_resumed_ranks_have_every_number_of_one_process(loss):
    case = Case(loss, "dense", "shared", 4)
    shards, problem = make_shards_of(case)
    mapping = random_mapping(4, 2, seed=0)
    first, second = (make_ranks(shards, problem, case.setting, mapping) for _ in range(2))
    run_ranks(first, loopback(2, 0), 500)
    for before, after in zip(first, second, strict=True):
        resume(after, 500, saved(before))
    run_ranks(second, loopback(2, 0), 900)
    found = merged([found_by(rank) for rank in second], 4)
    require_same_bits(found, found_locally(problem, case.setting, 900))
    assert found["times"].reshape(4, 3)[:, 2].max() > 0.0

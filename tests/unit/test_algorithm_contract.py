"""`check_algorithm` finds what is wrong with somebody's method, and says it."""

from dataclasses import dataclass

import numpy as np
import pytest

import adfs
from adfs.algorithms.base import BY_NAME, ONE_MACHINE, REGISTRY
from adfs.errors import ContractError
from adfs.plugins import Nodes, PerNode, PerSample, RoundMethod, Uses, register

pytestmark = pytest.mark.slow  # a second for each method


@dataclass
class State:
    """The model, and the gradient that was used last."""

    theta: PerNode
    old: PerNode


class Descent(RoundMethod[State]):
    """Gradient descent, with gradients summed over the network."""

    uses = Uses(gradients=1, sums=1)
    proven = True

    def __init__(self, nodes: Nodes) -> None:
        super().__init__(nodes)
        self.smoothness = float(nodes.smoothness.sum())
        self.rho = nodes.problem.total_sigma / self.smoothness

    def start(self, theta):
        return State(theta, np.zeros_like(theta))

    def gradient(self, state):
        return self.nodes.sum(self.nodes.gradients(state.theta))

    def round(self, state, t, kind):
        state.old = np.tile(self.gradient(state), (self.nodes.n, 1))
        state.theta = state.theta - state.old / self.smoothness


class NotARate(Descent):
    def __init__(self, nodes):
        super().__init__(nodes)
        self.rho = 1.5


class Narrow(Descent):
    def output(self, state):
        return state.theta[:, :1]


class Infinite(Descent):
    def round(self, state, t, kind):
        state.theta = state.theta + np.inf


class KeepsInItself(Descent):
    """Counts rounds by itself, so other cuts and other runs disturb it."""

    count = 0

    def step(self, state, events):
        self.count += 1
        state.theta = state.theta + 1e-3 * self.count
        return super().step(state, events)


class MovesWhatWasRead(Descent):
    def output(self, state):
        return state.theta

    def round(self, state, t, kind):
        state.theta -= self.gradient(state) / self.smoothness


class ChangesByReading(Descent):
    def output(self, state):
        state.theta = 0.9 * state.theta
        return state.theta.copy()


class DrawsFromNowhere(Descent):
    def round(self, state, t, kind):
        super().round(state, t, kind)
        state.theta = state.theta + 1e-9 * np.random.default_rng().standard_normal(3)


class DeclaresTooLittle(Descent):
    uses = Uses(gradients=1)


class DeclaresTooMuch(Descent):
    uses = Uses(gradients=2, sums=1)


class ForgetsAField(Descent):
    """Has a momentum that is not in its checkpoints."""

    def start(self, theta):
        state = super().start(theta)
        state.hidden = np.zeros_like(theta)
        return state

    def round(self, state, t, kind):
        super().round(state, t, kind)
        state.theta = state.theta + 1e-3 * state.hidden
        state.hidden = state.old


class SharesAnArray(Descent):
    """Two fields are one array until the first round."""

    def start(self, theta):
        return State(theta, theta)

    def round(self, state, t, kind):
        past = state.old
        super().round(state, t, kind)
        state.theta = state.theta + 1e-6 * past


@dataclass
class SampleState(State):
    """With a number per sample."""

    table: PerSample


class TakesAllRows(Descent):
    """Its table has a place for every sample of the problem, also on ranks."""

    def start(self, theta):
        return SampleState(theta, np.zeros_like(theta), np.zeros(self.problem.n_samples))

    def round(self, state, t, kind):
        super().round(state, t, kind)
        state.table = state.table + self.problem.labels


class NodesOfThisProcess(Descent):
    """Takes the mean over the nodes that happen to be here."""

    def round(self, state, t, kind):
        super().round(state, t, kind)
        state.theta = state.theta + 1e-6 * state.theta.mean(axis=0) * self.nodes.n


class ForgetsTheRidge(Descent):
    def gradient(self, state):
        found = self.nodes.gradients(state.theta) - self.nodes.sigma * state.theta
        return self.nodes.sum(found)


class TooSlow(Descent):
    """Takes a tenth of the step that it states a rate for."""

    def round(self, state, t, kind):
        before = state.theta
        super().round(state, t, kind)
        state.theta = before + 0.1 * (state.theta - before)


class TooHopeful(Descent):
    """Its rate is so large that soon every error would be rounding."""

    def __init__(self, nodes):
        super().__init__(nodes)
        self.rho = 0.9


class TheRootOfItsRate(Descent):
    """States the rate of an accelerated method, which it is not."""

    def __init__(self, nodes):
        super().__init__(nodes)
        self.rho = self.rho**0.5


class GoesUp(Descent):
    proven = False

    def round(self, state, t, kind):
        state.theta = state.theta + 1e-3 * self.gradient(state) / self.smoothness


WRONG = [
    (NotARate, "rho must be in"),
    (Narrow, r"output must have shape \(nodes, features\)"),
    (Infinite, "output must be finite"),
    (KeepsInItself, "must not depend on how they are cut"),
    (KeepsInItself, "two runs of one object must not disturb each other"),
    (MovesWhatWasRead, "what output returned must not change later"),
    (ChangesByReading, "output must change nothing"),
    (DrawsFromNowhere, "the same seed must give the same bits"),
    (DeclaresTooLittle, "declares sums=0, but round 0 asks for 1"),
    (DeclaresTooMuch, "declares gradients=2, but round 0 asks for 1"),
    (
        ForgetsAField,
        "checkpoint after 1 events .* declare hidden in the state's dataclass as PerNode",
    ),
    (SharesAnArray, "no two fields may be one array"),
    (TakesAllRows, "must run on ranks, but rank"),
    (NodesOfThisProcess, "ranks must give the bits of one process"),
    (ForgetsTheRidge, "it must come closer to the optimum"),
    (TooSlow, "is called proven, so after"),
    (TooHopeful, "is called proven, so after"),
    (TheRootOfItsRate, "on a problem with a larger condition number rho=.* is called proven"),
    (GoesUp, "it must come closer to the optimum"),
]


@pytest.fixture
def check():
    """`check_algorithm` of a class that is registered for this test only."""
    name = "one-of-the-tests"

    def run(method):
        register(name, by_name=True)(method)
        adfs.check_algorithm(name)

    yield run
    REGISTRY.pop(name)
    for names in (BY_NAME, ONE_MACHINE):
        names.discard(name)


def test_a_method_that_keeps_its_promises_has_no_fault(check):
    check(Descent)


@pytest.mark.parametrize(("method", "words"), WRONG)
def test_a_method_that_does_not_is_told_which(check, method, words):
    with pytest.raises(ContractError, match=words):
        check(method)

"""What an algorithm is, and the names under which they are found."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from adfs.errors import ParameterError
from adfs.problems.finite_sum import Problem
from adfs.schedule.events import Events
from adfs.theory.parameters import Parameters

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
S = TypeVar("S")


class Counts(NamedTuple):
    """What a block of events cost: proximal steps, sample gradients, messages and their bytes."""

    n_prox: int = 0
    n_grad: int = 0
    n_comm: int = 0
    bytes: int = 0

    def plus(self, other: "Counts") -> "Counts":
        """Sum of two counts."""
        return Counts(*(a + b for a, b in zip(self, other, strict=True)))


class Algorithm(Protocol[S]):
    """What an algorithm is. It owns no loop, clock, log or socket.

    A move consumes a block of the schedule; cutting the schedule elsewhere never changes a bit.
    """

    name: str

    def init(self, theta: Vector | None = None) -> S:
        """State before the first event, from zero or from a model."""
        ...

    def step(self, state: S, events: Events) -> S:
        """State after the events; may reuse the memory of the state it is given."""
        ...

    def output(self, state: S) -> Matrix:
        """``theta``, one row a node, caught up on a copy."""
        ...

    def duals(self, state: S, node: int) -> Vector | None:
        """Dual coefficients of a node's samples, if the algorithm has any."""
        ...

    def counts(self, events: Events) -> Counts:
        """What the events cost."""
        ...


Factory = Callable[[Problem, Parameters], Algorithm[Any]]
REGISTRY: dict[str, Factory] = {}


def register(name: str) -> Callable[[Any], Any]:
    """Class decorator: make an algorithm known under ``name``."""

    def add(factory: Any) -> Any:
        factory.name = name
        REGISTRY[name] = factory
        return factory

    return add


def get_algorithm(name: str) -> Factory:
    """Algorithm of that name."""
    if name not in REGISTRY:
        raise ParameterError(
            f"algorithm={name!r} is not known; choose auto or one of {', '.join(sorted(REGISTRY))}."
        )
    return REGISTRY[name]

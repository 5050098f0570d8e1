"""What a person passes to an estimator, checked when `fit` is called.

Scikit-learn wants constructors that store and nothing else, so that `clone` and `set_params` can
pass anything on; every number is judged here, and nothing is ignored in silence.
"""

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from adfs.algorithms import registered  # noqa: F401  (fills the registry)
from adfs.algorithms.base import get_algorithm
from adfs.errors import ParameterError
from adfs.launch.peers import Peers
from adfs.runtime.stopping import Stopping
from adfs.schedule.delays import Delays

LARGEST_SEED = 2**31 - 1


class Options(NamedTuple):
    """What every fit is told beside its data and its loss."""

    algorithm: str
    stopping: Stopping
    tau: float
    seed: int
    verbose: bool


def read_options(estimator: Any) -> Options:
    """The options that all estimators have in common."""
    algorithm, tol, max_iter = estimator.algorithm, estimator.tol, estimator.max_iter
    if not isinstance(algorithm, str):
        raise ParameterError(f"algorithm={algorithm!r} must be a name; 'auto' is one.")
    if algorithm != "auto":
        get_algorithm(algorithm)
    if max_iter is not None:
        max_iter = whole("max_iter", max_iter, 0, "or None for no limit")
    tau = number("tau", estimator.tau, "one message in units of one proximal step; try 5")
    Delays(tau=tau)  # refuses what is no time
    flag("warm_start", estimator.warm_start)
    return Options(
        algorithm, Stopping(number("tol", tol, "try 1e-6"), max_iter), tau,
        seed_of(estimator.random_state), verbosity(estimator.verbose),
    )  # fmt: skip


def on_ranks(options: Options, peers: Peers) -> Options:
    """The options of a rank among several: rank 0's seed and voice."""
    verbose = options.verbose and peers.rank == 0
    return options._replace(seed=int(peers.gather(options.seed)[0]), verbose=verbose)


def number(name: str, value: Any, hint: str) -> float:
    """A real number; words, arrays and truth values are none."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or math.isnan(value):
        raise ParameterError(f"{name}={value!r} must be a number: {hint}.")
    return float(value)


def positive(name: str, value: Any, hint: str) -> float:
    """A finite number > 0 whose inverse is one too."""
    checked = number(name, value, hint)
    if not (0.0 < checked < math.inf and 1.0 / checked < math.inf):
        raise ParameterError(f"{name}={value!r} must be a finite number > 0: {hint}.")
    return checked


def whole(name: str, value: Any, least: int, hint: str) -> int:
    """A whole number that is not too small."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value < least:
        raise ParameterError(f"{name}={value!r} must be a whole number >= {least}, {hint}.")
    return int(value)


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name}={value!r} must be True or False; pass one of the two.")
    return bool(value)


def choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """One of some words."""
    if not isinstance(value, str) or value not in choices:
        raise ParameterError(f"{name}={value!r} is unknown; choose one of {', '.join(choices)}.")
    return value


def verbosity(value: Any) -> bool:
    """Whether to speak: a truth value, or a number as scikit-learn has it."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    return whole("verbose", value, 0, "0 for silence or 1 for a line an evaluation") > 0


def seed_of(random_state: Any) -> int:
    """The seed itself, or one drawn from a generator; None asks the system for a new one.

    Examples
    --------
    >>> seed_of(7)
    7
    >>> seed_of(np.random.RandomState(0)) == seed_of(np.random.RandomState(0))
    True
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(LARGEST_SEED))
    return whole("random_state", random_state, 0, "a RandomState, or None for another seed a fit")

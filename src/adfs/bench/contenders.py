"""Which algorithms are compared, with which rule for their parameters; all checked beforehand."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from adfs.algorithms import registered  # noqa: F401  (fills the registry)
from adfs.algorithms.base import REGISTRY, Setting, require_engine
from adfs.errors import ParameterError
from adfs.graphs.topology import Topology
from adfs.problems.finite_sum import Problem

DEFAULT_RULE = "tuned"
# Runs may take so many times the clock of the reference; longer ones are printed as "> x".
REFERENCE, PATIENCE = "adfs", 5.0


class Contender(NamedTuple):
    """An algorithm and the rule of its parameters; the label leaves out the rule ``tuned``."""

    algorithm: str
    rule: str = DEFAULT_RULE

    @property
    def label(self) -> str:
        """How tables and figures call it."""
        return self.algorithm if self.rule == DEFAULT_RULE else f"{self.algorithm}:{self.rule}"


def choose_contenders(
    names: Sequence[str] | None, loss: str, n_features: int = 2, n_ranks: int = 1
) -> list[Contender]:
    """Read ``name`` or ``name:rule``; without names, every algorithm that takes the loss.

    With several ranks, those for one machine are refused, or left out where none are named.

    Whatever an algorithm refuses on a problem of four samples with that many features, it refuses
    here: a wrong name, rule or loss, or too many features, are told before any work.

    Examples
    --------
    >>> [each.label for each in choose_contenders(["adfs:tuned", "adfs:exact"], "logistic")]
    ['adfs', 'adfs:exact']
    """
    if names is None:
        return _all_that_take(loss, n_features, n_ranks)
    if isinstance(names, str):
        raise ParameterError(f"algorithms={names!r} must be a list; pass [{names!r}].")
    found = [_read(name) for name in names]
    if not found:
        raise ParameterError(
            f"algorithms is empty, so there is nothing to compare; choose from {_known()}."
        )
    for k, contender in enumerate(found):
        if contender in found[:k]:
            raise ParameterError(
                f"{contender.label!r} is named twice in algorithms; name it once, or give "
                "different rules as in 'adfs:exact'."
            )
        _try(contender, loss, n_features, n_ranks)
    return found


def left_out(
    contenders: Sequence[Contender], loss: str, n_features: int, n_ranks: int = 1
) -> dict[str, str]:
    """Algorithms that do not take such a problem, each with its reason.

    Examples
    --------
    >>> reasons = left_out([Contender("adfs")], "squared", n_features=5000)
    >>> reasons["newton"]
    "Algorithm 'newton' sums a d x d matrix and d=5000 is more than 2000; take algorithm='lbfgs', \
which sums vectors."
    """
    taking_part = {contender.algorithm for contender in contenders}
    reasons = {}
    for algorithm in sorted(set(REGISTRY) - taking_part):
        try:
            _prepare(Contender(algorithm), loss, n_features, n_ranks)
        except ParameterError as error:
            reasons[algorithm] = str(error)
    return reasons


def _read(name: str) -> Contender:
    algorithm, colon, rule = str(name).partition(":")
    if algorithm not in REGISTRY:
        raise ParameterError(
            f"Algorithm {algorithm!r} is not known; choose from {_known()}, each with a rule if "
            "you like, as in 'adfs:exact'."
        )
    return Contender(algorithm, rule if colon else DEFAULT_RULE)


def _known() -> str:
    return ", ".join(sorted(REGISTRY))


def _all_that_take(loss: str, n_features: int, n_ranks: int) -> list[Contender]:
    """The reference first, the others by name."""
    found = []
    for algorithm in sorted(REGISTRY, key=lambda name: (name != REFERENCE, name)):
        try:
            _prepare(Contender(algorithm), loss, n_features, n_ranks)
        except ParameterError:
            continue
        found.append(Contender(algorithm))
    return found


def _try(contender: Contender, loss: str, n_features: int, n_ranks: int) -> None:
    """Prepare it; what it refuses is told under its label."""
    try:
        _prepare(contender, loss, n_features, n_ranks)
    except ParameterError as error:
        raise ParameterError(f"{contender.label}: {error}") from None


def _prepare(contender: Contender, loss: str, n_features: int, n_ranks: int) -> None:
    """On a problem too small to cost anything."""
    require_engine(contender.algorithm, n_ranks)
    trial = _four_samples(loss, n_features)
    REGISTRY[contender.algorithm](trial, Setting(rule=contender.rule))


@functools.lru_cache(maxsize=8)
def _four_samples(loss: str, n_features: int) -> Problem:
    rows = np.zeros((4, n_features))
    rows[:, 0], rows[1::2, -1] = 1.0, -1.0
    signs = np.array([1.0, -1.0, 1.0, -1.0])
    shards = [(rows[:2], signs[:2]), (rows[2:], signs[2:])]
    return Problem(shards, loss, 1.0, Topology.path(2))

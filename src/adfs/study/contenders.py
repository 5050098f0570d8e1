"""Which algorithms are compared, with which rule for their parameters; all checked beforehand."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from adfs.algorithms import registered  # noqa: F401  (fills the registry)
from adfs.algorithms.base import (
    REGISTRY,
    MethodSetting,
    known_names,
    near_names,
    require_engine,
    usual_names,
)
from adfs.errors import ParameterError
from adfs.graphs.topology import Topology
from adfs.losses import get_loss
from adfs.problem.finite_sum import Problem

DEFAULT_RULE = "tuned"
# The clock limit of all runs is so many times what the reference needs for tol.
REFERENCE, CLOCK_LIMIT_FACTOR = "adfs", 5.0


class Contender(NamedTuple):
    """An algorithm and the rule of its parameters; the label leaves out the rule ``tuned``."""

    algorithm: str
    rule: str = DEFAULT_RULE

    @property
    def label(self) -> str:
        return self.algorithm if self.rule == DEFAULT_RULE else f"{self.algorithm}:{self.rule}"


Job = tuple[Contender, int]  # a run: with its seed


def choose_contenders(
    names: Sequence[str] | None, loss: str, n_features: int = 2, n_ranks: int = 1
) -> list[Contender]:
    """Read ``name`` or ``name:rule``; without names, every usual algorithm that takes the loss.

    With several ranks, those for one machine are refused, or left out where none are named.

    Each is prepared on a problem of four samples with that many features. So a wrong name, rule or
    loss, or too many features, raise an error before any work.

    Examples
    --------
    >>> [each.label for each in choose_contenders(["adfs:tuned", "adfs:exact"], "logistic")]
    ['adfs', 'adfs:exact']
    """
    problem = (loss, n_features, n_ranks)
    if names is None:
        reference_first = sorted(usual_names(), key=lambda name: (name != REFERENCE, name))
        return [each for each in map(Contender, reference_first) if not refusal(each, *problem)]
    if isinstance(names, str):
        raise ParameterError(f"algorithms={names!r} must be a list; pass [{names!r}].")
    found: list[Contender] = []
    known = known_names()
    for name in names:
        algorithm, colon, rule = str(name).partition(":")
        if algorithm not in REGISTRY:
            raise ParameterError(
                f"Algorithm {algorithm!r} is not known{near_names(algorithm)}; choose from "
                f"{known}; a rule may follow: adfs:exact."
            )
        contender = Contender(algorithm, rule if colon else DEFAULT_RULE)
        if contender in found:
            raise ParameterError(
                f"{contender.label!r} is named twice in algorithms; name it once, or give "
                "different rules as in 'adfs:exact'."
            )
        if (reason := refusal(contender, *problem)) is not None:
            raise ParameterError(f"{contender.label}: {reason}")
        found.append(contender)
    if not found:
        raise ParameterError(
            f"algorithms is empty, so there is nothing to compare; choose from {known}."
        )
    return found


def left_out(
    contenders: Sequence[Contender], loss: str, n_features: int, n_ranks: int = 1
) -> dict[str, str]:
    """Algorithms that do not take such a problem, each with its reason.

    Examples
    --------
    >>> reasons = left_out([Contender("adfs")], "squared", n_features=5000)
    >>> reasons["newton"]
    "Algorithm 'newton' sums a d x d matrix and d=5000 is more than 2000; take lbfgs or \
tron, which sum vectors."
    """
    others = sorted(set(usual_names()) - {contender.algorithm for contender in contenders})
    reasons = {name: refusal(Contender(name), loss, n_features, n_ranks) for name in others}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def refusal(contender: Contender, loss: str, n_features: int, n_ranks: int = 1) -> str | None:
    """Why it does not take such a problem, or None: tried on one too small to cost anything."""
    try:
        require_engine(contender.algorithm, n_ranks)
        trial = _four_samples(loss, n_features)
        REGISTRY[contender.algorithm](trial, MethodSetting(rule=contender.rule))
    except ParameterError as error:
        return str(error)
    return None


@functools.lru_cache(maxsize=8)
def _four_samples(loss: str, n_features: int) -> Problem:
    rows = np.zeros((4, n_features))
    rows[:, 0], rows[1::2, -1] = 1.0, -1.0
    labels = np.resize(get_loss(loss).labels, 4)
    shards = [(rows[:2], labels[:2]), (rows[2:], labels[2:])]
    return Problem(shards, loss, 1.0, Topology.path(2))

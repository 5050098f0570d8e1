"""What a method of one's own is made of (docs/how-to/add-an-algorithm.md).

`register` makes a factory known under a name. The factory returns a `Method`: an object with the
methods of `Algorithm`, a source of events such as `Rounds`, a clock such as `RoundClock`, and a
rate. `prepare` makes the method of a registered name, to step through it by hand.
"""

from typing import Any

from adfs.algorithms import registered  # noqa: F401  (fills the registry)
from adfs.algorithms.base import (
    Algorithm,
    Arrays,
    Counts,
    Method,
    MethodSetting,
    get_algorithm,
    register,
    require_non_smooth,
    require_smooth,
    rule_of,
)
from adfs.costs import agreed_costs
from adfs.problem.finite_sum import Problem
from adfs.schedule.rounds import Cost, RoundClock, Rounds
from adfs.theory.description import Description, Fact

__all__ = [
    "Algorithm",
    "Arrays",
    "Cost",
    "Counts",
    "Description",
    "Fact",
    "Method",
    "MethodSetting",
    "RoundClock",
    "Rounds",
    "prepare",
    "register",
    "require_non_smooth",
    "require_smooth",
    "rule_of",
]


def prepare(problem: Problem, algorithm: str, **setting: Any) -> Method:
    """The method that `adfs.solve` would run, to step through it by hand.

    Parameters
    ----------
    problem : Problem
    algorithm : str
        A registered name; `adfs.algorithms` lists them.
    **setting
        Fields of `MethodSetting`: ``rule``, ``tau``, ``clock``, ``delays``, ``seed``, ``schedule``,
        ``costs``.

    Examples
    --------
    >>> import adfs
    >>> X, y = adfs.generators.two_gaussians(200, 5, seed=0)
    >>> problem = adfs.Problem(adfs.partition(X, y, 4), sigma=0.5)
    >>> method = adfs.prepare(problem, "newton")
    >>> state = method.algorithm.init()
    >>> state = method.algorithm.step(state, method.source.draw(0, 6))  # six iterations
    >>> theta = method.algorithm.output(state)[0]
    >>> bool(adfs.certify(problem, theta).duality_gap < 1e-8)
    True
    """
    costs = agreed_costs(problem.network.peers, setting.pop("costs", "paper"))
    return get_algorithm(algorithm)(problem, MethodSetting(**setting, costs=costs))

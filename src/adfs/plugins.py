"""What a method of one's own is made of (docs/how-to/add-an-algorithm.md).

`register` makes a method known under a name. A method in synchronous rounds is a class below
`RoundMethod`, whose `Nodes` compute, gossip and sum, and which declares what it `Uses`. Any other
is a factory that returns a `Method`: an object with the methods of `Algorithm`, a source of events,
a clock, and a rate. `prepare` makes the method of a registered name, to step through it by hand.

For compiled loops there are `njit`, rows (`dot`, `axpy`), the loss (`derivative`), the proximal
steps of a sample (`dual_prox`, `slope_after`) and random numbers (`uniform`, `alias_draw`).
`positive` and `whole` check options.
"""

import importlib
from typing import Any

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
from adfs.algorithms.nodes import ChebyshevMixer, Mixer, Nodes, Sampler, Uniforms, Uses
from adfs.algorithms.round_method import (
    AdaptiveRoundMethod,
    PerNode,
    PerSample,
    RoundMethod,
    Shared,
    rule_text,
)
from adfs.checks import positive, whole
from adfs.costs import agreed_costs
from adfs.graphs.weights import MixingWeights
from adfs.kernels.compiled import njit
from adfs.kernels.loss_functions import derivative
from adfs.kernels.prox import dual_prox, slope_after
from adfs.kernels.rows import axpy, dot
from adfs.kernels.sampling import alias_draw, uniform
from adfs.problem.finite_sum import Problem
from adfs.schedule.delays import Delays
from adfs.schedule.rounds import CoinRounds, Cost, RoundClock, Rounds
from adfs.theory.description import Description, Fact

__all__ = [
    "AdaptiveRoundMethod",
    "Algorithm",
    "Arrays",
    "ChebyshevMixer",
    "CoinRounds",
    "Cost",
    "Counts",
    "Description",
    "Fact",
    "Method",
    "MethodSetting",
    "Mixer",
    "MixingWeights",
    "Nodes",
    "PerNode",
    "PerSample",
    "RoundClock",
    "RoundMethod",
    "Rounds",
    "Sampler",
    "Shared",
    "Uniforms",
    "Uses",
    "alias_draw",
    "axpy",
    "derivative",
    "dot",
    "dual_prox",
    "njit",
    "positive",
    "prepare",
    "register",
    "require_non_smooth",
    "require_smooth",
    "rule_of",
    "slope_after",
    "uniform",
    "whole",
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
        ``costs``. Without ``delays`` all messages take ``tau``.

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
    importlib.import_module("adfs.algorithms.registered")  # which imports plug-ins, and they this
    costs = agreed_costs(problem.network.peers, setting.pop("costs", "paper"))
    if "tau" in setting:
        setting.setdefault("delays", Delays(tau=setting["tau"]))
    if "rule" in setting:
        setting["rule"] = rule_text(setting["rule"])
    return get_algorithm(algorithm)(problem, MethodSetting(**setting, costs=costs))

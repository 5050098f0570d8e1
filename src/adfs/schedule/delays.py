"""How long communications and local updates last, by rule or by chance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs import checks
from adfs.errors import ParameterError
from adfs.kernels import clocks
from adfs.randomness import stream_key

Numbers = float | Sequence[float] | NDArray[np.float64]

LAWS = {
    "constant": clocks.CONSTANT,
    "exponential": clocks.EXPONENTIAL,
    "lognormal": clocks.LOGNORMAL,
    "pareto": clocks.PARETO,
}
TIME_RULES = {
    "tau": "must be >= 0 and finite: it is the time of one communication in units of one proximal "
    "step. Pass for example tau=5.",
    "speed": "must be > 0 and finite: it is the time of one local update. Pass 1 for an ordinary "
    "node, 10 for one ten times slower.",
}
SCOPES = ("both", "communications", "computations")
SHAPES = {  # of laws that have one: the default, the number below all, and the rule
    "lognormal": (0.5, 0.0, "the lognormal law needs shape (its sigma) > 0; 0 is the constant law"),
    "pareto": (2.5, 1.0, "the Pareto law needs shape (its alpha) > 1; below that it has no mean"),
}


@dataclass(frozen=True)
class Delays:
    """Duration of every event of a schedule, in units of one sample's proximal step.

    Event number t lasts ``tau`` (an exchange) or ``speed`` (a local update) times draw number t
    of the law, whose mean is 1. Draw t depends on the seed and on t alone: times do not depend on
    how the schedule is cut into blocks, and both messages of an exchange travel equally long.

    Parameters
    ----------
    tau : float or sequence of float
        Time of one communication, for all edges or one per edge; >= 0.
    speed : float or sequence of float
        Time of one local update, for all nodes or one per node; > 0. A node with 10.0 is ten times
        slower than the others.
    law : {"constant", "exponential", "lognormal", "pareto"}
        Law of the factor.
    shape : float, optional
        Sigma of the lognormal law (default 0.5), or alpha of the Pareto law (> 1, default 2.5).
    applies_to : {"both", "communications", "computations"}
        Which events the law multiplies.
    seed : int
        Seed of the law's own stream.

    Examples
    --------
    >>> Delays(tau=5.0).nominal(n_edges=2, n_nodes=3)
    array([5., 5., 1., 1., 1.])
    >>> Delays(tau=[5, 2], speed=(1, 1, 10), law="pareto", shape=3).tau
    (5.0, 2.0)
    """

    tau: Numbers = 1.0
    speed: Numbers = 1.0
    law: str = "constant"
    shape: float | None = None
    applies_to: str = "both"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in TIME_RULES:
            object.__setattr__(self, name, _checked_times(name, getattr(self, name)))
        checks.choice("law", self.law, tuple(LAWS))
        checks.choice("applies_to", self.applies_to, SCOPES)
        object.__setattr__(self, "shape", _checked_shape(self.law, self.shape))
        stream_key(self.seed, "delays")

    @property
    def is_constant(self) -> bool:
        """Whether every step, and every message, takes the same time."""
        return (
            self.law == "constant"
            and len({*np.ravel(self.tau)}) == len({*np.ravel(self.speed)}) == 1
        )

    def nominal(self, n_edges: int, n_nodes: int) -> NDArray[np.float64]:
        """Duration before the law: one number per edge, then one per node, (n_edges + n_nodes,)."""
        parts = []
        for name, n, what in (("tau", n_edges, "edge"), ("speed", n_nodes, "node")):
            values = np.asarray(getattr(self, name), dtype=np.float64)
            if values.ndim and values.size != n:
                raise ParameterError(
                    f"{name} has {values.size} values for {n} {what}s; pass one number, or one per "
                    f"{what}."
                )
            parts.append(np.broadcast_to(values, (n,)))
        return np.concatenate(parts)

    def keys(self) -> NDArray[np.uint64]:
        """Keys of the two streams of uniforms from which an event's factor is made."""
        names = ("delays/0", "delays/1")
        return np.array([stream_key(self.seed, name) for name in names], dtype=np.uint64)

    def law_arguments(self, n_edges: int, n_nodes: int) -> tuple[int, int, int, float]:
        """The law multiplies ``first <= which < last`` (none if constant); its code, its shape."""
        if self.law == "constant":
            return 0, 0, LAWS[self.law], 0.0
        first = n_edges if self.applies_to == "computations" else 0
        last = n_edges if self.applies_to == "communications" else n_edges + n_nodes
        return first, last, LAWS[self.law], self.shape or 0.0


def _checked_times(name: str, given: Numbers) -> float | tuple[float, ...]:
    """Floats and tuples rather than arrays: comparable, hashable, ready for JSON."""
    values = _numbers(name, given)
    holds = np.isfinite(values) & (values >= 0.0 if name == "tau" else values > 0.0)
    if not np.all(holds):
        index = int(np.argmin(holds))
        label = f"{name}[{index}]" if values.ndim else name
        raise ParameterError(f"{label}={values.flat[index]:g} {TIME_RULES[name]}")
    return tuple(values.tolist()) if values.ndim else float(values)


def _checked_shape(law: str, shape: float | None) -> float | None:
    if law not in SHAPES:
        if shape is not None:
            raise ParameterError(
                f"shape={shape!r} means nothing to the {law} law; leave it out, or choose "
                f"law='lognormal' or law='pareto'."
            )
        return None
    usual, below, rule = SHAPES[law]
    value = _numbers("shape", usual if shape is None else shape)
    if value.ndim or not math.isfinite(value) or value <= below:
        raise ParameterError(
            f"shape={shape!r} does not fit: {rule}. Pass for example shape={usual}."
        )
    return float(value)


def _numbers(name: str, value: Any) -> NDArray[np.float64]:
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        array = np.empty((0, 0))
    if array.ndim > 1 or (array.size and array.dtype.kind not in "iuf"):
        raise ParameterError(f"{name}={value!r} must be a number or a flat list of numbers.")
    return array.astype(np.float64)

"""The paper's Table 1: idealized time for a factor e of the error, constants left out."""

import math
from collections.abc import Callable
from typing import NamedTuple

from adfs.problems.finite_sum import Problem


class Sizes(NamedTuple):
    """What the times of Table 1 depend on."""

    n: int
    m: float
    tau: float
    kappa_s: float
    kappa_b: float
    gamma: float

    @classmethod
    def of(cls, problem: Problem, tau: float) -> "Sizes":
        """Sizes of a problem; ``m`` is the mean number of samples a node."""
        conditioning = problem.conditioning
        return cls(
            problem.n_nodes, problem.n_samples / problem.n_nodes, tau, conditioning.kappa_s,
            conditioning.kappa_b(), problem.topology.spectrum.gamma,
        )  # fmt: skip

    @property
    def work(self) -> float:
        """What one machine needs for its own ``m`` samples: ``m + sqrt(m kappa_s)``."""
        return self.m + math.sqrt(self.m * self.kappa_s)

    @property
    def network(self) -> float:
        """What the network adds: ``(1 + tau) sqrt(kappa_s / gamma)``, nothing for one machine."""
        return (1.0 + self.tau) * math.sqrt(self.kappa_s / self.gamma) if self.n > 1 else 0.0


class Row(NamedTuple):
    """A row of Table 1: its time as the paper writes it, and as a number."""

    formula: str
    time: Callable[[Sizes], float]


def _point_saga(s: Sizes) -> float:
    return s.n * s.m + math.sqrt(s.n * s.m * s.kappa_s)


def _msda(s: Sizes) -> float:
    return math.sqrt(s.kappa_b) * (s.m + s.tau / math.sqrt(s.gamma))


def _esdacd(s: Sizes) -> float:
    return (s.m + s.tau) * math.sqrt(s.kappa_b / s.gamma)


def _dsba(s: Sizes) -> float:
    return (s.m + s.kappa_s + 1.0 / s.gamma) * (1.0 + s.tau)


def _adfs(s: Sizes) -> float:
    return s.work + s.network


TABLE_1 = {
    "point-saga": Row("nm + sqrt(nm kappa_s)", _point_saga),
    "msda": Row("sqrt(kappa_b) (m + tau / sqrt(gamma))", _msda),
    "esdacd": Row("(m + tau) sqrt(kappa_b / gamma)", _esdacd),
    "dsba": Row("(m + kappa_s + 1 / gamma) (1 + tau)", _dsba),
    "adfs": Row("m + sqrt(m kappa_s) + (1 + tau) sqrt(kappa_s / gamma)", _adfs),
}

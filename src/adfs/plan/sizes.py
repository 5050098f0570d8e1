"""Times of methods from a few sizes: the formulas of Table 1, and of methods over an all-reduce.

Each formula has a part for computing and one for the network, in idealized time for a factor e of
the error, or for a run. Constants are measured (``benchmarks/plan.py``).
"""

import math
from typing import NamedTuple

from adfs.algorithms.lbfgs import usual_evaluations

# What runs took over the formulas below: medians of benchmarks/plan.py.
SEEN = {
    "adfs": 0.73, "msda": 0.22, "ssda": 0.18, "esdacd": 0.41, "dsba": 0.23, "katyusha": 0.85,
    "l-katyusha": 1.05, "point-saga": 0.73,
}  # fmt: skip


class Parts(NamedTuple):
    """A time with its two parts."""

    computing: float
    network: float

    @property
    def time(self) -> float:
        return self.computing + self.network


class Sizes(NamedTuple):
    """What the times of methods depend on; ``m`` is the mean number of samples per node."""

    n: int
    m: float
    tau: float
    kappa_s: float
    kappa_b: float
    gamma: float
    diameter: int = 1
    n_features: int = 1
    hessian: float = 1.0  # a sample's part of the Hessian, in proximal steps

    def parts(self) -> dict[str, Parts]:
        """Times for a factor e, constants left out: Table 1, and two rows like it."""
        n, m, tau, kappa_s, kappa_b, gamma = self[:6]
        root, gap = math.sqrt(kappa_b), math.sqrt(gamma)
        reduced = self.diameter * tau * root
        parts = {
            "adfs": Parts(m + math.sqrt(m * kappa_s), (1.0 + tau) * math.sqrt(kappa_s) / gap),
            "msda": Parts(root * m, root * tau / gap),
            "ssda": Parts(root / gap * m, root / gap * tau),
            "esdacd": Parts(root / gap * m, root / gap * tau),
            "dsba": Parts(m + kappa_s + 1.0 / gamma, tau * (m + kappa_s + 1.0 / gamma)),
            "katyusha": Parts(m + math.sqrt(m * kappa_s / n), reduced),
            "l-katyusha": Parts(m + math.sqrt(m * kappa_s / n), reduced),
            "point-saga": Parts(n * m + math.sqrt(n * m * kappa_s), 0.0),
        }
        return parts if n > 1 else {name: each._replace(network=0.0) for name, each in parts.items()}

    def runs(self, tol: float) -> dict[str, Parts]:
        """Times of runs to a relative gap of ``tol``, as measured constants have them."""
        efolds = math.log(1.0 / min(tol, 0.5))
        found = {
            name: Parts(*(SEEN[name] * efolds * part for part in parts))
            for name, parts in self.parts().items()
        }
        many = usual_evaluations(self.kappa_b, self.n_features, tol)
        few = usual_steps(self.kappa_b, tol)
        depth = self.diameter if self.n > 1 else 0
        found["lbfgs"] = Parts(many * self.m, many * depth * self.tau)
        rounds = depth + self.n_features + 3 if self.n > 1 else 0
        found["newton"] = Parts(few * self.m * (1.0 + self.hessian), few * rounds * self.tau)
        return found


def usual_steps(kappa: float, tol: float) -> float:
    """Evaluations that Newton's method took: 3 to 9 for ``tol = 1e-6``; fitted, off by up to 1.8."""
    return max(2.0, 0.64 + 0.5 * math.log(kappa)) + 0.2 * math.log10(1e-6 / min(tol, 1e-6))

"""Table 1, from dense data: shards (X, y, w) of a logistic problem with one sigma for all nodes."""

import math
from typing import NamedTuple

import numpy as np

from . import augmented, theory


class Constants(NamedTuple):
    """What the rows of Table 1 depend on."""

    n: int
    m: int
    tau: float
    kappa_s: float
    kappa_b: float
    gamma: float

    @property
    def work(self):
        """m + sqrt(m kappa_s)."""
        return self.m + math.sqrt(self.m * self.kappa_s)

    @property
    def network(self):
        """(1 + tau) sqrt(kappa_s / gamma); a single node has no network."""
        return (1 + self.tau) * math.sqrt(self.kappa_s / self.gamma) if self.n > 1 else 0.0


def constants(shards, sigma, edges, tau):
    """kappa_s >= 1 + sum_j L_ij / sigma, kappa_b >= M_i / sigma with M_i the smoothness of f_i."""
    n, m = len(shards), len(shards[0][1])
    l_ij = augmented.smoothness(shards, "logistic").reshape(n, m)
    batch = [np.linalg.eigvalsh(x.T @ (x * w[:, None]) / 4)[-1] for x, _, w in shards]
    gamma = theory.gamma(theory.laplacian(n, edges, np.ones(len(edges)))) if n > 1 else 1.0
    return Constants(
        n, m, tau, theory.kappa_s(l_ij, [sigma] * n), 1 + max(batch) / sigma, gamma
    )  # fmt: skip


def times(c):
    """The column Time, row by row."""
    return {
        "point-saga": c.n * c.m + math.sqrt(c.n * c.m * c.kappa_s),
        "msda": math.sqrt(c.kappa_b) * (c.m + c.tau / math.sqrt(c.gamma)),
        "esdacd": (c.m + c.tau) * math.sqrt(c.kappa_b / c.gamma),
        "dsba": (c.m + c.kappa_s + 1 / c.gamma) * (1 + c.tau),
        "adfs": c.work + c.network,
    }

"""Times of methods from a few sizes: the formulas of Table 1, and of methods over an all-reduce.

Each time has a part for computing and one for the network, in proximal steps. Constants are those
that runs took (``benchmarks/plan.py``), so they are good to about a factor 2.
"""

import math
from typing import NamedTuple

from adfs.algorithms.descent import messages
from adfs.algorithms.dual_gradient import dual_cost
from adfs.algorithms.lbfgs import usual_evaluations
from adfs.algorithms.msda import START, usual_share
from adfs.algorithms.newton import usual_steps
from adfs.algorithms.tron import pass_cost
from adfs.costs import Costs
from adfs.problem.finite_sum import Problem

# What runs took over the formulas of `Sizes.parts`.
SEEN = {
    "adfs": 0.73, "esdacd": 0.41, "dsba": 0.23, "katyusha": 0.85,
    "l-katyusha": 1.05, "point-saga": 0.73,
}  # fmt: skip
OVER_EDGES = ("adfs", "msda", "ssda", "esdacd", "dsba")  # the others sum over a tree
TABLE_1 = ("point-saga", "msda", "esdacd", "dsba", "adfs")


class Parts(NamedTuple):
    """The two parts of a time, and how many vectors every edge, or a tree, carries both ways."""

    computing: float
    network: float
    vectors: float

    @property
    def time(self) -> float:
        return self.computing + self.network

    def times(self, factor: float) -> "Parts":
        return Parts(*(factor * each for each in self))


class Sizes(NamedTuple):
    """What the times of methods depend on; ``m`` is the mean number of samples per node."""

    n: int
    m: float
    tau: float
    kappa_s: float
    kappa_b: float
    gamma: float
    n_edges: int = 0
    diameter: int = 0
    n_features: int = 1
    # What steps cost, in proximal steps, as `adfs.Costs` has them.
    gradient: float = 1.0
    sampled_gradient: float = 1.0
    product: float = 1.0
    hessian: float = 1.0
    dual_gradient: float = 1.0
    iterative_dual_gradient: float = 1.0
    factorisation: float = 0.0

    @classmethod
    def of(cls, problem: Problem, tau: float, costs: Costs | None = None) -> "Sizes":
        """Sizes of a problem; a loss that is not smooth counts as one of curvature 1."""
        n, topology = problem.n_nodes, problem.topology
        if problem.loss.smooth:
            kappas = problem.conditioning.kappa_s, problem.conditioning.kappa_b()
        else:
            kappas = (float(problem.dual_bounds.kappa.max()),) * 2
        return cls(
            n, problem.n_samples / n, tau, *kappas, topology.spectrum.gamma, topology.n_edges,
            topology.diameter, problem.n_features, **(costs or Costs.paper()).of(problem).largest(),
        )  # fmt: skip

    @property
    def work(self) -> float:
        """What one machine needs for its own ``m`` samples: ``m + sqrt(m kappa_s)``."""
        return self.parts()["adfs"].computing

    @property
    def network(self) -> float:
        """What the network adds: ``(1 + tau) sqrt(kappa_s / gamma)``, nothing for one machine."""
        return self.parts()["adfs"].network

    @property
    def times(self) -> dict[str, float]:
        """The column Time of Table 1."""
        return {name: each.time for name, each in self.parts().items() if name in TABLE_1}

    def parts(self) -> dict[str, Parts]:
        """For a factor e of the error, constants left out: Table 1, and two rows like it."""
        n, m, tau, kappa_s, kappa_b, gamma = self[:6]
        root, slow = math.sqrt(kappa_b), math.sqrt(kappa_b / gamma)
        gossip, visits = math.sqrt(kappa_s / gamma), m + kappa_s + 1.0 / gamma
        work = m * self.gradient + math.sqrt(m * kappa_s / n) * self.sampled_gradient
        shared = Parts(work, self.diameter * tau * root, root)
        dual = m * dual_cost(self, n, self.n_features)
        found = {
            "adfs": Parts(m + math.sqrt(m * kappa_s), (1.0 + tau) * gossip, gossip),
            "msda": Parts(dual * root, tau * slow, slow),
            "ssda": Parts(dual * slow, tau * slow, slow),
            "esdacd": Parts(dual * slow, tau * slow, slow),
            "dsba": Parts(visits, tau * visits, visits),
            "katyusha": shared,
            "l-katyusha": shared,
            "point-saga": Parts(n * m + math.sqrt(n * m * kappa_s), 0.0, 0.0),
        }
        return found if n > 1 else _without_network(found)

    def runs(self, tol: float) -> dict[str, Parts]:
        """For a run to a relative gap of ``tol``, with measured constants."""
        efolds = math.log(1.0 / min(tol, 0.5))
        factors = {name: share * efolds for name, share in SEEN.items()}
        for name, spread in (("msda", 1.0), ("ssda", self.gamma)):
            share = usual_share(self.kappa_b, self.m, spread)
            factors[name] = share * efolds + START * math.sqrt(spread / self.kappa_b)
        found = {name: each.times(factors[name]) for name, each in self.parts().items()}
        many = usual_evaluations(self.kappa_b, self.n_features, tol)
        few = usual_steps(self.kappa_b, tol)
        rounds, rows = self.diameter + self.n_features + 3, (self.n_features + 3.0) / 2.0
        for name, cost in (("lbfgs", self.gradient), ("tron", pass_cost(self))):
            found[name] = Parts(self.m * cost, self.diameter * self.tau, 1.0).times(many)
        work = self.m * (self.gradient + self.hessian) + self.factorisation
        found["newton"] = Parts(work, rounds * self.tau, rows).times(few)
        return found if self.n > 1 else _without_network(found)

    def n_messages(self, name: str, vectors: float) -> float:
        """Messages of d numbers when every edge, or a tree, carries so many vectors both ways."""
        if name in OVER_EDGES:
            return 2.0 * self.n_edges * vectors
        return messages(self.n, self.n_features, self.n_features).n_comm * vectors


def _without_network(parts: dict[str, Parts]) -> dict[str, Parts]:
    return {name: Parts(each.computing, 0.0, 0.0) for name, each in parts.items()}

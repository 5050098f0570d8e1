"""ADFS as a solver of benchopt's benchmark of l2-regularised logistic regression."""

from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion

import adfs


class Enough(Exception):
    """Benchopt needs no more points."""


class Solver(BaseSolver):
    """Minimise ``sum_j log(1 + exp(-y_j x_j . beta)) + lmbd / 2 |beta|^2`` over a graph of nodes.

    That is `adfs.Problem` with ``sum_i sigma_i = lmbd``. The time is that of `adfs.solve`: the
    choice of parameters, the events, and the evaluations that are the points of the curve. The
    partition of the rows and the loading of compiled kernels are not timed.
    """

    name = "adfs"
    sampling_strategy = "callback"  # the whole curve from one run

    # The objective of an accelerated method is not monotone: benchopt's default gives up after
    # three evaluations without a new best value, which ended runs at 1 % above the optimum.
    stopping_criterion = SufficientProgressCriterion(patience=10, strategy="callback")

    parameters = {  # noqa: RUF012  (benchopt reads it from the class)
        "algorithm": ["adfs"],  # any name of adfs.algorithms() that takes the logistic loss
        "n_nodes": [1, 4],
        "graph": ["grid"],
        "tau": [5.0],
    }

    references = [  # noqa: RUF012
        "H. Hendrikx, F. Bach and L. Massoulié, "
        '"An Accelerated Decentralized Stochastic Proximal Algorithm for Finite Sums", '
        "NeurIPS 2019"
    ]

    def skip(self, X, y, lmbd, fit_intercept=False):
        """The benchmark does not regularise the intercept, adfs does: another problem."""
        if fit_intercept:
            return True, "adfs regularises the intercept; run with fit_intercept=False"
        if X.shape[0] < self.n_nodes:
            return True, f"there are fewer rows ({X.shape[0]}) than nodes ({self.n_nodes})"
        return False, None

    def set_objective(self, X, y, lmbd, fit_intercept=False):
        """Deal the rows to the nodes."""
        shards = adfs.partition(X, y, self.n_nodes)
        self.problem = adfs.Problem(
            shards,
            loss="logistic",
            sigma=lmbd / self.n_nodes,
            topology=adfs.Topology.parse(self.graph, n_nodes=self.n_nodes),
        )

        # Evaluations every second pass, since each costs about one pass.
        work = adfs.prepare(self.problem, self.algorithm, tau=self.tau).work
        self.between = max(1, round(2 * self.problem.n_samples / work))

    def warm_up(self):
        """Load the compiled kernels: one point after the start."""
        self.run_once()

    def run(self, cb):
        """One run; after every evaluation benchopt decides whether it continues."""

        def record(progress):
            self.beta = progress.reading.theta
            if not cb():
                raise Enough

        try:
            adfs.solve(
                self.problem,
                self.algorithm,
                tol=1e-15,
                tau=self.tau,
                evaluate_every=self.between,
                callback=record,
                progress=False,
            )
        except Enough:
            return

    def get_result(self):
        """The model of the last evaluation: the mean over nodes."""
        return {"beta": self.beta}

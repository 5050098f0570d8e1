"""Which corollary a run follows, and whether it tries the other one before.

Corollary 1 goes at the pace of the worst direction. Corollary 2 with restarts goes at the pace of
those that matter for this solution: at times hundreds of times as fast, often some times slower,
and nobody can tell beforehand. So where ``rho`` is small it is tried for ``TRIAL / rho``
iterations, a tenth of the ``20 / rho`` that Corollary 1 typically needs for 8 digits.
"""

import math
from dataclasses import dataclass

from adfs.coordinate.parameters import ApcgParameters, best_sampling
from adfs.coordinate.restarts import unit_length

TRIAL = 2.0  # times 1 / rho: how long Corollary 2 is tried
TRIAL_UNITS = 8  # shortest stretches for which there must be time, or nothing is tried


@dataclass(frozen=True, eq=False)
class Plan:
    """Parameters of a run and, if one is made, of the trial before.

    Parameters
    ----------
    parameters : ApcgParameters
    restart : bool
        Whether Corollary 2 begins again now and then.
    trial : ApcgParameters, optional
        Corollary 2's, before Corollary 1.
    """

    parameters: ApcgParameters
    restart: bool
    trial: ApcgParameters | None = None

    @classmethod
    def with_trial(cls, parameters: ApcgParameters, own_sampling: bool) -> "Plan":
        """Restarts, and a trial by Corollary 2 where there is time for one.

        A user's sampling is kept; ours (``own_sampling``) is each corollary's best.
        """
        if parameters.rho is None:
            return cls(parameters, True)
        M, R = parameters.M, parameters.R
        p = best_sampling("convex", M, R) if own_sampling else parameters.p
        trial = ApcgParameters("convex", M, R, p, parameters.sigma_A, parameters.active)
        plan = cls(parameters, True, trial)
        enough = plan.trial_length >= TRIAL_UNITS * unit_length(trial)
        return plan if enough else cls(parameters, True)

    @property
    def trial_length(self) -> int:
        """Iterations of the trial."""
        if self.trial is None or self.parameters.rho is None:
            return 0
        return math.ceil(TRIAL / self.parameters.rho)

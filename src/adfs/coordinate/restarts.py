"""Starting Corollary 2 again: what turns its ``1 / t^2`` into a linear rate where there is one.

Corollary 2 cannot know how strongly convex F is around its minimisers, and its momentum keeps
growing. Runs of lengths 1, 2, 1, 4, 1, 2, 1, 8, ... units, each from where the last one ended, need
no such knowledge (Fercoq and Qu): lengths up to T / log T have been tried by iteration T, so no
more than a logarithm is lost against the best fixed length, and against no restart at all.
"""

import math

from adfs.coordinate.parameters import ApcgParameters

UNIT = 8.0  # times 1 / p_R: then 12 / (t p_R)^2, the corollary's factor of F(x_0) - F*, is 0.19


def unit_length(parameters: ApcgParameters) -> int:
    """Iterations of the shortest stretch."""
    return math.ceil(UNIT / parameters.p_R)


class Restarts:
    """The iterations at which a run in the convex form starts again."""

    def __init__(self, parameters: ApcgParameters, wanted: bool) -> None:
        self._unit = unit_length(parameters)
        self._count = 0
        self.next = math.inf
        if wanted and parameters.form == "convex":
            self.next = 0
            self.plan()

    def plan(self) -> None:
        """Set ``next``: the j-th run lasts the largest power of 2 that divides j, in units."""
        self._count += 1
        self.next += self._unit * (self._count & -self._count)

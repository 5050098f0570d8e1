"""What theory needs to know of all nodes, when each rank holds the samples of a few."""

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from adfs.problems.conditioning import Conditioning
from adfs.problems.reach import Reach

Vector = NDArray[np.float64]
T = TypeVar("T")

# Computed from all of a node's samples, one number a node.
OF_CONDITIONING = ("total_smoothness", "importance_sums", "live_counts", "batch_smoothness")
OF_REACH = ("totals", "live_counts")


@dataclass(frozen=True)
class GatheredConditioning(Conditioning):
    """Condition numbers of all nodes; samples only of those that are ``here``."""

    own: Conditioning
    here: NDArray[np.int64]

    def smoothness(self, node: int) -> Vector:
        """Of a node that is here."""
        return self.own.smoothness(int(self.here[node]))


@dataclass(frozen=True, eq=False)
class GatheredReach(Reach):
    """Reach of all nodes; samples only of those that are ``here``."""

    own: Reach
    here: NDArray[np.int64]

    def squares(self, node: int) -> Vector:
        """Of a node that is here."""
        return self.own.squares(int(self.here[node]))


def gathered(
    kind: type[T], own: Any, here: NDArray[np.int64], sigma: Vector, numbers: dict[str, Any]
) -> T:
    """One of the two from a rank's own, and the numbers of all nodes in the place of properties."""
    fields = {name: getattr(own, name) for name in type(own).__dataclass_fields__}
    whole = kind(**(fields | {"sigma": sigma, "own": own, "here": here}))
    vars(whole).update(numbers)
    return whole

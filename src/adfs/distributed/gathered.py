"""What theory needs to know of all nodes, when each rank holds the samples of a few."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.problems.conditioning import Conditioning
from adfs.problems.reach import Reach

Vector = NDArray[np.float64]

# Computed from all of a node's samples, one number a node.
OF_CONDITIONING = ("total_smoothness", "importance_sums", "live_counts", "batch_smoothness")
OF_REACH = ("totals", "live_counts")


@dataclass(frozen=True)
class GatheredConditioning(Conditioning):
    """Condition numbers of all nodes; samples only of those that are ``here``."""

    own: Conditioning
    here: NDArray[np.int64]

    @classmethod
    def made(
        cls, own: Conditioning, here: NDArray[np.int64], sigma: Vector, numbers: dict[str, Any]
    ) -> "GatheredConditioning":
        """From a rank's own and the numbers of all nodes."""
        whole = cls(**(_fields(own) | {"sigma": sigma}), own=own, here=here)
        vars(whole).update(numbers)
        return whole

    def smoothness(self, node: int) -> Vector:
        """Of a node that is here."""
        return self.own.smoothness(int(self.here[node]))


@dataclass(frozen=True, eq=False)
class GatheredReach(Reach):
    """Reach of all nodes; samples only of those that are ``here``."""

    own: Reach
    here: NDArray[np.int64]

    @classmethod
    def made(
        cls, own: Reach, here: NDArray[np.int64], sigma: Vector, numbers: dict[str, Any]
    ) -> "GatheredReach":
        """From a rank's own and the numbers of all nodes."""
        whole = cls(**(_fields(own) | {"sigma": sigma}), own=own, here=here)
        vars(whole).update(numbers)
        return whole

    def squares(self, node: int) -> Vector:
        """Of a node that is here."""
        return self.own.squares(int(self.here[node]))


def _fields(own: Any) -> dict[str, Any]:
    return {name: getattr(own, name) for name in type(own).__dataclass_fields__}

"""What is known of the whole problem where only a share of it is held."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.distributed.share import Share
from adfs.graphs.topology import Topology
from adfs.losses import Loss


class Whole(NamedTuple):
    """The problem in a few words (`adfs.runtime.model.Described`)."""

    loss: Loss
    classes: NDArray[Any] | None
    n_features: int
    n_samples: int
    n_nodes: int
    sigma: NDArray[np.float64]
    topology: Topology

    @classmethod
    def of(cls, share: Share, n_samples: int) -> "Whole":
        """That of which ``share`` is a part."""
        return cls(
            share.loss, share.classes, share.n_features, n_samples, share.topology.n_nodes,
            share.whole_sigma, share.topology,
        )  # fmt: skip

    @property
    def total_sigma(self) -> float:
        """``sum_i sigma_i``."""
        return float(np.sum(self.sigma))

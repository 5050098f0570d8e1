"""A rank's part of the parameters: those of its own nodes, edges in its own numbers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adfs.distributed.share import Share
from adfs.theory.non_smooth import NonSmoothParameters
from adfs.theory.parameters import Parameters

Vector = NDArray[np.float64]


def local_ends(share: Share) -> NDArray[np.int32]:
    """Ends of all edges in this rank's numbers, -1 where an end is elsewhere."""
    return share.here[share.topology.edges].astype(np.int32).reshape(-1, 2)


@dataclass(frozen=True)
class SmoothPart:
    """What Algorithm 1 needs of `Parameters`, for the nodes of one rank."""

    whole: Parameters
    nodes: NDArray[np.int64]
    edges: NDArray[np.int32]

    @property
    def rho(self) -> float:
        """The rate."""
        return self.whole.rho

    @property
    def edge_eta(self) -> Vector:
        """Of all edges."""
        return self.whole.edge_eta

    @property
    def edge_push(self) -> Vector:
        """Of all edges."""
        return self.whole.edge_push

    @property
    def eta_ratio(self) -> Vector:
        """Of the rank's nodes."""
        return self.whole.eta_ratio[self.nodes]

    def sample_push(self, node: int) -> Vector:
        """Of the samples of a node, numbered as on the rank."""
        return self.whole.sample_push(int(self.nodes[node]))


@dataclass(frozen=True)
class ConvexPart:
    """What Algorithm 3 needs of `NonSmoothParameters`, for the nodes of one rank."""

    whole: NonSmoothParameters
    nodes: NDArray[np.int64]
    edges: NDArray[np.int32]

    @property
    def edge_eta(self) -> Vector:
        """Of all edges."""
        return self.whole.edge_eta

    @property
    def edge_push(self) -> Vector:
        """Of all edges."""
        return self.whole.edge_push

    @property
    def smoothness(self) -> float:
        """``S^2``."""
        return self.whole.smoothness

    @property
    def start(self) -> float:
        """``A_0``."""
        return self.whole.start

    @property
    def p_sample(self) -> Vector:
        """Of the rank's nodes."""
        return self.whole.p_sample[self.nodes]

    @property
    def mu2(self) -> Vector:
        """Of the rank's nodes."""
        return self.whole.mu2[self.nodes]

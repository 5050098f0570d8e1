"""A rank's part of the parameters: those of its own nodes, edges in its own numbers."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.distributed.share import Share
from adfs.theory.non_smooth import NonSmoothParameters
from adfs.theory.parameters import Parameters

Vector = NDArray[np.float64]
Ends = NDArray[np.int32]


def local_ends(share: Share) -> Ends:
    """Ends of all edges in this rank's numbers, -1 where an end is elsewhere."""
    return share.here[share.topology.edges].astype(np.int32).reshape(-1, 2)


class SmoothPart(NamedTuple):
    """What Algorithm 1 needs of `Parameters`: edges' of all edges, nodes' of the rank's."""

    whole: Parameters
    nodes: NDArray[np.int64]
    edges: Ends
    rho: float
    edge_eta: Vector
    edge_push: Vector
    eta_ratio: Vector

    def sample_push(self, node: int) -> Vector:
        """Of the samples of a node, numbered as on the rank."""
        return self.whole.sample_push(int(self.nodes[node]))


class ConvexPart(NamedTuple):
    """What Algorithm 3 needs of `NonSmoothParameters`: the same."""

    edges: Ends
    edge_eta: Vector
    edge_push: Vector
    smoothness: float
    start: float
    p_sample: Vector
    mu2: Vector


def smooth_part(whole: Parameters, nodes: NDArray[np.int64], ends: Ends) -> SmoothPart:
    """The part of some nodes."""
    return SmoothPart(
        whole, nodes, ends, whole.rho, whole.edge_eta, whole.edge_push, whole.eta_ratio[nodes]
    )


def convex_part(whole: NonSmoothParameters, nodes: NDArray[np.int64], ends: Ends) -> ConvexPart:
    """The part of some nodes."""
    return ConvexPart(
        ends, whole.edge_eta, whole.edge_push, whole.smoothness, whole.start,
        whole.p_sample[nodes], whole.mu2[nodes],
    )  # fmt: skip

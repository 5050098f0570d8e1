"""What summing a vector or a symmetric matrix over all nodes costs: an all-reduce on a tree.

A sum travels up a spanning tree to its root and down again: 2 (n - 1) messages for each d numbers
or fewer. Time is charged as in the paper: one vector takes ``diameter`` rounds
(Appendix E); a d x d sum goes row after row through the tree, up and down, 2 (diameter + d) rounds.
"""

import math

from adfs.algorithms.base import Counts
from adfs.graphs.topology import Topology
from adfs.problem.finite_sum import Problem

BYTES = 8  # of one number


def vector_rounds(topology: Topology) -> int:
    """Communication rounds that summing d numbers takes; a few numbers more ride along."""
    return topology.diameter


def matrix_rounds(topology: Topology, n_features: int) -> int:
    """Communication rounds that summing a d x d matrix takes; a vector more rides along.

    Examples
    --------
    >>> matrix_rounds(Topology.ring(6), 28), matrix_rounds(Topology.single(), 28)
    (62, 0)
    """
    return 2 * (topology.diameter + n_features) if topology.n_nodes > 1 else 0


def gradient_numbers(n_features: int) -> int:
    """Numbers in a gradient and its objective."""
    return n_features + 1


def hessian_numbers(n_features: int) -> int:
    """Numbers in half a symmetric matrix, a gradient and an objective."""
    return n_features * (n_features + 1) // 2 + gradient_numbers(n_features)


def messages(n_nodes: int, n_numbers: int, n_features: int) -> Counts:
    """Messages of at most d numbers, and bytes, of one all-reduce of ``n_numbers`` numbers.

    Examples
    --------
    >>> messages(4, hessian_numbers(3), 3)  # 10 numbers in 4 messages, 3 links, up and down
    Counts(n_prox=0, n_grad=0, n_comm=24, bytes=480)
    """
    links = 2 * (n_nodes - 1)
    pieces = math.ceil(n_numbers / n_features)
    return Counts(n_comm=links * pieces, bytes=links * n_numbers * BYTES)


def evaluations(problem: Problem, n_numbers: int, n_events: int) -> Counts:
    """What so many evaluations cost: every sample's gradient, and one sum of ``n_numbers``."""
    one = messages(problem.n_nodes, n_numbers, problem.n_features)
    one = one.plus(Counts(n_grad=problem.n_samples))
    return Counts(*(n_events * count for count in one))

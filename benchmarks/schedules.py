"""What scheduling costs a rank for each event of its own, as the number of all nodes grows.

The rank has 4 nodes of a torus. In the shared form it draws everybody's events to find its own, so
the cost grows with the number of nodes; with Poisson clocks it draws those of its own edges and
nodes only. Counted is all that happens between two positions before the first update: drawing,
samples, and dealing the events to the nodes' queues.
"""

import time

import numpy as np

import adfs
from adfs.kernels import rank_nodes
from adfs.network import Network
from adfs.schedule.poisson import PoissonSource
from adfs.schedule.sampling_law import Drawer

SIZES = (4, 16, 64, 256, 1024)
OWN = 4
SAMPLES = 10_000  # of a node
P_COMM = 0.01
EVENTS = 1 << 16  # of the rank, in one draw
REPEATS = 15


class Law:
    """Equal rates for all edges and for all nodes, equal chances for all samples."""

    def __init__(self, topology):
        n, self.edges = topology.n_nodes, topology.edges
        self.p_edge = np.full(len(self.edges), P_COMM / len(self.edges))
        self.p_node = np.full(n, (1.0 - P_COMM) / n)
        self.offsets = SAMPLES * np.arange(OWN + 1)

    def importance_of(self, node):
        """Of a node's samples."""
        return np.ones(SAMPLES)


class FirstNodes(Network):
    """The network of a rank that has the first nodes, even if there are no others."""

    is_whole = False

    def __init__(self, topology):
        super().__init__(topology, (np.arange(topology.n_nodes) >= OWN).astype(np.int64))


def schedule(source, network, start, stop):
    """Events between two positions, in the queues of the rank's nodes; how many there are."""
    events = source.draw(start, stop)
    count = np.zeros((OWN, 3), np.int64)
    rank_nodes.count_own(events.which, network.ends, network.here, count)
    first = np.concatenate([[0], np.cumsum(count.sum(axis=1))])
    size, none = int(first[-1]), np.empty(1)
    queue = rank_nodes.Queue(
        first, first[:-1].copy(), first[:-1].copy(), np.empty(size, np.int64),
        np.empty(size, np.int32), np.empty(size, np.int32), none, none,
    )  # fmt: skip
    rank_nodes.fill(
        queue, queue.head.copy(), events.which, events.sample, events.ticks, none, none,
        network.ends, network.here,
    )  # fmt: skip
    return len(events.which)


def nanoseconds(source, network):
    """Of one event of the rank: the best of some draws, which all do the same work."""
    width = EVENTS * network.topology.n_nodes // OWN
    schedule(source, network, 0, width)
    costs = []
    for k in range(1, REPEATS + 1):
        started = time.perf_counter()
        events = schedule(source, network, k * width, (k + 1) * width)
        costs.append((time.perf_counter() - started) / events * 1e9)
    return min(costs)


def main(sizes=SIZES):
    """Print the table; returns its rows."""
    rows = []
    print("| nodes | shared | poisson |\n|---|---|---|")
    for n in sizes:
        side = round(n**0.5)
        topology = adfs.Topology.torus(side, side) if n > 4 else adfs.Topology.grid(2, 2)
        law, network = Law(topology), FirstNodes(topology)
        row = {
            "n": n,
            "shared": nanoseconds(Drawer(law, 0, network), network),
            "poisson": nanoseconds(PoissonSource(law, 0, network.nodes), network),
        }
        rows.append(row)
        print(f"| {n} | {row['shared']:.0f} ns | {row['poisson']:.0f} ns |", flush=True)
    last, first = rows[-1], rows[0]
    print(f"from {first['n']} to {last['n']} nodes: shared {last['shared'] / first['shared']:.1f} "
          f"times, poisson {last['poisson'] / first['poisson']:.2f} times")  # fmt: skip
    return rows


if __name__ == "__main__":
    main()

"""What an NS-ADFS event costs beside an ADFS event with the squared loss, on the same rows."""

import time

import numpy as np

import adfs
from adfs.algorithms.adfs import Adfs
from adfs.algorithms.ns_adfs import NsAdfs
from adfs.data.generators import higgs_like, sparse_text
from adfs.schedule.clock import Clock
from adfs.schedule.delays import Delays
from adfs.schedule.sampling_law import Drawer

BLOCK = 1 << 14
P_COMM = 0.01  # the same for both, so that both have as many exchanges


class Events:
    """An algorithm on one problem, timed in runs of events: draw, move and clock together."""

    def __init__(self, problem):
        smooth = problem.loss.smooth
        rules = adfs.Parameters if smooth else adfs.NonSmoothParameters
        self.parameters = rules.choose(problem, "paper", p_comm=P_COMM)
        self.algorithm = (Adfs if smooth else NsAdfs)(problem, self.parameters)
        self.state, self.t = self.algorithm.init(), 0
        self.drawer = Drawer(self.parameters, 0)
        self.clock = Clock(self.parameters.edges, problem.n_nodes, Delays(tau=5.0))

    def seconds(self, n_events):
        """Seconds of so many more events."""
        start = time.perf_counter()
        for first in range(self.t, self.t + n_events, BLOCK):
            events = self.drawer.draw(first, first + BLOCK)
            self.state = self.algorithm.step(self.state, events)
            self.clock.advance(events)
        self.t += n_events
        return time.perf_counter() - start


def measure(X, y, topology, repeats=9, n_events=1 << 20):
    """Nanoseconds an event, medians, and the median of the ratios: the runs alternate."""
    shards = adfs.partition(X, y, topology.n_nodes)
    runs = {
        loss: Events(adfs.Problem(shards, loss=loss, topology=topology))
        for loss in ("squared", "hinge", "absolute")
    }
    for run in runs.values():
        run.seconds(n_events)
    table = np.array([[run.seconds(n_events) for run in runs.values()] for _ in range(repeats)])
    ratios = np.median(table / table[:, :1], axis=0)
    nano = np.median(table, axis=0) / n_events * 1e9
    return {loss: {"event": nano[k], "ratio": ratios[k]} for k, loss in enumerate(runs)}


def main():
    """Print the ratios (goal: at most 1.2); returns the rows."""
    table = []
    for name, (X, y), graph in (
        ("dense, d=28, out of cache", higgs_like(1_000_000, seed=0), "grid:10x10"),
        ("dense, d=28, in cache", higgs_like(1_200, seed=0), "grid:2x2"),
        ("sparse text", sparse_text(20_000, 5_000, seed=0), "grid:2x2"),
    ):
        topology = adfs.Topology.parse(graph)
        cost = measure(X, y, topology)
        for loss in ("hinge", "absolute"):
            table.append(
                {"rows": name, "loss": loss, **cost[loss], "adfs": cost["squared"]["event"]}
            )
            print(
                f"{name}: NS-ADFS, {loss}, {cost[loss]['event']:.0f} ns; ADFS, squared, "
                f"{cost['squared']['event']:.0f} ns; ratio {cost[loss]['ratio']:.2f}"
            )
    return table


if __name__ == "__main__":
    main()

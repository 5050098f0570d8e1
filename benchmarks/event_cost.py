"""What an ADFS event costs, beside the floor: gather a row, two dots, two axpys, no prox."""

import time

import numpy as np
from numba import njit

import adfs
from adfs.algorithms.adfs import Adfs
from adfs.data.generators import higgs_like
from adfs.kernels import rows
from adfs.schedule.clock import Clock
from adfs.schedule.delays import Delays
from adfs.schedule.sampling_law import Drawer

BLOCK = 1 << 14
AHEAD = 12


@njit(cache=True, _nrt=False)
def plain_floor(index, data, n_nodes, pairs):
    """Rows in random order, as they come."""
    for k in range(index.size):
        node = k % n_nodes
        a, b = rows.two_dots(data, index[k], pairs, node)
        rows.two_axpys(data, index[k], 1e-12 * a, 1e-12 * b, pairs, node)


@njit(cache=True, _nrt=False)
def prefetched_floor(index, data, n_nodes, pairs):
    """The same, each row asked for a dozen rows ahead."""
    for k in range(index.size):
        if k + AHEAD < index.size:
            rows.prefetch_row(data, index[k + AHEAD])
        node = k % n_nodes
        a, b = rows.two_dots(data, index[k], pairs, node)
        rows.two_axpys(data, index[k], 1e-12 * a, 1e-12 * b, pairs, node)


def timed(function, *args):
    """Seconds of one call."""
    start = time.perf_counter()
    function(*args)
    return time.perf_counter() - start


class Events:
    """ADFS on one problem, timed in runs of events: draw, clock and move together, and alone."""

    def __init__(self, problem, how="tuned"):
        self.parameters = adfs.Parameters.choose(problem, how)
        self.algorithm = Adfs(problem, self.parameters)
        self.state = self.algorithm.init()
        self.drawer = Drawer(self.parameters, 0)
        self.clock = Clock(self.parameters.edges, problem.n_nodes, Delays(tau=5.0))
        self.parts = np.zeros(3)

    def run(self, n_events):
        """Run some events; adds the seconds of each part to ``parts``."""
        for start in range(self.state.t, self.state.t + n_events, BLOCK):
            marks = [time.perf_counter()]
            events = self.drawer.draw(start, start + BLOCK)
            marks.append(time.perf_counter())
            self.algorithm.step(self.state, events)
            marks.append(time.perf_counter())
            self.clock.advance(events)
            marks.append(time.perf_counter())
            self.parts += np.diff(marks)


def measure(problem, repeats=7, n_events=1 << 20, warm_passes=3):
    """Median over repeats of nanoseconds: both floors, and the parts of an event."""
    runner = Events(problem)
    runner.run(warm_passes * problem.n_samples)
    pairs = np.zeros((problem.n_nodes, 2 * problem.n_features))
    index = np.random.default_rng(0).integers(0, problem.n_samples, n_events)
    for floor in (plain_floor, prefetched_floor):
        floor(index[:10], problem.rows, problem.n_nodes, pairs)
    table = []
    for _ in range(repeats):
        floors = [
            timed(floor, index, problem.rows, problem.n_nodes, pairs)
            for floor in (plain_floor, prefetched_floor)
        ]
        runner.parts[:] = 0.0
        runner.run(n_events)
        table.append([*floors, *runner.parts])
    nano = np.median(np.array(table), axis=0) / n_events * 1e9
    names = ("plain_floor", "prefetched_floor", "draw", "move", "clock")
    return dict(zip(names, nano.tolist(), strict=True))


def main():
    """Print the table for rows out of cache (goal: ratio <= 2.5) and in cache; returns the rows."""
    table = []
    for n_nodes, m, graph in ((100, 10_000, "grid:10x10"), (4, 300, "grid:2x2")):
        X, y = higgs_like(n_nodes * m, seed=0)
        topology = adfs.Topology.parse(graph)
        problem = adfs.Problem(adfs.partition(X, y, n_nodes), topology=topology)
        cost = measure(problem)
        event = cost["draw"] + cost["move"] + cost["clock"]
        table.append({"n": n_nodes, "m": m, "d": X.shape[1], "event": event, **cost})
        print(
            f"n={n_nodes} m={m} d={X.shape[1]}: event {event:.0f} ns "
            f"(draw {cost['draw']:.0f}, move {cost['move']:.0f}, clock {cost['clock']:.0f}); "
            f"floor {cost['plain_floor']:.0f} ns, prefetched {cost['prefetched_floor']:.0f} ns; "
            f"ratio {event / cost['plain_floor']:.2f}, "
            f"{event / cost['prefetched_floor']:.2f} of the prefetched one"
        )
    return table


if __name__ == "__main__":
    main()

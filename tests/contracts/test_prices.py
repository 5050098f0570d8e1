"""What a method asks of the network is what it declares: numbers sent, for each event."""

import numpy as np
import pytest

import adfs
from adfs.algorithms.base import Counts, MethodSetting, executed, get_algorithm
from adfs.algorithms.descent import messages
from adfs.kernels.node_sums import SUM
from adfs.network import Callback, Network
from support.problems import make_case

IN_ROUNDS = ("msda", "ssda", "dsba", "katyusha", "l-katyusha", "newton", "lbfgs", "tron")
EVENTS = 6  # Newton takes every step so far


class Recorder(Network):
    """All nodes here; notes what compiled code and Python ask for."""

    def __init__(self, topology):
        self.sums, self.rounds = [], []
        super().__init__(topology)

    def _callback_address(self):
        def note(kind, rows):
            (self.sums if kind == SUM else self.rounds).append(rows.shape[1])

        self._callback = Callback(note)
        return self._callback.address

    def ask(self, ask):
        self.sums += [ask.width] * (ask.width > 0)
        return super().ask(ask)

    def price(self, n_features):
        """Of what was noted since the last time, all sums of one event together."""
        n, n_edges = self.topology.n_nodes, self.topology.n_edges
        total, counts = sum(self.sums), Counts()
        if total:
            counts = messages(n, total, n_features)
        for width in self.rounds:
            assert width == n_features
            counts = counts.plus(Counts(n_comm=2 * n_edges, bytes=16 * n_edges * width))
        self.sums, self.rounds = [], []
        return counts


@pytest.mark.parametrize("graph", ["grid:2x2", "star:5", "path:3"])
@pytest.mark.parametrize("name", IN_ROUNDS)
def test_a_round_asks_for_what_it_declares(name, graph):
    case = make_case(graph, "logistic")
    require_declared(name, case, MethodSetting())


@pytest.mark.parametrize("graph", ["grid:2x2", "single"])
def test_an_evaluation_on_a_sample_asks_for_what_it_declares(graph):
    n_nodes = adfs.Topology.parse(graph).n_nodes
    case = make_case(graph, "logistic", sizes=[2_000 // n_nodes] * n_nodes)
    setting = MethodSetting(tau=0.01, delays=adfs.Delays(tau=0.01))
    method = require_declared("newton", case, setting)
    assert len(method.parameters.shares) > 1


def require_declared(name, case, setting):
    """The method, after some events in which it asked for what it declares."""
    recorder = Recorder(case.problem.topology)
    problem = adfs.Problem(case.shards, "logistic", case.problem.sigma, network=recorder)
    method = get_algorithm(name)(problem, setting)
    algorithm = method.algorithm
    state = algorithm.init()
    recorder.price(problem.n_features)  # set-up is not counted
    seen = Counts()
    for t in range(EVENTS):
        events = method.source.draw(t, t + 1)
        state = algorithm.step(state, events)
        declared = algorithm.counts(executed(algorithm, state, events))
        price = recorder.price(problem.n_features)
        assert (price.n_comm, price.bytes) == (declared.n_comm, declared.bytes)
        seen = seen.plus(price)
    assert (seen.n_comm > 0) == (problem.n_nodes > 1)
    assert np.isfinite(algorithm.output(state)).all()
    return method


@pytest.mark.parametrize("name", adfs.algorithms.NAMES)
def test_costs_change_times_and_nothing_that_is_counted(name):
    problem = make_case("path:3", "hinge" if name == "ns-adfs" else "logistic").problem
    rule = "theory" if name in IN_ROUNDS else "tuned"  # tuned batches follow the costs
    free = adfs.Costs(0.0, hessian=0.0)
    counts, times = [], []
    for costs in (adfs.Costs.paper(), free):
        method = adfs.prepare(problem, name, rule=rule, costs=costs)
        events = method.source.draw(0, 50)
        method.clock.advance(events)
        counts.append(method.algorithm.counts(events))
        times.append(method.clock.time)
    assert counts[0] == counts[1]
    only_prox = ("adfs", "ns-adfs", "dsba", "point-saga")
    assert (times[0] == times[1]) if name in only_prox else (times[0] > times[1])


def test_every_method_is_recorded_or_pairwise():
    pairwise = {"adfs", "ns-adfs", "esdacd"}  # an event on an edge is one exchange
    assert set(adfs.algorithms.NAMES) == {*IN_ROUNDS, *pairwise, "point-saga"}

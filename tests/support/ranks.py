"""Several ranks in one process, what they are to equal, and a network that plays them tricks.

The same cases run over every transport: in one process here, over MPI in ``tests/mpi``.
"""

import itertools
from collections import deque
from typing import NamedTuple

import numpy as np

import adfs
from adfs.algorithms import registered  # noqa: F401  (fills the registry)
from adfs.algorithms.base import Counts, MethodSetting, get_algorithm
from adfs.engine.steppers import QueueStepper
from adfs.mpi.mpi_network import serve
from adfs.schedule.delays import Delays
from adfs.simulated_ranks import ThreadNetwork
from support.peers import succeed
from support.problems import make_case, stored_as

LOSSES, LAYOUTS, SCHEDULES = (
    ("logistic", "squared", "hinge"),
    ("dense", "csr"),
    ("shared", "poisson", "stratified"),
)
GRAPHS = {1: "single", 4: "grid:2x2", 9: "grid:3x3", 16: "grid:4x4"}
EVENTS = 2_000


class Case(NamedTuple):
    """One problem and the way it is run; ``clock`` and the seed differ from case to case."""

    loss: str
    layout: str
    schedule: str
    n_nodes: int
    graph: str = ""
    n_features: int = 5
    algorithm: str = "auto"

    @property
    def seed(self):
        """A number of its own."""
        return sum((k + 1) * ord(c) for k, c in enumerate("".join(map(str, self)))) % 1_000

    @property
    def setting(self):
        """Rule, time model, seed and schedule."""
        clock, tau = ("nonblocking", "rendezvous")[self.seed % 2], 1.0 + self.seed % 7
        exact = self.loss != "hinge" and self.algorithm == "auto"  # whichever is chosen fast
        rule = "exact" if exact else "tuned"
        return MethodSetting(rule, tau, clock, Delays(tau=tau), self.seed, self.schedule)

    def __str__(self):
        words = [self.loss, self.layout, self.schedule, self.graph or GRAPHS[self.n_nodes]]
        return "-".join(words + [self.algorithm] * (self.algorithm != "auto"))


def all_cases(sizes):
    """Every combination of loss, layout, schedule and number of nodes."""
    return [Case(*each) for each in itertools.product(LOSSES, LAYOUTS, SCHEDULES, sizes)]


def make_shards_of(case):
    """Shards of unequal size, with weights, as the case stores them; and one sigma a node."""
    made = make_case(
        case.graph or GRAPHS[case.n_nodes], case.loss, case.seed, case.n_features,
        sizes=[3 + (7 * node) % 5 for node in range(case.n_nodes)], density=0.7,
    )  # fmt: skip
    problem = stored_as(made, case.layout)
    return [shard_of(problem, node) for node in range(problem.n_nodes)], problem


def shard_of(problem, node):
    """Rows, labels and weights of one node."""
    from adfs.data.shards import slice_rows

    rows = problem.node_rows(node)
    X = slice_rows(problem.rows, problem.n_features, rows.start, rows.stop)
    return X, problem.labels[rows], problem.weights[rows]


def random_mapping(n_nodes, size, seed):
    """The rank of each node: every rank has one; which ones, and how many, is left to chance."""
    generator = np.random.default_rng([seed, size])
    rank_of = np.concatenate([np.arange(size), generator.integers(size, size=n_nodes - size)])
    generator.shuffle(rank_of)
    return rank_of


def share_of(network, shards, problem):
    """What a rank holds of a problem."""
    own = [shards[node] for node in network.nodes]
    return adfs.Problem(own, problem.loss, np.array(problem.sigma), network=network)


def rank_of(share, setting):
    """A rank with parameters that it chooses itself, from gathered numbers."""
    method = get_algorithm("adfs" if share.loss.smooth else "ns-adfs")(share, setting)
    return QueueStepper(share, method, setting)


def make_ranks(shards, problem, setting, mapping):
    """The ranks of a mapping."""

    def make(peers):
        network = ThreadNetwork(peers, problem.topology, mapping)
        return rank_of(share_of(network, shards, problem), setting)

    return succeed(int(mapping.max()) + 1, make)


def cut_at_random(rank, stop, generator):
    """Where a rank cuts its next block: anywhere, sometimes nowhere."""
    return min(stop, rank.position + int(generator.choice([1, 7, 64, 500, stop])))


def turn(rank, transport, stop, generator):
    """Load another block where the last one is done, then run as far as it goes; whether it did."""
    if rank.done and rank.position < stop:
        rank.load(cut_at_random(rank, stop, generator))
    return serve(rank, transport) if rank.position else 0


def run_ranks(ranks, transports, stop, seed=0):
    """Turn all ranks to the position ``stop``, each in blocks of its own."""
    generators = [np.random.default_rng([seed, number]) for number in range(len(ranks))]
    idle = 0
    while idle < 10_000:
        moved = sum(map(turn, ranks, transports, itertools.repeat(stop), generators))
        if all(rank.done and rank.position == stop for rank in ranks):
            return
        idle = 0 if moved else idle + 1
    raise AssertionError("the ranks wait for each other")


def found_by(rank):
    """Everything a rank knows of its nodes, one row per node, and what it has counted."""
    state, clocks = rank.state, rank.clocks
    duals = [rank.algorithm.duals(state, node) for node in rank.problem.nodes.tolist()]
    times = np.column_stack([clocks.finish, clocks.busy, clocks.waiting])
    n_prox, n_exchanges = rank.tally.sum(axis=0).tolist()
    n_bytes = 2 * 8 * rank.problem.n_features * n_exchanges
    return {
        "nodes": rank.problem.nodes, "thetas": rank.algorithm.output(state), "times": times,
        "duals": duals, "counts": [n_prox + n_exchanges, n_prox, 0, 2 * n_exchanges, n_bytes],
    }  # fmt: skip


def merged(found, n_nodes):
    """The same of all ranks together, in node order."""
    whole = {name: [None] * n_nodes for name in ("thetas", "times", "duals")}
    for each in found:
        for name, rows in whole.items():
            for own, node in enumerate(each["nodes"]):
                rows[int(node)] = np.asarray(each[name][own])
    counts = np.sum([each["counts"] for each in found], axis=0)
    return {**{name: np.concatenate(rows, axis=None) for name, rows in whole.items()},
            "counts": counts}  # fmt: skip


def found_locally(problem, setting, stop, block=1_700):
    """What the local engine's algorithm and clock have after the same part of the schedule."""
    method = get_algorithm("adfs" if problem.loss.smooth else "ns-adfs")(problem, setting)
    state, counts, iterations = method.algorithm.init(), Counts(), 0
    for start in range(0, stop, block):
        events = method.source.draw(start, min(stop, start + block))
        state = method.algorithm.step(state, events)
        method.clock.advance(events)
        counts = counts.plus(method.algorithm.counts(events))
        iterations += len(events.which)
    clock = method.clock
    times = np.column_stack([clock.finish, clock.busy, clock.waiting])
    duals = [method.algorithm.duals(state, node) for node in range(problem.n_nodes)]
    return merged(
        [{"nodes": range(problem.n_nodes), "thetas": method.algorithm.output(state),
          "times": times, "duals": duals, "counts": [iterations, *counts]}],
        problem.n_nodes,
    )  # fmt: skip


def require_same_bits(found, expected):
    """Equal to the last bit; ``counts`` are whole numbers."""
    assert found["counts"].tolist() == expected["counts"].tolist()
    for name in ("thetas", "times", "duals"):
        assert found[name].dtype == expected[name].dtype == np.float64
        assert found[name].tobytes() == expected[name].tobytes(), name


class Hub:
    """Ranks in one process: what they have sent to each other and not yet received."""

    def __init__(self):
        self._sent = {}

    def send(self, source, target, edge, message):
        """Keep a copy, as a network would."""
        self._sent.setdefault((source, target, edge), deque()).append(message.copy())

    def receive(self, source, target, edge):
        """The oldest message of that edge and direction, if there is one."""
        messages = self._sent.get((source, target, edge))
        return messages.popleft() if messages else None


class Loopback:
    """A transport between ranks of one process, through their common hub."""

    def __init__(self, hub, rank):
        self.hub, self.rank = hub, rank
        self._waiting = {}

    def post(self, node, rank, edge, outgoing, incoming):
        """Send at once, receive when asked."""
        self.hub.send(self.rank, rank, edge, outgoing)
        self._waiting[node] = (rank, edge, incoming)

    def done(self, node):
        """Whether the peer has sent too; its message is then in place."""
        rank, edge, incoming = self._waiting[node]
        message = self.hub.receive(rank, self.rank, edge)
        if message is None:
            return False
        incoming[:] = message
        del self._waiting[node]
        return True


class Letter(NamedTuple):
    """A message under way: where it is read from, and ``[looks left, is taken]``."""

    content: np.ndarray
    fate: list


class Post:
    """A network of ranks in one process that delays and reorders, as far as it is allowed.

    Messages along one edge in one direction stay in order; between edges there is no order. Some
    are copied when they are posted, as small ones are by MPI; others are read from the sender's
    buffer only when they are taken, as large ones are, and until then the sender is not done.
    """

    def __init__(self, seed, longest=12):
        self.random = np.random.default_rng(seed)
        self.longest = longest
        self.letters = {}
        self.sent = self.overtaken = 0
        self._order = itertools.count()
        self._newest = -1

    def send(self, road, message):
        """Put a message on its way; what `fate` says of it is up to chance."""
        eager = bool(self.random.integers(2))
        fate = [int(self.random.integers(self.longest)), False, next(self._order)]
        self.letters.setdefault(road, deque()).append(
            Letter(message.copy() if eager else message, fate)
        )
        self.sent += 1
        return (lambda: True) if eager else (lambda: fate[1])

    def look(self, road, incoming):
        """Whether the next message of that edge and direction has come, now in ``incoming``."""
        waiting = self.letters.get(road)
        if not waiting:
            return False
        content, fate = waiting[0]
        fate[0] -= 1
        if fate[0] >= 0:
            return False
        incoming[:] = content
        waiting.popleft()
        fate[1] = True
        self.overtaken += fate[2] < self._newest
        self._newest = max(self._newest, fate[2])
        return True


class Hostile:
    """The transport of one rank through `Post`."""

    def __init__(self, post, rank):
        self.office, self.rank = post, rank
        self._open = {}

    def post(self, node, rank, edge, outgoing, incoming):
        """Until it is done, ``incoming`` holds rubbish."""
        incoming[:] = np.nan
        sent = self.office.send((self.rank, rank, edge), outgoing)
        self._open[node] = [(rank, self.rank, edge), incoming, sent, False]

    def done(self, node):
        """Both ways through, and even then it may take a while until one hears of it."""
        exchange = self._open[node]
        road, incoming, sent, received = exchange
        if not received:
            exchange[3] = received = self.office.look(road, incoming)
        if not (received and sent()) or self.office.random.integers(3) == 0:
            return False
        del self._open[node]
        return True


def loopback(size, seed):
    """Transports of ranks that share a hub."""
    hub = Hub()
    return [Loopback(hub, rank) for rank in range(size)]


def hostile(size, seed):
    """Transports of ranks that share a network which plays tricks."""
    post = Post(seed)
    return [Hostile(post, rank) for rank in range(size)]


TRANSPORTS = {"loopback": loopback, "hostile": hostile}

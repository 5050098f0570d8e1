"""Ranks over any transport have the bits of one process: models, duals, times, counts.

The same cases go over MPI in ``tests/mpi/test_same_bits.py``.
"""

import numpy as np
import pytest

from adfs.algorithms.base import get_algorithm
from adfs.mpi.mpi_network import serve
from adfs.mpi.problem_loading import map_nodes
from support.ranks import (
    EVENTS,
    LAYOUTS,
    LOSSES,
    SCHEDULES,
    TRANSPORTS,
    Case,
    Hostile,
    Post,
    found_by,
    found_locally,
    hostile,
    loopback,
    make_ranks,
    make_shards_of,
    merged,
    random_mapping,
    require_same_bits,
    run_ranks,
)
from support.selection import covering

pytestmark = pytest.mark.slow
SPARSE = Case("logistic", "csr", "poisson", 9)


def over(case, mapping, transports, seed=0, stop=EVENTS):
    """What the ranks of a mapping have at ``stop``, and what they are to have."""
    shards, problem = make_shards_of(case)
    ranks = make_ranks(shards, problem, case.setting, mapping)
    run_ranks(ranks, transports, stop, seed)
    found = merged([found_by(rank) for rank in ranks], case.n_nodes)
    return found, found_locally(problem, case.setting, stop)


@covering(
    loss=LOSSES, layout=LAYOUTS, schedule=SCHEDULES, n_nodes=(4, 9), transport=tuple(TRANSPORTS)
)
def test_ranks_have_the_bits_of_one_process(loss, layout, schedule, n_nodes, transport):
    case = Case(loss, layout, schedule, n_nodes)
    size = min(case.n_nodes, 2 + case.seed % 3)
    mapping = random_mapping(case.n_nodes, size, case.seed)
    found, expected = over(case, mapping, TRANSPORTS[transport](size, case.seed), case.seed)
    require_same_bits(found, expected)
    _, n_prox, _, n_comm, _ = expected["counts"]
    assert n_prox > 100
    assert n_comm > 100


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("graph", ["star:6", "complete:5", "path:7", "ring:6"])
def test_any_graph_and_a_rank_a_node_will_do(graph, transport):
    n = int(graph.partition(":")[2])
    for loss, schedule in (("hinge", "shared"), ("logistic", "poisson")):
        case = Case(loss, "dense", schedule, n, graph)
        mapping = random_mapping(n, n, seed=0)
        require_same_bits(*over(case, mapping, TRANSPORTS[transport](n, 1)))


@pytest.mark.parametrize("case", [SPARSE, Case("hinge", "dense", "shared", 9)], ids=str)
def test_where_each_rank_cuts_its_blocks_and_when_messages_come_changes_no_bit(case):
    for seed in range(5):
        require_same_bits(*over(case, random_mapping(9, 4, seed), hostile(4, seed), seed))


def test_a_node_without_a_live_sample_takes_part():
    case = Case("logistic", "dense", "shared", 4)
    shards, problem = make_shards_of(case)
    X, *rest = shards[2]
    shards[2] = (np.zeros_like(X), *rest)
    problem = type(problem)(shards, problem.loss, problem.sigma, problem.topology)
    ranks = make_ranks(shards, problem, case.setting, map_nodes(problem.topology, 2))
    run_ranks(ranks, loopback(2, 0), EVENTS)
    require_same_bits(
        merged([found_by(rank) for rank in ranks], 4), found_locally(problem, case.setting, EVENTS)
    )


def executed_without(asleep, edges, events, n_nodes):
    """How many events each node executes when one node does none; and who was held up when."""
    held, done = {asleep: -1}, np.zeros(n_nodes, int)
    exchanges = []
    for k, which in enumerate(events.which):
        ends = edges[which].tolist() if which < len(edges) else [which - len(edges)]
        if held.keys() & set(ends):
            held.update({end: k for end in ends if end not in held})
        else:
            done[ends] += 1
            exchanges += [(k, ends)] if len(ends) > 1 else []
    return done, held, exchanges


@pytest.mark.parametrize("seed", range(3))
def test_a_rank_that_waits_for_one_node_goes_on_with_its_others(seed):
    # On a path of six, node 4 sleeps, so 5 waits for it; 0 is on the same rank as 5.
    case = Case("squared", "dense", "shared", 6, "path:6")
    shards, problem = make_shards_of(case)
    setting = case.setting._replace(seed=seed)
    ranks = make_ranks(shards, problem, setting, np.array([0, 1, 1, 1, 2, 0]))
    transports = loopback(3, 0)
    for rank in ranks[:2]:
        rank.load(EVENTS)
    while sum(map(serve, ranks[:2], transports[:2])):
        pass
    events = get_algorithm("adfs")(problem, setting).source.draw(0, EVENTS)
    expected, held, exchanges = executed_without(4, problem.topology.edges, events, 6)
    heads = [rank.queue.head - rank.queue.first[:-1] for rank in ranks[:2]]
    assert np.concatenate(heads).tolist() == expected[[0, 5, 1, 2, 3]].tolist()
    later = [ends for k, ends in exchanges if k > held[5]]
    assert [0, 1] in later


def test_the_hostile_transport_is_hostile_but_keeps_each_edge_in_order():
    post = Post(seed=0)
    sender, receiver = Hostile(post, 0), Hostile(post, 1)
    seen = {0: [], 1: []}
    for turn in range(200):
        buffers = {edge: np.empty(1) for edge in (0, 1)}
        for edge, buffer in buffers.items():
            sender.post(edge, 1, edge, np.array([float(turn)]), np.empty(1))
            receiver.post(edge, 0, edge, np.array([-1.0]), buffer)
        open_ends = {(end, edge) for end in (sender, receiver) for edge in (0, 1)}
        while open_ends:
            open_ends -= {(end, edge) for end, edge in open_ends if end.done(edge)}
        for edge, buffer in buffers.items():
            seen[edge].append(buffer[0])
    assert seen[0] == seen[1] == list(range(200))
    assert post.sent == 800
    assert post.overtaken > 100


def test_a_message_that_never_comes_is_noticed():
    case = Case("logistic", "dense", "shared", 4)
    shards, problem = make_shards_of(case)
    ranks = make_ranks(shards, problem, case.setting, map_nodes(problem.topology, 2))
    transports = loopback(2, 0)
    transports[0].hub.receive = lambda source, target, edge: None
    with pytest.raises(AssertionError, match="the ranks wait for each other"):
        run_ranks(ranks, transports, EVENTS)

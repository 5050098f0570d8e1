"""A rank draws exactly its nodes' part of the schedule, with everybody's times and samples."""

import pytest

import adfs
from adfs.algorithms.base import MethodSetting
from adfs.algorithms.pairwise import source_of
from support.peers import succeed
from support.ranks import Case, ThreadNetwork, make_shards_of, random_mapping, share_of

BLOCKS = [(0, 1), (1, 1), (1, 700), (700, 5_000), (123_456, 125_000)]


def part_of(events, topology, nodes, shared):
    """Which events touch these nodes: their kinds, times and samples, one by one."""
    n_edges, found = topology.n_edges, []
    for k, which in enumerate(events.which.tolist()):
        ends = topology.edges[which].tolist() if which < n_edges else [which - n_edges]
        if set(ends) & set(nodes):
            when = events.start + k if shared else int(events.ticks[k])
            found.append((which, when, int(events.sample[k])))
    return found


@pytest.mark.parametrize("schedule", ["shared", "poisson", "stratified"])
@pytest.mark.parametrize("size", [1, 2, 4, 9])
def test_a_rank_draws_the_events_of_its_nodes_and_no_others(schedule, size):
    case = Case("logistic", "dense", schedule, 9)
    shards, problem = make_shards_of(case)
    chosen = adfs.Parameters.choose(problem, "exact", 5.0)
    setting = MethodSetting("exact", seed=3, schedule=schedule)
    everybody = source_of(chosen, setting, problem.network)
    mapping = random_mapping(9, size, seed=size)
    blocks = {block: everybody.draw(*block) for block in BLOCKS}

    def compare(peers):
        network = ThreadNetwork(peers, problem.topology, mapping)
        share = share_of(network, shards, problem)
        law = adfs.Parameters.choose(share, "exact", 5.0)
        sources = [source_of(law, setting, network)]
        if schedule != "poisson" and size > 1:
            # One that expects far fewer events than there are needs more room than it takes.
            tight = source_of(law, setting, network)
            tight._share = 0.0
            sources.append(tight)
        for block, events in blocks.items():
            expected = part_of(events, problem.topology, share.nodes, schedule != "poisson")
            for source in sources:
                own = source.draw(*block)
                assert own.stop == block[1]
                ticks = range(*block) if own.ticks is None else own.ticks.tolist()
                found = zip(own.which.tolist(), ticks, own.sample.tolist(), strict=True)
                assert list(found) == expected

    succeed(size, compare)
    assert len(blocks[700, 5_000].which) > 4_000

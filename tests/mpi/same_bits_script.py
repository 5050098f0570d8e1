"""What the ranks do for ``test_same_bits.py``: all cases in one launch, saved by rank 0.

    mpiexec -n R python same_bits_script.py FILE.npz KIND

KIND is a carrier, ``plain`` or ``compiled``, through which each case is solved; or ``rounds``, the
methods that need no carrier; or ``transport``:
ranks dealt at random and blocks cut at random, turned by hand over MPI as over other transports in
``tests/unit/test_transports.py``; or ``wide`` or ``tiny``, one case.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from adfs.engine.interrupts import Interrupts
from adfs.mpi import mpi_network as networks
from adfs.mpi.communicator import Communicator, yield_core
from adfs.mpi.mpi_network import CompiledCarrier, MpiNetwork, MpiTransport, PlainCarrier
from adfs.mpi.problem_loading import map_nodes
from adfs.solver import RunOptions, run
from support.ranks import (
    EVENTS,
    all_cases,
    found_by,
    merged,
    random_mapping,
    rank_of,
    share_of,
    turn,
)
from support.same_bits import CASES, ROUNDS, TINY, WIDE, bits_of, limits, shards_of

ONE_CASE = {"wide": WIDE, "tiny": TINY}
EXPECTED = {"plain": PlainCarrier, "tiny": PlainCarrier}


def solved(world, case, kind):
    """A case through `run`."""
    shards, problem = shards_of(case)
    mapping = map_nodes(problem.topology, world.size, ("contiguous", "graph")[case.seed % 2])
    network = MpiNetwork(world, problem.topology, mapping)
    share = share_of(network, shards, problem)
    del shards, problem
    stopping, every = limits(case)
    options = RunOptions(evaluate_every=every, timeout=300.0)
    return bits_of(run(share, case.algorithm, case.setting, stopping, options, Interrupts(())))


def turned(world, case):
    """A case over the readable MPI transport, without the engine."""
    shards, problem = shards_of(case)
    mapping = random_mapping(case.n_nodes, world.size, case.seed)
    network = MpiNetwork(world, problem.topology, mapping)
    rank = rank_of(share_of(network, shards, problem), case.setting)
    transport = MpiTransport(world.mpi, world.comm.Dup())
    generator = np.random.default_rng([case.seed, world.rank])
    while not (rank.done and rank.position == EVENTS):
        if not turn(rank, transport, EVENTS, generator):
            yield_core()
    own = found_by(rank)
    found = world.gather({**own, "duals": np.concatenate(own["duals"])})
    sizes = np.diff(rank.problem.offsets).tolist()
    for each, lengths in zip(found, world.gather(sizes), strict=True):
        each["duals"] = np.split(each["duals"], np.cumsum(lengths)[:-1])
    return merged(found, case.n_nodes)


def main(path, kind):
    """Every case of the kind that has a node for each rank."""
    kept = {}
    with Communicator.open() as world:
        seen = note_carriers(plain=kind == "plain")
        cases = {"rounds": ROUNDS, "transport": all_cases((4, 9))}.get(kind, CASES)
        for case in [ONE_CASE[kind]] if kind in ONE_CASE else cases:
            if case.n_nodes >= world.size:
                found = turned(world, case) if kind == "transport" else solved(world, case, kind)
                kept.update({f"{case}/{name}": array for name, array in found.items()})
        if kind not in ("transport", "rounds") and world.size > 1:
            assert seen == {EXPECTED.get(kind, CompiledCarrier)}, seen
        if world.rank == 0:
            np.savez(path, **kept)


def note_carriers(plain):
    """Types of the carriers that the engine takes: a fall-back must not go unnoticed."""
    seen, make = set(), networks.make_carrier

    def noted(rank, mpi, comm, *options):
        carrier = make(rank, mpi, comm, *options)
        if plain:
            carrier = PlainCarrier(rank, MpiTransport(mpi, comm))
        seen.add(type(carrier))
        return carrier

    networks.make_carrier = noted
    return seen


if __name__ == "__main__":
    main(*sys.argv[1:])

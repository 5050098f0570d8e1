"""What the ranks do for ``test_same_bits.py``: many runs in one launch, saved by rank 0.

    mpiexec -n R python same_bits_script.py FILE.npz PART

PART names runs in `support.same_bits.PARTS`, of which those of R ranks are done.
"""

import contextlib
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from adfs.engine.interrupts import Interrupts
from adfs.mpi import mpi_network as networks
from adfs.mpi.communicator import Communicator, yield_core
from adfs.mpi.mpi_network import CompiledCarrier, MpiNetwork, MpiTransport, PlainCarrier
from adfs.mpi.problem_loading import map_nodes
from adfs.run import RunOptions, run
from support.ranks import EVENTS, found_by, merged, random_mapping, rank_of, share_of, turn
from support.same_bits import PARTS, bits_of, limits, shards_of

CARRIERS = {"plain": {PlainCarrier}, "compiled": {CompiledCarrier}}


def solved(world, case):
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


def main(path, part):
    """Every run of the part that is for so many ranks."""
    kept = {}
    with Communicator.open() as world:
        for kind, size, case in PARTS[part]:
            if size != world.size:
                continue
            with noted_carriers(plain=kind == "plain") as seen:
                found = turned(world, case) if kind == "transport" else solved(world, case)
            if kind in CARRIERS and size > 1:
                assert seen == CARRIERS[kind], seen
            kept.update({f"{kind}/{case}/{name}": array for name, array in found.items()})
        if world.rank == 0:
            np.savez(path, **kept)


@contextlib.contextmanager
def noted_carriers(plain):
    """Types of the carriers that the engine takes: a fall-back must not go unnoticed."""
    seen, make = set(), networks.make_carrier

    def noted(rank, mpi, comm, *options):
        carrier = make(rank, mpi, comm, *options)
        if plain:
            carrier = PlainCarrier(rank, MpiTransport(mpi, comm))
        seen.add(type(carrier))
        return carrier

    networks.make_carrier = noted
    try:
        yield seen
    finally:
        networks.make_carrier = make


if __name__ == "__main__":
    main(*sys.argv[1:])

"""`adfs train --engine mpi`: the same command on ranks, each with the rows of its own nodes."""

import argparse
import contextlib
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adfs.cli import options

if TYPE_CHECKING:
    from adfs.distributed.execution import Execution
    from adfs.distributed.share import Share
    from adfs.distributed.whole import Whole
    from adfs.intake.local_data import LocalData
    from adfs.launch.watch import Watch
    from adfs.launch.world import World
    from adfs.runtime.model import Model, Vector
    from adfs.runtime.signals import Interrupts
    from adfs.runtime.solve import Result


@dataclass
class Outcome:
    """What a rank has when the ranks part; only rank 0 writes and prints."""

    rank: int
    problem: "Whole | None"
    result: "Result"
    model: "Model | None"
    record: dict[str, Any] | None
    execution: "list[Execution]"


def run(args: argparse.Namespace) -> int:
    """Supervise the rank, or be it."""
    from adfs.launch.supervisor import is_supervised, supervise

    if not is_supervised():
        return supervise(args.command_line)
    from adfs.cli.train_end import finish

    with contextlib.ExitStack() as listening:
        outcome = _train(args, listening)
        return finish(
            args, outcome.problem, outcome.result, outcome.model, outcome.record,
            outcome.execution,
        )  # fmt: skip


def _train(args: argparse.Namespace, listening: contextlib.ExitStack) -> Outcome:
    """Everything that ranks do together; whoever fails takes all along, with one sentence."""
    from adfs.launch.watch import Watch

    with Watch() as watch:
        watch.tell(timeout=args.timeout, resumable=args.checkpoint is not None)
        return _train_with(args, watch, listening)


def _train_with(
    args: argparse.Namespace, watch: "Watch", listening: contextlib.ExitStack
) -> Outcome:
    from adfs.cli.signals import SIGNALS
    from adfs.cli.train_checks import check, check_outputs
    from adfs.cli.train_start import load_test
    from adfs.launch.peers import attempt
    from adfs.launch.world import World
    from adfs.runtime.signals import Interrupts

    with World.open(watch) as world:
        attempt(world, lambda: check(args))
        attempt(world, lambda: check_outputs(args) if world.rank == 0 else None)
        share, data = _load(args, world)
        theta = _warm_start(args, world, share)
        test = attempt(world, lambda: load_test(args, data.n_features) if world.rank == 0 else None)
        # From here to the end: a signal that comes late must not cost what others have saved.
        interrupts = listening.enter_context(Interrupts(SIGNALS))
        result, execution = _solve(args, world, share, theta, interrupts)
        return _outcome(args, world, share, data, result, execution, test)


def _load(args: argparse.Namespace, world: "World") -> "tuple[Share, LocalData]":
    """The rows of this rank's nodes, as the arguments describe them."""
    import numpy as np

    from adfs.cli.data import (
        check_options,
        fetch,
        read_sigma,
        read_topology,
        weighed,
        with_constant,
    )
    from adfs.distributed.mapping import Mapping, map_nodes
    from adfs.distributed.share import Share
    from adfs.intake.local_data import load_share
    from adfs.intake.patterns import find_shards, place_shards
    from adfs.launch.peers import attempt
    from adfs.problems.files import NODE

    attempt(world, lambda: check_options(args))
    seen = find_shards(world, args.data) if NODE in args.data else None
    n_files = None if seen is None else seen.shape[1]
    least = max(options.DEFAULT_NODES, world.size)
    topology = attempt(world, lambda: read_topology(args, n_files, least))
    sigma = attempt(world, lambda: read_sigma(args, topology.n_nodes))
    mapping = attempt(world, lambda: map_nodes(topology, world.size, args.mapping))
    if seen is None:
        attempt(world, lambda: fetch(args.data, args.quiet) if world.rank == 0 else None)
    else:
        owner = attempt(world, lambda: place_shards(seen, mapping.rank_of, args.data))
        mapping = Mapping(owner, world.size)
    data = load_share(
        world, args.data, mapping.rank_of, args.loss, args.partition or "even", args.seed, args.m,
        args.n_features,
    )  # fmt: skip
    shards = data.shards
    if args.intercept:
        shards = [shard._replace(X=with_constant(shard.X)) for shard in shards]
    if args.class_weight and data.classes is not None and data.label_counts is not None:
        shards = weighed(shards, data.classes, data.label_counts)
    every = np.full(topology.n_nodes, sigma)
    return Share(world, shards, args.loss, every, topology, mapping, data.classes), data


def _warm_start(args: argparse.Namespace, world: "World", share: "Share") -> "Vector | None":
    """Rank 0 reads the model; the others need not see its file."""
    from adfs.cli.train_start import theta_of
    from adfs.launch.peers import attempt
    from adfs.runtime.model import Model

    if not args.warm_start:
        return None
    given: Vector = world.gather(
        attempt(
            world,
            lambda: (
                theta_of(Model.load(args.warm_start), args, share.n_features)
                if world.rank == 0
                else None
            ),
        )
    )[0]
    return given


def _solve(
    args: argparse.Namespace, world: "World", share: "Share", theta: "Vector | None",
    interrupts: "Interrupts",
) -> "tuple[Result, Execution]":  # fmt: skip
    from adfs.algorithms.base import Setting
    from adfs.cli.progress import Lines
    from adfs.cli.train_start import checkpoints_of, readings
    from adfs.distributed.solve import Job, solve_on_ranks
    from adfs.runtime.stopping import Stopping
    from adfs.schedule.delays import Delays

    stopping = Stopping(args.tol, args.max_iter, args.time_limit)
    setting = Setting(
        args.parameters, args.tau, args.clock, Delays(tau=args.tau), args.seed, args.schedule
    )
    job = Job(
        timeout=args.timeout,
        checkpoints=checkpoints_of(args),
        keep_spans=args.timeline is not None or args.report is not None,
        gather_thetas=args.out is not None,
    )
    callbacks = [args.leaving.repeat]
    if world.rank == 0 and not args.quiet:  # what mpiexec passes on is no terminal
        callbacks.append(Lines(stopping))
    return solve_on_ranks(
        world, share, args.algorithm, stopping, setting, theta, readings(args),
        tuple(callbacks), interrupts, job,
    )  # fmt: skip


def _outcome(
    args: argparse.Namespace, world: "World", share: "Share", data: "LocalData",
    result: "Result", execution: "Execution", test: Any,
) -> Outcome:  # fmt: skip
    """The record of the whole run, on rank 0."""
    from adfs.cli import report
    from adfs.distributed.execution import gather_executions
    from adfs.distributed.whole import Whole
    from adfs.runtime.model import Model

    whole = Whole.of(share, data.n_samples)
    command = shlex.join(["adfs", *args.command_line])
    model = Model.from_result(result, whole, args.intercept, command)
    train = report.on_training_data(share, model)
    every = gather_executions(world, execution)
    if world.rank:
        return Outcome(world.rank, None, result, None, None, every)
    record = report.record(args, whole, result, model, train, test)
    return Outcome(0, whole, result, model, record, every)

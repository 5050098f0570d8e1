"""Runs whose every bit is compared between engines: small, with a few readings each."""

import itertools
import json
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

import adfs
from adfs.algorithms.base import BY_NAME, ONE_MACHINE
from adfs.engine.stopping import Stopping
from support.pairs import pairwise
from support.ranks import GRAPHS, Case, all_cases, make_shards_of, shard_of

CASES = all_cases(GRAPHS)
METHODS = ("msda", "ssda", "esdacd", "dsba", "katyusha", "l-katyusha", "newton", "lbfgs", "tron")
adfs.algorithms()  # fills the registry
ADDED = tuple(sorted(BY_NAME - ONE_MACHINE))
ROUNDS = [
    Case(loss, layout, "shared", n_nodes, algorithm=name)
    for name in (*METHODS, *ADDED)
    for loss in ("logistic", "squared")
    for layout in ("dense", "csr")
    for n_nodes in (1, 4, 9)
]
WIDE = Case("logistic", "wide", "shared", 2, "path:2", 1_000_000)
TINY = Case("logistic", "dense", "shared", 2, "path:2")
SIZES = (2, 3)  # numbers of ranks outside the soak lane


class RankRun(NamedTuple):
    """A case on so many ranks.

    ``kind`` is a carrier, ``plain`` or ``compiled``, through which the case is solved; or
    ``rounds``, for a method that needs no carrier; or ``transport``: nodes dealt at random and
    blocks cut at random, turned by hand over MPI as over others in ``unit/test_transports.py``.
    """

    kind: str
    size: int
    case: Case

    def __str__(self):
        return f"{self.kind}-on-{self.size}-{self.case}"


def rank_runs():
    """Every combination of a kind, a number of ranks and a case that has a node for each."""
    sizes = {"compiled": (1, 2, 3, 4), "plain": (2,), "rounds": (1, 2, 3, 4), "transport": (3,)}
    cases = {"rounds": ROUNDS, "transport": all_cases((4, 9))}
    every = (
        RankRun(kind, size, case)
        for kind in sizes
        for size, case in itertools.product(sizes[kind], cases.get(kind, CASES))
    )
    runs = [run for run in every if run.case.n_nodes >= run.size]
    nine = [case for case in ROUNDS if case.n_nodes == 9][::3]
    alone = [RankRun("rounds", 9, case) for case in nine]  # one node per rank
    return [*runs, *alone, RankRun("compiled", 2, WIDE)]


def few_runs(runs):
    """Those outside the soak lane: all pairs of a kind, size, loss, layout and so on."""
    usual = [run for run in runs if run.size in SIZES and run.case != WIDE]
    carried = [run for run in usual if run.kind in ("compiled", "plain")]
    groups = [carried, *([run for run in usual if run.kind == k] for k in ("rounds", "transport"))]
    chosen = [
        group[k] for group in groups for k in pairwise((*run[:2], *run.case) for run in group)
    ]
    return [*chosen, RankRun("compiled", 2, WIDE)]


RUNS = rank_runs()
PARTS = {"few": few_runs(RUNS), "tiny": [RankRun("plain", 2, TINY)]}
PARTS["rest"] = [run for run in RUNS if run not in PARTS["few"]]


def shards_of(case):
    """Shards and problem of a case; `WIDE` has as many columns as a buffer of MPI never has."""
    if case.layout != "wide":
        return make_shards_of(case)
    generator = np.random.default_rng(case.seed)
    rows, d = 6, case.n_features
    shards = []
    for node in range(case.n_nodes):
        columns = generator.integers(d, size=(rows, 4))
        columns[:, 0] = (0, d // 3, d // 2, d - 2, d - 1, node)
        entries = generator.standard_normal(columns.size)
        X = sp.csr_matrix((entries, columns.ravel(), 4 * np.arange(rows + 1)), (rows, d))
        shards.append((X, np.resize([-1.0, 1.0], rows), np.ones(rows)))
    topology = adfs.Topology.parse(case.graph)
    problem = adfs.Problem(shards, case.loss, sigma=0.3, topology=topology)
    return [shard_of(problem, node) for node in range(case.n_nodes)], problem


def limits(case):
    """A third ends after some events; a third, read often, at a tolerance; a third by default."""
    if case == WIDE:
        return Stopping(1e-300, 300), 100
    if case == TINY:
        return Stopping(1e-300, 200), 50
    kind = case.seed // 2 % 3
    if case.algorithm != "auto":
        short = case.algorithm in ("newton", "lbfgs", "tron")
        return (
            (Stopping(1e-300, 9 if short else 150), 4 if short else 40) if kind == 0
            else (Stopping(1e-9, 5_000), None)
        )  # fmt: skip
    if kind == 0:
        return Stopping(1e-300, 3_000), 700
    tol = (1e-3, 1e-4) if case.loss == "hinge" else (1e-5, 1e-10)
    return (Stopping(tol[0], 60_000), 150) if kind == 1 else (Stopping(tol[1], 60_000), None)


def locally(case):
    """The local engine's run."""
    stopping, every = limits(case)
    setting = case.setting
    return adfs.solve(
        shards_of(case)[1], case.algorithm, tol=stopping.tol, max_iter=stopping.max_iter,
        tau=setting.tau, clock=setting.clock, parameters=setting.rule, seed=setting.seed,
        schedule=setting.schedule, evaluate_every=every,
    )  # fmt: skip


def bits_of(result):
    """What two engines must agree on, as arrays: all of it but the seconds."""
    columns = result.trace.to_dict()
    del columns["wall_time"]
    words = {"status": result.status, "algorithm": result.algorithm, "trace": columns}
    return {
        "theta": result.theta, "thetas": result.thetas,
        "numbers": np.array([result.objective, result.duality_gap, result.rho]),
        "words": np.array(json.dumps(words)),
    }  # fmt: skip


def differences(found, expected):
    """Names of what is not the same to the bit."""
    assert found.keys() == expected.keys()
    return [
        name for name in found
        if (found[name].dtype, found[name].shape) != (expected[name].dtype, expected[name].shape)
        or found[name].tobytes() != expected[name].tobytes()
    ]  # fmt: skip

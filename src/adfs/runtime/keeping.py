"""What a run is at a position, as a checkpoint keeps it: the same for every engine.

A node's arrays are its own, counts of its events among them, so any number of processes can go on
from what any other number saved, even where files of a position were saved by different numbers.
"""

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms.adfs import AdfsState
from adfs.algorithms.base import Setting
from adfs.algorithms.ns_adfs import NsAdfsState
from adfs.checkpoints.identity import Identity, fingerprint
from adfs.checkpoints.store import Store
from adfs.errors import ParameterError
from adfs.kernels import convex, edge
from adfs.kernels.rows import DenseRows
from adfs.problems.finite_sum import Problem
from adfs.runtime.course import Course

State = AdfsState | NsAdfsState
Arrays = dict[str, NDArray[Any]]

SMOOTH_COLUMNS = [edge.SUM, edge.DIFFERENCE, edge.LAST, edge.WARM]
MOST_SKIPPED = 5  # files about which a resumed run says why it does not trust them
CONVEX_COLUMNS = [convex.VALUE, convex.LAG]


def _nothing(message: str) -> None:
    """Nobody listens."""


class Checkpoints(NamedTuple):
    """Where and how often a run is kept, and whether it goes on from what is there.

    ``every`` is in events (units of time under the Poisson schedule). A disk that refuses costs a
    checkpoint, not the run: ``complain`` is told. ``tell`` hears where a run that is to go on
    begins.
    """

    folder: str | os.PathLike[str]
    every: int | None = None
    resume: bool = False
    complain: Callable[[str], Any] = warnings.warn
    tell: Callable[[str], Any] = _nothing

    def interval(self, n_samples: int) -> int:
        """As asked; else some passes, and at least half a second of work or so."""
        return self.every or max(5_000_000, 10 * n_samples)

    def announce(self, resumed: int | None, skipped: Sequence[tuple[Any, str]]) -> None:
        """Say where the run begins, and which files were passed over on the way there."""
        for path, reason in skipped[:MOST_SKIPPED]:
            self.tell(f"passed over: {os.fspath(path)} {reason}")
        if len(skipped) > MOST_SKIPPED:
            self.tell(f"passed over: {len(skipped) - MOST_SKIPPED} more")
        if resumed is None:
            which = "no whole checkpoint" if skipped else "no checkpoint yet"
            self.tell(f"{os.fspath(self.folder)} has {which}: starts at 0")
        else:
            self.tell(f"went on from position {resumed}, kept in {os.fspath(self.folder)}")


def node_state(state: State, problem: Problem, node: int) -> Arrays:
    """Arrays of one node of this process."""
    rows = problem.node_rows(node)
    if isinstance(state, AdfsState):
        centres = state.centres
        return {
            "lines": state.lines[rows][:, SMOOTH_COLUMNS], "pairs": centres.pairs[node],
            "scale": centres.scale[node : node + 1], "last": centres.last[node : node + 1],
        }  # fmt: skip
    return {"lines": state.lines[rows][:, CONVEX_COLUMNS], "pairs": state.pairs[node]}


def put_node_state(state: State, problem: Problem, node: int, arrays: Arrays) -> None:
    """Make one node what it was."""
    rows = problem.node_rows(node)
    if isinstance(state, AdfsState):
        state.lines[rows, : len(SMOOTH_COLUMNS)] = arrays["lines"]
        state.centres.pairs[node] = arrays["pairs"]
        state.centres.scale[node] = arrays["scale"][0]
        state.centres.last[node] = arrays["last"][0]
    else:
        state.lines[rows, : len(CONVEX_COLUMNS)] = arrays["lines"]
        state.pairs[node] = arrays["pairs"]


def whole_state(state: State, course: Course) -> dict[str, Any]:
    """What is the same on every rank."""
    t = state.t if isinstance(state, AdfsState) else 0
    growth = state.growth if isinstance(state, NsAdfsState) else 0.0
    return {"course": course.state(), "t": t, "growth": growth}


def put_whole_state(state: State, course: Course, kept: dict[str, Any]) -> None:
    """The inverse."""
    course.restore(kept["course"])
    if isinstance(state, AdfsState):
        state.t = int(kept["t"])
    else:
        state.growth = float(kept["growth"])


class Spent(NamedTuple):
    """What this process's nodes have used up: idealized times, events, and seconds.

    ``tally`` has one row a node: its local updates, and the exchanges whose first end it is.
    """

    finish: NDArray[np.float64]
    busy: NDArray[np.float64]
    waiting: NDArray[np.float64]
    tally: NDArray[np.int64]
    seconds: float = 0.0

    def of(self, node: int) -> Arrays:
        """One node's part."""
        return {
            "hands": np.array([self.finish[node], self.busy[node], self.waiting[node]]),
            "tally": self.tally[node], "seconds": np.array([self.seconds]),
        }  # fmt: skip

    def put(self, node: int, arrays: Arrays) -> None:
        """The inverse, but for the seconds."""
        self.finish[node], self.busy[node], self.waiting[node] = arrays["hands"]
        self.tally[node] = arrays["tally"]


def save(
    store: Store, position: int, nodes: NDArray[np.int64], problem: Problem, state: State,
    spent: Spent, course: Course, everywhere: int | None = None,
) -> None:  # fmt: skip
    """Keep a run at a position; ``nodes`` are the numbers, in the whole graph, of those here.

    ``everywhere`` is the newest position that all processes of the run are known to have saved.
    """
    kept = {
        node: node_state(state, problem, own) | spent.of(own)
        for own, node in enumerate(nodes.tolist())
    }
    store.save(position, whole_state(state, course), kept, everywhere)


def load(
    store: Store, position: int, nodes: NDArray[np.int64], problem: Problem, state: State,
    spent: Spent,
) -> tuple[dict[str, Any], float]:  # fmt: skip
    """Put nodes in the state that they had; returns that of the whole run, and its seconds.

    Files of one position may tell different courses, if ``tol`` was changed between two lives of
    the run: whoever loads takes one of them, all processes the same.
    """
    loaded = store.load(position, nodes.tolist())
    for own, node in enumerate(nodes.tolist()):
        put_node_state(state, problem, own, loaded.nodes[node])
        spent.put(own, loaded.nodes[node])
    return loaded.run, max(float(arrays["seconds"][0]) for arrays in loaded.nodes.values())


def require_new(store: Store, nodes: NDArray[np.int64]) -> None:
    """Refuse to begin where this very run was kept before: what was kept would be lost."""
    position = next(store.found(nodes.tolist()), None)
    if position is not None:
        raise ParameterError(
            f"--checkpoint {store.folder} holds this run up to position {position}; add --resume "
            "to go on from there, or name another folder to begin anew."
        )


def require_keepable(name: str) -> None:
    """Refuse an algorithm whose state cannot be kept."""
    if name not in ("adfs", "ns-adfs"):
        raise ParameterError(
            f"Checkpoints are for the algorithms adfs and ns-adfs, not for {name!r}; leave "
            "--checkpoint out, or choose one of them."
        )


def identity_of(
    problem: Problem, nodes: NDArray[np.int64], sigma: NDArray[np.float64], name: str,
    setting: Setting, warm_start: NDArray[np.float64] | None,
) -> Identity:  # fmt: skip
    """Everything that a run's bits depend on, as far as this process knows it."""
    values = np.unique(sigma)
    config = {
        "algorithm": name, "loss": problem.loss.name,
        "sigma": float(values[0]) if len(values) == 1 else sigma.tolist(),
        "graph": problem.topology.name, "edges": fingerprint_of(problem.topology.edges),
        "nodes": problem.topology.n_nodes, "features": problem.n_features,
        "parameters": _rule(setting.rule),
        "schedule": setting.schedule, "tau": float(setting.tau), "clock": setting.clock,
        "delays": repr(setting.delays),
        "warm_start": None if warm_start is None else fingerprint_of(warm_start),
    }  # fmt: skip
    data = {int(node): _fingerprint(problem, own) for own, node in enumerate(nodes)}
    return Identity(setting.seed, config, data)


def _rule(rule: Any) -> str:
    """The rule's name, or a digest of parameters that were given in its place."""
    if isinstance(rule, str):
        return rule
    return fingerprint_of(np.concatenate([rule.p_edge, rule.p_node, rule.edge_eta, [rule.rho]]))


def fingerprint_of(array: NDArray[Any]) -> str:
    """Digest of one array."""
    empty = np.empty(0)
    return fingerprint((np.atleast_2d(array),), empty, empty)


def _fingerprint(problem: Problem, node: int) -> str:
    part, rows = problem.node_rows(node), problem.rows
    if isinstance(rows, DenseRows):
        arrays: tuple[NDArray[Any], ...] = (rows.values[part],)
    else:
        arrays = (rows.values, rows.indices, rows.indptr[part.start : part.stop + 1])
    return fingerprint(arrays, problem.labels[part], problem.weights[part])

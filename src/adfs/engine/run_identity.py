"""What must be equal for a resumed run to give the same bits, and the message when it is not."""

import hashlib
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import adfs
from adfs.agreement import as_text
from adfs.algorithms.base import MethodSetting, WarmStart
from adfs.errors import ParameterError
from adfs.kernels.rows import DenseRows
from adfs.problem.finite_sum import Problem
from adfs.storage import digest

CHUNK = 1 << 17  # numbers converted at a time
Identity = dict[str, Any]
MISSING = "(not given)"  # in the place of an entry that only the other configuration has


def identity_of(
    problem: Problem, name: str, setting: MethodSetting, start: WarmStart | None
) -> Identity:
    """Everything that a run's bits depend on, as plain values for the header of a file.

    Two runs of the same identity have the same state at the same position, on any number of ranks.
    What only decides when to stop (``tol``, limits) is no part of it. Its ``config`` is the same on
    every rank, its ``data`` are fingerprints of the nodes in this process. All ranks call it.
    """
    values = np.unique(problem.sigma)
    rule = setting.rule
    config = {
        "algorithm": name, "loss": problem.loss.identity,
        "sigma": float(values[0]) if len(values) == 1 else problem.sigma.tolist(),
        "graph": problem.topology.name, "edges": _fingerprint(problem.topology.edges),
        "nodes": problem.n_nodes, "features": problem.n_features,
        "parameters": rule if isinstance(rule, str) else _fingerprint(rule.numbers()),
        "schedule": setting.schedule, "tau": float(setting.tau), "clock": setting.clock,
        "delays": repr(setting.delays), "costs": setting.costs.to_dict(),
        "warm_start": None if start is None else _fingerprint_of_start(problem, start),
    }  # fmt: skip
    data = {str(node): _node_fingerprint(problem, node) for node in problem.nodes.tolist()}
    return {"adfs": adfs.__version__, "seed": setting.seed, "config": config, "data": data}


def fingerprint(rows: Sequence[NDArray[Any]], labels: NDArray[Any], weights: NDArray[Any]) -> str:
    """Digest of one node's samples: every value to the bit, in order.

    ``rows`` is ``(values,)`` of shape (m, d), or the ``(values, indices, indptr)`` of compressed
    sparse rows, where ``indptr`` may be the node's part of a larger matrix's. The width of whole
    numbers does not count, because a larger matrix may need wider ones; so a node has one digest on
    any number of ranks.
    """
    found = hashlib.sha256()
    if len(rows) == 3:
        values, indices, indptr = rows
        entries = slice(int(indptr[0]), int(indptr[-1]))
        _add(found, "values", values[entries])
        _add(found, "indices", indices[entries], np.int64)
        _add(found, "lengths", np.diff(indptr), np.int64)
    else:
        _add(found, "rows", rows[0])
    _add(found, "labels", labels)
    _add(found, "weights", weights)
    return found.hexdigest()


def check(stored: Identity, current: Identity, folder: str | os.PathLike[str]) -> None:
    """Refuse to continue from another run; the message names what differs first."""
    way_out = "use the same, or another --checkpoint folder."
    versions, data = ([each[key] for each in (stored, current)] for key in ("adfs", "data"))
    entry = _first("", *({"seed": each["seed"], **each["config"]} for each in (stored, current)))
    common = sorted(data[0].keys() & data[1].keys(), key=int)
    changed = [node for node in common if data[0][node] != data[1][node]]
    if versions[0] != versions[1]:
        found = (
            f"adfs {versions[0]} but this is adfs {versions[1]}, whose bits may differ; use the "
            "same version, or another --checkpoint folder."
        )
    elif entry is not None:
        name, before, now = entry
        found = f"{name}={as_text(before)} but this run has {name}={as_text(now)}; {way_out}"
    elif changed:
        where = f"at node {changed[0]} than this run has"
        found = f"other samples, labels or weights {where}; {way_out}"
    else:
        return
    raise ParameterError(f"The checkpoint in {os.fspath(folder)} was made with {found}")


def _first(name: str, before: Any, now: Any) -> tuple[str, Any, Any] | None:
    """The first entry that differs, by its path such as ``delays.tau`` or ``sigma[3]``."""
    if isinstance(before, dict) and isinstance(now, dict):
        prefix = f"{name}." if name else ""
        keys = [*now, *(key for key in before if key not in now)]
        pairs = [(f"{prefix}{k}", before.get(k, MISSING), now.get(k, MISSING)) for k in keys]
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        pairs = [(f"{name}[{k}]", a, b) for k, (a, b) in enumerate(zip(before, now, strict=True))]
    else:
        same = before == now or (before != before and now != now)  # NaN is the same as NaN
        return None if same else (name, before, now)
    return next((found for pair in pairs if (found := _first(*pair)) is not None), None)


def _fingerprint(array: NDArray[Any]) -> str:
    return fingerprint((np.atleast_2d(array),), np.empty(0), np.empty(0))


def _fingerprint_of_start(problem: Problem, start: WarmStart) -> str:
    """Digest of the model to start from and, if there are duals, of those of all nodes in order."""
    own, found = _fingerprint(start.theta), dict[str, str]()
    if start.duals is None:
        return own
    nodes = problem.nodes.tolist()
    duals = {str(n): _fingerprint(start.duals[problem.node_rows(n)]) for n in nodes}
    for part in problem.network.gather(duals):
        found |= part
    return digest(own, *(found[str(node)] for node in range(problem.n_nodes)))


def data_fingerprint(problem: Problem, labels: NDArray[Any] | None = None) -> str:
    """Digest of the samples of all nodes, the same on any number of ranks; called on all of them.

    ``labels`` are those of the samples here, where the problem's are of one class only.
    """
    own = {str(node): _node_fingerprint(problem, node, labels) for node in problem.nodes.tolist()}
    found = {node: each for part in problem.network.gather(own) for node, each in part.items()}
    return digest(*(found[str(node)] for node in range(problem.n_nodes)))


def _node_fingerprint(problem: Problem, node: int, labels: NDArray[Any] | None = None) -> str:
    part, rows = problem.node_rows(node), problem.rows
    labels = problem.labels if labels is None else labels
    if isinstance(rows, DenseRows):
        arrays: tuple[NDArray[Any], ...] = (rows.values[part],)
    else:
        arrays = (rows.values, rows.indices, rows.indptr[part.start : part.stop + 1])
    return fingerprint(arrays, labels[part], problem.weights[part])


def _add(found: Any, name: str, array: NDArray[Any], dtype: Any = None) -> None:
    """Hash an array's name, type, shape and bytes, converting little by little."""
    kind = np.dtype(array.dtype if dtype is None else dtype).newbyteorder("<")
    found.update(f"{name} {kind.str} {array.shape} ".encode())
    width = max(1, CHUNK // max(1, int(np.prod(array.shape[1:]))))
    for start in range(0, len(array), width):
        part = np.asarray(array[start : start + width], dtype=kind, order="C")
        found.update(part.reshape(-1).view(np.uint8).data)

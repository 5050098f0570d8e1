"""What one file of a store holds: whose state, where in the schedule, of which run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from adfs.checkpoints import format
from adfs.checkpoints.format import Array
from adfs.checkpoints.identity import Identity
from adfs.checkpoints.names import Name
from adfs.checkpoints.reader import Damaged
from adfs.storage import Buffer

NodeArrays = dict[str, Array]
SHARED = "shared"  # in the place of a node: arrays that are the same in every process


class Record(NamedTuple):
    """A file's header: the run's identity and plain values, and the nodes whose arrays follow."""

    identity: Identity
    run: dict[str, Any]
    nodes: frozenset[int]


def content(
    name: Name,
    identity: Identity,
    run: Mapping[str, Any],
    nodes: Mapping[int, Mapping[str, Array]],
    shared: Mapping[str, Array],
) -> list[Buffer]:
    """The parts of a file; arrays are called ``node/array`` in it, or ``shared/array``."""
    held = sorted(nodes)
    header = {
        **name._asdict(),
        "identity": identity.to_plain(held),
        "run": dict(run),
        "nodes": held,
    }
    arrays = {f"{node}/{key}": array for node in held for key, array in nodes[node].items()}
    arrays.update({f"{SHARED}/{key}": array for key, array in shared.items()})
    return format.pack(header, arrays)


def look(folder: Path, name: Name) -> Record:
    """The header of a file; its arrays are not read."""
    return _record(format.look(folder / str(name)), name)


def read(
    folder: Path, name: Name, nodes: set[int]
) -> tuple[Record, dict[int, NodeArrays], NodeArrays]:
    """Header, arrays of those of ``nodes`` that it holds, and the shared ones; every byte checked.

    Without ``nodes`` no array is kept.
    """
    kept = {str(node) for node in nodes} | ({SHARED} if nodes else set())
    header, arrays = format.unpack(folder / str(name), lambda key: key.split("/")[0] in kept)
    record = _record(header, name)
    found: dict[int, NodeArrays] = {node: {} for node in record.nodes & nodes}
    shared: NodeArrays = {}
    for key, array in arrays.items():
        node, _, label = key.partition("/")
        (shared if node == SHARED else found[int(node)])[label] = array
    return record, found, shared


def _record(header: dict[str, Any], name: Name) -> Record:
    """A header understood; it must be of the file that is asked for."""
    try:
        inside = Name(header["position"], header["rank"], header["size"])
        identity = Identity.from_plain(header["identity"])
        run, nodes = dict(header["run"]), frozenset(map(int, header["nodes"]))
    except (LookupError, TypeError, ValueError, AttributeError):
        raise Damaged("has a header that was not written by adfs") from None
    if inside != name:
        raise Damaged(f"was {inside} when it was written, and is now under another name")
    return Record(identity, run, nodes)

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
) -> list[Buffer]:
    """The parts of a file; arrays are called ``node/array`` in it."""
    held = sorted(nodes)
    header = {
        **name._asdict(),
        "identity": identity.to_plain(held),
        "run": dict(run),
        "nodes": held,
    }
    arrays = {f"{node}/{key}": array for node in held for key, array in nodes[node].items()}
    return format.pack(header, arrays)


def look(folder: Path, name: Name) -> Record:
    """The header of a file; its arrays are not read."""
    return _record(format.look(folder / str(name)), name)


def read(folder: Path, name: Name, nodes: set[int]) -> tuple[Record, dict[int, NodeArrays]]:
    """Header, and arrays of those of ``nodes`` that it holds, after every byte was checked."""
    kept = {str(node) for node in nodes}
    header, arrays = format.unpack(folder / str(name), lambda key: key.split("/")[0] in kept)
    record = _record(header, name)
    found: dict[int, NodeArrays] = {node: {} for node in record.nodes & nodes}
    for key, array in arrays.items():
        node, _, label = key.partition("/")
        found[int(node)][label] = array
    return record, found


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

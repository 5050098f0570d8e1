"""What ranks must have in common before they begin: settings, software, how processors round.

Ranks with different settings would wait for messages that nobody sends, or end with a wrong result.
A difference is refused on all ranks with the same message, which has the name and both values.
"""

from __future__ import annotations

import hashlib
import importlib
import math
import re
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

import adfs
from adfs.errors import ParameterError
from adfs.graphs.topology import Topology
from adfs.kernels import scalar
from adfs.launch.peers import Peers, gather_from_all, refuse_together
from adfs.threads import one_blas_thread

PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "mpi4py")
WAY_OUT = "give all ranks the same."
MOST_RANKS = 8  # named in a message
LONGEST = 80  # letters of a value in a message
EXACT = 1e15  # up to here a whole number is written without an exponent


def require_same(
    peers: Peers, values: Mapping[str, Any], way_out: str = WAY_OUT, rule: str = ""
) -> None:
    """Refuse values that are not the same on every rank; all ranks call it, and all raise.

    Parameters
    ----------
    peers : Peers
        A `World`, a `Network`, or ranks of a test.
    values : mapping of str to object
        By the names under which the user knows them.
    way_out : str
        The end of the message.
    rule : str
        Its beginning, where the names alone do not say why they have to be the same.

    Examples
    --------
    >>> from adfs.launch.peers import Alone
    >>> require_same(Alone(), {"seed": 0})
    """
    if peers.size == 1:
        return
    told = gather_from_all(peers, {name: words(value) for name, value in values.items()})
    _require_one_place(told)
    found = _first_difference(told)
    if found is not None:
        name, rank = found
        first, other = (told[k].get(name, "not given") for k in (0, rank))
        start = f"{rule}: " if rule else ""
        text = f"{start}{name} is {first} on rank 0 and {other} on rank {rank}; {way_out}"
        refuse_together(peers, ParameterError(text))


def _require_one_place(told: list[Any]) -> None:
    """Refuse ranks of which one compares settings while another does something else.

    That other rank cannot know, so this error ends the job.
    """
    for rank, each in enumerate(told):
        if not isinstance(each, dict):
            raise ParameterError(
                f"All ranks must make the same calls in the same order, but rank {rank} makes "
                "another one; call the same functions on all ranks."
            )


def _first_difference(told: list[dict[str, str]]) -> tuple[str, int] | None:
    """The first name whose words differ, and the first rank where they are not those of rank 0."""
    for name in dict.fromkeys(name for each in told for name in each):
        for rank, each in enumerate(told):
            if each.get(name) != told[0].get(name):
                return name, rank
    return None


def words(value: Any) -> str:
    """The same words for the same value on any rank; arrays and long texts by a digest.

    Examples
    --------
    >>> words(3), words(3.0), words(1e-6), words("adfs"), words(None)
    ('3', '3', '1e-06', 'adfs', 'None')
    """
    if isinstance(value, Topology):
        return f"{value.name} ({_digest(value.edges)})"
    if isinstance(value, np.random.RandomState):
        return "RandomState"  # all take rank 0's draw
    if isinstance(value, np.ndarray) and value.ndim:
        return f"an array of shape {value.shape} ({_digest(value)})"
    if isinstance(value, Mapping):
        value = dict(sorted(value.items(), key=repr))
    if isinstance(value, np.generic | np.ndarray):
        value = value.item()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number(value)
    text = value if isinstance(value, str) else re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}... ({_digest(np.frombuffer(text.encode(), np.uint8))})"


def _number(value: float) -> str:
    """An int and a float of the same value have the same words."""
    if isinstance(value, int) and (abs(value) > 2**1000 or float(value) != value):
        return repr(value)
    number = float(value)
    whole = math.isfinite(number) and number == int(number) and abs(number) < EXACT
    return str(int(number)) if whole else repr(number)


def _digest(array: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:8]


def require_same_versions(peers: Peers) -> None:
    """Refuse ranks whose software is not that of rank 0."""
    if peers.size > 1:
        require_same(
            peers, versions(), "install the same versions on all hosts.",
            "All ranks need the same software",
        )  # fmt: skip


def require_same_rounding(peers: Peers) -> None:
    """Refuse ranks that would not compute the bits of rank 0; takes some milliseconds."""
    if peers.size == 1:
        return
    told = gather_from_all(peers, rounding())
    others = [str(rank) for rank, digest in enumerate(told) if digest != told[0]]
    if others:
        who = f"rank {others[0]} differs" if len(others) == 1 else f"ranks {_some(others)} differ"
        text = (
            f"The same numbers must give the same results on all ranks, but {who} from rank 0 in "
            "the last digits; run all ranks on one type of CPU with the same libraries."
        )
        refuse_together(peers, ParameterError(text))


def _some(ranks: list[str]) -> str:
    return ", ".join(ranks if len(ranks) <= MOST_RANKS else [*ranks[:MOST_RANKS], "..."])


def versions() -> dict[str, str]:
    """Versions of what computes."""
    found = {"adfs": adfs.__version__, "Python": "{}.{}".format(*sys.version_info)}
    for name in PACKAGES:
        try:
            found[name] = str(importlib.import_module(name).__version__)
        except ImportError:
            found[name] = "not installed"
    return found


def rounding() -> str:
    """Digest of results whose last digits depend on the processor and its libraries.

    Compiled kernels call the exp, log and log1p of the C library, which has variants for several
    processors, and so has BLAS.
    """
    points = np.linspace(-9.0, 9.0, 64)
    values = [scalar.value(scalar.LOGISTIC, s, 1.0) for s in points.tolist()]
    slopes = [scalar.sigmoid(s) for s in points.tolist()]
    conjugates = [scalar.conjugate(scalar.LOGISTIC, 1.0, -c) for c in slopes]
    with one_blas_thread():
        matrix = np.vander(points / 9.0, 24)
        square = matrix.T @ matrix
        eigenvalues = np.linalg.eigvalsh(square)
    return _digest(np.concatenate([values, slopes, conjugates, square.ravel(), eigenvalues]))

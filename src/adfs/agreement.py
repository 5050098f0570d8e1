"""How ranks agree at set-up: gathered values, one error raised by all, equal settings and software.

Set-up goes in steps. A step is local work that may fail, then an agreement in which every rank
takes part, also one whose work failed; so no rank waits for one that has stopped.
"""

import contextlib
import importlib
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

import numpy as np

import adfs
from adfs import errors
from adfs.errors import FAILURES, AllRanksRaise, ParameterError
from adfs.graphs.topology import Topology
from adfs.kernels import loss_functions
from adfs.storage import digest
from adfs.threads import one_blas_thread

T = TypeVar("T")
Kinds = tuple[type[Exception], ...]

LEAVING = "leaves"  # sent by a rank that ends its program
# Errors that can be made from a text, by name.
KINDS: dict[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (*vars(errors).values(), ValueError, TypeError, MemoryError, OSError, RuntimeError)
    if isinstance(kind, type) and issubclass(kind, Exception)
}


class Peers:
    """All ranks of a job, this one included; this class is a process without others."""

    rank, size = 0, 1
    # Seconds without a sign of another rank after which the job ends; None while ranks read data.
    timeout: float | None = None

    def gather(self, item: Any) -> list[Any]:
        """The items of all ranks, rank 0 first; all ranks call it in the same sequence.

        An item is a value that JSON can hold, with NumPy arrays in it, which keep their bits and
        may differ in size from rank to rank.
        """
        return [item]

    def wait(
        self, there: Callable[[], bool], what: Callable[[], str], progress: Callable[[], int] = int
    ) -> None:
        """Poll until ``there``: the only place where a process waits for others.

        The job ends with a message that says ``what`` was awaited when ``timeout`` seconds have
        passed in which ``progress`` did not change. Signals are handled between two polls.
        """
        while not there():
            pass

    def fail(self, what: str) -> NoReturn:
        """End the job because of a fault between processes."""
        raise ConnectionError(what)


Alone = Peers


def agree(peers: Peers, error: Exception | None, name_rank: bool = False) -> None:
    """Raise on every rank if any rank has an error; only one of them is to print it.

    The error with the smallest ``order`` is raised, that of the lowest rank among equals; on the
    other ranks one of the same kind and text. Its cause is `AllRanksRaise`.
    ``name_rank`` puts the number of the rank before the text, unless all have the same error.
    """
    if peers.size == 1 and error is not None:
        raise error
    found = gather_from_all(peers, None if error is None else _encoded(error))
    failed = [(each["order"], rank) for rank, each in enumerate(found) if each is not None]
    if not failed:
        return
    first = min(failed)[1]
    told, cause = found[first], AllRanksRaise(first, first == peers.rank)
    if name_rank and any(each != told for each in found):
        raise KINDS[told["kind"]](f"rank {first}: {told['text']}") from cause
    if first == peers.rank and error is not None:
        raise error from cause
    raise KINDS[told["kind"]](*told["arguments"]) from cause


def gather_from_all(peers: Peers, item: Any) -> list[Any]:
    """The items of all ranks; an error where a rank ends its program instead."""
    items = peers.gather(item)
    ended = [rank for rank, each in enumerate(items) if isinstance(each, str) and each == LEAVING]
    if ended:
        error = ParameterError(f"Rank {ended[0]} has ended: there is no fit with it.")
        raise error from AllRanksRaise(ended[0], True)
    return items


def attempt(
    peers: Peers, work: Callable[[], T], catching: Kinds = FAILURES, name_rank: bool = False
) -> T:
    """The result of local work, once it has succeeded on every rank; see `agree`."""
    result, error = None, None
    try:
        result = work()
    except catching as failure:
        error = failure
    agree(peers, error, name_rank)
    return result  # type: ignore[return-value]


def _encoded(error: Exception) -> dict[str, Any]:
    """An error as plain values: the nearest of its types that can be made from a text."""
    kinds = (kind.__name__ for kind in type(error).__mro__)
    arguments: list[Any] = [str(error)]
    if isinstance(error, OSError) and error.errno is not None:
        filename = None if error.filename is None else str(error.filename)
        arguments = [error.errno, error.strerror, filename]
    return {
        "kind": next((name for name in kinds if name in KINDS), "RuntimeError"),
        "text": str(error),
        "arguments": arguments,
        "order": int(getattr(error, "order", 0)),
    }


PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "mpi4py")
WAY_OUT = "give all ranks the same."
MOST_RANKS = 8  # named in a message
LONGEST = 80  # letters of a value in a message


def require_same(
    peers: Peers, values: Mapping[str, Any], way_out: str = WAY_OUT, rule: str = ""
) -> None:
    """Refuse values that are not the same on every rank; all ranks call it, and all raise.

    ``values`` have the names that the user gave them under. ``way_out`` is the end of the message,
    ``rule`` its beginning, where the names alone do not say why they have to be the same.
    """
    if peers.size == 1:
        return
    found = gather_from_all(peers, {name: as_text(value) for name, value in values.items()})
    for rank, each in enumerate(found):
        if not isinstance(each, dict):  # that rank does not compare: this error ends the job
            raise ParameterError(
                f"All ranks must make the same calls in the same order, but rank {rank} makes "
                "another one; call the same functions on all ranks."
            )
    for name in dict.fromkeys(name for each in found for name in each):
        texts = [each.get(name, "not given") for each in found]
        rank = next((rank for rank, text in enumerate(texts) if text != texts[0]), 0)
        if rank:
            text = f"{name} is {texts[0]} on rank 0 and {texts[rank]} on rank {rank}; {way_out}"
            error = ParameterError(f"{rule}: {text}" if rule else text)
            raise error from AllRanksRaise(0, peers.rank == 0)


def as_text(value: Any) -> str:
    """The same text for the same value on any rank; arrays and long texts by a digest.

    Examples
    --------
    >>> as_text(3), as_text(3.0), as_text(1e-6), as_text("adfs"), as_text(None)
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
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = value if isinstance(value, str) else re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({digest(text)[:8]})"


def _digest(array: Any) -> str:
    return digest(np.ascontiguousarray(array).tobytes())[:8]


def require_same_software(peers: Peers) -> None:
    """Refuse ranks with other versions than rank 0, or that would not compute its bits."""
    if peers.size == 1:
        return
    way_out = "install the same versions on all hosts."
    require_same(peers, versions(), way_out, "All ranks need the same software")
    found = gather_from_all(peers, rounding())
    others = [str(rank) for rank, each in enumerate(found) if each != found[0]]
    if others:
        ranks = ", ".join(others[:MOST_RANKS] + ["..."] * (len(others) > MOST_RANKS))
        who = f"rank {ranks} differs" if len(others) == 1 else f"ranks {ranks} differ"
        raise ParameterError(
            f"The same numbers must give the same results on all ranks, but {who} from rank 0 in "
            "the last digits; run all ranks on one type of CPU with the same libraries."
        ) from AllRanksRaise(0, peers.rank == 0)


def versions() -> dict[str, str]:
    """Versions of the software that the results depend on."""
    found = {"adfs": adfs.__version__, "Python": "{}.{}".format(*sys.version_info)}
    for name in PACKAGES:
        found[name] = "not installed"
        with contextlib.suppress(ImportError):
            found[name] = str(importlib.import_module(name).__version__)
    return found


def rounding() -> str:
    """Digest of results whose last digits depend on the processor, its C library and BLAS."""
    numbers = []
    for s in np.linspace(-9.0, 9.0, 64).tolist():
        slope = loss_functions.sigmoid(s)
        conjugate = loss_functions.conjugate(loss_functions.LOGISTIC, 1.0, -slope)
        numbers += [loss_functions.value(loss_functions.LOGISTIC, s, 1.0), slope, conjugate]
    with one_blas_thread():
        matrix = np.vander(np.linspace(-1.0, 1.0, 64), 24)
        square = matrix.T @ matrix
        numbers += [*square.ravel(), *np.linalg.eigvalsh(square)]
    return _digest(numbers)

"""Who fits one model together: this process alone, or all ranks that mpiexec started.

A fit goes in steps that every rank takes, each with its own rows. What may fail on one rank is done
through `Company.each`, so that all ranks raise the same sentence and none waits for another.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from adfs.agreement import require_same
from adfs.estimators.options import choice
from adfs.launch.peers import Alone, Peers, attempt, gather_from_all

T = TypeVar("T")

ENGINES = ("local", "mpi")


class Company:
    """All that take part in a fit; alone, everything is done at once and as it is.

    Examples
    --------
    >>> Company(Alone()).each(lambda: 6 * 7)
    42
    """

    def __init__(self, peers: Peers) -> None:
        self.peers = peers

    @property
    def alone(self) -> bool:
        """Whether this process has all rows."""
        return self.peers.size == 1

    def each(self, work: Callable[[], T]) -> T:
        """The result of local work, once it is known to have succeeded on every rank.

        Otherwise all ranks raise the error of the lowest rank that has one, with the rank's number
        before it unless all ranks say the same.
        """
        return work() if self.alone else attempt(self.peers, work, (Exception,), name_rank=True)

    def require_same(self, what: str, way_out: str, **values: Any) -> None:
        """Refuse values that are not the same on every rank."""
        require_same(self.peers, values, way_out, what)

    def some(self, own: bool) -> bool:
        """Whether it is so on any rank."""
        return own if self.alone else any(gather_from_all(self.peers, own))


@contextlib.contextmanager
def company_of(estimator: Any) -> Iterator[Company]:
    """Those with whom an estimator's ``engine`` fits; one rank is as good as none."""
    if choice("engine", estimator.engine, ENGINES) == "local":
        yield Company(Alone())
        return
    from adfs.distributed.session import session

    with session() as world:
        yield Company(Alone() if world.size == 1 else world)

"""What can be wrong with what we are given. A message says the rule, the value, the way out."""


class AdfsError(ValueError):
    """Bad input or usage; the command line turns it into one line on stderr and exit code 2.

    ``order`` says how early a process that reads everything would have met it: of the errors of
    several ranks, the one with the smallest is raised.
    """

    order = 0


class DataError(AdfsError):
    """Samples, labels, weights or files that cannot be used."""


class GraphError(AdfsError):
    """A communication graph that cannot be used."""


class ParameterError(AdfsError):
    """A number outside the range that the theory or the interface allows."""


class CheckpointError(Exception):
    """A checkpoint that could not be written or read although the input was good.

    It is no `AdfsError`: nothing is wrong with what was asked, and what was saved before is intact.
    """


# What a process may meet that all processes of a job then raise together.
FAILURES = (AdfsError, CheckpointError, OSError, MemoryError)


class AllRanksRaise(Exception):
    """The cause (``raise error from ...``) of an error that all ranks of a job raise together.

    ``speaks`` is true on the one rank that is to print it.
    """

    def __init__(self, rank: int, speaks: bool) -> None:
        super().__init__(f"rank {rank} met this error, and all ranks raise it")
        self.speaks = speaks


class BeforeRanks(Exception):
    """The cause of an error that a process meets before it has begun as a rank."""


def is_agreed(error: BaseException) -> bool:
    """Whether all ranks raise this error, so that none waits for another."""
    return isinstance(error.__cause__, AllRanksRaise)


def is_printed_elsewhere(error: BaseException) -> bool:
    """Whether another rank prints this error."""
    return isinstance(error.__cause__, AllRanksRaise) and not error.__cause__.speaks

"""Errors. A message says the rule, the value, the way out."""

LONGEST_MESSAGE = 290  # letters, also where a file has long names or lines


def shortened(text: str, longest: int = LONGEST_MESSAGE) -> str:
    """``text`` without its middle where it is too long: the end of a message is the way out.

    Examples
    --------
    >>> shortened("The file aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa is empty.", 30)
    'The file a ... aaaaa is empty.'
    """
    if len(text) <= longest:
        return text
    start = longest // 3
    return f"{text[:start].rstrip()} ... {text[start + 5 - longest :].lstrip()}"


class AdfsError(ValueError):
    """Bad input or usage; the command line turns it into one line on stderr and exit code 2.

    ``order`` is the place at which a process that reads everything would have found it: of the
    errors of several ranks, the one with the smallest is raised.
    """

    order = 0

    def __init__(self, message: object = "") -> None:
        super().__init__(shortened(str(message)))


class DataError(AdfsError):
    """Samples, labels, weights or files that cannot be used."""


class GraphError(AdfsError):
    """A communication graph that cannot be used."""


class ParameterError(AdfsError):
    """A number outside the range that the theory or the interface allows."""


class ContractError(AdfsError):
    r"""All faults that a check has found, one per line after the first; it is not shortened.

    Examples
    --------
    >>> ContractError("Loss 'mine' breaks 2 rules:\n- It is not convex.\n- It is nan.").faults
    ('It is not convex.', 'It is nan.')
    """

    def __init__(self, message: object = "") -> None:
        ValueError.__init__(self, str(message))
        self.faults = tuple(line.removeprefix("- ") for line in str(message).splitlines()[1:])


class LongRunWarning(UserWarning):
    """A run that is very long by theory; the message says why and what helps."""


class PluginWarning(UserWarning):
    """An installed plug-in that could not be loaded; the message says why."""


class CheckpointError(Exception):
    """A checkpoint that could not be written or read although the input was good.

    It is no `AdfsError`: nothing is wrong with the request, and earlier checkpoints are intact.
    """


# Errors of one process that all processes of a job then raise together.
FAILURES = (AdfsError, CheckpointError, OSError, MemoryError)


class AllRanksRaise(Exception):
    """Cause of an error that all ranks raise; ``prints`` is true on the one that prints it."""

    def __init__(self, rank: int, prints: bool) -> None:
        super().__init__(f"rank {rank} found this error, and all ranks raise it")
        self.prints = prints


class BeforeRanks(Exception):
    """The cause of an error that a process finds before it has started as a rank."""


def is_agreed(error: BaseException) -> bool:
    """Whether all ranks raise this error, so that none waits for another."""
    return isinstance(error.__cause__, AllRanksRaise)


def is_printed_elsewhere(error: BaseException) -> bool:
    """Whether another rank prints this error."""
    return isinstance(error.__cause__, AllRanksRaise) and not error.__cause__.prints

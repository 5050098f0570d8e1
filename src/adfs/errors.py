"""What can be wrong with what we are given. A message says the rule, the value, the way out."""


class AdfsError(ValueError):
    """Bad input or usage; the command line turns it into one line on stderr and exit code 2."""


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

"""What can be wrong with what we are given. A message says the rule, the value, the way out."""


class AdfsError(ValueError):
    """Bad input or usage; the command line turns it into one line on stderr and exit code 2."""


class DataError(AdfsError):
    """Samples, labels, weights or files that cannot be used."""


class GraphError(AdfsError):
    """A communication graph that cannot be used."""


class ParameterError(AdfsError):
    """A number outside the range that the theory or the interface allows."""

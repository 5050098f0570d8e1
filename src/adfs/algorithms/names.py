"""Names of the algorithms that are registered here, for those who need only the words.

Completion of a shell reads them without NumPy and Numba; a test holds them equal to the registry.
"""

NAMES = (
    "adfs", "dsba", "esdacd", "katyusha", "l-katyusha", "lbfgs", "msda", "newton", "ns-adfs",
    "point-saga", "ssda",
)  # fmt: skip

"""One file per algorithm: initial state, step, output; no loop, clock, log, file or socket.

``adfs.algorithms()`` lists the registered names. The call has to live on the package, because
importing it makes it an attribute of ``adfs`` and would hide a function of the same name.
"""

import importlib
import sys
import types

# For those who need only the words: completion of a shell reads them without NumPy and Numba.
NAMES = (
    "adfs", "dsba", "esdacd", "katyusha", "l-katyusha", "lbfgs", "msda", "newton", "ns-adfs",
    "point-saga", "ssda", "tron",
)  # fmt: skip


class _AlgorithmsPackage(types.ModuleType):
    def __call__(self) -> list[str]:
        """Names of the registered algorithms."""
        importlib.import_module("adfs.algorithms.registered")
        return sorted(importlib.import_module("adfs.algorithms.base").REGISTRY)


sys.modules[__name__].__class__ = _AlgorithmsPackage

"""Generalized APCG (Algorithm 2) for anyone's problem: a smooth function plus a separable one.

``adfs.apcg(...)`` solves it (`adfs.apcg.solver.apcg`). The call has to be on the package: importing
the package makes it an attribute of ``adfs``, which would hide a function of the same name.
"""

import importlib
import sys
import types
from typing import Any

_HOMES = {
    "Quadratic": "adfs.apcg.smooth",
    "LeastSquares": "adfs.apcg.smooth",
    "SmoothFunction": "adfs.apcg.smooth",
    "Penalty": "adfs.apcg.penalties",
    "ProxPenalty": "adfs.apcg.penalties",
    "ApcgParameters": "adfs.apcg.apcg_parameters",
    "ApcgResult": "adfs.apcg.solver",
    "CertifiedPoint": "adfs.apcg.solver",
}
__all__ = list(_HOMES)


class _ApcgPackage(types.ModuleType):
    def __call__(self, *args: Any, **options: Any) -> Any:
        """Solve; see `adfs.apcg.solver.apcg`."""
        return importlib.import_module("adfs.apcg.solver").apcg(*args, **options)


sys.modules[__name__].__class__ = _ApcgPackage


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'adfs.apcg' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)

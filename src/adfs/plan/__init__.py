"""Which method is fastest here, and how long it takes: predictions, without running the methods.

``adfs.plan(...)`` makes a plan (`adfs.plan.planning.plan`). The call has to be on the package:
importing the package makes it an attribute of ``adfs``, which would hide a function of that name.
"""

import importlib
import sys
import types
from typing import Any


class _PlanPackage(types.ModuleType):
    def __call__(self, *args: Any, **options: Any) -> Any:
        """Plan; see `adfs.plan.planning.plan`."""
        return importlib.import_module("adfs.plan.planning").plan(*args, **options)


sys.modules[__name__].__class__ = _PlanPackage

"""Decentralized training of regularised linear models to a certified accuracy (ADFS).

Names below are imported when first used: ``import adfs`` itself is quick.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Topology": "adfs.graphs.topology",
    "partition": "adfs.problems.partition",
    "Problem": "adfs.problems.finite_sum",
    "Parameters": "adfs.theory.parameters",
    "NonSmoothParameters": "adfs.theory.non_smooth",
    "Schedule": "adfs.schedule.schedule",
    "Delays": "adfs.schedule.delays",
    "solve": "adfs.runtime.solve",
    "Result": "adfs.runtime.solve",
    "compare": "adfs.bench.compare",
    "Comparison": "adfs.bench.comparison",
    "apcg": "adfs.coordinate.apcg",
    "Quadratic": "adfs.coordinate.quadratics",
    "LeastSquares": "adfs.coordinate.quadratics",
    "SmoothFunction": "adfs.coordinate.smooth",
    "Penalty": "adfs.coordinate.penalties",
    "ProxPenalty": "adfs.coordinate.penalties",
    "LogisticRegression": "adfs.estimators.logistic_regression",
    "LinearSVC": "adfs.estimators.linear_svc",
    "Ridge": "adfs.estimators.ridge",
    "HuberRegressor": "adfs.estimators.huber_regressor",
    "LinearSVR": "adfs.estimators.linear_svr",
    "AdfsError": "adfs.errors",
}
_ROOMS = {
    "algorithms": "adfs.algorithms",  # calling it lists the registered names
    "datasets": "adfs.problems.datasets",
    "generators": "adfs.problems.generators",
    "report": "adfs.report",
}
__all__ = [*_HOMES, *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(_ROOMS[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'adfs' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])

"""Decentralized training of regularised linear models to a certified accuracy (ADFS).

Names below are imported when first used: ``import adfs`` itself is quick.
"""

import importlib

TYPE_CHECKING = False  # typing itself would double the time until signals are handled
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.2.0"

_HOMES = {
    "Topology": "adfs.graphs.topology",
    "partition": "adfs.data.partition",
    "load_data": "adfs.data.files",
    "load_shards": "adfs.data.files",
    "Problem": "adfs.problem.finite_sum",
    "Loss": "adfs.losses",
    "check_loss": "adfs.loss_contract",
    "Parameters": "adfs.theory.parameters",
    "NonSmoothParameters": "adfs.theory.non_smooth_parameters",
    "Schedule": "adfs.schedule.schedule",
    "Delays": "adfs.schedule.delays",
    "Costs": "adfs.costs",
    "solve": "adfs.solver",
    "Result": "adfs.run",
    "regularization_path": "adfs.regularization",
    "RegularizationPath": "adfs.regularization",
    "compare": "adfs.study.compare",
    "Comparison": "adfs.study.comparison",
    "Model": "adfs.model",
    "Trace": "adfs.engine.trace",
    "Progress": "adfs.engine.run_controller",
    "Checkpoints": "adfs.engine.checkpointer",
    "certify": "adfs.problem.certificate",
    "register": "adfs.algorithms.base",
    "check_algorithm": "adfs.algorithm_contract",
    "Method": "adfs.algorithms.base",
    "MethodSetting": "adfs.algorithms.base",
    "prepare": "adfs.plugins",
    "Quadratic": "adfs.apcg.smooth",
    "LeastSquares": "adfs.apcg.smooth",
    "SmoothFunction": "adfs.apcg.smooth",
    "Penalty": "adfs.apcg.penalties",
    "ProxPenalty": "adfs.apcg.penalties",
    "LogisticRegression": "adfs.estimators.classifiers",
    "LogisticRegressionCV": "adfs.estimators.logistic_cv",
    "LinearSVC": "adfs.estimators.classifiers",
    "Ridge": "adfs.estimators.regressors",
    "HuberRegressor": "adfs.estimators.regressors",
    "LinearSVR": "adfs.estimators.regressors",
    "AdfsError": "adfs.errors",
    "DataError": "adfs.errors",
    "GraphError": "adfs.errors",
    "ParameterError": "adfs.errors",
    "CheckpointError": "adfs.errors",
    "LongRunWarning": "adfs.errors",
}
_PACKAGES = {
    "algorithms": "adfs.algorithms",  # calling it lists the registered names
    "apcg": "adfs.apcg",  # calling it runs Algorithm 2
    "datasets": "adfs.data.datasets",
    "generators": "adfs.data.generators",
    "losses": "adfs.losses",
    "plan": "adfs.plan",  # calling it makes a plan
    "plugins": "adfs.plugins",
    "report": "adfs.study.report",
}
__all__ = [*_HOMES, *_PACKAGES]


def __getattr__(name: str) -> "Any":
    if name in _PACKAGES:
        return importlib.import_module(_PACKAGES[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'adfs' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])

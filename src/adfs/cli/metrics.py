"""How well a model fits samples whose labels are known."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.model import Model

# What each regression loss is about; classifiers are judged by their accuracy.
ERRORS = {"squared": "mean_squared_error"}
OTHER_ERROR = "mean_absolute_error"


def measure(model: Model, scores: NDArray[np.float64], labels: NDArray[Any]) -> tuple[str, float]:
    """Name and value of the measure that fits the model's loss."""
    name, total = summed(model, scores, labels)
    return name, total / len(labels)


def summed(model: Model, scores: NDArray[np.float64], labels: NDArray[Any]) -> tuple[str, float]:
    """The same without the division by the number of samples."""
    if model.loss.binary:
        return "accuracy", float(np.sum(model.labels(scores) == labels))
    name = ERRORS.get(model.loss.name, OTHER_ERROR)
    residual = scores - labels
    with np.errstate(over="ignore"):
        errors = residual**2 if name.endswith("squared_error") else abs(residual)
    return name, float(np.sum(errors))


def phrase(name: str, value: float) -> str:
    """The measure in words."""
    if name == "accuracy":
        return f"accuracy {100 * value:.2f} %"
    return f"{name.replace('_', ' ')} {value:.6g}"

"""The arithmetic of convergence curves: when an accuracy is reached, and bands over seeds.

Between two evaluations the logarithm of the error is taken as linear in the axis: linear
convergence is what the theorems promise.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.checks import choice
from adfs.engine.trace import Trace
from adfs.study.plots.comparison_plot import AXES

Vector = NDArray[np.float64]
FLOOR = float(np.finfo(np.float64).eps)  # below it, a relative error is rounding


class Curve(NamedTuple):
    """A run's suboptimality against an axis; NaN or infinite where the run blew up."""

    x: Vector
    error: Vector
    iteration: Vector | None = None


def curve(trace: Trace, axis: str, n_samples: int) -> Curve:
    """The curve of a trace; a pass is as many proximal steps and gradients as there are samples."""
    choice("axis", axis, AXES)
    if axis == "passes":
        x = (_column(trace, "n_prox") + _column(trace, "n_grad")) / n_samples
    else:
        x = _column(trace, axis)
    return Curve(x, _column(trace, "suboptimality"), _column(trace, "iteration"))


def _column(trace: Trace, name: str) -> Vector:
    return np.array(trace[name], dtype=float)  # NaN where it is not known


def first_reach(curve: Curve, accuracy: float) -> float | None:
    """Where the error first falls to ``accuracy``, log-linear between evaluations; None if never.

    Methods arrive at the end of an iteration, never inside it: with few and long ones that matters.

    Examples
    --------
    >>> halfway = Curve(np.array([0.0, 10.0]), np.array([1.0, 1e-4]))
    >>> round(first_reach(halfway, 1e-2), 9)
    5.0
    """
    below = np.flatnonzero(curve.error <= accuracy)
    if not len(below):
        return None
    k = int(below[0])
    if k == 0 or not np.isfinite(curve.error[k - 1]):
        return float(curve.x[k])
    # Errors of the size of rounding, zero or negative ones too, count as rounding.
    low = np.log(max(curve.error[k], min(FLOOR, accuracy)))
    high = np.log(curve.error[k - 1])
    share = (high - np.log(accuracy)) / (high - low)
    if curve.iteration is not None:
        count = max(1.0, curve.iteration[k] - curve.iteration[k - 1])
        share = min(1.0, np.ceil(share * count) / count)
    return float(curve.x[k - 1] + share * (curve.x[k] - curve.x[k - 1]))


def band(curves: Sequence[Curve], quantiles: Sequence[float]) -> tuple[Vector, NDArray[np.float64]]:
    """Quantiles of the error over runs, at every place where some run was evaluated.

    A run that has ended keeps its last error, and the band ends where the middle run does: beyond
    that it would tell more about when runs stop than about how they converge. Errors have shape
    (len(quantiles), number of places).
    """
    finite = [part for part in map(_finite_part, curves) if len(part.x)]
    if not finite:
        return np.empty(0), np.empty((len(quantiles), 0))
    if len(finite) == 1:
        return finite[0].x, np.tile(finite[0].error, (len(quantiles), 1))
    end = np.median([each.x[-1] for each in finite])
    places = np.unique(np.concatenate([each.x for each in finite]))
    x = np.append(places[places < end], end)
    logs = [np.interp(x, each.x, np.log(np.maximum(each.error, FLOOR))) for each in finite]
    return x, np.exp(np.quantile(logs, quantiles, axis=0))


def _finite_part(curve: Curve) -> Curve:
    """The curve up to where it blows up, if it does."""
    wild = np.flatnonzero(~np.isfinite(curve.error))
    stop = int(wild[0]) if len(wild) else len(curve.x)
    return Curve(curve.x[:stop], curve.error[:stop])

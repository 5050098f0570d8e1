"""The losses, one declaration each. Solvers read these facts, never a class name."""

import math
from dataclasses import dataclass

from adfs.errors import ParameterError
from adfs.kernels import loss_functions as code


@dataclass(frozen=True)
class Loss:
    """Facts about a loss ``l(s, y)`` of a prediction ``s``.

    Parameters
    ----------
    name : str
    code : int
        Number of the loss in the kernels (`adfs.kernels.loss_functions`).
    max_curvature : float
        ``l''max``: a sample with features ``x`` and weight ``w`` is ``w l''max |x|^2``-smooth.
        Infinite where the loss is not smooth.
    binary : bool
        Whether labels are two classes, coded -1 and 1, rather than real targets.
    formula : str

    Examples
    --------
    >>> get_loss("logistic").max_curvature
    0.25
    """

    name: str
    code: int
    max_curvature: float
    binary: bool
    formula: str

    @property
    def smooth(self) -> bool:
        """Whether ADFS with its linear rate applies."""
        return math.isfinite(self.max_curvature)


LOSSES = {
    loss.name: loss
    for loss in (
        Loss("logistic", code.LOGISTIC, 0.25, True, "log(1 + exp(-y s))"),
        Loss("squared", code.SQUARED, 1.0, False, "(s - y)^2 / 2"),
        Loss("squared_hinge", code.SQUARED_HINGE, 2.0, True, "max(0, 1 - y s)^2"),
        Loss("smoothed_hinge", code.SMOOTHED_HINGE, 1.0, True, "huber of max(0, 1 - y s)"),
        Loss("huber", code.HUBER, 1.0, False, "r^2 / 2, |r| - 1/2 for |r| > 1; r = s - y"),
        Loss("hinge", code.HINGE, math.inf, True, "max(0, 1 - y s)"),
        Loss("absolute", code.ABSOLUTE, math.inf, False, "|s - y|"),
    )
}  # fmt: skip


def get_loss(loss: "str | Loss") -> Loss:
    """Loss of that name."""
    if isinstance(loss, Loss):
        return loss
    if loss not in LOSSES:
        raise ParameterError(f"loss={loss!r} is not known; choose one of {', '.join(LOSSES)}.")
    return LOSSES[loss]


def names(smooth: bool) -> list[str]:
    """Names of the losses that are smooth, or of those that are not."""
    return [loss.name for loss in LOSSES.values() if loss.smooth == smooth]

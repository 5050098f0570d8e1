"""The losses, one declaration each. Solvers read these facts, never a class name."""

import functools
import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba

from adfs import checks
from adfs.errors import ParameterError, shortened
from adfs.installed import load_installed
from adfs.kernels import loss_functions, plugin_loss
from adfs.storage import digest

Scalar = Callable[[float, float], float]
LOSSES: "dict[str, Loss]" = {}
STEP = 6e-6  # of a central difference, the cube root of eps: an error of 1e-10
POINTS = (-30.0, -3.1, -1.0, -0.2, 0.0, 0.7, 1.0, 2.3, 30.0)  # where ranks compare functions


@dataclass(frozen=True, eq=False)
class Loss:
    """A loss ``l(s, b)`` of a prediction ``s`` and a label ``b``.

    A loss is known under its name as soon as it is made: ``adfs.Problem(shards, loss=name)``,
    ``adfs train --loss NAME``. Those of the package have a ``number``; a loss of one's own has
    functions of two floats, in plain Python with ``math``, that Numba can compile. They are
    compiled when the loss is first used. `adfs.check_loss` says what is wrong with it.

    Parameters
    ----------
    name : str
    max_curvature : float
        ``l''max``: a sample with features ``x`` and weight ``w`` is ``w l''max |x|^2``-smooth.
        Infinite where the loss is not smooth; one's own has to be smooth.
    binary : bool
        Whether labels are two classes, coded -1 and 1, rather than real targets.
    formula : str
    value, derivative : function of (s, b)
        ``l >= 0`` and ``l'``; convex in ``s``, and finite for every finite ``s``.
    second_derivative : function of (s, b), optional
        ``l''``; by default a difference of ``l'``.
    conjugate : function of (c, b), optional
        ``l*(c) = max_s c s - l(s)``; by default it is solved for.
    targets : (float, float)
        The targets for which the loss is made, from the lowest to the largest; all by default.
    number : int, optional
        Number of a loss of the package in `adfs.kernels.loss_functions`.

    Examples
    --------
    >>> get_loss("logistic").max_curvature
    0.25
    >>> import adfs, math
    >>> def value(s, b):
    ...     return math.sqrt(1.0 + (s - b) ** 2) - 1.0
    >>> def derivative(s, b):
    ...     return (s - b) / math.sqrt(1.0 + (s - b) ** 2)
    >>> loss = Loss("pseudo-huber", 1.0, value=value, derivative=derivative)
    >>> X, y = adfs.generators.two_gaussians(40, 3, seed=0)
    >>> adfs.solve(adfs.Problem(adfs.partition(X, y, 4), "pseudo-huber")).status
    'converged'
    """

    name: str
    max_curvature: float
    binary: bool = False
    formula: str = ""
    value: Scalar | None = None
    derivative: Scalar | None = None
    second_derivative: Scalar | None = None
    conjugate: Scalar | None = None
    targets: tuple[float, float] = (-math.inf, math.inf)
    number: int | None = None

    def __post_init__(self) -> None:
        if self.number is None:
            self._check()
        LOSSES[self.name] = self

    def _check(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"[\w.-]+", self.name):
            raise ParameterError(
                f"name={self.name!r} must be of letters, digits, '.', '-' and '_'; rename the loss."
            )
        if self.name in LOSSES and LOSSES[self.name].number is not None:
            raise ParameterError(f"{self.name!r} is a loss of the package; choose another name.")
        checks.flag("binary", self.binary)
        if self.max_curvature == math.inf:
            raise ParameterError(
                f"Loss {self.name!r} has max_curvature=inf, but one's own has to be smooth: "
                "ns-adfs needs a proximal step in closed form; smooth it, or take hinge or "
                "absolute."
            )
        checks.positive("max_curvature", self.max_curvature, "give an upper bound of l''")
        for name, letters in FUNCTIONS.items():
            given = getattr(self, name)
            if given is None and name in ("value", "derivative"):
                raise ParameterError(f"Loss {self.name!r} needs {name}=, a function of {letters}.")
            if given is not None and not _takes_two(given):
                raise ParameterError(
                    f"{name}={shortened(repr(given), 60)} must be a function of {letters}: "
                    "two floats in, one out."
                )
        low, high = (checks.as_float(end) for end in self.targets)
        if not low < high:
            raise ParameterError(
                f"targets={self.targets!r} must be (lowest, largest) with lowest < largest; leave "
                "it out where the loss takes all targets."
            )

    @property
    def smooth(self) -> bool:
        """Whether ADFS with its linear rate applies."""
        return math.isfinite(self.max_curvature)

    @functools.cached_property
    def code(self) -> int:
        """Number of the loss in the kernels; compiles the functions of one's own."""
        if self.number is not None:
            return self.number
        value, slope, bend, conjugate = (
            getattr(function, "py_func", function)
            for function in (self.value, self.derivative, self.second_derivative, self.conjugate)
        )
        functions = plugin_loss.Functions(
            value, slope, bend or _difference(slope), conjugate or value,
            float(self.max_curvature), conjugate is not None,
        )  # fmt: skip
        try:
            return plugin_loss.make_code(functions)
        except numba.core.errors.NumbaError as error:
            reason = shortened(" ".join(str(error).split()), 120)
            raise ParameterError(
                f"The functions of loss {self.name!r} must be ones that Numba can compile "
                f"({reason}); use floats and math, and numba.njit for functions that they call."
            ) from None

    @functools.cached_property
    def identity(self) -> str:
        """Its name, and a digest of its values if it is one's own: the same on all ranks."""
        if self.number is not None:
            return self.name
        functions = (
            loss_functions.value, loss_functions.derivative, loss_functions.curvature,
        )  # fmt: skip
        numbers = [f(self.code, s, b) for f in functions for s in POINTS for b in self.labels]
        if self.conjugate is not None:
            numbers += [loss_functions.conjugate(self.code, b, 0.1 * b) for b in self.labels]
        facts = (self.max_curvature, self.binary, *self.targets)
        return f"{self.name} ({digest(repr((facts, numbers)))[:8]})"

    @property
    def labels(self) -> tuple[float, ...]:
        """A few labels that it takes."""
        if self.binary:
            return -1.0, 1.0
        low, high = self.targets
        inside = [b for b in (-1.7, 0.0, 0.6, 5.0) if low < b < high]
        return *inside, *(b for b in self.targets if math.isfinite(b))

    def __reduce__(self) -> Any:
        """A copy in another process is what that process knows by this name."""
        return get_loss, (self.name,)


FUNCTIONS = {
    "value": "(s, b)", "derivative": "(s, b)", "second_derivative": "(s, b)",
    "conjugate": "(c, b)",
}  # fmt: skip


def _takes_two(function: Any) -> bool:
    try:
        inspect.signature(function).bind(0.0, 0.0)
    except (TypeError, ValueError):
        return False
    return inspect.isfunction(getattr(function, "py_func", function))


@functools.cache
def _difference(derivative: Any) -> Scalar:
    """``l''`` from values of ``l'``."""
    slope = numba.njit(error_model="numpy")(derivative)

    def second_derivative(s: float, b: float) -> float:
        step = STEP * max(1.0, abs(s - b))  # a unit of s that suits classes and targets
        return (slope(s + step, b) - slope(s - step, b)) / (2.0 * step)  # type: ignore[no-any-return]

    return second_derivative


for _number, (_name, _largest, _binary, _formula) in {
    loss_functions.LOGISTIC: ("logistic", 0.25, True, "log(1 + exp(-y s))"),
    loss_functions.SQUARED: ("squared", 1.0, False, "(s - y)^2 / 2"),
    loss_functions.SQUARED_HINGE: ("squared_hinge", 2.0, True, "max(0, 1 - y s)^2"),
    loss_functions.SMOOTHED_HINGE: ("smoothed_hinge", 1.0, True, "huber of max(0, 1 - y s)"),
    loss_functions.HUBER: ("huber", 1.0, False, "r^2 / 2, |r| - 1/2 for |r| > 1; r = s - y"),
    loss_functions.HINGE: ("hinge", math.inf, True, "max(0, 1 - y s)"),
    loss_functions.ABSOLUTE: ("absolute", math.inf, False, "|s - y|"),
}.items():
    Loss(_name, _largest, _binary, _formula, number=_number)


def get_loss(loss: str | Loss) -> Loss:
    """Loss of that name."""
    if isinstance(loss, Loss):
        return loss
    if loss not in LOSSES:
        load_installed("adfs.losses")
    if loss not in LOSSES:
        raise ParameterError(
            f"loss={loss!r} is not known; choose one of {', '.join(LOSSES)}, or define it first "
            "(adfs.Loss)."
        )
    return LOSSES[loss]


def names(smooth: bool) -> list[str]:
    """Names of the losses that are smooth, or of those that are not."""
    return [loss.name for loss in LOSSES.values() if loss.smooth == smooth]

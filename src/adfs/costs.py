"""What elementary steps cost, in units of one proximal step: `Costs`.

`Costs.paper` is the convention of the paper, and the default: the gradient of a sample costs as
much as its proximal step, and a dual gradient as much as one pass. `Costs.measured` is what the
steps take on this machine, measured once and stored (`adfs.calibration`).

A step at rows of ``k`` non-zeros costs ``(a + b k + c q) / (1 + e k)`` proximal steps, because a
proximal step takes ``1 + e k`` times as long as one at an empty row. ``q`` is ``k (k + 1) / 2``,
the pairs of features of a row, for the Hessian, and ``d^3`` for the factorisation of a matrix.
"""

import contextlib
import importlib
import json
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import adfs
from adfs.agreement import Peers, attempt, require_same
from adfs.checks import choice, finite
from adfs.data.datasets import cache_folder
from adfs.errors import AdfsError, ParameterError
from adfs.kernels.rows import CsrRows
from adfs.problem.finite_sum import Problem
from adfs.storage import digest, json_bytes, write_whole

Vector = NDArray[np.float64]
NAMES = ("paper", "measured")
FORMAT = 1  # of the stored file


# Steps that cost as much as another one unless they are given.
DEFAULTS = {
    "sampled_gradient": "gradient",
    "product": "gradient",
    "dual_gradient": "gradient",
    "iterative_dual_gradient": "dual_gradient",
}


class Price(NamedTuple):
    """``(a, b, c, e)`` of a step, for dense and for sparse rows; see the head of this file."""

    dense: tuple[float, ...]
    sparse: tuple[float, ...]

    def at(self, is_sparse: bool, size: Any, quantity: Any) -> Any:
        a, b, c, e = self.sparse if is_sparse else self.dense
        return (a + b * size + c * quantity) / (1.0 + e * size)


# A sample's part of the Hessian, fitted to medians of ratios (`python benchmarks/costs.py`, one
# thread of an AMD EPYC, nothing else running): off by up to 11 % on dense rows, d = 4 to 1000, and
# by up to 19 % on sparse rows with d up to 300; 17 and 38 % too low on sparse rows with d = 1000,
# where the matrix leaves the cache. Not measured in the run: idealized time has to repeat.
HESSIAN = Price((0.111, 0.0108, 0.000631, 0.00429), (0.0689, 0.0, 0.0149, 0.0237))


class NodeCosts(NamedTuple):
    """What steps cost at each node, each of shape (n,), in proximal steps.

    The steps are one sample's, but for ``factorisation``. ``seconds`` of one proximal step are NaN
    where nobody measured them.
    """

    gradient: Vector
    sampled_gradient: Vector
    product: Vector
    hessian: Vector
    dual_gradient: Vector
    iterative_dual_gradient: Vector
    factorisation: Vector
    seconds: Vector

    def largest(self) -> dict[str, float]:
        """Each at the node where it is largest, but for ``seconds``."""
        return {name: float(np.max(getattr(self, name))) for name in self._fields[:-1]}


@dataclass(frozen=True)
class Costs:
    """What one elementary step costs in units of one proximal step, for `adfs.solve` and others.

    Numbers that are not given are those of the paper. A number holds for rows of any size; what
    was measured depends on it (`Price`).

    Parameters
    ----------
    gradient : float
        The gradient of one sample, in a pass over all of them.
    sampled_gradient : float, optional
        The same for a sample drawn at random; by default as ``gradient``.
    product : float, optional
        One sample's part of a product of the Hessian with a vector; by default as ``gradient``.
    hessian : float, optional
        One sample's part of the Hessian; by default a formula fitted to measurements.
    dual_gradient : float, optional
        One sample's part of a dual gradient, which is an optimisation problem of its own; by
        default as ``gradient``, one pass.
    iterative_dual_gradient : float, optional
        The same where d is too large for the Hessians that nodes keep for it; by default as
        ``dual_gradient``.
    factorisation : float
        Of a d x d matrix, with the solution of one system; by default not charged.
    seconds : float, optional
        Of one proximal step, for predicted seconds.

    Examples
    --------
    >>> import adfs
    >>> X, y = adfs.generators.two_gaussians(100, 5, seed=0)
    >>> problem = adfs.Problem(adfs.partition(X, y, 4), sigma=0.1)
    >>> costs = adfs.Costs(gradient=0.35)
    >>> times = [adfs.solve(problem, "lbfgs", tau=0.0, costs=each).idealized_time
    ...          for each in ("paper", costs)]
    >>> round(times[1] / times[0], 6)
    0.35
    """

    gradient: float | Price = 1.0
    sampled_gradient: float | Price | None = None
    product: float | Price | None = None
    hessian: float | Price = HESSIAN
    dual_gradient: float | Price | None = None
    iterative_dual_gradient: float | Price | None = None
    factorisation: float | Price = 0.0
    seconds: float | Price | None = None
    name: str = field(default="given", compare=False)

    def __post_init__(self) -> None:
        for name in NodeCosts._fields:
            object.__setattr__(self, name, _checked(name, getattr(self, name)))
        for name, usual in DEFAULTS.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, getattr(self, usual))

    @classmethod
    def paper(cls) -> "Costs":
        """The paper's convention: a gradient costs as much as a proximal step."""
        return cls(name="paper")

    @classmethod
    def measured(cls, again: bool = False) -> "Costs":
        """What steps take on this machine: stored, else measured in some seconds and stored.

        ``again`` measures in any case. Runs with the same costs repeat; a new measurement changes
        them.
        """
        place = stored_place()
        found = None if again else cls._load(place)
        if found is not None:
            return found
        # By name: the measurement runs ADFS, which is above this module.
        fresh: Costs = importlib.import_module("adfs.calibration").measure()
        with contextlib.suppress(OSError):  # not kept then, as kernels
            place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(place, json_bytes({**_machine(), "costs": fresh.to_dict()}))
        return fresh

    @classmethod
    def stored(cls) -> "Costs | None":
        """What was measured on this machine before; None if nothing was."""
        return cls._load(stored_place())

    @classmethod
    def _load(cls, place: Path) -> "Costs | None":
        """None also for a file of another format or processor, or that is damaged."""
        try:
            content = json.loads(place.read_bytes())
            same = {**content, "costs": None} == {**_machine(), "costs": None}
            return cls.read(content["costs"]) if same else None
        except (OSError, ValueError, KeyError, TypeError, AdfsError):
            return None

    @classmethod
    def read(cls, given: "str | Mapping[str, Any] | Costs") -> "Costs":
        """Costs by name, ``paper`` or ``measured``, or as `to_dict` wrote them."""
        if isinstance(given, Costs):
            return given
        if isinstance(given, Mapping):
            known = [each.name for each in fields(cls)]
            unknown = [name for name in given if name not in known]
            if unknown:
                raise ParameterError(
                    f"costs have no entry {unknown[0]!r}; take some of {', '.join(known)}."
                )
            return cls(**given)
        return cls.paper() if choice("costs", given, NAMES) == "paper" else cls.measured()

    def to_dict(self) -> dict[str, Any]:
        """All numbers as plain values, which `read` takes back."""
        values = {name: getattr(self, name) for name in NodeCosts._fields}
        return {"name": self.name, **{key: _plain(value) for key, value in values.items()}}

    def of(self, problem: Problem) -> NodeCosts:
        """What the steps cost at each node of a problem; with ranks, all call it."""
        size, pairs = problem.row_sizes
        own = self._at(isinstance(problem.rows, CsrRows), size, pairs, problem.n_features)
        return NodeCosts(*problem.network.facts(np.stack(own, axis=1)).T)

    def of_dense(self, n_features: int) -> NodeCosts:
        """The same for one node with dense rows of so many features."""
        return self.at(False, n_features)

    def at(self, is_sparse: bool, size: int) -> NodeCosts:
        """The same for rows of one size; a factorisation is that of so many features."""
        sizes = np.array([float(size)])
        return self._at(is_sparse, sizes, sizes * (sizes + 1.0) / 2.0, size)

    def _at(self, is_sparse: bool, size: Vector, pairs: Vector, n_features: int) -> NodeCosts:
        found = []
        for name in NodeCosts._fields:
            price = getattr(self, name)
            if isinstance(price, Price):
                quantity = float(n_features) ** 3 if name == "factorisation" else pairs
                found.append(np.asarray(price.at(is_sparse, size, quantity)))
            else:
                found.append(np.full(len(size), np.nan if price is None else price))
        return NodeCosts(*found)


def _plain(value: float | Price | None) -> Any:
    if not isinstance(value, Price):
        return value
    return {kind: list(numbers) for kind, numbers in value._asdict().items()}


def _checked(name: str, value: Any) -> Any:
    """A number >= 0, None where that is allowed, or a `Price` of such numbers."""
    hint = "a proximal step is 1"
    if value is None and (name in DEFAULTS or name == "seconds"):
        return None
    if isinstance(value, Mapping):
        value = value.get("dense"), value.get("sparse")
    if not isinstance(value, tuple | list):
        return finite(name, value, 0.0, hint)
    lengths = [len(each) if isinstance(each, tuple | list) else 0 for each in value]
    if lengths != [4, 4]:
        raise ParameterError(
            f"{name} must be a number, or (a, b, c, e) for dense and for sparse rows; {hint}."
        )
    return Price(*(tuple(finite(name, number, 0.0, hint) for number in each) for each in value))


PAPER = Costs.paper()


def agreed_costs(peers: Peers, given: "str | Mapping[str, Any] | Costs") -> Costs:
    """The same costs on all ranks: rank 0 reads or measures what a name stands for."""
    require_same(peers, {"costs": given})
    found = attempt(peers, lambda: Costs.read(given) if peers.rank == 0 else None)
    return Costs.read(peers.gather(None if found is None else found.to_dict())[0])


def _machine() -> dict[str, Any]:
    """What measured costs belong to."""
    return {"format": FORMAT, "adfs": adfs.__version__, "cpu": processor()}


def processor() -> str:
    """The name of this machine's processor."""
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text()
        if found := re.search(r"^model name\s*:\s*(.*?)\s*$", text, re.M):
            return found[1]
    return platform.processor() or platform.machine()


def stored_place() -> Path:
    """The file of measured costs: one per processor, version of adfs and format."""
    key = digest(json.dumps(_machine(), sort_keys=True))[:8]
    return cache_folder() / f"costs-{key}.json"

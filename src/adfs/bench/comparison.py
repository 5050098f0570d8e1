"""What a comparison found: runs, and the questions one asks of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.bench import curves
from adfs.bench.table import ACCURACIES, Table, make_table
from adfs.errors import ParameterError
from adfs.plots.comparison import AXES
from adfs.runtime.model import finite
from adfs.runtime.trace import Trace

# An optimum serves to measure an accuracy if it is certified to a hundredth of it.
MARGIN = 100.0
BAND = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class RunRecord:
    """One run.

    ``jobs`` is how many ran at a time when it was computed: beyond one, its wall times are not
    clean. ``reused`` says that it was taken from a folder instead of computed. ``proven_rate`` is
    the rate per iteration that a theorem promises, or None where there is none.
    """

    label: str
    algorithm: str
    rule: str
    seed: int
    status: str
    trace: Trace
    parameters: str
    setup_time: float
    jobs: int = 1
    reused: bool = False
    proven_rate: float | None = None


@dataclass(frozen=True)
class Comparison:
    """Runs of several algorithms on one problem, measured against its certified optimum.

    Attributes
    ----------
    config : dict
        Everything needed to do it again, in plain values.
    optimum, optimum_gap : float
        ``F*``, and a proven bound on how far it lies above the minimum.
    records : list of RunRecord
        Algorithm after algorithm, in the order asked for; without the runs that did not start.
    interrupted : bool
        Whether a signal, ``signal``, ended it early.
    clock_limit : float or None
        Idealized time at which runs were stopped, where it was not given too.
    failures : tuple of str
        Files that could not be written.
    left_out : dict
        Algorithms that do not take the problem, each with its reason; empty where they were named.

    Examples
    --------
    >>> import adfs
    >>> X, y = adfs.generators.two_gaussians(80, 3, seed=0)
    >>> problem = adfs.Problem(adfs.partition(X, y, 4), sigma=0.5)
    >>> comparison = adfs.compare(problem, ["adfs", "adfs:paper"], tol=1e-6, seeds=3)
    >>> comparison.labels
    ['adfs', 'adfs:paper']
    >>> comparison.time_to("adfs", 1e-6) < comparison.time_to("adfs:paper", 1e-6)
    True
    """

    config: dict[str, Any]
    optimum: float
    optimum_gap: float
    records: list[RunRecord]
    interrupted: bool = False
    clock_limit: float | None = None
    signal: int | None = None
    failures: tuple[str, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def labels(self) -> list[str]:
        """Those with at least one run, in the order asked for."""
        return list(dict.fromkeys(record.label for record in self.records))

    def runs(self, label: str) -> list[RunRecord]:
        """Runs under a label, one a seed."""
        found = [record for record in self.records if record.label == label]
        if not found:
            raise ParameterError(
                f"label={label!r} has no run here; choose one of {', '.join(self.labels)}."
            )
        return found

    @property
    def relative_optimum_gap(self) -> float:
        """``optimum_gap / max(1, |F*|)``."""
        return self.optimum_gap / max(1.0, abs(self.optimum))

    def refusal(self, accuracy: float) -> str | None:
        """Why an accuracy cannot be measured against this optimum, or None if it can."""
        return refusal(accuracy, self.relative_optimum_gap)

    def curves(self, label: str, axis: str = "idealized_time") -> list[curves.Curve]:
        """Suboptimality against an axis, one curve a seed."""
        n_samples = self.config["problem"]["n_samples"]
        return [curves.curve(record.trace, axis, n_samples) for record in self.runs(label)]

    def times_to(
        self, label: str, accuracy: float, axis: str = "idealized_time"
    ) -> list[float | None]:
        """Where each seed's suboptimality first falls to ``accuracy``; None where it did not.

        Log-linear between evaluations.
        """
        if not (accuracy > 0 and math.isfinite(accuracy)):
            raise ParameterError(f"accuracy={accuracy:g} must be a number > 0; try 1e-6.")
        reason = self.refusal(accuracy)
        if reason is not None:
            raise ParameterError(reason)
        return [curves.first_reach(curve, accuracy) for curve in self.curves(label, axis)]

    def time_to(self, label: str, accuracy: float, axis: str = "idealized_time") -> float | None:
        """Median of `times_to` over seeds; None unless more than half arrived."""
        times = self.times_to(label, accuracy, axis)
        median = np.median([math.inf if time is None else time for time in times])
        return float(median) if math.isfinite(median) else None

    def end_of(self, label: str, axis: str = "idealized_time") -> float:
        """Where the runs ended: the last value of the axis, median over seeds."""
        return float(np.median([curve.x[-1] for curve in self.curves(label, axis)]))

    def band(
        self, label: str, axis: str = "idealized_time", quantiles: Sequence[float] = BAND
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Places on the axis, and quantiles of the suboptimality over seeds there."""
        return curves.band(self.curves(label, axis), quantiles)

    def table(
        self, accuracies: Sequence[float] = ACCURACIES, axis: str = "idealized_time"
    ) -> Table:
        """Median time to each accuracy, one row a label; ``str`` of it is for people."""
        return make_table(self, accuracies, axis)

    def __str__(self) -> str:
        return str(self.table())

    def to_dict(self) -> dict[str, Any]:
        """All of it but the curves, ready for JSON; what is not known is None."""
        return {
            "optimum": finite(self.optimum),
            "optimum_gap": finite(self.optimum_gap),
            "interrupted": self.interrupted,
            "clock_limit": self.clock_limit,
            "left_out": self.left_out,
            "tables": {axis: self.table(axis=axis).to_dict() for axis in AXES},
            "runs": [self._run_dict(record) for record in self.records],
        }

    def _run_dict(self, record: RunRecord) -> dict[str, Any]:
        last = {name: None if v is None else finite(v) for name, v in record.trace.last().items()}
        return {
            "label": record.label,
            "algorithm": record.algorithm,
            "rule": record.rule,
            "seed": record.seed,
            "status": record.status,
            "setup_time": record.setup_time,
            "jobs": record.jobs,
            "reused": record.reused,
            **last,
        }


def refusal(accuracy: float, relative_gap: float) -> str | None:
    """Why an optimum certified to ``relative_gap`` cannot tell ``accuracy``, or None.

    However small the gap, the value of ``F`` has no more digits than double precision.
    """
    known = max(relative_gap, curves.FLOOR)
    if known <= accuracy / MARGIN:
        return None
    return (
        f"accuracy {accuracy:g} cannot be measured: the optimum is certified to {known:.1e} only, "
        f"and must be to a hundredth of the accuracy; ask for {MARGIN * known:.1e} or more."
    )

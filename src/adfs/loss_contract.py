"""What a loss promises to the methods, tested: `check_loss`.

Every check is a theorem about convex smooth functions, applied to values; none trusts another fact
of the loss. Later checks run only where the earlier ones find nothing, since one fault has many
consequences.
"""

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

from adfs.data.partition import partition
from adfs.errors import AdfsError, ContractError
from adfs.kernels import loss_functions, prox
from adfs.losses import Loss, get_loss
from adfs.problem.finite_sum import Problem
from adfs.solver import solve

Faults = Iterator[str]
Check = Callable[[Loss], Faults]

# Predictions, away from the label; the shift keeps them off kinks at round numbers.
NEAR = tuple((np.arange(-240, 241) * 0.05 + 0.0137).tolist())
FAR = (-1e4, -300.3, -40.1, 40.1, 300.3, 1e4)
SMALL = 1e-5  # step of a difference
ROUNDING = 8.0 * float(np.finfo(np.float64).eps)
DIGITS = 1e-9  # of the largest term, to which equations have to hold
ROUGHLY = 1e-4  # of l''max, to which l'' has to be a difference of l'
TOL = 1e-9  # of the small training
N_SAMPLES, N_FEATURES, N_NODES = 12, 3, 4


def check_loss(loss: str | Loss) -> None:
    """Test what a loss promises; raise one error that lists all faults.

    Values that are convex, finite and >= 0; a derivative and a second derivative that belong to
    them; ``max_curvature`` above all of it; a conjugate that keeps the inequality of Fenchel and
    Young; proximal steps that solve their equations; a small training that finds the optimum.

    Parameters
    ----------
    loss : str or Loss

    Raises
    ------
    AdfsError
        With one line per fault; they are its attribute ``faults`` too.

    Examples
    --------
    >>> check_loss("huber")
    >>> steep = Loss(
    ...     "steep", max_curvature=1.0, value=lambda s, b: (s - b) ** 2,
    ...     derivative=lambda s, b: 2.0 * (s - b),
    ... )
    >>> check_loss(steep)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    adfs.errors.ContractError: Loss 'steep' breaks a rule:
    - max_curvature=1 must be an upper bound of l'', but derivative grows by 2 per unit of s ...
    """
    known = get_loss(loss)
    for stage in STAGES:
        faults = [fault for check in stage for fault in check(known)]
        if faults:
            rules = "a rule" if len(faults) == 1 else f"{len(faults)} rules"
            lines = "".join(f"\n- {fault}" for fault in faults)
            raise ContractError(f"Loss {known.name!r} breaks {rules}:{lines}")


def _worst(found: list[tuple[float, str]]) -> Faults:
    """The text of the largest excess, if there is any above zero."""
    excess = [each for each in found if not each[0] <= 0.0]
    if excess:
        yield max(excess, key=lambda each: math.inf if math.isnan(each[0]) else each[0])[1]


def _at(loss: Loss) -> Iterator[tuple[float, float]]:
    return ((b + r, b) for b in loss.labels for r in NEAR)


def _is_finite(loss: Loss) -> Faults:
    for name, function in (
        ("value", loss_functions.value), ("derivative", loss_functions.derivative),
    ):  # fmt: skip
        for b in loss.labels:
            found = [(s, function(loss.code, s, b)) for r in (*NEAR, *FAR) for s in (b + r,)]
            bad = [(abs(s), s, number) for s, number in found if not math.isfinite(number)]
            if len(bad) == len(found):
                yield (
                    f"{name}(s, {b}) must be finite for every label the loss takes, but is "
                    f"{bad[0][2]} at every s; give targets=(lowest, largest)."
                )
            elif bad:
                _, s, number = min(bad)
                yield (
                    f"{name}({s:g}, {b}) must be finite, but is {number}; write it so that it "
                    "does not overflow, such as log1p(exp(-abs(m))), or take another loss: "
                    "no smooth one grows faster than a square."
                )


def _is_not_negative(loss: Loss) -> Faults:
    found = []
    for s, b in _at(loss):
        value = loss_functions.value(loss.code, s, b)
        text = (
            f"value must be >= 0, since tolerances are relative to F, but value({s:g}, {b}) is "
            f"{value:.6g}; add a constant, which may depend on b."
        )
        found.append((-value - ROUNDING, text))
    yield from _worst(found)


def _is_convex(loss: Loss) -> Faults:
    found = []
    for s, b in _at(loss):
        low, middle, high = (loss_functions.value(loss.code, s + step, b) for step in (-1, 0, 1))
        above = middle - 0.5 * (low + high) - ROUNDING * max(abs(low), abs(middle), abs(high))
        text = (
            f"value must be convex in s, but at s={s:g}, b={b} it lies {above:.3g} above the chord "
            "from s-1 to s+1; no method here minimises such a loss."
        )
        found.append((above, text))
    yield from _worst(found)


def _has_its_derivative(loss: Loss) -> Faults:
    """For a convex loss, a difference of values is between the derivatives at both ends."""
    found = []
    for s, b in _at(loss):
        ends = s - SMALL, s + SMALL
        values = [loss_functions.value(loss.code, end, b) for end in ends]
        slopes = [loss_functions.derivative(loss.code, end, b) for end in ends]
        quotient = (values[1] - values[0]) / (ends[1] - ends[0])
        noise = ROUNDING * (1.0 + max(map(abs, values))) / SMALL + ROUNDING * max(map(abs, slopes))
        text = (
            f"derivative must be that of value, but derivative({s:g}, {b}) is {slopes[0]:.6g} and "
            f"a difference of values gives {quotient:.6g}; correct one of them."
        )
        found.append((max(min(slopes) - quotient, quotient - max(slopes)) - noise, text))
    yield from _worst(found)


def _grows_at_most(loss: Loss) -> Faults:
    if not loss.smooth:
        return
    found, limit = [], loss.max_curvature
    for b in loss.labels:
        points = sorted(b + r for r in (*NEAR, *FAR, *(r + 0.5 for r in FAR)))
        slopes = [loss_functions.derivative(loss.code, s, b) for s in points]
        pairs = zip(itertools.pairwise(points), itertools.pairwise(slopes), strict=True)
        for (low, high), (first, last) in pairs:
            rate = (last - first) / (high - low)
            noise = ROUNDING * max(abs(first), abs(last)) / (high - low)
            text = (
                f"max_curvature={limit:g} must be an upper bound of l'', but derivative grows by "
                f"{rate:.6g} per unit of s around s={0.5 * (low + high):g}, b={b}; raise "
                "max_curvature."
            )
            found.append((rate - limit * (1.0 + DIGITS) - noise, text))
    yield from _worst(found)


def _has_its_second_derivative(loss: Loss) -> Faults:
    if loss.second_derivative is None:
        return
    found = []
    for s, b in _at(loss):
        low, high = (loss_functions.derivative(loss.code, end, b) for end in (s - SMALL, s + SMALL))
        quotient = (high - low) / (2.0 * SMALL)
        bend = loss_functions.curvature(loss.code, s, b)
        noise = ROUNDING * max(abs(low), abs(high)) / SMALL
        text = (
            f"second_derivative must be that of derivative, but second_derivative({s:g}, {b}) is "
            f"{bend:.6g} and a difference gives {quotient:.6g}; correct it, or leave it out."
        )
        if quotient <= loss.max_curvature:
            found.append((abs(bend - quotient) - ROUGHLY * loss.max_curvature - noise, text))
    yield from _worst(found)


def _keeps_fenchel_young(loss: Loss) -> Faults:
    """``l(s) + l*(c) >= c s`` for all ``s`` and ``c``, with equality where ``c = l'(s)``."""
    if loss.conjugate is None and loss.number is None:
        return
    code, equal, below = loss.code, [], []
    for b in loss.labels:
        points = [b + r for r in (*NEAR[::20], *FAR)]
        slopes = [loss_functions.derivative(code, s, b) for s in points]
        spread = 0.1 * (max(slopes) - min(slopes))
        for s, c in [*zip(points, slopes, strict=True), (0.0, min(slopes) - spread),
                     (0.0, max(slopes) + spread)]:  # fmt: skip
            dual = loss_functions.conjugate(code, b, c)
            for t in points:
                loss_at = loss_functions.value(code, t, b)
                excess = loss_at + dual - c * t
                noise = DIGITS * max(1.0, abs(loss_at), abs(c * t))
                if t == s and c in slopes:
                    equal.append((abs(excess) - noise, (
                        f"conjugate(c, b) must be c s - value(s, b) at c = derivative(s, b), but "
                        f"is off by {excess:.3g} at c={c:.6g}, s={s:g}, b={b}; correct it, or "
                        "leave it out."
                    )))  # fmt: skip
                below.append((-excess - noise if dual < math.inf else 0.0, (
                    f"conjugate(c, b) must be at least c s - value(s, b) for every s, but is "
                    f"{-excess:.3g} less at c={c:.6g}, s={t:g}, b={b}; correct it (infinite "
                    "outside the range of derivative), or leave it out."
                )))  # fmt: skip
    yield from _worst(equal)
    yield from _worst(below)


def _steps_solve_their_equations(loss: Loss) -> Faults:
    """`dual_prox` and `slope_after`: the slope they return is ``l'`` at the ``s`` it leads to."""
    if not loss.smooth:
        return
    code, q, found = loss.code, 1.3, []
    for b, s, w, ratio in itertools.product(
        loss.labels, (-7.3, -0.9, 0.2, 3.1), (0.3, 2.0), (0.1, 1.0, 1.9, 30.0)
    ):
        eta = ratio * w * loss.max_curvature * q
        k, gain = q - eta / (w * loss.max_curvature), ratio / loss.max_curvature
        slope = loss_functions.derivative(code, s, b)
        c, _ = prox.dual_prox(code, b, w, q, eta, eta * s + k * w * slope, 0.0, 0.0)
        plain, _ = prox.slope_after(code, b, gain, s + gain * slope, 0.0, 0.0)
        scale = abs(slope) + loss.max_curvature * abs(s)
        for kind, away in (("dual", c / w - slope), ("plain", plain - slope)):
            text = (
                f"the {kind} proximal step must return derivative(s, b) = {slope:.6g} at s={s:g}, "
                f"b={b}, but is off by {away:.3g} (eta/L={ratio:g}); derivative must be "
                "continuous and increasing."
            )
            found.append((abs(away) - 1e3 * DIGITS * scale, text))
    yield from _worst(found)


def _can_be_trained(loss: Loss) -> Faults:
    """A certified optimum is the one that SciPy finds from values and derivatives alone."""
    from scipy.optimize import minimize

    if not loss.smooth:
        return
    generator = np.random.default_rng(0)
    X = generator.standard_normal((N_SAMPLES, N_FEATURES))
    y = generator.permutation(np.resize(loss.labels, N_SAMPLES))
    sigma = loss.max_curvature
    try:
        problem = Problem(partition(X, y, N_NODES), loss, sigma)
        found = solve(problem, "adfs", tol=TOL, max_iter=100_000, progress=False, signals=())
    except AdfsError as error:
        yield f"a small training must run, but: {error}"
        return

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        scores = (X @ theta).tolist()
        values = [loss_functions.value(loss.code, *at) for at in zip(scores, y, strict=True)]
        slopes = [loss_functions.derivative(loss.code, *at) for at in zip(scores, y, strict=True)]
        total = N_NODES * sigma
        return sum(values) + 0.5 * total * theta @ theta, X.T @ slopes + total * theta

    start = np.zeros(N_FEATURES)
    best = minimize(objective, start, jac=True, method="L-BFGS-B", tol=1e-15).fun
    noise = 10.0 * TOL * max(abs(best), abs(objective(start)[0]))
    above = found.objective - best
    if found.status != "converged" or not -noise <= above <= found.duality_gap + noise:
        yield (
            f"a small training must end at the optimum {best:.12g}, but adfs ended {found.status} "
            f"at {found.objective:.12g} with a certified gap of {found.duality_gap:.3g}; correct "
            "value and derivative."
        )


STAGES: tuple[tuple[Check, ...], ...] = (
    (_is_finite,),
    (
        _is_not_negative, _is_convex, _has_its_derivative, _grows_at_most,
        _has_its_second_derivative, _keeps_fenchel_young,
    ),
    (_steps_solve_their_equations, _can_be_trained),
)  # fmt: skip

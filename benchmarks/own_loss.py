"""Events of a loss of one's own beside the same loss of the package, in turns within one run."""

import math
import time

import numpy as np
from event_cost import Events

import adfs
from adfs.data.generators import higgs_like

BLOCK, REPEATS = 1 << 14, 40


def logistic(s, b):
    """``log(1 + exp(-b s))``."""
    return max(0.0, -b * s) + math.log1p(math.exp(-abs(s)))


def logistic_slope(s, b):
    """Its derivative, without overflow."""
    e = math.exp(-abs(s))
    return -b / (1.0 + e) if b * s < 0.0 else -b * e / (1.0 + e)


def logistic_bend(s, b):
    """Its second derivative."""
    e = math.exp(-abs(s))
    return e / (1.0 + e) ** 2


adfs.Loss(
    "own-logistic", max_curvature=0.25, binary=True,
    value=logistic, derivative=logistic_slope, second_derivative=logistic_bend,
)  # fmt: skip
adfs.Loss(
    "own-squared", max_curvature=1.0,
    value=lambda s, b: 0.5 * (s - b) ** 2, derivative=lambda s, b: s - b,
    second_derivative=lambda s, b: 1.0,
)  # fmt: skip


def seconds(function):
    """Of one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main():
    """Print, and return, the ratios of an event's move and of a certificate."""
    X, y = higgs_like(1200, seed=0)
    shards, topology = adfs.partition(X, y, 4), adfs.Topology.grid(2, 2)
    ratios = {}
    for loss in ("logistic", "squared"):
        times = []
        problems = [adfs.Problem(shards, each, 1.0, topology) for each in (loss, f"own-{loss}")]
        runners = [Events(problem) for problem in problems]
        for runner in runners:
            runner.run(BLOCK)
        for _ in range(REPEATS):
            for problem, runner in zip(problems, runners, strict=True):
                runner.parts[:] = 0.0
                runner.run(BLOCK)
                duals = np.concatenate(
                    [runner.algorithm.duals(runner.state, node) for node in range(4)]
                )
                theta = runner.algorithm.output(runner.state)[0]
                certificate = seconds(lambda p=problem, t=theta, d=duals: adfs.certify(p, t, d))
                times.append((runner.parts[1], certificate))
        move, certificate = (
            np.median(column[1::2]) / np.median(column[::2]) for column in np.array(times).T
        )
        ratios[loss] = {"move": float(move), "certificate": float(certificate)}
        print(f"{loss}: own / package: event {move:.2f}, certificate {certificate:.2f}")
    return ratios


if __name__ == "__main__":
    main()

"""Comparisons made by hand, and algorithms that misbehave on purpose."""

import dataclasses
import signal

import numpy as np

from adfs.algorithms.base import REGISTRY, get_algorithm
from adfs.engine.trace import Trace
from adfs.study.comparison import Comparison, RunRecord

TRIAL_SAMPLES = 4  # the problem on which `compare` tries whether an algorithm takes a rule


def make_trace(times, errors, **columns):
    """A trace of these times and errors; other columns as given, else the time.

    Iterations are so short that arriving at the end of one is arriving inside it.
    """
    trace = Trace()
    for k, (time, error) in enumerate(zip(times, errors, strict=True)):
        row = dict.fromkeys(("wall_time", "n_prox", "n_grad", "n_comm", "bytes"), time)
        row["iteration"] = 1e12 * time
        row.update({name: values[k] for name, values in columns.items()})
        trace.append(idealized_time=time, suboptimality=error, objective=2.0, **row)
    return trace


def make_comparison(runs, tol=1e-6, optimum=2.0, gap=0.0, n_samples=10, clock_limit=None):
    """``runs`` maps a label to its (status, trace) of each seed."""
    records = [
        RunRecord(label, label.partition(":")[0], label.partition(":")[2] or "tuned", seed, status,
                  trace, "text", 0.1)
        for label, seeds in runs.items() for seed, (status, trace) in enumerate(seeds)
    ]  # fmt: skip
    n_seeds = max(len(seeds) for seeds in runs.values())
    config = {"problem": {"n_samples": n_samples}, "tol": tol, "seeds": list(range(n_seeds)),
              "clock_limit": clock_limit}  # fmt: skip
    return Comparison(config, optimum, gap, records, clock_limit=clock_limit)


def counted(monkeypatch, name="counted"):
    """Register ADFS under another name; the list returned grows by a seed for each real run."""
    calls = []

    def prepare(problem, setting):
        if problem.n_samples != TRIAL_SAMPLES:
            calls.append(setting.seed)
        return get_algorithm("adfs")(problem, setting._replace(rule="exact"))

    monkeypatch.setitem(REGISTRY, name, prepare)
    return calls


class Idle:
    """ADFS whose steps do nothing but what they are told to."""

    def __init__(self, algorithm, action=None):
        self._algorithm, self._action = algorithm, action

    def __getattr__(self, name):
        return getattr(self._algorithm, name)

    def step(self, state, events):
        if self._action is not None and len(events.which):
            self._action()
        return state


def idle(monkeypatch, name="idle", action=None):
    """Register an algorithm that never converges; each block of its steps does ``action``."""

    def prepare(problem, setting):
        method = get_algorithm("adfs")(problem, setting._replace(rule="exact"))
        return dataclasses.replace(method, algorithm=Idle(method.algorithm, action))

    monkeypatch.setitem(REGISTRY, name, prepare)


def interrupt():
    signal.raise_signal(signal.SIGINT)


def bits(comparison):
    """All traces but their wall times."""
    columns = [record.trace.to_dict() for record in comparison.records]
    for each in columns:
        del each["wall_time"]
    return columns


def log_linear(x, places, errors):
    """Interpolation by hand, for one place."""
    k = int(np.searchsorted(places, x)) - 1
    share = (x - places[k]) / (places[k + 1] - places[k])
    return errors[k] ** (1 - share) * errors[k + 1] ** share

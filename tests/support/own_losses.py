"""Losses of one's own, made as a user makes them; compiled, so that others may call them."""

import math

import pytest
from numba import njit

import adfs
from adfs.losses import LOSSES


@njit
def log_cosh(s, b):
    r = abs(s - b)
    return r + math.log1p(math.exp(-2.0 * r)) - 0.6931471805599453


@njit
def log_cosh_slope(s, b):
    return math.tanh(s - b)


@njit
def log_cosh_bend(s, b):
    return 1.0 - math.tanh(s - b) ** 2


@njit
def log_cosh_conjugate(c, b):
    if abs(c) > 1.0:
        return math.inf
    total = b * c
    for share in (1.0 + c, 1.0 - c):
        if share > 0.0:
            total += 0.5 * share * math.log(share)
    return total


@njit
def logistic(s, b):
    return max(0.0, -b * s) + math.log1p(math.exp(-abs(s)))


@njit
def logistic_slope(s, b):
    e = math.exp(-abs(s))
    return -b / (1.0 + e) if b * s < 0.0 else -b * e / (1.0 + e)


@njit
def logistic_bend(s, b):
    e = math.exp(-abs(s))
    return e / (1.0 + e) ** 2


@njit
def squared(s, b):
    return 0.5 * (s - b) ** 2


@njit
def squared_slope(s, b):
    return s - b


@njit
def squared_bend(s, b):
    return 1


FACTS = {
    "log-cosh": {"max_curvature": 1.0, "value": log_cosh, "derivative": log_cosh_slope},
    "my-logistic": {
        "max_curvature": 0.25, "binary": True, "value": logistic, "derivative": logistic_slope,
        "second_derivative": logistic_bend,
    },
    "my-squared": {
        "max_curvature": 1.0, "value": squared, "derivative": squared_slope,
        "second_derivative": squared_bend, "conjugate": lambda c, b: 0.5 * c * c + b * c,
    },
}  # fmt: skip


def make(name, **changes):
    """One of the losses above, with other facts where these are given."""
    return adfs.Loss(name, **{**FACTS[name], **changes})


@pytest.fixture(autouse=True)
def forget_own_losses():
    """The registry as it was."""
    before = dict(LOSSES)
    yield
    LOSSES.clear()
    LOSSES.update(before)

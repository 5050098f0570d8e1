"""Few of many cases: which tests of a large family stay outside the soak lane."""

import itertools

import pytest

from support.pairs import pairwise


def covering(**values):
    """Parametrize by the product of ``values``, of which `few` rows stay outside the soak lane."""
    return pytest.mark.parametrize(tuple(values), few(itertools.product(*values.values())))


def few(rows):
    """Rows of parameters, all beyond a pairwise selection marked ``soak``.

    The selection has every pair of values that any row has, so a fault that needs two particular
    values is found by `make test`, and one that needs three by `make soak`.
    """
    rows = list(rows)
    chosen = pairwise(rows)
    return [
        pytest.param(*row, marks=[pytest.mark.soak] * (k not in chosen))
        for k, row in enumerate(rows)
    ]


def soak_except(chosen, values):
    """Values of a parameter, all but the chosen ones marked ``soak``."""
    return [pytest.param(each, marks=[pytest.mark.soak] * (each not in chosen)) for each in values]

"""One set of checks: what passes is returned as a plain object, what does not is explained."""

import math

import numpy as np
import pytest

from adfs import checks
from adfs.errors import GraphError, ParameterError

NOT_NUMBERS = [True, np.True_, "3", None, math.nan, [3], np.array([3.0])]


@pytest.mark.parametrize("value", [3, 3.0, np.int32(3), np.float64(3)])
def test_whole_numbers_come_back_as_int(value: object) -> None:
    assert type(checks.whole("m", value)) is int


@pytest.mark.parametrize("value", [*NOT_NUMBERS, -1, 2.5, 10, np.float64("inf"), 10**400])
def test_other_values_are_not_whole_numbers_in_the_range(value: object) -> None:
    with pytest.raises(ParameterError, match=r"^m=.* must be a whole number from 0 to 9; try 4\.$"):
        checks.whole("m", value, 0, 9, "try 4")


@pytest.mark.parametrize("value", [*NOT_NUMBERS, 0, -1.5, math.inf, -math.inf, 10**400])
def test_other_values_are_not_positive(value: object) -> None:
    with pytest.raises(ParameterError, match=r"^x=.* must be a finite number > 0\.$"):
        checks.positive("x", value)


@pytest.mark.parametrize("value", [*NOT_NUMBERS, 0.5, math.inf, -math.inf])
def test_other_values_are_not_finite_from_a_limit_on(value: object) -> None:
    assert checks.finite("x", 1, least=1) == 1.0
    with pytest.raises(ParameterError, match=r"^x=.* must be a finite number >= 1\.$"):
        checks.finite("x", value, least=1)
    with pytest.raises(GraphError, match="must be a whole number"):
        checks.whole("x", value, error=GraphError)


def test_choices_and_flags() -> None:
    assert checks.choice("how", "even", ("even", "sorted")) == "even"
    assert checks.flag("warm", np.False_) is False
    for value in (1, "True", None):
        with pytest.raises(ParameterError, match="True or False"):
            checks.flag("warm", value)
    for value in ("odd", 1, None, ["even"]):
        with pytest.raises(ParameterError, match="choose one of even, sorted"):
            checks.choice("how", value, ("even", "sorted"))

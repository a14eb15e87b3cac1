"""Learning rates for groups of parameters."""

from __future__ import annotations

import math

import pytest

from rollstream.errors import ConfigError
from rollstream.graph.initializers import Constant
from rollstream.graph.layout import FlatLayout, Parameter
from rollstream.graph.optimizers import rate_scale

LAYOUT = FlatLayout(
    tuple(
        Parameter(name=name, shape=shape, init=Constant())
        for name, shape in (("policy.weight", (2, 1)), ("policy.bias", (1,)), ("value.weight", (2,)))
    )
)


def test_each_parameter_has_the_factor_of_its_group_and_the_others_one() -> None:
    assert rate_scale(LAYOUT, {"policy.*": 0.5}).tolist() == [0.5, 0.5, 0.5, 1.0, 1.0]
    assert rate_scale(LAYOUT, {"policy.*": 0.5, "value.*": 2.0}).tolist() == [0.5, 0.5, 0.5, 2.0, 2.0]


def test_the_first_pattern_that_fits_counts() -> None:
    assert rate_scale(LAYOUT, {"*.bias": 0.0, "policy.*": 3.0, "*": 4.0}).tolist() == [3.0, 3.0, 0.0, 4.0, 4.0]


def test_a_pattern_that_fits_nothing_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigError, match=r"'critic\.\*' fits no parameter; there are policy.weight, policy.bias, value.weight"):
        rate_scale(LAYOUT, {"critic.*": 2.0})


@pytest.mark.parametrize("factor", [-1.0, math.inf, math.nan])
def test_a_factor_that_is_no_rate_is_refused(factor: float) -> None:
    with pytest.raises(ConfigError, match=r"factor of 'policy\.\*' must be finite and >= 0, got"):
        rate_scale(LAYOUT, {"policy.*": factor})

"""Quantile regression, worked by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.discrete import value_to_index
from rollstream.graph.initializers import Constant
from rollstream.graph.inputs import Arguments, Input, columns_of
from rollstream.graph.losses import LossResult, QuantileQLoss
from rollstream.graph.losses.quantile_q import quantile_huber
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api
from rollstream.spaces import Leaf


def test_errors_above_count_by_the_place_of_the_quantile_and_errors_below_by_the_rest() -> None:
    # quantiles at 1/4 and 3/4; errors of 0: 2 and -1; of 1: 1 and -2
    found = quantile_huber(NumpyOps(), np.array([[2.0, -1.0]]), np.array([[0.0, 1.0]]), delta=1.0)
    # 1/4 * 1.5 and 3/4 * 0.5: mean 0.375;  3/4 * 0.5 and 1/4 * 1.5: mean 0.375
    np.testing.assert_allclose(found, [0.75])


def test_delta_divides() -> None:
    # one quantile at 1/2, error 3: 1/2 * (2 * (3 - 1)) / 2
    np.testing.assert_allclose(quantile_huber(NumpyOps(), np.array([[3.0]]), np.array([[0.0]]), delta=2.0), [1.0])


@dataclass(frozen=True)
class _Table:
    """Quantiles are parameters, the same in every state."""

    observation: tuple[Leaf, ...]
    actions: tuple[Leaf, ...]
    apis: ClassVar[tuple[str, ...]] = ("q_quantiles",)

    def arguments(self, api: str) -> Arguments:
        return {"observation": columns_of(self.observation)}

    @property
    def action_columns(self) -> tuple[Input, ...]:
        return columns_of(self.actions)

    def action_index(self, scope: Scope, action: Mapping[str, Array]) -> Array:
        return value_to_index(scope.ops, self.actions[0], action["action"])

    @api
    def q_quantiles(self, scope: Scope, *, observation: Mapping[str, Array]) -> Array:
        return scope.parameter("quantiles", (2, 2), Constant()) + observation["observation"][:, :, None] * 0.0

    def q_values(self, scope: Scope, *, observation: Mapping[str, Array]) -> Array:
        return scope.ops.mean(self.q_quantiles(scope, observation=observation), axis=-1)


def test_the_online_network_chooses_and_the_target_network_tells_the_quantiles(
    evaluated: Callable[..., LossResult], box: Callable[..., Leaf], discrete: Callable[..., Leaf]
) -> None:
    columns = {
        "observation": np.ones((2, 1)),
        "next_observation": np.ones((2, 1)),
        "action": [0, 1],
        "reward": [1.0, 1.0],
        "discount": [0.5, 0.0],
        "weight": [1.0, 0.5],
    }
    online, target = {"quantiles": [[0.0, 1.0], [1.0, 2.0]]}, {"quantiles": [[9.0, 9.0], [2.0, -4.0]]}
    result = evaluated(QuantileQLoss(_Table((box(1),), (discrete(2),))), online, columns, target)
    # action 1 is best: row 0 has targets 1 + 0.5 * (2, -4) = 2, -1, as above: 0.75, mean 0.5 - 0.5
    # row 1 has targets 1, 1: errors 0 and -1: 1/4 * 0.5 = 0.125, mean 1 - 1.5
    np.testing.assert_allclose(result.loss, (0.75 + 0.5 * 0.125) / 2)
    np.testing.assert_allclose(result.rows["td_error"], [0.0, -0.5])
    np.testing.assert_allclose(result.metrics, [0.25, 1.0])


def test_a_delta_that_cannot_work_is_refused(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> None:
    for delta in (0.0, math.inf):
        with pytest.raises(ConfigError, match=f"QuantileQLoss needs a finite huber_delta > 0, got {delta}"):
            QuantileQLoss(_Table((box(1),), (discrete(2),)), huber_delta=delta)

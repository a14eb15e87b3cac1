"""Losses on policies so small that every number can be worked by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from rollstream.graph import declare
from rollstream.graph.inputs import flat_inputs
from rollstream.graph.losses import Loss, LossResult
from rollstream.graph.memory import Memory
from rollstream.graph.policies import ActorCriticPolicy
from rollstream.graph.reference import reference
from rollstream.spaces import Leaf

Numbers = Mapping[str, Any]


@pytest.fixture
def evaluated() -> Callable[..., LossResult]:
    """`evaluated(loss, parameters, columns, target=None)`: the loss of these numbers, all by name."""

    def run(loss: Loss, parameters: Numbers, columns: Numbers, target: Numbers | None = None) -> LossResult:
        layout = declare(loss.policy).layout

        def flat(numbers: Numbers) -> np.ndarray:
            assert numbers.keys() <= set(layout.names)
            shapes = dict(zip(layout.names, layout.shapes, strict=True))
            given = {name: np.asarray(numbers.get(name, np.zeros(shape)), np.float32) for name, shape in shapes.items()}
            return layout.join({name: given[name].reshape(shape) for name, shape in shapes.items()})

        memory = Memory(layout=layout, flat=flat(parameters), target=None if target is None else flat(target))
        dtypes = {item.name: item.dtype for item in flat_inputs(loss.arguments("loss"))}
        assert columns.keys() == dtypes.keys()
        inputs = {name: np.asarray(value, dtypes[name]) for name, value in columns.items()}
        result = reference(loss, api="loss", memory=memory, inputs=inputs)
        assert isinstance(result, LossResult)
        assert np.shape(result.metrics) == (len(loss.metric_names),)
        return result

    return run


@pytest.fixture
def quarters(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> ActorCriticPolicy:
    """With `quarters_numbers` and observation 1 it takes action 0 with probability 1/4 and action 1 with 3/4, and its value is 2."""
    return ActorCriticPolicy((box(1),), (discrete(2),), hidden=())


@pytest.fixture
def quarters_numbers() -> Numbers:
    """Parameters of `quarters`."""
    return {"policy.weight": [0.0, math.log(3.0)], "value.weight": 2.0}

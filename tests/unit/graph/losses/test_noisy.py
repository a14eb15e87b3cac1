"""Losses of noisy policies: each network has noise of its own, which comes as columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rollstream.graph import declare
from rollstream.graph.component_test import component_test
from rollstream.graph.inputs import flat_inputs, sample
from rollstream.graph.losses import CategoricalQLoss, DoubleQLoss, QuantileQLoss
from rollstream.graph.memory import Memory
from rollstream.graph.policies import QPolicy
from rollstream.graph.reference import reference
from rollstream.spaces import Leaf

CASES: Any = [
    (DoubleQLoss, {"dueling": True}),
    (CategoricalQLoss, {"dueling": True, "distribution": "c51", "atoms": 5}),
    (QuantileQLoss, {"distribution": "quantile", "atoms": 5}),
]


@pytest.mark.parametrize(("loss", "settings"), CASES)
def test_modes_agree_and_slopes_are_right(
    loss: Any, settings: dict[str, Any], box: Callable[..., Leaf], discrete: Callable[..., Leaf]
) -> None:
    component_test(loss(QPolicy((box(3),), (discrete(4),), hidden=(8, 6), noisy=True, **settings)), modes=("numpy", "torch"))


def test_each_network_has_noise_of_its_own(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> None:
    loss = DoubleQLoss(QPolicy((box(3),), (discrete(4),), hidden=(8,), noisy=True))
    layout, generator = declare(loss.policy).layout, np.random.default_rng(0)
    memory = Memory(layout=layout, flat=layout.init(0), target=layout.init(1))
    inputs = sample(loss.arguments("loss"), rows=16, generator=generator)
    names = [item.name for item in flat_inputs(loss.arguments("loss")) if item.name.startswith("noisy")]
    assert names == ["noisy", "noisy.choice", "noisy.target"]
    before = float(reference(loss, api="loss", memory=memory, inputs=inputs).loss)
    for name in names:
        other = {**inputs, name: generator.standard_normal(inputs[name].shape).astype(np.float32)}
        assert float(reference(loss, api="loss", memory=memory, inputs=other).loss) != pytest.approx(before, rel=1e-4), name

"""Losses beside the formulas of their papers, written plainly in torch: same number, same gradient."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from rollstream.graph import declare
from rollstream.graph.inputs import sample
from rollstream.graph.losses import Loss, LossResult
from rollstream.graph.memory import Memory
from rollstream.graph.reference import reference
from rollstream.spaces import Leaf

Tensors = Mapping[str, Any]
"""By name, of torch, which is imported where it is used: modules of tests skip without it, a conftest cannot."""

ROWS = 16


@dataclass(frozen=True, kw_only=True)
class Case:
    """A loss with random parameters and rows, and what it gave."""

    loss: Loss
    memory: Memory
    inputs: Mapping[str, np.ndarray]
    result: LossResult

    @property
    def metrics(self) -> dict[str, float]:
        return dict(zip(self.loss.metric_names, np.asarray(self.result.metrics).tolist(), strict=True))


@pytest.fixture
def box() -> tuple[Leaf, ...]:
    return (Leaf(name="observation", kind="box", dtype="<f4", shape=(3,), low=(-1.0,) * 3, high=(1.0,) * 3),)


@pytest.fixture
def discrete() -> tuple[Leaf, ...]:
    return (Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(4,), starts=(-1,)),)


@pytest.fixture
def continuous() -> tuple[Leaf, ...]:
    return (Leaf(name="action", kind="box", dtype="<f4", shape=(2,), low=(-2.0, 0.0), high=(2.0, 6.0)),)


@pytest.fixture
def compare() -> Callable[..., Case]:
    """`compare(loss, plain)`: `plain(parameters, target, inputs)` is the loss in torch, from tensors by name."""

    def run(loss: Loss, plain: Callable[[Tensors, Tensors, Tensors], Any], *, seed: int = 0, **fixed: Any) -> Case:
        import torch

        from rollstream.graph.backends.torch.gradient import gradient

        generator = np.random.default_rng(seed)
        layout = declare(loss.policy).layout
        flat, far = (layout.init(number) + generator.normal(0, 0.3, layout.size).astype(np.float32) for number in (0, 1))
        memory = Memory(layout=layout, flat=flat, target=far)
        inputs = {**sample(loss.arguments("loss"), rows=ROWS, generator=generator)}
        inputs = {**inputs, **{name: np.asarray(value, inputs[name].dtype) for name, value in fixed.items()}}
        result = reference(loss, api="loss", memory=memory, inputs=inputs)
        slope = gradient(loss, api="loss", memory=memory, inputs=inputs, cotangents={"loss": np.ones((), np.float32)})

        def split(flat: Any) -> dict[str, Any]:
            parts = torch.split(flat, [item.size for item in layout.parameters])
            return {item.name: part.view(item.shape) for item, part in zip(layout.parameters, parts, strict=True)}

        at = torch.from_numpy(flat.copy()).requires_grad_()
        tensors = {name: torch.from_numpy(np.asarray(value)) for name, value in inputs.items()}
        theirs = plain(split(at), split(torch.from_numpy(far)), tensors)
        np.testing.assert_allclose(result.loss, theirs.item(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(slope, torch.autograd.grad(theirs, at)[0].numpy(), rtol=1e-4, atol=1e-6)
        assert np.abs(slope).max() > 1e-3
        assert np.shape(result.metrics) == (len(loss.metric_names),)
        return Case(loss=loss, memory=memory, inputs=inputs, result=result)

    return run

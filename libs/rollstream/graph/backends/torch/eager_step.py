"""The optimizer's step in torch eager. Adam and AdamW in place, since most runs use them; any other as its own pure `step`.

In place, Adam is seven operations without new vectors; the pure form is some fifteen. SGD and RMSProp have too few to gain by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rollstream.graph.backends.torch.ops import TorchOps
from rollstream.graph.backends.torch.tensors import StateTensors
from rollstream.graph.optimizers import Adam, AdamW
from rollstream.graph.update_plan import UpdatePlan

__all__ = ["optimizer_step"]


def optimizer_step(plan: UpdatePlan, state: StateTensors, ops: TorchOps) -> Callable[[Tensor, float], None]:
    """A function of the (clipped) gradient [P] and the learning rate that moves parameters, slots and count."""
    if plan.rate_scale is None and isinstance(plan.optimizer, (Adam, AdamW)):
        return _InPlaceAdam(plan.optimizer, state)
    return _PureStep(plan, state, ops)


class _PureStep:
    """`Optimizer.step`, then copied into place."""

    def __init__(self, plan: UpdatePlan, state: StateTensors, ops: TorchOps) -> None:
        self._optimizer = plan.optimizer
        self._state = state
        self._ops = ops
        self._scale = None if plan.rate_scale is None else ops.constant(plan.rate_scale)

    def __call__(self, gradient: Tensor, learning_rate: float) -> None:
        state = self._state
        state.count[0] += 1
        rate: Any = learning_rate if self._scale is None else self._scale * learning_rate
        count = state.count[0].to(torch.float32)
        after = self._optimizer.step(self._ops, state.parameters, state.slots.unbind(), gradient, count=count, learning_rate=rate)
        state.parameters.copy_(after.parameters)
        for slot, moved in zip(state.slots.unbind(), after.slots, strict=True):
            slot.copy_(moved)


class _InPlaceAdam:
    """`Adam.step` (and the shrinking of `AdamW`), in place and with its scalars computed in Python."""

    def __init__(self, settings: Adam | AdamW, state: StateTensors) -> None:
        self._settings = settings
        self._decay = settings.weight_decay if isinstance(settings, AdamW) else 0.0
        self._count = state.count
        self._parameters = state.parameters
        self._first, self._second = state.slots.unbind()
        self._root = torch.zeros_like(self._parameters)

    def __call__(self, gradient: Tensor, learning_rate: float) -> None:
        settings = self._settings
        self._count[0] += 1
        count = int(self._count[0])
        root_bias = math.sqrt(1.0 - settings.b2**count)
        if self._decay:
            self._parameters.mul_(1.0 - learning_rate * self._decay)
        self._first.lerp_(gradient, 1.0 - settings.b1)
        self._second.mul_(settings.b2).addcmul_(gradient, gradient, value=1.0 - settings.b2)
        torch.sqrt(self._second, out=self._root)
        # lr/bias1 * m / (sqrt(v)/root_bias + eps), with root_bias multiplied into numerator and denominator: one operation less
        self._root.add_(settings.epsilon * root_bias)
        self._parameters.addcdiv_(self._first, self._root, value=-learning_rate * root_bias / (1.0 - settings.b1**count))

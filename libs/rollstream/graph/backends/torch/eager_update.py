"""Updates by torch eager: autograd for the backward pass, then clip and Adam as a few in-place operations on one flat vector.

Prints and breakpoints inside a loss work. Costs are per operation here, not per number, so everything that can be
made once is: leaf tensors, minibatch views, buffers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from rollstream.graph.backends.torch.ops import TorchOps
from rollstream.graph.inputs import Input, bind
from rollstream.graph.optimizers.adam import Adam
from rollstream.graph.scope import Parameters, Scope
from rollstream.graph.update_plan import UpdatePlan, UpdateState

__all__ = ["EagerEngine"]


class EagerEngine:
    """See `rollstream.graph.update_plan.Engine`. All tensors share memory with the arrays of `state`."""

    def __init__(self, plan: UpdatePlan, state: UpdateState) -> None:
        self._plan = plan
        self._state = state
        memory = state.memory(plan)
        live = {name: torch.from_numpy(view).requires_grad_() for name, view in memory.live_views.items()}
        frozen, target, remembered = (
            {name: torch.from_numpy(view) for name, view in views.items()}
            for views in (memory.live_views, memory.target_views, memory.state_views)
        )
        self._leaves = list(live.values())
        self._scope = Scope(TorchOps(), Parameters(live=live, frozen=frozen, target=target, state=remembered))
        self._adam = _InPlaceAdam(plan, state)
        self._sums = torch.from_numpy(state.sums)[: len(plan.loss.metric_names)]
        self._rows: Mapping[str, Tensor] = {}

    def stage(self, buffers: Mapping[str, npt.NDArray[Any]]) -> Sequence[dict[str, Any]]:
        columns = {name: torch.split(torch.from_numpy(buffer), self._plan.batch_rows) for name, buffer in buffers.items()}
        count = len(next(iter(columns.values())))
        arguments = {
            name: argument
            for name, argument in self._plan.arguments.items()
            if not (isinstance(argument, Input) and argument.role == "scalar")
        }
        return [bind(arguments, {name: parts[number] for name, parts in columns.items()}) for number in range(count)]

    def step(self, minibatch: Any, *, learning_rate: float, scalars: Mapping[str, float]) -> None:
        state = self._state
        result = self._plan.loss.loss(self._scope, **minibatch, **scalars)
        self._rows = result.rows
        gradients = torch.autograd.grad(result.loss, self._leaves, allow_unused=True, materialize_grads=True)
        norm = self._adam.take(gradients)
        loss = result.loss.item()
        if not math.isfinite(norm + loss):
            state.tally[1] += 1
            return
        self._adam.step(norm, learning_rate=learning_rate)
        state.tally[0] += 1
        self._sums.add_(result.metrics)
        state.sums[-2] += loss
        state.sums[-1] += norm

    def rows(self) -> Mapping[str, npt.NDArray[Any]]:
        return {name: column.numpy() for name, column in self._rows.items()}


class _InPlaceAdam:
    """`Adam.step` and `optimizers.clipping.clip_scale`, in place and with their scalars computed in Python."""

    def __init__(self, plan: UpdatePlan, state: UpdateState) -> None:
        assert isinstance(plan.optimizer, Adam)
        self._plan = plan
        self._settings = plan.optimizer
        self._count = state.count
        self._parameters = torch.from_numpy(state.parameters)
        self._first, self._second = torch.from_numpy(state.slots).unbind()
        self._gradient = torch.zeros_like(self._parameters)
        self._root = torch.zeros_like(self._parameters)

    def take(self, gradients: Sequence[Tensor]) -> float:
        """Lay the gradients into one vector; its norm."""
        torch.cat([gradient.view(-1) for gradient in gradients], out=self._gradient)
        return float(torch.linalg.vector_norm(self._gradient).item())

    def step(self, norm: float, *, learning_rate: float) -> None:
        settings, limit = self._settings, self._plan.max_grad_norm
        gradient = self._gradient
        if limit is not None and norm + 1e-6 > limit:
            gradient.mul_(limit / (norm + 1e-6))
        self._count[0] += 1
        count = int(self._count[0])
        root_bias = math.sqrt(1.0 - settings.b2**count)
        self._first.lerp_(gradient, 1.0 - settings.b1)
        self._second.mul_(settings.b2).addcmul_(gradient, gradient, value=1.0 - settings.b2)
        torch.sqrt(self._second, out=self._root)
        # lr/bias1 * m / (sqrt(v)/root_bias + eps), with root_bias multiplied into numerator and denominator: one operation less
        self._root.add_(settings.epsilon * root_bias)
        self._parameters.addcdiv_(self._first, self._root, value=-learning_rate * root_bias / (1.0 - settings.b1**count))

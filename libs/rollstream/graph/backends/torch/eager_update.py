"""Updates by torch eager: autograd for the backward pass, then clip and optimizer as a few operations on one flat vector.

Prints and breakpoints inside a loss work. Costs are per operation here, not per number, so everything that can be
made once is: leaf tensors, minibatch views, buffers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rollstream.graph.backends.torch.eager_step import optimizer_step
from rollstream.graph.backends.torch.ops import TorchOps
from rollstream.graph.backends.torch.program import counting_rows, unpacked
from rollstream.graph.backends.torch.tensors import StateTensors, split
from rollstream.graph.inputs import Input, bind
from rollstream.graph.scope import Parameters, Scope
from rollstream.graph.torch_options import TorchOptions
from rollstream.graph.update_plan import SplitGradient, UpdatePlan, UpdateState

__all__ = ["EagerEngine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Some rows of a minibatch: columns by name, and as the loss takes them."""

    columns: Mapping[str, Tensor]
    bound: Mapping[str, Any]


class EagerEngine:
    """See `rollstream.graph.update_plan.Engine` and `SplitEngine`. On the CPU all tensors share memory with the arrays of `state`."""

    def __init__(self, plan: UpdatePlan, state: UpdateState, *, options: TorchOptions) -> None:
        self._plan = plan
        self._options = options
        self._device = options.device
        self._state = tensors = StateTensors(state, device=options.device)
        self.pull, self.push = tensors.pull, tensors.push
        frozen = split(plan.layout, tensors.parameters)
        live = {name: part.detach().requires_grad_() for name, part in frozen.items()}
        target = split(plan.layout, tensors.target) if plan.uses_target else None
        remembered = split(plan.state_layout, tensors.state)
        self._leaves = list(live.values())
        ops = TorchOps(device=options.device, mixed=options.mixed_precision)
        self._scope = Scope(ops, Parameters(live=live, frozen=frozen, target=target, state=remembered))
        self._step = optimizer_step(plan, tensors, ops)
        self._gradient = torch.zeros_like(tensors.parameters)
        self._sums = tensors.sums[: len(plan.loss.metric_names)]
        self._arguments = {
            name: argument
            for name, argument in plan.arguments.items()
            if not (isinstance(argument, Input) and argument.role == "scalar")
        }
        self._rows: Mapping[str, Tensor] = {}

    def stage(self, buffers: Mapping[str, npt.NDArray[Any]]) -> Sequence[Sequence[_Part]]:
        parts = self._options.accumulate
        size = self._plan.batch_rows // parts
        columns = {name: torch.split(torch.from_numpy(buffer), size) for name, buffer in buffers.items()}
        staged = [self._part({name: part[number] for name, part in columns.items()}) for number in range(_count(columns))]
        return [staged[start : start + parts] for start in range(0, len(staged), parts)]

    def step(self, minibatch: Any, *, learning_rate: float, scalars: Mapping[str, float]) -> None:
        gradient, metrics, loss = self._computed(minibatch, scalars)
        norm = float(torch.linalg.vector_norm(gradient).item())
        if self._moved(gradient, norm=norm, loss=loss, learning_rate=learning_rate):
            self._sums.add_(metrics)
            self._state.sums[-2] += loss

    def gradient(self, minibatch: Any, *, scalars: Mapping[str, float]) -> SplitGradient:
        """See `rollstream.graph.update_plan.SplitEngine`."""
        gradient, metrics, loss = self._computed(minibatch, scalars)
        norm = float(torch.linalg.vector_norm(gradient).item())
        told = metrics.detach().cpu().numpy().reshape(-1)
        figures = np.append(told, [loss, norm]).astype(np.float32)
        return SplitGradient(vector=gradient.detach().cpu().numpy().copy(), figures=figures)

    def apply(self, gradient: npt.NDArray[np.float32], *, learning_rate: float) -> None:
        """See `rollstream.graph.update_plan.SplitEngine`."""
        self._gradient.copy_(torch.from_numpy(np.array(gradient)))
        norm = float(torch.linalg.vector_norm(self._gradient).item())
        self._moved(self._gradient, norm=norm, loss=0.0, learning_rate=learning_rate)

    def rows(self) -> Mapping[str, npt.NDArray[Any]]:
        return {name: column.cpu().numpy() for name, column in self._rows.items()}

    def _computed(self, minibatch: Any, scalars: Mapping[str, float]) -> tuple[Tensor, Tensor, float]:
        """Gradient, metrics and loss of a minibatch."""
        if len(minibatch) == 1 and self._options.ranks is None:
            result = self._backward(minibatch[0], scalars)
            self._rows = result.rows
            return self._gradient, result.metrics, float(result.loss.item())
        gradient, figures = self._mean(minibatch, scalars)
        return gradient, figures[:-1], float(figures[-1].item())

    def _moved(self, gradient: Tensor, *, norm: float, loss: float, learning_rate: float) -> bool:
        """Clip and take the optimizer's step; False when something is not finite."""
        tally = self._state.tally
        if not math.isfinite(norm + loss):
            tally[1] += 1
            return False
        limit = self._plan.max_grad_norm
        if limit is not None and norm + 1e-6 > limit:
            gradient.mul_(limit / (norm + 1e-6))  # as `optimizers.clip_scale`
        self._step(gradient, learning_rate)
        tally[0] += 1
        self._state.sums[-1] += norm
        return True

    def _part(self, columns: Mapping[str, Tensor]) -> _Part:
        return _Part(columns=columns, bound=bind(self._arguments, columns))

    def _backward(self, part: _Part, scalars: Mapping[str, float]) -> Any:
        """Gradient of these rows, laid into one vector; and what the loss said."""
        if self._device != "cpu":
            part = self._part({name: column.to(self._device) for name, column in part.columns.items()})
        result = self._plan.loss.loss(self._scope, **part.bound, **scalars)
        gradients = torch.autograd.grad(result.loss, self._leaves, allow_unused=True, materialize_grads=True)
        torch.cat([gradient.reshape(-1) for gradient in gradients], out=self._gradient)
        return result

    def _mean(self, minibatch: Sequence[_Part], scalars: Mapping[str, float]) -> tuple[Tensor, Tensor]:
        """Gradient, and metrics with the loss, over all parts and all ranks, weighted by the rows that count."""
        size, figures = self._plan.layout.size, len(self._plan.loss.metric_names) + 1
        packed = torch.zeros(size + figures + 1, device=self._device)
        told: list[Mapping[str, Tensor]] = []
        for part in minibatch:
            result = self._backward(part, scalars)
            told.append(result.rows)
            count = float(counting_rows(part.columns))
            if count:
                found = torch.cat([self._gradient, result.metrics, result.loss.detach().reshape(1)])
                packed[:-1].add_(found, alpha=count)
                packed[-1] += count
        self._rows = {name: torch.cat([rows[name] for rows in told]) for name in told[0]}
        if self._options.ranks is not None:
            self._options.ranks.add_up(packed)
        return unpacked(packed, size)


def _count(columns: Mapping[str, Sequence[Tensor]]) -> int:
    return len(next(iter(columns.values())))

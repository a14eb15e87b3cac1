"""An update as functions of tensors only, so that it can be traced: state is changed in place, nothing else is remembered.

    whole:                state, settings, columns --> backward, apply                      --> rows of the loss
    in two, for ranks:    state, settings, columns --> backward --> packed --(all-reduce)--> apply

Packed is one vector: the gradient, the metrics and the loss, each times the number of rows that count, and that number. So adding up
packed vectors of several ranks, or of several parts of a minibatch, and dividing by the last number gives the mean over all rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from rollstream.graph.backends.torch.ops import TorchOps
from rollstream.graph.backends.torch.tensors import NAMES, split
from rollstream.graph.inputs import bind, flat_inputs
from rollstream.graph.optimizers.clipping import clip_scale
from rollstream.graph.scope import Parameters, Scope
from rollstream.graph.update_plan import UpdatePlan

__all__ = ["UpdateProgram", "counting_rows", "unpacked"]

LEARNING_RATE = "learning_rate"
WEIGHT = "weight"


def counting_rows(columns: Mapping[str, Tensor]) -> Tensor:
    """How many rows count: those whose weight is not 0 (padding), as a float []; all of them where there is no weight."""
    weight = columns.get(WEIGHT)
    if weight is None:
        first = next(iter(columns.values()))
        return torch.full((), float(len(first)), device=first.device)
    return (weight != 0).sum().to(torch.float32)


def unpacked(packed: Tensor, parameters: int) -> tuple[Tensor, Tensor]:
    """Gradient [P], and metrics and loss [K + 1], from a packed vector (the module says what that is)."""
    mean = packed[:-1] / packed[-1]
    return mean[:parameters], mean[parameters:]


class UpdateProgram:
    """See the module.

    Attributes:
        columns, settings: names of what goes in; the learning rate is the first setting.
        row_names: what the loss says of each row; known once it ran.
    """

    def __init__(self, plan: UpdatePlan, ops: TorchOps, *, accumulate: int) -> None:
        self._plan = plan
        self._ops = ops
        self._accumulate = accumulate
        inputs = list(flat_inputs(plan.arguments))
        self.columns = [item.name for item in inputs if item.role == "column"]
        self.settings = [LEARNING_RATE, *(item.name for item in inputs if item.role == "scalar")]
        self.row_names: tuple[str, ...] = ()

    def whole(self, *arguments: Tensor) -> list[Tensor]:
        """State, settings [S], columns -> what the loss says of each row."""
        state, settings, columns = self._named(arguments)
        gradient, figures, rows = self._mean(state, settings, columns)
        self._apply(state, settings[LEARNING_RATE], gradient, figures)
        return rows

    def backward(self, *arguments: Tensor) -> list[Tensor]:
        """State, settings [S], columns -> packed vector, then what the loss says of each row."""
        state, settings, columns = self._named(arguments)
        gradient, figures, rows = self._mean(state, settings, columns)
        count = counting_rows(columns).reshape(1)
        return [torch.cat([torch.where(count > 0, torch.cat([gradient, figures]) * count, 0.0), count]), *rows]

    def apply(self, *arguments: Tensor) -> list[Tensor]:
        """State, settings [S], packed vector -> nothing."""
        state, settings, _ = self._named(arguments[:-1])
        gradient, figures = unpacked(arguments[-1], self._plan.layout.size)
        self._apply(state, settings[LEARNING_RATE], gradient, figures)
        return []

    def _named(self, arguments: Sequence[Tensor]) -> tuple[Any, dict[str, Tensor], dict[str, Tensor]]:
        count = len(NAMES)
        state = SimpleNamespace(**dict(zip(NAMES, arguments, strict=False)))
        settings = dict(zip(self.settings, arguments[count].unbind(), strict=True))
        return state, settings, dict(zip(self.columns, arguments[count + 1 :], strict=False))

    def _mean(
        self, state: Any, settings: Mapping[str, Tensor], columns: Mapping[str, Tensor]
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Gradient, metrics with the loss, rows: of the minibatch, computed in `accumulate` parts."""
        parts = self._accumulate
        if parts == 1:
            return self._gradient(state, settings, columns)
        size = self._plan.batch_rows // parts
        total: Any = 0.0
        rows: list[list[Tensor]] = []
        for start in range(0, parts * size, size):
            part = {name: column[start : start + size] for name, column in columns.items()}
            gradient, figures, told = self._gradient(state, settings, part)
            count = counting_rows(part).reshape(1)
            found = torch.cat([torch.cat([gradient, figures]) * count, count])
            total = total + torch.where(count > 0, found, 0.0)
            rows.append(told)
        gradient, figures = unpacked(total, self._plan.layout.size)
        return gradient, figures, [torch.cat(told) for told in zip(*rows, strict=True)]

    def _gradient(
        self, state: Any, settings: Mapping[str, Tensor], columns: Mapping[str, Tensor]
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        plan = self._plan
        leaf = state.parameters.detach().requires_grad_()
        live, frozen = (split(plan.layout, vector) for vector in (leaf, state.parameters))
        target = split(plan.layout, state.target) if plan.uses_target else None
        remembered = split(plan.state_layout, state.state)
        scope = Scope(self._ops, Parameters(live=live, frozen=frozen, target=target, state=remembered))
        with torch.enable_grad():
            result = plan.loss.loss(scope, **bind(plan.arguments, {**columns, **settings}))
            (gradient,) = torch.autograd.grad(result.loss, leaf)
        self.row_names = tuple(result.rows)
        figures = torch.cat([result.metrics.detach(), result.loss.detach().reshape(1)])
        return gradient, figures, [told.detach() for told in result.rows.values()]

    def _apply(self, state: Any, rate: Tensor, gradient: Tensor, figures: Tensor) -> None:
        plan, ops = self._plan, self._ops
        norm = torch.linalg.vector_norm(gradient)
        finite = torch.isfinite(norm) & torch.isfinite(figures[-1])
        if plan.max_grad_norm is not None:
            gradient = gradient * clip_scale(ops, norm, max_norm=plan.max_grad_norm)
        if plan.rate_scale is not None:
            rate = rate * ops.constant(plan.rate_scale)
        count = (state.count[0] + 1).to(torch.float32)
        after = plan.optimizer.step(ops, state.parameters, state.slots.unbind(), gradient, count=count, learning_rate=rate)
        applied = finite.to(torch.int64)
        sums = torch.cat([figures, norm.reshape(1)])
        state.parameters.copy_(torch.where(finite, after.parameters, state.parameters))
        if after.slots:
            state.slots.copy_(torch.where(finite, torch.stack(after.slots), state.slots))
        state.count.add_(applied)
        state.sums.add_(torch.where(finite, sums, torch.zeros_like(sums)))
        state.tally.add_(torch.stack([applied, 1 - applied]))

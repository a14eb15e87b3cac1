"""The gradient of losses after gradient steps on other rows, through these steps (MAML; Finn et al. 2017, algorithm 3, line 10).

    theta ─▶ theta - a grad L(theta, rows 0) ─▶ ... ─▶ theta'     L(theta', last rows), mean over tasks ─▶ gradient by theta

Everything is autograd on one flat vector, so second derivatives are exact; with `first_order` each step counts as a constant. All tasks
are computed at once (`torch.func.vmap`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rollstream.errors import SchemaMismatch
from rollstream.graph.backends.torch.ops import TorchOps
from rollstream.graph.backends.torch.tensors import split
from rollstream.graph.declare import declare
from rollstream.graph.inputs import bind, flat_inputs
from rollstream.graph.losses.loss import Loss, LossResult
from rollstream.graph.scope import Parameters, Scope
from rollstream.spaces import Columns

__all__ = ["MetaGradient", "MetaGradientResult"]

WEIGHT = "weight"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaGradientResult:
    """Attributes:
    vector: the gradient, float32 [P], not clipped.
    metrics: those of the loss with the adapted parameters, and `loss`, as means over tasks.
    """

    vector: npt.NDArray[np.float32]
    metrics: dict[str, float]


class MetaGradient:
    """Made once for a loss.

    Args:
        inner: the loss's settings in the steps of adaptation. outer: those of what is minimized.
        inner_learning_rate: size of a step of adaptation [alpha].
        first_order: take the adapted parameters for independent ones (first-order MAML, section 5.2 of the paper): no second
            derivatives, so a fraction of the time.
    """

    def __init__(
        self,
        loss: Loss,
        *,
        inner: Mapping[str, float],
        outer: Mapping[str, float],
        inner_learning_rate: float,
        first_order: bool = False,
    ) -> None:
        self._loss = loss
        self._layout = declare(loss.policy).layout
        self._arguments = loss.arguments("loss")
        self._columns = [item for item in flat_inputs(self._arguments) if item.role == "column"]
        self._inner, self._outer = dict(inner), dict(outer)
        self._inner_learning_rate = inner_learning_rate
        self._first_order = first_order
        self._ops = TorchOps()

    def adapted(self, parameters: npt.NDArray[np.float32], columns: Columns) -> npt.NDArray[np.float32]:
        """`parameters` [P] after one step on these rows, as an actor takes it."""
        only = {name: column[0] for name, column in self._stacked([columns], rows=_rows([columns])).items()}
        return np.asarray(self._stepped(torch.from_numpy(parameters.copy()), only).detach().numpy())

    def gradient(self, parameters: npt.NDArray[np.float32], tasks: Sequence[Sequence[Columns]]) -> MetaGradientResult:
        """By `parameters` [P]. Each task is the rows of its phases: all but the last are stepped on, the last is judged."""
        at = torch.from_numpy(parameters.copy()).requires_grad_()
        phases = [self._stacked(parts, rows=_rows(parts)) for parts in zip(*tasks, strict=True)]
        losses, told = torch.func.vmap(self._judged_after, in_dims=(None, 0))(at, phases)
        (vector,) = torch.autograd.grad(losses.mean(), at)
        means = torch.cat([told.detach().mean(dim=0), losses.detach().mean().reshape(1)])
        metrics = dict(zip((*self._loss.metric_names, "loss"), means.tolist(), strict=True))
        return MetaGradientResult(vector=vector.numpy(), metrics=metrics)

    def _judged_after(self, flat: Tensor, phases: Sequence[Mapping[str, Tensor]]) -> tuple[Tensor, Tensor]:
        """Loss and metrics of the last phase, after a step on each of the others."""
        for columns in phases[:-1]:
            flat = self._stepped(flat, columns)
        result = self._judged(flat, phases[-1], self._outer)
        return result.loss, result.metrics

    def _stepped(self, flat: Tensor, columns: Mapping[str, Tensor]) -> Tensor:
        slope = torch.func.grad(lambda at: self._judged(at, columns, self._inner).loss)(flat)
        stepped: Tensor = flat - self._inner_learning_rate * (slope.detach() if self._first_order else slope)
        return stepped

    def _judged(self, flat: Tensor, columns: Mapping[str, Tensor], scalars: Mapping[str, float]) -> LossResult:
        live = split(self._layout, flat)
        frozen = {name: part.detach() for name, part in live.items()}
        scope = Scope(self._ops, Parameters(live=live, frozen=frozen))
        arguments: dict[str, Any] = {**columns, **scalars}
        found: LossResult = self._loss.loss(scope, **bind(self._arguments, arguments))
        return found

    def _stacked(self, parts: Sequence[Columns], *, rows: int) -> dict[str, Tensor]:
        """Columns [tasks, rows, ...]; what is missing in a part repeats its first row with weight 0."""
        found: dict[str, Tensor] = {}
        for item in self._columns:
            stack = np.zeros((len(parts), rows, *item.shape), item.dtype)
            for place, columns in zip(stack, parts, strict=True):
                count = _rows([columns])
                if item.name == WEIGHT and WEIGHT not in columns:
                    place[:count] = 1
                    continue
                if item.name not in columns:
                    raise SchemaMismatch(
                        f"the loss reads column {item.name}, which is missing; a task has {', '.join(sorted(columns))}"
                    )
                place[:count] = columns[item.name]
                place[count:] = 0 if item.name == WEIGHT else place[0]
            found[item.name] = torch.from_numpy(stack)
        return found


def _rows(parts: Sequence[Columns]) -> int:
    """Of the longest part."""
    return max(len(next(iter(columns.values()))) for columns in parts)

"""Updates in NumPy alone: the loss is run once on recorded arrays, the way back is recorded behind it, then the optimizer's step.

    minibatch --copy--> inputs --loss--> rows, metrics, loss --back--> gradient [P] --clip, optimizer--> parameters, slots

A step replays these calls: no framework in the process, nothing to compile, no allocation. See `docs/decisions/0018`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.graph.backends.numpy_gradient import record_gradient
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.backends.numpy_tape import Recorded, Tape, plain
from rollstream.graph.inputs import bind, flat_inputs
from rollstream.graph.losses.loss import LossResult
from rollstream.graph.optimizers.clipping import clip_scale
from rollstream.graph.scope import Parameters, Scope
from rollstream.graph.update_plan import SplitGradient, UpdatePlan, UpdateState

__all__ = ["NumpyEngine"]


class NumpyEngine:
    """See `rollstream.graph.update_plan.Engine` and `SplitEngine`."""

    def __init__(self, plan: UpdatePlan, state: UpdateState) -> None:
        self._plan = plan
        self._state = state
        inputs = list(flat_inputs(plan.arguments))
        self._columns = {
            item.name: np.ones(item.full_shape(plan.batch_rows), item.dtype) for item in inputs if item.role == "column"
        }
        self._settings = {item.name: np.zeros((), np.float32) for item in inputs if item.role == "scalar"}
        self._learning_rate = np.zeros((), np.float32)
        self._gradient = np.zeros(plan.layout.size, np.float32)
        self._norm = np.zeros((), np.float32)
        with np.errstate(all="ignore"):  # the first run sees examples
            self._forward = Tape()
            result = self._record_loss(self._forward)
            self._loss = np.asarray(plain(result.loss))
            self._rows = {name: np.asarray(plain(column)) for name, column in result.rows.items()}
            self._metrics = np.asarray(plain(result.metrics))
            self._apply = Tape()
            self._record_step(self._apply, self._metrics)

    def stage(self, buffers: Mapping[str, npt.NDArray[Any]]) -> Sequence[tuple[Callable[[], object], ...]]:
        rows = self._plan.batch_rows
        count = len(next(iter(buffers.values()))) // rows
        return [
            tuple(
                functools.partial(column.__setitem__, ..., buffers[name][start : start + rows])
                for name, column in self._columns.items()
            )
            for start in range(0, count * rows, rows)
        ]

    def step(self, minibatch: Any, *, learning_rate: float, scalars: Mapping[str, float]) -> None:
        self._take(minibatch, scalars)
        self._learning_rate.fill(learning_rate)
        with np.errstate(all="ignore"):  # what is not finite is skipped and counted
            self._forward.run()
            if math.isfinite(self._norm.item() + self._loss.item()):
                self._apply.run()
            else:
                self._state.tally[1] += 1

    def gradient(self, minibatch: Any, *, scalars: Mapping[str, float]) -> SplitGradient:
        """See `rollstream.graph.update_plan.SplitEngine`."""
        self._take(minibatch, scalars)
        with np.errstate(all="ignore"):  # whoever applies it looks
            self._forward.run()
        return SplitGradient(
            vector=self._gradient.copy(),
            figures=np.concatenate([self._metrics.reshape(-1), self._loss.reshape(1), self._norm.reshape(1)]).astype(np.float32),
        )

    def apply(self, gradient: npt.NDArray[np.float32], *, learning_rate: float) -> None:
        """See `rollstream.graph.update_plan.SplitEngine`."""
        sums = self._state.sums
        np.copyto(self._gradient, gradient)
        with np.errstate(all="ignore"):
            self._norm.fill(np.sqrt(np.dot(self._gradient, self._gradient)))
            if not math.isfinite(self._norm.item()):
                self._state.tally[1] += 1
                return
            before = sums.copy()
            self._learning_rate.fill(learning_rate)
            self._apply.run()
        np.copyto(sums, before)
        sums[-1] += self._norm

    def rows(self) -> Mapping[str, npt.NDArray[Any]]:
        return self._rows

    def _take(self, minibatch: Any, scalars: Mapping[str, float]) -> None:
        for copy in minibatch:
            copy()
        for name, setting in self._settings.items():
            setting.fill(scalars[name])

    def _record_loss(self, tape: Tape) -> LossResult:
        """The loss, its gradient, and the gradient's norm."""
        plan, memory = self._plan, self._state.memory(self._plan)
        gradients = plan.layout.split(self._gradient)
        live = {name: tape.parameter(view, gradients[name]) for name, view in memory.live_views.items()}
        frozen, target, remembered = (
            {name: tape.input(view) for name, view in views.items()}
            for views in (memory.live_views, memory.target_views, memory.state_views)
        )
        scope = Scope(NumpyOps(), Parameters(live=live, frozen=frozen, target=target, state=remembered))
        inputs = {name: tape.input(array) for name, array in (self._columns | self._settings).items()}
        result: LossResult = plan.loss.loss(scope, **bind(plan.arguments, inputs))
        if isinstance(result.loss, Recorded):
            record_gradient(result.loss)
        tape.do(np.dot, self._gradient, self._gradient, self._norm)
        tape.do(np.sqrt, self._norm, self._norm)
        return result

    def _record_step(self, tape: Tape, metrics: npt.NDArray[Any]) -> None:
        """Clip, the optimizer's step, and all that a step leaves in the state; only recorded, since it changes the state."""
        plan, state, ops = self._plan, self._state, NumpyOps()
        tape.record(np.add, state.count, np.ones(1, np.int64), state.count)
        gradient, rate = tape.input(self._gradient), tape.input(self._learning_rate)
        if plan.max_grad_norm is not None:
            gradient = gradient * clip_scale(ops, tape.input(self._norm), max_norm=plan.max_grad_norm)
        if plan.rate_scale is not None:
            rate = rate * plan.rate_scale
        after = plan.optimizer.step(
            ops,
            tape.input(state.parameters),
            tuple(tape.input(slot) for slot in state.slots),
            gradient,
            count=ops.to_float(tape.input(state.count)[0]),
            learning_rate=rate,
        )
        kept = (state.parameters, *state.slots)
        moved = [self._apart(tape, plain(array), kept) for array in (after.parameters, *after.slots)]
        for place, array in zip(kept, moved, strict=True):
            tape.record(np.copyto, place, array)
        known = len(metrics)
        tape.record(np.add, state.sums[:known], metrics, state.sums[:known])
        for place, value in ((known, self._loss), (known + 1, self._norm)):
            sum_ = state.sums[place : place + 1]
            tape.record(np.add, sum_, value, sum_)
        tape.record(np.add, state.tally[:1], np.ones(1, np.int64), state.tally[:1])

    @staticmethod
    def _apart(tape: Tape, array: npt.NDArray[Any], kept: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """A copy of what an optimizer hands on as it was (a slot of old parameters), since its place is written meanwhile."""
        if not any(np.may_share_memory(array, place) for place in kept):
            return array
        copy = np.empty_like(array)
        tape.record(np.copyto, copy, array)
        return copy

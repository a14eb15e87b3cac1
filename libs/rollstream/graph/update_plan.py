"""What an update engine needs to know and the arrays it moves; shared by all modes, so the state of one continues in another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from rollstream.graph.inputs import Arguments
from rollstream.graph.layout import FlatLayout
from rollstream.graph.losses.loss import Loss
from rollstream.graph.memory import NO_STATE, Memory
from rollstream.graph.optimizers.optimizer import Optimizer

__all__ = ["Engine", "EpochEngine", "KeepsState", "SplitEngine", "SplitGradient", "UpdatePlan", "UpdateState"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatePlan:
    """Attributes:
    loss, layout: what is minimized, and where its parameters lie.
    batch_rows: rows of one minibatch; static.
    max_grad_norm: gradients of a larger global norm are scaled down to it; None: no clipping.
    uses_target: the loss reads a target network.
    state_layout: of what the policy remembers; an update reads it and does not change it.
    rate_scale: factor of the learning rate for each parameter [P] (groups); None: the same for all.
    """

    loss: Loss
    layout: FlatLayout
    batch_rows: int
    optimizer: Optimizer
    max_grad_norm: float | None
    uses_target: bool
    state_layout: FlatLayout = NO_STATE
    rate_scale: npt.NDArray[np.float32] | None = None

    @property
    def arguments(self) -> Arguments:
        return self.loss.arguments("loss")

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Of `UpdateState.sums`."""
        return (*self.loss.metric_names, "loss", "gradient_norm")


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateState:
    """Arrays that an engine changes in place; frozen means that they stay the same arrays.

    Attributes:
        parameters: the flat vector, float32 [P].
        slots: what the optimizer keeps, float32 [number of slots, P].
        state: what the policy remembers, float32 [S].
        count: updates applied so far, int64 [1].
        target: parameters of the target network, float32 [P]; empty without one.
        sums: metrics summed over updates applied since they were last cleared, float32 [K].
        tally: updates applied and updates skipped (non-finite) since last cleared, int64 [2].
    """

    parameters: npt.NDArray[np.float32]
    slots: npt.NDArray[np.float32]
    state: npt.NDArray[np.float32]
    count: npt.NDArray[np.int64]
    target: npt.NDArray[np.float32]
    sums: npt.NDArray[np.float32]
    tally: npt.NDArray[np.int64]

    @staticmethod
    def start(plan: UpdatePlan, parameters: npt.NDArray[np.float32]) -> UpdateState:
        """No update yet; the target network equals the parameters, and state is as it begins."""
        size = plan.layout.size
        return UpdateState(
            parameters=parameters.copy(),
            slots=np.zeros((len(plan.optimizer.slots), size), np.float32),
            state=plan.state_layout.init(0),
            count=np.zeros(1, np.int64),
            target=parameters.copy() if plan.uses_target else np.zeros(0, np.float32),
            sums=np.zeros(len(plan.metric_names), np.float32),
            tally=np.zeros(2, np.int64),
        )

    def memory(self, plan: UpdatePlan) -> Memory:
        """These arrays as executables read them."""
        target = self.target if plan.uses_target else None
        return Memory(layout=plan.layout, flat=self.parameters, target=target, state_layout=plan.state_layout, state=self.state)


class Engine(Protocol):
    """Runs updates in some mode on an `UpdateState` it was built with. Non-finite loss or gradient: only `tally[1]` changes."""

    def stage(self, buffers: Mapping[str, npt.NDArray[Any]]) -> Sequence[Any]:
        """Handles of the minibatches that lie one after the other in `buffers` ([minibatches * batch_rows, ...])."""
        ...

    def step(self, minibatch: Any, *, learning_rate: float, scalars: Mapping[str, float]) -> None:
        """One update: forward, backward, clip, optimizer step."""
        ...

    def rows(self) -> Mapping[str, npt.NDArray[Any]]:
        """What the last step's loss said of each row."""
        ...


@runtime_checkable
class EpochEngine(Protocol):
    """What an engine may do besides: its loop over minibatches lies inside its program."""

    def epoch(self, minibatches: Sequence[Any], *, learning_rate: float, scalars: Mapping[str, float]) -> None:
        """`Engine.step` of each; they are the first ones of those staged last, in order."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitGradient:
    """A gradient that was computed and not applied.

    Attributes:
        vector: float32 [P], not clipped; the caller's to keep. It may hold numbers that are not finite.
        figures: what `UpdatePlan.metric_names` names, float32 [K].
    """

    vector: npt.NDArray[np.float32]
    figures: npt.NDArray[np.float32]


@runtime_checkable
class SplitEngine(Protocol):
    """What an engine may do besides: the two halves of `step` apart, for gradients that travel."""

    def gradient(self, minibatch: Any, *, scalars: Mapping[str, float]) -> SplitGradient:
        """Forward and backward; nothing of the state changes."""
        ...

    def apply(self, gradient: npt.NDArray[np.float32], *, learning_rate: float) -> None:
        """Clip and optimizer step with this gradient [P]; of `sums`, only the gradient's norm grows."""
        ...


@runtime_checkable
class KeepsState(Protocol):
    """What an engine may be besides: one whose state lies elsewhere (on a GPU), so that the arrays of the `UpdateState` are copies."""

    def pull(self) -> None:
        """Copy the state into the arrays, which somebody is about to read."""
        ...

    def push(self) -> None:
        """Copy the arrays, which somebody changed, to where the state lies."""
        ...

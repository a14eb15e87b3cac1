"""adapt: in the actor, learn a task from a few episodes, then show what was learned (Finn et al. 2017, algorithm 3, lines 4 to 9).

    pulled weights ─▶ task ─▶ episodes, phase 0 ─▶ gradient step ─▶ episodes, phase 1 ─▶ ... ─▶ next task

The message holds the rows of all phases of all tasks: the learner differentiates through the same gradient steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError
from rollstream.flow.batches import join_batches
from rollstream.flow.place import calling_place
from rollstream.flow.sides import ActorSide
from rollstream.flow.step import Bound, Step
from rollstream.flow.steps.advantages import advantages
from rollstream.spaces import Batch, Columns, Episodes, Flag

__all__ = ["PHASE", "TASK", "Adaptation", "adapt"]

TASK, PHASE = "task", "phase"
"""Columns: number of the task, and how many gradient steps the weights that acted had taken for it."""
TASKS = 2**31
SMALLEST_DEVIATION = 1e-8


class Adaptation(Protocol):
    """What `adaptation()` of an agent gives: its inner gradient step."""

    def adapted(self, columns: Columns, tensors: Mapping[str, npt.NDArray[Any]]) -> Mapping[str, npt.NDArray[Any]]:
        """`tensors` after one gradient step on these rows."""
        ...


def adapt(*, tasks: int, rollout_steps: int, inner_steps: int, discount: float, gae_lambda: float) -> Step[None, Batch]:
    """For `generate`: draw `tasks` tasks, and for each collect `rollout_steps` vector steps with the pulled weights and again after each
    of `inner_steps` gradient steps.

    The environment is told the task as the reset option `task`, a number. Batches have the columns of `advantages` and `reward`, `task`
    (int64) and `phase` (uint8); advantages are standardized within each phase of each task. Their episodes are those of the last phase,
    so mean returns are those after adaptation; their environment steps are all.
    """
    for name, value in (("tasks", tasks), ("rollout_steps", rollout_steps), ("inner_steps", inner_steps)):
        if value < 1:
            raise ConfigError(f"{name} of adapt must be >= 1, got {value} ({calling_place()})")
    return Step(
        name="adapt",
        bind=_Adapt(tasks, rollout_steps, inner_steps, advantages(discount=discount, gae_lambda=gae_lambda)),
        where="actor",
        settings={"tasks": tasks, "rollout_steps": rollout_steps, "inner_steps": inner_steps},
        gives="batch",
    )


@dataclass(frozen=True, slots=True)
class _Adapt:
    tasks: int
    rollout_steps: int
    inner_steps: int
    estimate: Step[Any, Batch]

    def __call__(self, side: ActorSide) -> Bound:
        agent = side.agent
        if not hasattr(agent, "adaptation"):
            raise ConfigError(
                f"adapt needs an agent with a method adaptation(), {type(agent).__name__} has none; see rollstream.algorithms.maml"
            )
        return _BoundAdapt(side, self, self.estimate.bind(side), agent.adaptation()).items


@dataclass(frozen=True, slots=True)
class _BoundAdapt:
    side: ActorSide
    settings: _Adapt
    estimate: Bound
    adaptation: Adaptation

    def items(self, nothing: None) -> Batch:
        """One message: all phases of so many tasks, by the newest weights."""
        self.side.pull()
        meta = self.side.tensors()
        drawn = self.side.generator("tasks").integers(TASKS, size=self.settings.tasks)
        return join_batches([batch for task in drawn.tolist() for batch in self._phases(int(task), meta)])

    def _phases(self, task: int, meta: Mapping[str, npt.NDArray[Any]]) -> list[Batch]:
        side, tensors, last = self.side, meta, self.settings.inner_steps
        found: list[Batch] = []
        for phase in range(last + 1):
            side.act_with(tensors)
            side.restart({TASK: task})
            batch = self._collected(task, phase)
            if phase < last:
                tensors = self.adaptation.adapted(batch.columns, tensors)
                batch = replace(batch, episodes=Episodes())
            found.append(batch)
        return found

    def _collected(self, task: int, phase: int) -> Batch:
        rollout = self.side.collect(steps=self.settings.rollout_steps, pull=False)
        batch: Batch = self.estimate(rollout)
        advantage = batch.columns["advantage"]
        more = {
            "advantage": (advantage - advantage.mean()) / (advantage.std() + np.float32(SMALLEST_DEVIATION)),
            "reward": rollout.rows["reward"][(rollout.rows["flags"] & Flag.FINAL) == 0],
            TASK: np.full(batch.rows, task, np.int64),
            PHASE: np.full(batch.rows, phase, np.uint8),
        }
        return replace(batch, columns={**batch.columns, **more})

"""The learning halves of several policies, as one: what is learned, published and saved for each stands under its name.

A batch belongs to one policy, which the flow names: `learner.update(policy="ppo")`; samples belong to the policy that owns the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError
from rollstream.learning.agent import Learned, LearningAgent, SampledItems
from rollstream.spaces import Batch, Columns

__all__ = ["PolicyLearners", "learner_of"]


class PolicyLearners:
    """A `LearningAgent` of several.

    Args:
        learners: by policy.
        tables: the policy that each table is sampled for.
    """

    def __init__(self, learners: Mapping[str, LearningAgent], *, tables: Mapping[str, str]) -> None:
        self.learners = dict(learners)
        self.tables = dict(tables)

    def learn(self, batch: Batch, *, env_steps: int) -> Learned:
        self._ask("update")

    def columns(self, sample: SampledItems, *, env_steps: int) -> Columns:
        self._ask("samples")

    def tensors(self, *, env_steps: int) -> Mapping[str, npt.NDArray[np.float32]]:
        return {
            f"{policy}/{name}": tensor
            for policy, learner in self.learners.items()
            for name, tensor in learner.tensors(env_steps=env_steps).items()
        }

    def sync_target(self) -> None:
        for learner in self.learners.values():
            learner.sync_target()

    def state(self) -> dict[str, Any]:
        return {policy: learner.state() for policy, learner in self.learners.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        for policy, learner in self.learners.items():
            learner.restore(state[policy])

    def _ask(self, verb: str) -> NoReturn:
        raise ConfigError(f"{verb} for which policy? There are several: {', '.join(self.learners)}; name one (policy=...)")


def learner_of(agent: LearningAgent, policy: str) -> LearningAgent:
    """The learning half of `policy`; the agent itself when no policy is named.

    Raises:
        ConfigError: there is no such policy.
    """
    if not policy:
        return agent
    known = agent.learners if isinstance(agent, PolicyLearners) else {}
    if policy not in known:
        raise ConfigError(f"there is no policy {policy!r} here; there are: {', '.join(known) or 'none, for one policy is all'}")
    return known[policy]

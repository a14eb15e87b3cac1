"""What is optimized: PPO's loss, unless it fails."""

from __future__ import annotations

from typing import Any

from rollstream.algorithms.ppo.agent import PpoAgent

__all__ = ["TheirAgent"]


class TheirAgent(PpoAgent):
    """PPO's agent, with a learner of its own."""

    def __init__(self, config: Any, **leaves: Any) -> None:
        super().__init__(config, **leaves)
        if config.fault == "agent":
            raise AttributeError("the agent has no torso")

    def learning(self, *, seed: int) -> Any:
        if self.config.fault == "learning":  # type: ignore[attr-defined]
            raise AttributeError("there is no optimizer")
        return TheirLearning(super().learning(seed=seed), fault=self.config.fault)  # type: ignore[attr-defined]


class TheirLearning:
    """Learns, until it does not."""

    def __init__(self, inner: Any, *, fault: str) -> None:
        self._inner = inner
        self._fault = fault

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def learn(self, batch: Any, *, env_steps: int) -> Any:
        if self._fault == "loss":
            return their_loss(batch)
        return self._inner.learn(batch, env_steps=env_steps)


def their_loss(batch: Any) -> Any:
    import torch

    return torch.ones(3, 4) @ torch.ones(3, 4)

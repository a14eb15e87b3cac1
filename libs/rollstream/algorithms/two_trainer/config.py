"""What can be set for the two trainers: who plays whom, and the settings of PPO and DQN."""

from __future__ import annotations

from pydantic import Field, model_validator

from rollstream.algorithms.dqn.config import DqnConfig
from rollstream.algorithms.ppo.config import PpoConfig
from rollstream.algorithms.settings import ReportSettings
from rollstream.config import PolicySettings

__all__ = ["TwoTrainerConfig"]

NAMES = ("ppo", "dqn")


class TwoTrainerConfig(ReportSettings):
    """Settings of the flow of Liang et al. 2021 (RLlib Flow), figure 11: PPO and DQN learn side by side in one environment."""

    policies: dict[str, PolicySettings] = Field(default_factory=dict)
    """Agents of `ppo` and of `dqn`, e.g. {"ppo": {"agents": ["wolf_*"]}, "dqn": {}}; empty: ppo plays every other agent, from the first."""
    ppo: PpoConfig = Field(default_factory=PpoConfig)
    """Settings of PPO; its `rollout_steps` are those of the rollouts that both learn from."""
    dqn: DqnConfig = Field(default_factory=DqnConfig)
    """Settings of DQN; `rollout_steps` and `publish_every_updates` do nothing: rollouts and publications are PPO's."""

    @model_validator(mode="after")
    def _two(self) -> TwoTrainerConfig:
        if self.policies and sorted(self.policies) != sorted(NAMES):
            raise ValueError(
                f"policies must be ppo and dqn, got {', '.join(self.policies)}; multi-ppo takes any number of policies"
            )
        return self

"""What can be set in IMPALA. Defaults solve CartPole-v1 and are for small observation vectors."""

from __future__ import annotations

from pydantic import Field

from rollstream.algorithms.settings import ActorCriticSettings, OnPolicySettings, OptimizerSettings, RecurrentSettings

__all__ = ["ImpalaConfig", "VtraceSettings"]


class VtraceSettings(OnPolicySettings, ActorCriticSettings, RecurrentSettings, OptimizerSettings):
    """What algorithms share that learn by V-trace from actors that run ahead; letters in brackets are those of Espeholt et al. 2018."""

    rollout_steps: int = Field(default=32, ge=1)
    """Vector steps an actor takes before it sends them [n]; 20 (Atari) to 100 (DMLab) in the paper."""
    sequence_steps: int = Field(default=32, ge=1)
    """Steps over which V-trace looks ahead; rollouts are cut into sequences of so many, best as many as `rollout_steps`."""
    in_flight: int = Field(default=2, ge=1)
    """Rollouts that an actor may be ahead of the learner; 2 keep it busy while one is learned from."""
    max_lag: int | None = Field(default=None, ge=0)
    """Rollouts by weights that are more versions old are dropped and counted; None keeps all, since V-trace corrects."""
    batch_steps: int = Field(default=256, ge=1)
    """Environment steps that are joined before the learner updates; about one rollout of 8 environments."""
    batch_sequences: int = Field(default=8, ge=1)
    """Sequences in one update; those of a batch are shuffled and divided evenly."""
    publish_every_updates: int = Field(default=2, ge=1)
    """Updates between published weights; 2 is once for each new batch, as long as one earlier batch is mixed in."""
    replay_slots: int = Field(default=16, ge=1)
    """Batches that are kept for learning from them again."""
    rho_clip: float = Field(default=1.0, gt=0)
    """Largest weight of a single error [rho bar]; 1 learns the values of the policy that learns, cut to what was acted."""
    c_clip: float = Field(default=1.0, gt=0)
    """Largest weight with which errors of later steps reach back [c bar]."""
    vtrace_lambda: float = Field(default=1.0, ge=0, le=1)
    """Share of later errors that reaches back at each step [lambda]; less is steadier and more biased."""


class ImpalaConfig(VtraceSettings):
    """Settings of IMPALA (Espeholt et al. 2018)."""

    replay_share: float = Field(default=1.0, ge=0)
    """Earlier batches that are learned from again for each new one; 0 learns from each once."""
    entropy_coefficient: float = Field(default=0.01, ge=0)
    """Weight of the entropy bonus; 0.01 keeps exploring while values are still wrong."""

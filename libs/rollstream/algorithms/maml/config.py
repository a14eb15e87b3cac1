"""What can be set in MAML. Defaults suit `rollstream.envs.navigation:PointNavigation`."""

from __future__ import annotations

from pydantic import Field

from rollstream.algorithms.settings import ActorCriticSettings, OnPolicySettings, OptimizerSettings

__all__ = ["MamlConfig"]


class MamlConfig(OnPolicySettings, ActorCriticSettings, OptimizerSettings):
    """Settings of MAML (Finn et al. 2017; for the outer objective Rothfuss et al. 2019); letters in brackets are the papers'."""

    rollout_steps: int = Field(default=20, ge=1)
    """Vector steps in each phase of a task, which begins with new episodes; a multiple of their length [H]."""
    tasks_per_actor: int = Field(default=10, ge=1)
    """Tasks that each actor learns between two meta-updates; 2 actors give a meta-batch of 20, as in the paper."""
    inner_steps: int = Field(default=1, ge=1)
    """Gradient steps of adaptation, each on new episodes; 1 in the paper's training."""
    inner_learning_rate: float = Field(default=0.1, gt=0)
    """Step size of adaptation [alpha]; plain gradient descent, so it is large."""
    first_order: bool = False
    """Leave out second derivatives: about half of the time, and a worse direction."""
    epochs: int = Field(default=5, ge=1)
    """Meta-updates on each round of data; probability ratios correct and the clip bounds them."""
    clip_ratio: float = Field(default=0.3, gt=0)
    """How far adapted policies may move from those that acted before their gradient is cut [epsilon]."""
    gae_lambda: float = Field(default=0.95, ge=0, le=1)
    """Mix of short and long returns in the advantage."""
    discount: float = Field(default=0.9, ge=0, le=1)
    """Weight of the next step's value [gamma]; 0.9 looks about 10 steps ahead, half an episode."""
    max_gradient_norm: float = Field(default=1.0, gt=0)
    """Global norm to which meta-gradients are clipped."""

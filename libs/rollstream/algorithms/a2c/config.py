"""What can be set in A2C: one policy-gradient update for each round of data. Defaults solve CartPole-v1."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rollstream.algorithms.optimizing import OptimizerForm
from rollstream.algorithms.settings import ActorCriticSettings, OnPolicySettings, OptimizerSettings

__all__ = ["A2cConfig"]


class A2cConfig(OnPolicySettings, ActorCriticSettings, OptimizerSettings):
    """Settings of A2C (Mnih et al. 2016, the synchronous form)."""

    rollout_steps: int = Field(default=16, ge=1)
    """Vector steps an actor takes between updates [t_max]; 5 in the paper, 16 halves the number of rounds and its waiting."""
    gae_lambda: float = Field(default=1.0, ge=0, le=1)
    """Mix of short and long returns in the advantage; 1 is the paper's: rewards of the whole rollout, then the value."""
    learning_rate: float = Field(default=3e-3, gt=0)
    """Step size of the optimizer at the start; one update a round moves little, so it is larger than PPO's."""
    optimizer: OptimizerForm = Field(default_factory=lambda: {"kind": "rmsprop", "decay": 0.99, "epsilon": 1e-5})
    """RMSProp as in the paper, with the epsilon that made A2C in TensorFlow stable; or `adam`."""
    microbatch_rows: int = Field(default=256, ge=1)
    """Rows whose gradient is computed at once; a larger round is computed in parts, whose mean is applied once, as if it were whole."""
    mode: Literal["auto", "numpy", "torch"] = "auto"
    """How updates run: `auto` takes NumPy, or torch for convolutions; compiled modes cannot put a gradient together from parts."""

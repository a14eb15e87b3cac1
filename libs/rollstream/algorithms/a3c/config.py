"""What can be set in A3C: gradients are computed in the actors. Defaults solve CartPole-v1."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rollstream.algorithms.optimizing import OptimizerForm
from rollstream.algorithms.settings import ActorCriticSettings, OnPolicySettings, OptimizerSettings

__all__ = ["A3cConfig"]


class A3cConfig(OnPolicySettings, ActorCriticSettings, OptimizerSettings):
    """Settings of A3C; letters in brackets are those of Mnih et al. 2016."""

    rollout_steps: int = Field(default=16, ge=1)
    """Vector steps from which an actor computes one gradient [t_max]; 5 in the paper, where no gradient crosses a process."""
    gae_lambda: float = Field(default=1.0, ge=0, le=1)
    """Mix of short and long returns in the advantage; 1 is the paper's: rewards of the whole rollout, then the value."""
    learning_rate: float = Field(default=3e-3, gt=0)
    """Step size of the optimizer; each gradient is applied alone, so it moves less than PPO's epochs and may be larger."""
    entropy_coefficient: float = Field(default=0.01, ge=0)
    """Weight of the entropy bonus [beta]; the paper's 0.01 keeps actors exploring differently."""
    optimizer: OptimizerForm = Field(default_factory=lambda: {"kind": "rmsprop", "decay": 0.99, "epsilon": 1e-5})
    """RMSProp with statistics that all actors share, the paper's best (section 7), with an epsilon that keeps early steps small."""
    mode: Literal["numpy", "torch"] = "numpy"
    """How the learner applies gradients; actors compute them with NumPy. Compiled modes cannot do one without the other."""

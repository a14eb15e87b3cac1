"""What can be set in advantage actor-critic."""

from __future__ import annotations

from pydantic import Field

from rollstream.config import Frozen

__all__ = ["ActorCriticConfig"]


class ActorCriticConfig(Frozen):
    """Settings of advantage actor-critic (Mnih et al. 2016), synchronous."""

    rollout_steps: int = Field(default=16, ge=1)
    """Vector steps between updates; short, because each row is used once."""
    batch_rows: int = Field(default=256, ge=2)
    """Rows in one update: two actors with 8 environments and 16 steps."""
    learning_rate: float = Field(default=3e-3, gt=0)
    """Step size of Adam."""
    discount: float = Field(default=0.99, ge=0, le=1)
    """Weight of the next step's value."""
    gae_lambda: float = Field(default=0.95, ge=0, le=1)
    """Mix of short and long returns in the advantage."""
    value_coefficient: float = Field(default=0.5, ge=0)
    """Weight of the value loss."""
    entropy_coefficient: float = Field(default=0.01, ge=0)
    """Weight of the entropy bonus: without it the policy stops exploring early."""
    max_gradient_norm: float = Field(default=0.5, gt=0)
    """Global norm to which gradients are clipped."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the hidden layers."""
    report_every_s: float = Field(default=1.0, gt=0)
    """Seconds between reports; every algorithm has this setting."""

"""What can be set in MARWIL."""

from __future__ import annotations

from pydantic import Field

from rollstream.algorithms.imitating import ImitationSettings

__all__ = ["MarwilConfig"]


class MarwilConfig(ImitationSettings):
    """Settings of MARWIL (Wang et al. 2018, NeurIPS)."""

    discount: float = Field(default=0.99, ge=0, le=1)
    """Weight of the next step's reward in the return of a recorded action; 0.99 looks about 100 steps ahead."""
    imitation_exponent: float = Field(default=1.0, ge=0)
    """How much better actions count more [beta]: weight exp(beta A / scale of A). 0 is behavior cloning."""
    imitation_weight_limit: float = Field(default=20.0, gt=0)
    """No action counts more than that, however well it went."""
    value_coefficient: float = Field(default=1.0, ge=0)
    """Weight of the value loss; the value head has a network of its own, so it matters little."""
    advantage_scale_share: float = Field(default=0.01, gt=0, le=1)
    """How far the running mean of squared advantages, whose root is their scale, moves in an update; 0.01 looks back over 100."""
    max_gradient_norm: float | None = Field(default=None, gt=0)
    """Global norm to which gradients are clipped; None, since errors of values, which are large, would scale down the policy's."""

"""What can be set in R2D2: recurrent action values, learned from sequences of a prioritized table."""

from __future__ import annotations

from pydantic import Field, model_validator

from rollstream.algorithms.exploring import EpsilonLadderSettings
from rollstream.algorithms.settings import NetworkSettings, OptimizerSettings, PrioritySettings, ReplaySettings
from rollstream.graph.components.torso import Recurrent, Width

__all__ = ["R2d2Config"]


class R2d2Config(ReplaySettings, PrioritySettings, EpsilonLadderSettings, NetworkSettings, OptimizerSettings):
    """Settings of R2D2 (Kapturowski et al. 2019). Sizes are for small tasks on a laptop; the paper's stand beside them."""

    sequence_steps: int = Field(default=20, ge=1)
    """Steps of a sequence that are learned from; 80 in the paper. Its last row only gives the value to bootstrap from."""
    stride_steps: int = Field(default=10, ge=1)
    """Steps between the starts of sequences; half of their length, as in the paper, so that each step is learned from twice."""
    burn_in_steps: int = Field(default=10, ge=0)
    """Steps before a sequence that only bring the stored state up to date; 40 in the paper. 0 takes the stored state as it is."""
    n_step: int = Field(default=5, ge=1)
    """Rewards summed before the bootstrap value, fewer at the end of a sequence; 5 of the paper."""
    rescale_values: bool = True
    """Learn values on a compressed scale, so that returns of very different sizes fit one network; of the paper."""
    priority_eta: float = Field(default=0.9, ge=0, le=1)
    """A sequence's priority is this much of its largest error, and the rest of the mean; 0.9 of the paper."""
    priority_exponent: float = Field(default=0.9, ge=0)
    """How much sampling prefers large errors; 0.9 of the paper."""
    importance_exponent: float = Field(default=0.6, ge=0, le=1)
    """How much the preference is corrected by importance weights at the start; 0.6 of the paper."""
    priority_floor: float = Field(default=1e-3, ge=0)
    """Added to every priority, so that no sequence's probability falls to 0; small beside usual errors."""
    rollout_steps: int = Field(default=20, ge=1)
    """Vector steps an actor takes between flushes to the table; 20 keeps data fresh at little cost."""
    batch_items: int = Field(default=32, ge=1)
    """Sequences in one update; 64 in the paper."""
    table_items: int = Field(default=5_000, ge=1)
    """Sequences that the table holds; 100,000 in the paper. The oldest leave first."""
    min_items: int = Field(default=100, ge=1)
    """Sequences in the table before the first update, so that it does not overfit the first episodes."""
    samples_per_insert: float = Field(default=8.0, gt=0)
    """How often a sequence is sampled on average; the limiter keeps it."""
    ratio_tolerance_items: int = Field(default=500, ge=1)
    """How far inserts may run ahead or behind before someone waits; large enough that neither side stutters."""
    publish_every_updates: int = Field(default=5, ge=1)
    """Learner updates between published weights; stored states age with the weights, so few."""
    target_sync_every_updates: int = Field(default=50, ge=1)
    """Learner updates for which the target network stays fixed; 2,500 in the paper."""
    max_gradient_norm: float = Field(default=10.0, gt=0)
    """Global norm to which gradients are clipped; 10 cuts outliers only."""
    huber_delta: float | None = Field(default=None, gt=0)
    """Errors beyond it count linearly, not squared; None squares all, since compressed errors are small."""
    hidden: tuple[Width, ...] = (64,)
    """Widths of the layers before the one that remembers; one is enough for observation vectors."""
    recurrent: Recurrent = "lstm"
    """Layer that remembers: `lstm` of the paper, or `gru`."""
    recurrent_units: int = Field(default=64, ge=1, le=4_096)
    """Width of the layer that remembers; 512 in the paper."""
    dueling: bool = True
    """Split value and advantage streams (Wang et al. 2016), as in the paper."""

    @model_validator(mode="after")
    def _covered(self) -> R2d2Config:
        if self.stride_steps > self.sequence_steps:
            raise ValueError(
                f"stride_steps ({self.stride_steps}) must be <= sequence_steps ({self.sequence_steps}), else steps between "
                "sequences are never learned from"
            )
        return self

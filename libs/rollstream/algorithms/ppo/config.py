"""What can be set in PPO. Defaults solve CartPole-v1 and are the usual ones for small observation vectors."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from rollstream.algorithms.optimizing import OptimizerForm, ScheduleForm
from rollstream.config import Frozen
from rollstream.graph.components.image import Channels
from rollstream.graph.components.preprocessing import Chains
from rollstream.graph.components.torso import Convolutions, Recurrent, Width
from rollstream.graph.modes.engines import UpdateMode
from rollstream.graph.policies import BoxBounds

__all__ = ["PpoConfig"]


class PpoConfig(Frozen):
    """Settings of PPO; letters in brackets are those of Schulman et al. 2017."""

    rollout_steps: int = Field(default=128, ge=1)
    """Vector steps an actor takes between updates [T]; 128 bounds the age of data to a second or so."""
    epochs: int = Field(default=4, ge=1)
    """Passes over each round of data [K]; more reuse learns faster per step until the ratio clips everything."""
    batch_rows: int = Field(default=256, ge=2)
    """Rows in one minibatch [M]; 256 keeps one update below a millisecond or two on one core."""
    learning_rate: float = Field(default=1e-3, gt=0)
    """Step size of the optimizer; 1e-3 suits small networks, use 3e-4 for large ones."""
    learning_rate_decay_steps: int | None = Field(default=None, ge=1)
    """Environment steps over which the learning rate falls to a tenth, linearly; None keeps it constant."""
    learning_rate_schedule: ScheduleForm | None = None
    """In place of the two above, e.g. {"kind": "cosine", "start": 1e-3, "end": 0, "over_steps": 1e6}; None: a line serves most tasks."""
    learning_rate_groups: dict[str, float] = Field(default_factory=dict)
    """Factors of the learning rate by pattern of parameter names, e.g. {"value_torso.*": 2}; empty moves all alike."""
    optimizer: OptimizerForm = Field(default_factory=lambda: {"kind": "adam"})
    """`adam`, `adamw`, `rmsprop` or `sgd`, or a mapping with its settings, e.g. {"kind": "sgd", "momentum": 0.9}; Adam needs least care."""
    discount: float = Field(default=0.99, ge=0, le=1)
    """Weight of the next step's value [gamma]; 0.99 looks about 100 steps ahead."""
    gae_lambda: float = Field(default=0.95, ge=0, le=1)
    """Mix of short and long returns in the advantage [lambda]; 0.95 trades variance for a little bias."""
    clip_ratio: float = Field(default=0.2, gt=0)
    """How far the new policy's probability ratio may move before its gradient is cut [epsilon]; the paper's 0.2."""
    value_coefficient: float = Field(default=0.5, ge=0)
    """Weight of the value loss [c1]; 0.5 is usual when policy and value do not share a network's last layer."""
    entropy_coefficient: float = Field(default=0.0, ge=0)
    """Weight of the entropy bonus [c2]; 0 because dense-reward tasks do not need it."""
    max_gradient_norm: float = Field(default=0.5, gt=0)
    """Global norm to which gradients are clipped; 0.5 is usual for PPO."""
    hidden: tuple[Width, ...] = (64, 64)
    """Widths of the hidden layers; two of 64 units are enough for observation vectors."""
    shared_torso: bool = False
    """Policy and value head share their hidden layers: half the work, but value errors then move the policy's features."""
    activation: Literal["tanh", "relu"] = "tanh"
    """Non-linearity of the hidden layers; tanh is the steadier one for PPO."""
    preprocessing: Chains = Field(default_factory=dict)
    """What is done to each leaf of the observation before the networks see it, by its name, e.g. {"observation": ["grayscale"]}."""
    normalize_observations: bool = False
    """Bring observation numbers (not images) to mean 0 and deviation 1 by running statistics; worth it where scales differ."""
    convolutions: Convolutions | None = None
    """Network for images: `atari` (2 layers), `nature` (3) or `impala` (residual); None flattens them, which suits few pixels only."""
    channels: Channels = "auto"
    """Where images have their channels: `first`, `last`, or `auto`, which takes the axis that looks like channels."""
    recurrent: Recurrent | None = None
    """Layer that remembers, `lstm` or `gru`, after the hidden ones; for tasks that one observation does not tell all about."""
    recurrent_units: int = Field(default=64, ge=1, le=4_096)
    """Width of the layer that remembers; as wide as the hidden ones."""
    sequence_steps: int = Field(default=16, ge=1)
    """Steps through which a policy that remembers learns at once; longer ones reach further back, and are slower."""
    box_bounds: BoxBounds = "clip"
    """How Box actions stay inside their bounds: `clip` cuts samples and keeps the entropy exact; `squash` takes their tanh."""
    autoregressive: bool = False
    """With several action leaves, later ones see what earlier ones chose; needed only where they must fit together."""
    mode: UpdateMode = "auto"
    """How updates run: `auto` takes NumPy for small networks and compiles large ones in the background; `torch` is for debugging."""
    device: str = "cpu"
    """Where updates run in a torch mode: `cpu`, `cuda` or `cuda:N`; small networks are faster on the CPU."""
    mixed_precision: bool = False
    """Matrix products and convolutions in bfloat16 (torch modes); worth it on GPUs, with large networks."""
    accumulate_parts: int = Field(default=1, ge=1)
    """Parts in which a minibatch is computed, one after the other (torch modes); more than 1 where it does not fit into memory."""
    report_every_s: float = Field(default=1.0, gt=0)
    """Seconds between reports; one a second is what a person can follow."""

    @model_validator(mode="after")
    def _consistent(self) -> PpoConfig:
        if self.recurrent and self.batch_rows < self.sequence_steps:
            raise ValueError(
                f"batch_rows ({self.batch_rows}) must be >= sequence_steps ({self.sequence_steps}): a minibatch holds whole sequences"
            )
        return self

"""Settings that algorithms share: each of them stands here once, and an algorithm's `config.py` puts together what it needs.

    class A2cConfig(OnPolicySettings, ActorCriticSettings, OptimizerSettings): ...

A subclass repeats a field only to give it another default, with the reason for it.
"""

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

__all__ = [
    "ActorCriticSettings",
    "ExplorationSettings",
    "NetworkSettings",
    "OffPolicySettings",
    "OfflineSettings",
    "OnPolicySettings",
    "OptimizerSettings",
    "PolyakSettings",
    "PrioritySettings",
    "RecurrentSettings",
    "ReplaySettings",
    "ReportSettings",
]


class ReportSettings(Frozen):
    """Of every algorithm."""

    report_every_s: float = Field(default=1.0, gt=0)
    """Seconds between reports; one a second is what a person can follow."""


class OptimizerSettings(ReportSettings):
    """How parameters move, and how updates run."""

    learning_rate: float = Field(default=1e-3, gt=0)
    """Step size of the optimizer; 1e-3 suits small networks, use 3e-4 for large ones."""
    learning_rate_decay_steps: int | None = Field(default=None, ge=1)
    """Environment steps over which the learning rate falls to a tenth, linearly; None keeps it constant."""
    learning_rate_schedule: ScheduleForm | None = None
    """In place of the two above, e.g. {"kind": "cosine", "start": 1e-3, "end": 0, "over_steps": 1e6}; None: a line serves most tasks."""
    learning_rate_groups: dict[str, float] = Field(default_factory=dict)
    """Factors of the learning rate by pattern of parameter names, e.g. {"torso.*": 0.5}; empty moves all alike."""
    optimizer: OptimizerForm = Field(default_factory=lambda: {"kind": "adam"})
    """`adam`, `adamw`, `rmsprop` or `sgd`, or a mapping with its settings, e.g. {"kind": "sgd", "momentum": 0.9}; Adam needs least care."""
    max_gradient_norm: float | None = Field(default=0.5, gt=0)
    """Global norm to which gradients are clipped; 0.5 is usual for policy gradients. None: never."""
    mode: UpdateMode = "auto"
    """How updates run: `auto` takes NumPy for small networks and compiles large ones in the background; `torch` is for debugging."""
    device: str = "cpu"
    """Where updates run in a torch mode: `cpu`, `cuda` or `cuda:N`; small networks are faster on the CPU."""
    mixed_precision: bool = False
    """Matrix products and convolutions in bfloat16 (torch modes); worth it on GPUs, with large networks."""
    learner_ranks: int = Field(default=1, ge=1, le=64)
    """Processes of the learner's machine that share every update, each with its part of the rows (torch modes); for networks whose
    updates are slower than the actors, and for several GPUs."""
    learner_ranks_backend: Literal["gloo", "nccl"] = "gloo"
    """How ranks exchange gradients: `gloo` on CPUs; `nccl` on GPUs, of which rank r takes `cuda:r`."""


class NetworkSettings(Frozen):
    """The networks, and what stands in front of them."""

    hidden: tuple[Width, ...] = (64, 64)
    """Widths of the hidden layers; two of 64 units are enough for observation vectors."""
    activation: Literal["tanh", "relu"] = "relu"
    """Non-linearity of the hidden layers; relu is usual for values."""
    preprocessing: Chains = Field(default_factory=dict)
    """What is done to each leaf of the observation before the networks see it, by its name, e.g. {"observation": ["grayscale"]}."""
    normalize_observations: bool = False
    """Bring observation numbers (not images) to mean 0 and deviation 1 by running statistics; worth it where scales differ."""
    convolutions: Convolutions | None = None
    """Network for images: `atari` (2 layers), `nature` (3) or `impala` (residual); None flattens them, which suits few pixels only."""
    channels: Channels = "auto"
    """Where images have their channels: `first`, `last`, or `auto`, which takes the axis that looks like channels."""


class RecurrentSettings(Frozen):
    """Policies that remember."""

    recurrent: Recurrent | None = None
    """Layer that remembers, `lstm` or `gru`, after the hidden ones; for tasks that one observation does not tell all about."""
    recurrent_units: int = Field(default=64, ge=1, le=4_096)
    """Width of the layer that remembers; as wide as the hidden ones."""
    sequence_steps: int = Field(default=16, ge=1)
    """Steps through which a policy that remembers learns at once; longer ones reach further back, and are slower."""


class ActorCriticSettings(NetworkSettings):
    """A policy for any action space with a value head."""

    activation: Literal["tanh", "relu"] = "tanh"
    """Non-linearity of the hidden layers; tanh is the steadier one for policy gradients."""
    shared_torso: bool = False
    """Policy and value head share their hidden layers: half the work, but value errors then move the policy's features."""
    box_bounds: BoxBounds = "clip"
    """How Box actions stay inside their bounds: `clip` cuts samples and keeps the entropy exact; `squash` takes their tanh."""
    autoregressive: bool = False
    """With several action leaves, later ones see what earlier ones chose; needed only where they must fit together."""


class OnPolicySettings(Frozen):
    """Learning from fresh rollouts."""

    rollout_steps: int = Field(default=128, ge=1)
    """Vector steps an actor takes between updates [T]; 128 bounds the age of data to a second or so."""
    discount: float = Field(default=0.99, ge=0, le=1)
    """Weight of the next step's value [gamma]; 0.99 looks about 100 steps ahead."""
    value_coefficient: float = Field(default=0.5, ge=0)
    """Weight of the value loss [c1]; 0.5 is usual when policy and value do not share a network's last layer."""
    entropy_coefficient: float = Field(default=0.0, ge=0)
    """Weight of the entropy bonus [c2]; 0 because dense-reward tasks do not need it."""


class ReplaySettings(Frozen):
    """Learning from a table."""

    rollout_steps: int = Field(default=16, ge=1)
    """Vector steps an actor takes between flushes to the table; 16 keeps data fresh at little cost."""
    discount: float = Field(default=0.99, ge=0, le=1)
    """Weight of the next step's value; 0.99 looks about 100 steps ahead."""
    batch_items: int = Field(default=64, ge=1)
    """Items in one update; 64 keeps updates frequent."""
    table_items: int = Field(default=50_000, ge=1)
    """Items that the table holds; the oldest leave first."""
    table_shards: int = Field(default=1, ge=1, le=256)
    """Replay shards over which the table is spread; the cell needs as many. One serves dozens of actors."""
    min_items: int = Field(default=1_000, ge=1)
    """Items in the table before the first update, so that it does not overfit the first episodes."""
    samples_per_insert: float = Field(default=8.0, gt=0)
    """How often an item is sampled on average; the limiter keeps it."""
    ratio_tolerance_items: int = Field(default=2_000, ge=1)
    """How far inserts may run ahead or behind before someone waits; large enough that neither side stutters."""
    publish_every_updates: int = Field(default=10, ge=1)
    """Learner updates between published weights; 10 keeps actors close to the learner."""

    @model_validator(mode="after")
    def _fillable(self) -> ReplaySettings:
        if self.min_items > self.table_items:
            raise ValueError(
                f"min_items ({self.min_items}) must be <= table_items ({self.table_items}), else no update can ever start"
            )
        return self


class PolyakSettings(NetworkSettings, OptimizerSettings):
    """Actor and critics that learn from a table, with target networks that follow slowly. Defaults solve Pendulum-v1."""

    discount: float = Field(default=0.99, ge=0, le=1)
    """Weight of the next step's value; 0.99 looks about 100 steps ahead."""
    batch_items: int = Field(default=128, ge=1)
    """Items in one update; 128 takes half the time of the papers' 256."""
    n_step: int = Field(default=1, ge=1)
    """Rewards summed before the bootstrap value; 1 of the papers keeps old items right, more carries reward back faster."""
    max_gradient_norm: float | None = Field(default=None, gt=0)
    """Global norm to which gradients are clipped; None, since actor and critics share it, and one would scale the other."""
    target_share: float = Field(default=0.005, gt=0, le=1)
    """How far the target networks move to the parameters each time [tau]; 0.005 follows over some 200 updates."""
    target_sync_every_updates: int = Field(default=1, ge=1)
    """Learner updates between moves of the target networks; 1, since they move slowly."""


class OffPolicySettings(PolyakSettings, ReplaySettings):
    """The same, while actors fill the table."""

    rollout_steps: int = Field(default=4, ge=1)
    """Vector steps an actor takes between flushes to the table; 4, since there are many updates for each step."""
    table_items: int = Field(default=200_000, ge=1)
    """Items that the table holds; the oldest leave first. The papers hold 1,000,000, for runs that are as long."""
    samples_per_insert: float = Field(default=128.0, gt=0)
    """How often an item is sampled on average; as many as `batch_items` is one update for each environment step."""
    ratio_tolerance_items: int = Field(default=20_000, ge=1)
    """How far sampled items may run ahead or behind before someone waits: 20,000 are about 150 updates."""
    offline: str | None = None
    """Recorded data that the table begins with: a NumPy archive (.npz) or a Minari dataset, as the learner sees it; None: it is empty."""


class OfflineSettings(ReportSettings):
    """Learning from recorded data alone, without actors."""

    offline: str = ""
    """The recorded data: path of a NumPy archive (.npz) or a Minari dataset (folder or id), as the learner sees it. It must be given."""
    batch_items: int = Field(default=256, ge=1)
    """Items in one update; 256, since recorded data is varied, and large batches follow it steadily."""
    table_shards: int = Field(default=1, ge=1, le=256)
    """Replay shards over which the data is spread; the cell needs as many. One is enough for one learner."""
    publish_every_updates: int = Field(default=500, ge=1)
    """Learner updates between published weights, which whoever asks the cell to act gets; 500 costs nothing."""
    evaluate_every_updates: int = Field(default=1_000, ge=1)
    """Learner updates between evaluations in the environment, which the reported returns come from; they take time from learning."""
    evaluate_episodes: int = Field(default=20, ge=1)
    """Greedy episodes of one evaluation; 20 show where it goes. A stop rule looks at the last 100."""


class PrioritySettings(Frozen):
    """Sampling by the size of errors (Schaul et al. 2016)."""

    priority_exponent: float = Field(default=0.6, ge=0)
    """How much sampling prefers large errors: 0 is uniform, 1 proportional [alpha of Schaul et al. 2016]."""
    importance_exponent: float = Field(default=0.4, ge=0, le=1)
    """How much the preference is corrected by importance weights at the start; it grows to 1 [beta]."""
    importance_growth_steps: int = Field(default=200_000, ge=1)
    """Environment steps over which the correction grows to 1."""


class ExplorationSettings(Frozen):
    """Random actions at a share that falls (epsilon-greedy)."""

    epsilon_start: float = Field(default=1.0, ge=0, le=1)
    """Share of random actions at the start: 1 fills the table with varied data."""
    epsilon_end: float = Field(default=0.01, ge=0, le=1)
    """Share of random actions in the end; 0.01 keeps a little variety, and 0 explores nothing."""
    epsilon_decay_steps: int = Field(default=20_000, ge=1)
    """Environment steps over which epsilon falls linearly from start to end."""

    @model_validator(mode="after")
    def _falling(self) -> ExplorationSettings:
        if self.epsilon_end > self.epsilon_start:
            raise ValueError(f"epsilon_end ({self.epsilon_end}) must be <= epsilon_start ({self.epsilon_start})")
        return self

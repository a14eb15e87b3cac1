"""What can be set in DQN: double Q-learning with prioritized replay and n-step returns."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from rollstream.algorithms.settings import (
    ExplorationSettings,
    NetworkSettings,
    OptimizerSettings,
    PrioritySettings,
    ReplaySettings,
)
from rollstream.graph.components.torso import Width
from rollstream.graph.policies import Distribution

__all__ = ["ActionValueSettings", "DqnConfig", "RainbowConfig"]


class ActionValueSettings(ReplaySettings, PrioritySettings, NetworkSettings, OptimizerSettings):
    """Learning action values from a prioritized table, however actors explore. Defaults solve CartPole-v1.

    Numbers like "66k (80k)" are environment steps until the mean training return of 100 episodes is 475 on CartPole-v1, mean (worst)
    of 16 seeds in a one-process model of this algorithm; one setting is changed at a time. 66k (80k) is what a table of 50,000 items and
    one update a sample take, from which they were changed; 50k is the least, since 100 whole episodes are that long.
    """

    rollout_steps: int = Field(default=16, ge=1)
    """Vector steps an actor takes between flushes to the table; 16 keeps data fresh at little cost; 32 takes 76k (100k; 10 seeds)."""
    n_step: int = Field(default=10, ge=1)
    """Rewards summed before the bootstrap value; 10 carries reward back fast. 5 takes 84k (one of 16 not by 150k), 3 fails 5 of 16."""
    batch_items: int = Field(default=64, ge=1)
    """Items in one update; 64 moves the network twice as often as 128, which takes 75k (93k)."""
    updates_per_sample: int = Field(default=8, ge=1)
    """Updates made with one sample of the table, each with `batch_items` of its own: what asking, fetching and returning priorities cost
    is shared by 8. Priorities are then up to so many updates older; 1 asks for each update."""
    learning_rate: float = Field(default=1e-3, gt=0)
    """Step size of the optimizer at the start. Half of it takes 81k (108k), twice 74k (125k)."""
    learning_rate_decay_steps: int | None = Field(default=200_000, ge=1)
    """Environment steps over which the learning rate falls to a tenth, linearly; None keeps it constant. Half of it takes 71k (97k)."""
    huber_delta: float | None = Field(default=None, gt=0)
    """Errors beyond it count linearly, not squared; None squares all. 1 takes 75k (93k), and values can run away."""
    max_gradient_norm: float = Field(default=10.0, gt=0)
    """Global norm to which gradients are clipped; 10 cuts outliers only."""
    target_sync_every_updates: int = Field(default=40, ge=1)
    """Learner updates for which the target network stays fixed. 20 chases noise: 72k (96k); 200 learns late: 71k (105k)."""
    publish_every_updates: int = Field(default=10, ge=1)
    """Learner updates between published weights; 10 keeps actors close to the learner; 20 takes 73k (101k; 10 seeds)."""
    table_items: int = Field(default=50_000, ge=1)
    """Items that the table holds; the oldest leave first."""
    samples_per_insert: float = Field(default=8.0, gt=0)
    """How often an item is sampled on average; the limiter keeps it. 4 takes 87k (136k); 16 takes 65k, for twice the work."""
    priority_exponent: float = Field(default=0.6, ge=0)
    """How much sampling prefers large errors: 0 is uniform, 1 proportional [alpha of Schaul et al. 2016]. 0 takes 76k (102k)."""
    priority_floor: float = Field(default=1e-3, ge=0)
    """Added to every error, so that no item's probability falls to 0; small beside usual errors (Schaul et al. 2016, section 3.3)."""
    hidden: tuple[Width, ...] = (64, 64)
    """Widths of the hidden layers; two of 64 units are enough for observation vectors; 128 takes 70k (90k)."""
    dueling: bool = False
    """Split value and advantage streams (Wang et al. 2016); off, since two actions gain nothing from it."""
    noisy: bool = False
    """Explore by noise in the weights of the last layers, whose size is learned (Fortunato et al. 2018); use it with epsilon 0."""
    noise_deviation: float = Field(default=0.5, ge=0)
    """Size of that noise at the start [sigma_0]; 0.5 of the paper, for wide layers."""
    distribution: Distribution | None = None
    """Learn the distribution of the return, not its mean alone: `c51` (probabilities of fixed returns) or `quantile`; None for the mean,
    which is enough for small tasks."""
    distribution_atoms: int = Field(default=51, ge=2, le=1_000)
    """Numbers that describe the distribution of one action; 51 of the paper, and 200 are usual for quantiles."""
    distribution_low: float = -10.0
    """Smallest return that c51 can express, in reward units after discounting; the paper's, for rewards clipped to 1."""
    distribution_high: float = 10.0
    """Largest return that c51 can express; see `distribution_low`."""

    @property
    def sample_items(self) -> int:
        """Items of one sample."""
        return self.batch_items * self.updates_per_sample

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.distribution == "quantile" and self.dueling:
            raise ValueError("dueling has no quantiles; use dueling=false, or distribution c51")
        if not self.distribution_low < self.distribution_high:
            raise ValueError(
                f"distribution_low ({self.distribution_low:g}) must be < distribution_high ({self.distribution_high:g})"
            )
        return self


class DqnConfig(ActionValueSettings, ExplorationSettings):
    """Settings of DQN (Mnih et al. 2015; van Hasselt et al. 2016; Schaul et al. 2016). Numbers as above."""

    table_items: int = Field(default=10_000, ge=1)
    """Items that the table holds; the oldest leave first. Items of the random actions at the start disagree with n-step returns for as long
    as they stay: with `updates_per_sample` 8, 10,000 take 68k (74k; 6 seeds), 20,000 71k (83k), 50,000 74k (99k; 8 seeds)."""
    epsilon_end: float = Field(default=0.01, ge=0, le=1)
    """Share of random actions in the end; 0, 0.01 and 0.02 do equally well, and 0 explores nothing."""
    epsilon_decay_steps: int = Field(default=20_000, ge=1)
    """Environment steps over which epsilon falls linearly from start to end. 15,000 takes 74k (105k)."""


class RainbowConfig(DqnConfig):
    """Settings of Rainbow (Hessel et al. 2018): DQN with everything switched on."""

    dueling: bool = True
    """Split value and advantage streams (Wang et al. 2016)."""
    noisy: bool = True
    """Explore by noise in the weights of the last layers (Fortunato et al. 2018)."""
    distribution: Distribution | None = "c51"
    """Learn the distribution of the return by `c51` (Bellemare et al. 2017)."""
    epsilon_start: float = Field(default=0.0, ge=0, le=1)
    """Share of random actions at the start; 0, since the noise explores."""
    epsilon_end: float = Field(default=0.0, ge=0, le=1)
    """Share of random actions in the end; 0, since the noise explores."""
    priority_exponent: float = Field(default=0.5, ge=0)
    """How much sampling prefers large errors; 0.5 of the paper, whose priorities are divergences too."""

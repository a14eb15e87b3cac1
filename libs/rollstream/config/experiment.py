"""The experiment spec: everything that one run is, in one YAML or JSON document, the same on a laptop and on a cluster."""

from __future__ import annotations

import hashlib
import json
from typing import Literal, TypeAlias

from pydantic import Field, JsonValue, model_validator

from rollstream.config.base import Frozen

__all__ = ["FINAL_PHASES", "CheckpointSpec", "EnvironmentSpec", "ExperimentSpec", "Phase", "StopRule"]

Phase: TypeAlias = Literal["queued", "starting", "running", "paused", "succeeded", "failed", "stopped"]
FINAL_PHASES: frozenset[str] = frozenset({"succeeded", "failed", "stopped"})


class EnvironmentSpec(Frozen):
    """Which simulator, and how its copies are stepped as one batch."""

    id: str = Field(min_length=1)
    """A Gymnasium id (`CartPole-v1`), `envpool:Name`, `pettingzoo:family.module`, or an entry point `package.module:callable` from the
    allow-list."""
    kwargs: dict[str, JsonValue] = Field(default_factory=dict)
    """Keyword arguments for the environment's constructor; empty because most environments need none."""
    vectorization: Literal["auto", "sync", "async", "vector_entry_point"] = "auto"
    """How copies are batched; `auto` takes the environment's own vector form when it has one, else `sync`."""
    autoreset: Literal["auto", "next_step", "same_step", "disabled"] = "auto"
    """Gymnasium's autoreset mode; `auto` takes what is native. Rows are identical in all modes."""
    out_of_bounds: Literal["ignore", "warn", "clip", "error"] = "ignore"
    """What happens to observations outside of the bounds of their space; `ignore` because simulators round, and it is free."""
    max_episode_steps: int | None = Field(default=None, ge=1)
    """Environment steps after which an episode is truncated; None keeps the environment's own limit."""


class StopRule(Frozen):
    """When a run has done its job. The first rule that holds ends it; with none it runs until stopped by hand."""

    mean_return: float | None = None
    """Stop when the mean return of the last 100 training episodes reaches this; None: no such rule."""
    env_steps: int | None = Field(default=None, ge=1)
    """Stop after this many environment steps sampled; None: no such rule."""
    updates: int | None = Field(default=None, ge=1)
    """Stop after this many learner updates; None: no such rule."""
    wall_s: float | None = Field(default=None, gt=0)
    """Stop after this many seconds of running; None: no such rule."""


class CheckpointSpec(Frozen):
    """How often state is saved, and how much of it is kept."""

    every_s: float = Field(default=30.0, gt=0)
    """Seconds between checkpoints: what a killed learner loses at most. 30 costs below 1 % with small networks."""
    keep: int = Field(default=3, ge=1)
    """Newest checkpoints that are kept; 3 leaves two to fall back on when the newest is damaged."""
    rows_max_bytes: int = Field(default=1 << 30, ge=0)
    """Rows of replay tables go into a checkpoint up to this size, so that it restores without Redis; 0 leaves them out."""


class ExperimentSpec(Frozen):
    """One run. Submitted to `POST /v1/experiments`, stored in Redis, part of every checkpoint and report (by its hash)."""

    name: str = Field(default="experiment", pattern=r"^[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?$")
    """Readable part of the run's id: lower-case letters, digits and dashes."""
    algorithm: str = Field(min_length=1)
    """Name of a registered algorithm, e.g. `ppo` or `dqn`."""
    environment: EnvironmentSpec
    """The simulator."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """Settings of the algorithm (its `config.py`); what is not named keeps its default."""
    actors: int = Field(default=2, ge=0, le=10_000)
    """Actor processes that this run asks for; it starts with what there is. 2 so that one may die unnoticed; 0 where a flow has no
    use for them (learning from recorded data)."""
    envs_per_actor: int = Field(default=8, ge=1, le=65_536)
    """Copies of the environment that one actor steps as a batch; 8 amortizes Python without making rollouts large."""
    seed: int = Field(default=0, ge=0, lt=1 << 63)
    """Root of all random streams."""
    weight: float = Field(default=1.0, gt=0)
    """Share of the cell's actors relative to other experiments; 1 is an equal share."""
    stop: StopRule = Field(default_factory=StopRule)
    """When the run has done its job."""
    evaluation_episodes: int = Field(default=100, ge=0)
    """Greedy episodes after training, for the summary's `mean_return`; 100 gives a standard error of a tenth. 0: none."""
    checkpoint: CheckpointSpec = Field(default_factory=CheckpointSpec)
    """How state is saved."""
    from_checkpoint: str | None = None
    """Path of a checkpoint (or of a run's checkpoint folder) to start from; None starts fresh."""

    @model_validator(mode="after")
    def _window_fits(self) -> ExperimentSpec:
        if self.from_checkpoint is not None and not self.from_checkpoint.strip():
            raise ValueError("from_checkpoint must be a path or null; leave it out to start fresh")
        return self

    @property
    def hash(self) -> str:
        """16 hex digits that change with any field: stands in every report and checkpoint."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

"""What algorithms that imitate recorded data share: a policy for any actions, a table of that data, and columns to learn from.

actions in the environment's values ─▶ where the policy would have drawn them: `latent.*` of bounded Boxes
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.algorithms.actor_critic import actor_critic
from rollstream.algorithms.settings import ActorCriticSettings, OfflineSettings, OptimizerSettings
from rollstream.algorithms.updating import Updating
from rollstream.graph import ActorCriticPolicy, Loss
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.inputs import flat_inputs
from rollstream.graph.policies import BoxBounds
from rollstream.graph.policies.heads.bounds import Bounds
from rollstream.learning import SampledItems
from rollstream.replay import Fifo, MinSize, TableSpec, Uniform, n_step
from rollstream.spaces import Column, Columns, Leaf, RowSpec

__all__ = ["Imitating", "ImitationSettings", "imitation_policy", "latents", "offline_table"]

LATENT_LIMIT = 0.999
"""Squashed actions nearer to a bound count as this share of the way to it: the bound itself lies at infinity."""


class ImitationSettings(OfflineSettings, ActorCriticSettings, OptimizerSettings):
    """Settings of algorithms that imitate."""


def imitation_policy(
    config: ImitationSettings, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...], value: bool
) -> ActorCriticPolicy:
    """The policy that learns to do as the data did."""
    return actor_critic(config, observation=observation, actions=actions, value=value)


def offline_table(config: OfflineSettings, rows: RowSpec, *, extra: tuple[Column, ...] = ()) -> TableSpec:
    """A table of recorded data: sampled uniformly, as often as asked; it is made as large as the data when that has been read."""
    return TableSpec(
        name="replay",
        sampler=Uniform(),
        remover=Fifo(),
        limiter=MinSize(min_items=1),
        max_items=config.batch_items,
        shards=config.table_shards,
        batch_items=config.batch_items,
        rows=RowSpec((*rows.columns, *extra)).fields,
    )


def latents(actions: tuple[Leaf, ...], columns: Columns, *, bounds: BoxBounds) -> dict[str, npt.NDArray[np.float32]]:
    """Columns `latent.<leaf>` [B, *shape] of actions [B, *shape] in bounded Boxes: in [-1, 1], before tanh if they are squashed."""
    found = {}
    for leaf in actions:
        unit = np.clip(Bounds(leaf).from_environment(NumpyOps(), columns[leaf.name]), -1.0, 1.0)
        if bounds == "squash":
            unit = np.arctanh(unit * LATENT_LIMIT)
        found[f"latent.{leaf.name}"] = np.asarray(unit, np.float32).reshape(-1, *leaf.shape)
    return found


class Imitating(Updating):
    """Adds to `Updating` the columns that a loss over recorded actions reads."""

    def __init__(self, name: str, loss: Loss, config: ImitationSettings, *, actions: tuple[Leaf, ...], seed: int) -> None:
        super().__init__(name, loss, config, batch_rows=config.batch_items, seed=seed)
        self._bounds = config.box_bounds
        read = {item.name for item in flat_inputs(loss.arguments("loss"))}
        self._latent = tuple(leaf for leaf in actions if f"latent.{leaf.name}" in read)

    def columns(self, sample: SampledItems, *, env_steps: int) -> Columns:
        columns: Mapping[str, npt.NDArray[Any]] = n_step(sample.rows, sample.lengths, discount=1.0, lead=sample.lead)
        return {**columns, **latents(self._latent, columns, bounds=self._bounds)}

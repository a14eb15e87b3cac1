"""From settings to a policy with a value head: the same in every algorithm that has one."""

from __future__ import annotations

from typing import Any

from rollstream.algorithms.observing import preprocessing
from rollstream.algorithms.settings import ActorCriticSettings
from rollstream.graph import ActorCriticPolicy
from rollstream.spaces import Leaf

__all__ = ["actor_critic"]


def actor_critic(
    config: ActorCriticSettings, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...], **further: Any
) -> ActorCriticPolicy:
    """The policy of `config`; `further` are more arguments of `ActorCriticPolicy`, e.g. `recurrent`."""
    return ActorCriticPolicy(
        observation,
        actions,
        hidden=config.hidden,
        activation=config.activation,
        convolutions=config.convolutions,
        channels=config.channels,
        preprocessing=preprocessing(
            observation, config.preprocessing, channels=config.channels, normalize=config.normalize_observations
        ),
        shared_torso=config.shared_torso,
        bounds=config.box_bounds,
        autoregressive=config.autoregressive,
        **further,
    )

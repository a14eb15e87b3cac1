"""The networks and batches that are measured; the same for every mode and peer.

MLP: 8 numbers, two hidden layers of 64, 4 actions and a value. CNN: 84x84 frames, 4 deep, uint8, the small Atari torso, 6 actions and a
value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.graph import ActorCriticPolicy, QPolicy
from rollstream.graph.inputs import flat_inputs, sample
from rollstream.seeding import child_generator
from rollstream.spaces import Leaf

__all__ = ["ROWS", "SETTINGS", "acting_policy", "batch_of", "cnn_policy", "dueling_policy", "ppo_policy"]

ROWS = 256
FEATURES, ACTIONS, FRAME_ACTIONS = 8, 4, 6
SETTINGS = {"clip_ratio": 0.2, "value_coefficient": 0.5, "entropy_coefficient": 0.01}
"""Of the PPO loss."""


def _box(shape: tuple[int, ...], dtype: str = "<f4", high: float = 1.0) -> Leaf:
    size = int(np.prod(shape))
    return Leaf(
        name="observation", kind="box", dtype=dtype, shape=shape, low=(-high * (dtype != "|u1"),) * size, high=(high,) * size
    )


def _choice(count: int) -> Leaf:
    return Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(count,), starts=(0,))


def acting_policy() -> ActorCriticPolicy:
    """MLP with one torso for policy and value."""
    return ActorCriticPolicy((_box((FEATURES,)),), (_choice(ACTIONS),), shared_torso=True)


def ppo_policy() -> ActorCriticPolicy:
    """MLP with a torso for the policy and one for the value, as PPO uses it."""
    return ActorCriticPolicy((_box((FEATURES,)),), (_choice(ACTIONS),), shared_torso=False)


def dueling_policy() -> QPolicy:
    """MLP with a dueling head."""
    return QPolicy((_box((FEATURES,)),), (_choice(ACTIONS),), dueling=True)


def cnn_policy() -> ActorCriticPolicy:
    """The small Atari torso, then 256 units."""
    return ActorCriticPolicy(
        (_box((4, 84, 84), "|u1", 255.0),),
        (_choice(FRAME_ACTIONS),),
        hidden=(),
        activation="relu",
        convolutions="atari",
        channels="first",
        shared_torso=True,
    )


def batch_of(loss: Any, *, rows: int, seed: int = 0) -> dict[str, npt.NDArray[Any]]:
    """Random columns that the loss reads."""
    arguments = loss.arguments("loss")
    drawn = sample(arguments, rows=rows, generator=child_generator(seed, "bench", "batch"))
    return {item.name: drawn[item.name] for item in flat_inputs(arguments) if item.role == "column"}

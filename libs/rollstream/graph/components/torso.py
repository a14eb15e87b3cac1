"""The part of a policy between observation and heads, for any observation space.

    images (3-D boxes)  -> channels first -> convolutions --+
    everything else     -> Features (flat, one-hot)       --+--> side by side -> Mlp -> (Lstm | Gru) -> [B, F]

Without `convolutions`, images are flattened like any Box. `action_mask` leaves are no features.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from rollstream.errors import ConfigError, SpaceError
from rollstream.graph.components.cnn import ATARI, NATURE, Cnn
from rollstream.graph.components.features import Features, is_action_mask
from rollstream.graph.components.gru import Gru
from rollstream.graph.components.image import Channels, Order, channels_first, image_order, is_image
from rollstream.graph.components.impala import Impala
from rollstream.graph.components.lstm import Lstm
from rollstream.graph.components.mlp import Mlp
from rollstream.graph.components.recurrent import Remembered
from rollstream.graph.ops import Activation, Array
from rollstream.graph.scope import Scope, api
from rollstream.spaces import Leaf

__all__ = ["Convolutions", "Recurrent", "Torso", "Width"]

Convolutions: TypeAlias = Literal["atari", "nature", "impala"]
"""Networks for images: 2 layers (Mnih et al. 2013), 3 layers (Mnih et al. 2015), residual (Espeholt et al. 2018)."""

Recurrent: TypeAlias = Literal["lstm", "gru"]
"""Layers that remember."""

Width: TypeAlias = Annotated[int, Field(ge=1, le=16_384)]
"""Units of a hidden layer; two layers of the largest width are 1 GB, and a slip of the hand beyond that takes the machine's memory."""

NETWORKS: Mapping[Convolutions, Cnn | Impala] = {"atari": ATARI, "nature": NATURE, "impala": Impala()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Image:
    """A leaf for convolutions; `is_bytes`: its bounds are 0 and 255."""

    leaf: Leaf
    order: Order
    is_bytes: bool


@dataclass(frozen=True)
class Torso:
    """See the module.

    Attributes:
        observation: leaves of the observation space.
        hidden, activation, layer_norm: of the Mlp.
        convolutions: network through which each image goes; None: images are flattened. An image with bounds 0 to 255 is
            divided by 255 before it.
        channels: where the channels of images are.
        recurrent, recurrent_units: layer after the Mlp that remembers. Then `step` and `sequence` take the place of `output`.
    """

    observation: tuple[Leaf, ...]
    _: KW_ONLY
    hidden: tuple[int, ...] = (64, 64)
    activation: Activation = "tanh"
    layer_norm: bool = False
    convolutions: Convolutions | None = None
    channels: Channels = "auto"
    recurrent: Recurrent | None = None
    recurrent_units: int = 64

    def __post_init__(self) -> None:
        if self.convolutions is None:
            return
        if not self._images:
            shapes = ", ".join(f"{leaf.name} {list(leaf.shape)}" for leaf in self.observation)
            raise SpaceError(
                f"{self.observation[0].name}: Torso.output, argument observation: convolutions={self.convolutions!r} needs an "
                f"image (a Box of three axes), got {shapes}; give the image an axis of channels, or leave convolutions out"
            )
        for image in self._images:
            height, width = image.leaf.shape[1:] if image.order == "first" else image.leaf.shape[:2]
            if not NETWORKS[self.convolutions].fits(height, width):
                raise SpaceError(
                    f"{image.leaf.name}: Torso.output, argument observation: an image of {height} x {width} (channels "
                    f"{image.order}) is too small for convolutions={self.convolutions!r}; resize it, use 'impala', or leave "
                    "convolutions out"
                )

    @property
    def state_size(self) -> int:
        """Numbers that one environment remembers; 0 when nothing does."""
        return 0 if self._memory is None else self._memory.state_size

    @api
    def output(self, scope: Scope, observation: Mapping[str, Array]) -> Array:
        """Columns [B, ...] by leaf name -> [B, F].

        Raises:
            ConfigError: it is recurrent.
        """
        if self.recurrent is not None:
            raise ConfigError(f"Torso.output: a torso with recurrent={self.recurrent!r} needs its state; use step or sequence")
        return self._features(scope, observation)

    @api
    def step(self, scope: Scope, observation: Mapping[str, Array], state: Array) -> Remembered:
        """One step: columns [B, ...], state [B, S] -> output [B, F], state [B, S]. Unpacks as `y, state`."""
        x = self._features(scope, observation)
        return Remembered(x, state) if self._memory is None else self._memory.step(scope.child("recurrent"), x, state)

    @api
    def sequence(self, scope: Scope, observation: Mapping[str, Array], first: Array, state: Array) -> Remembered:
        """T steps: columns [B, T, ...], first [B, T] (1 where an episode begins), state [B, S] -> output [B, T, F], state [B, S]."""
        rows, steps = first.shape
        flat = {leaf.name: scope.ops.reshape(observation[leaf.name], (rows * steps, *leaf.shape)) for leaf in self.observation}
        x = self._features(scope, flat)
        x = scope.ops.reshape(x, (rows, steps, x.shape[-1]))
        return Remembered(x, state) if self._memory is None else self._memory.sequence(scope.child("recurrent"), x, first, state)

    def _features(self, scope: Scope, observation: Mapping[str, Array]) -> Array:
        parts = [self._seen(scope, image, observation[image.leaf.name]) for image in self._images]
        if self._others is not None:
            parts.append(self._others.output(scope.child("features"), observation))
        return self._mlp.output(scope, parts[0] if len(parts) == 1 else scope.ops.concatenate(parts))

    def _seen(self, scope: Scope, image: _Image, x: Array) -> Array:
        assert self.convolutions is not None, "there are images only for convolutions"
        x = scope.ops.to_float(channels_first(scope.ops, x, image.order))
        if image.is_bytes:
            x = x * (1.0 / 255.0)
        return NETWORKS[self.convolutions].output(scope.child(image.leaf.name), x)

    @cached_property
    def _images(self) -> tuple[_Image, ...]:
        """Images that go through convolutions."""
        if self.convolutions is None:
            return ()
        return tuple(
            _Image(
                leaf=leaf,
                order=image_order(leaf, self.channels),
                is_bytes=min(leaf.low) == 0.0 and max(leaf.high) == 255.0,
            )
            for leaf in self.observation
            if is_image(leaf)
        )

    @cached_property
    def _others(self) -> Features | None:
        """Everything else; None when the images are all there is."""
        images = {image.leaf.name for image in self._images}
        rest = tuple(leaf for leaf in self.observation if leaf.name not in images)
        return None if images and all(map(is_action_mask, rest)) else Features(rest)

    @cached_property
    def _mlp(self) -> Mlp:
        return Mlp(hidden=self.hidden, activation=self.activation, layer_norm=self.layer_norm)

    @cached_property
    def _memory(self) -> Lstm | Gru | None:
        if self.recurrent is None:
            return None
        return Lstm(units=self.recurrent_units) if self.recurrent == "lstm" else Gru(units=self.recurrent_units)

"""What is done to a leaf of the observation, as settings: each kind makes a component for the leaf it is given, and says which leaf
comes out of it.

    preprocessing: {"observation": [{"kind": "grayscale"}, {"kind": "resize", "height": 84, "width": 84}, "normalize"]}

A kind without settings may be written as its name. There is no kind for frame stacking, since a component sees one row at a time: a replay
table stacks the frames of its rows when they are read (`stack` of its spec), and `gymnasium.wrappers.FrameStackObservation` stacks them
before they are acted on and stored; [4, H, W] is an image with 4 channels here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, Protocol, TypeAlias

from pydantic import BeforeValidator, Field

from rollstream.config import Frozen, load
from rollstream.errors import SpaceError
from rollstream.graph.components.image import Channels, Order, image_order, is_image
from rollstream.graph.components.preprocessing.clip import Clip
from rollstream.graph.components.preprocessing.crop import Crop
from rollstream.graph.components.preprocessing.grayscale import Grayscale
from rollstream.graph.components.preprocessing.one_hot import OneHot
from rollstream.graph.components.preprocessing.resize import Method, Resize
from rollstream.graph.components.preprocessing.running_normalizer import RunningNormalizer
from rollstream.graph.components.preprocessing.scale import Scale
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope
from rollstream.spaces import Leaf

__all__ = ["Chains", "Link", "Part", "parse_chains"]


class Part(Protocol):
    """A component that changes one array."""

    def output(self, scope: Scope, x: Array) -> Array: ...


class GrayscaleSetting(Frozen):
    """Brightness of an image with three channels."""

    kind: Literal["grayscale"] = "grayscale"
    """Which change this is."""

    def part(self, leaf: Leaf, channels: Channels) -> tuple[Part, Leaf]:
        """The component, and the leaf after it."""
        order = _image(leaf, channels, self.kind)
        count = leaf.shape[0 if order == "first" else -1]
        if count != 3:
            raise SpaceError(
                f"{leaf.name}: preprocessing grayscale needs an image of 3 channels, got {count} in {list(leaf.shape)}"
            )
        shape = (1, *leaf.shape[1:]) if order == "first" else (*leaf.shape[:2], 1)
        return Grayscale(order=order), _box(leaf, shape, min(leaf.low), max(leaf.high))


class ResizeSetting(Frozen):
    """An image of another size."""

    kind: Literal["resize"] = "resize"
    """Which change this is."""
    height: int = Field(ge=1, le=1_024)
    """Pixels of the new image from top to bottom; few networks see more than 224."""
    width: int = Field(ge=1, le=1_024)
    """Pixels of the new image from left to right."""
    method: Method = "area"
    """`area` averages what a new pixel covers, best to shrink; `bilinear` reads between pixels, best to enlarge."""

    def part(self, leaf: Leaf, channels: Channels) -> tuple[Part, Leaf]:
        """The component, and the leaf after it."""
        order = _image(leaf, channels, self.kind)
        after = _box(leaf, _sized(leaf, order, self.height, self.width), min(leaf.low), max(leaf.high))
        return Resize(height=self.height, width=self.width, order=order, method=self.method), after


class CropSetting(Frozen):
    """A part of an image."""

    kind: Literal["crop"] = "crop"
    """Which change this is."""
    top: int = Field(default=0, ge=0)
    """First row of pixels that is kept, counted from 0."""
    left: int = Field(default=0, ge=0)
    """First column of pixels that is kept, counted from 0."""
    height: int = Field(ge=1)
    """Rows of pixels that are kept."""
    width: int = Field(ge=1)
    """Columns of pixels that are kept."""

    def part(self, leaf: Leaf, channels: Channels) -> tuple[Part, Leaf]:
        """The component, and the leaf after it."""
        order = _image(leaf, channels, self.kind)
        rows, columns = leaf.shape[1:] if order == "first" else leaf.shape[:2]
        if self.top + self.height > rows or self.left + self.width > columns:
            raise SpaceError(
                f"{leaf.name}: preprocessing crop wants rows up to {self.top + self.height} and columns up to "
                f"{self.left + self.width}, the image has {rows} x {columns}"
            )
        after = _box(leaf, _sized(leaf, order, self.height, self.width), min(leaf.low), max(leaf.high))
        crop = Crop(top=self.top, left=self.left, height=self.height, width=self.width, order=order)
        return crop, replace(after, dtype=leaf.dtype)


class ScaleSetting(Frozen):
    """Other units: x * factor + offset."""

    kind: Literal["scale"] = "scale"
    """Which change this is."""
    factor: float = Field(gt=0)
    """Multiplies each number; 0.00392156862745098 (1/255) brings bytes to [0, 1]."""
    offset: float = 0.0
    """Is added afterwards; 0 because most units start at 0."""

    def part(self, leaf: Leaf, channels: Channels) -> tuple[Part, Leaf]:
        """The component, and the leaf after it."""
        low, high = _bounds(leaf, self.kind)
        after = _box(leaf, leaf.shape, low * self.factor + self.offset, high * self.factor + self.offset)
        return Scale(factor=self.factor, offset=self.offset), after


class ClipSetting(Frozen):
    """Numbers within limits."""

    kind: Literal["clip"] = "clip"
    """Which change this is."""
    low: float
    """Smaller numbers become this one."""
    high: float
    """Larger numbers become this one."""

    def part(self, leaf: Leaf, channels: Channels) -> tuple[Part, Leaf]:
        """The component, and the leaf after it."""
        if self.low > self.high:
            raise SpaceError(f"{leaf.name}: preprocessing clip needs low <= high, got {self.low:g} and {self.high:g}")
        low, high = _bounds(leaf, self.kind)
        after = _box(leaf, leaf.shape, min(max(low, self.low), self.high), min(max(high, self.low), self.high))
        return Clip(low=self.low, high=self.high), after


class OneHotSetting(Frozen):
    """Choices as zeros and a one."""

    kind: Literal["one_hot"] = "one_hot"
    """Which change this is."""

    def part(self, leaf: Leaf, channels: Channels) -> tuple[Part, Leaf]:
        """The component, and the leaf after it."""
        if not leaf.counts:
            raise SpaceError(f"{leaf.name}: preprocessing one_hot needs a Discrete or MultiDiscrete space, got {leaf.kind}")
        return OneHot(leaf), _box(leaf, (leaf.features,), 0.0, 1.0)


class NormalizeSetting(Frozen):
    """Numbers in units of their own running standard deviation."""

    kind: Literal["normalize"] = "normalize"
    """Which change this is."""
    epsilon: float = Field(default=1e-8, gt=0)
    """Is added to the variance, so that a constant does not divide by 0; 1e-8 is below any variance that matters."""
    limit: float = Field(default=10.0, gt=0)
    """Results are clipped to plus and minus this many standard deviations; 10 keeps outliers from moving the network."""

    def part(self, leaf: Leaf, channels: Channels) -> tuple[Part, Leaf]:
        """The component, and the leaf after it."""
        _bounds(leaf, self.kind)
        return RunningNormalizer(epsilon=self.epsilon, limit=self.limit), _box(leaf, leaf.shape, -self.limit, self.limit)


def _named(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


Link: TypeAlias = Annotated[
    GrayscaleSetting | ResizeSetting | CropSetting | ScaleSetting | ClipSetting | OneHotSetting | NormalizeSetting,
    Field(discriminator="kind"),
]
"""One change of a leaf."""

Chains: TypeAlias = dict[str, tuple[Annotated[Link, BeforeValidator(_named)], ...]]
"""What is done to each leaf, by its dotted name, in order; a leaf that is not named stays as it is. A type for settings."""


class _Setting(Frozen):
    preprocessing: Chains
    """What is done to each leaf."""


def parse_chains(data: Mapping[str, Any], *, path: str = "") -> Chains:
    """`Chains` of plain data.

    Raises:
        ConfigError: lists every bad entry with its path (`preprocessing...` below `path`), the value and what is allowed.
    """
    return load(_Setting, {"preprocessing": data}, what="preprocessing", path=path).preprocessing


def _image(leaf: Leaf, channels: Channels, kind: str) -> Order:
    if not is_image(leaf):
        raise SpaceError(
            f"{leaf.name}: preprocessing {kind} needs an image (a Box of three axes), got {leaf.kind} {list(leaf.shape)}"
        )
    return image_order(leaf, channels)


def _bounds(leaf: Leaf, kind: str) -> tuple[float, float]:
    if leaf.counts:
        raise SpaceError(f"{leaf.name}: preprocessing {kind} needs numbers, got choices ({leaf.kind}); put one_hot before it")
    return (min(leaf.low), max(leaf.high)) if leaf.low else (0.0, 1.0)


def _sized(leaf: Leaf, order: Order, height: int, width: int) -> tuple[int, ...]:
    return (leaf.shape[0], height, width) if order == "first" else (height, width, leaf.shape[2])


def _box(leaf: Leaf, shape: tuple[int, ...], low: float, high: float) -> Leaf:
    size = Leaf(name=leaf.name, kind="box", dtype="<f4", shape=shape).size
    return Leaf(name=leaf.name, kind="box", dtype="<f4", shape=shape, low=(low,) * size, high=(high,) * size)

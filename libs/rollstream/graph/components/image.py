"""Which axis of an image holds its channels. Convolutions read [B, C, H, W]; an environment may give either order, and a guess that
is wrong trains on garbage without a word, so a shape that could be both is refused.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from rollstream.errors import SpaceError
from rollstream.graph.ops import Array, Ops
from rollstream.spaces import Leaf

__all__ = ["Channels", "Order", "channels_first", "image_order", "is_image"]

Channels: TypeAlias = Literal["first", "last", "auto"]
"""Where the channels of images are, as a setting."""

Order: TypeAlias = Literal["first", "last"]
"""Where they are, as known."""


def is_image(leaf: Leaf) -> bool:
    """A Box of three axes."""
    return leaf.kind == "box" and len(leaf.shape) == 3


def image_order(leaf: Leaf, channels: Channels) -> Order:
    """The given order, or with `auto` the one that the shape shows: the first or the last axis is at most half of each other axis.

    Raises:
        SpaceError: with `auto`, the shape shows neither; names the leaf and the shape.
    """
    if channels != "auto":
        return channels
    first, middle, last = leaf.shape
    if 2 * first <= min(middle, last):
        return "first"
    if 2 * last <= min(first, middle):
        return "last"
    raise SpaceError(
        f"{leaf.name}: an image of shape {list(leaf.shape)} may have its channels first or last; say which with "
        "channels: first or channels: last (auto needs an axis of at most half of the others)"
    )


def channels_first(ops: Ops, x: Array, order: Order) -> Array:
    """[B, C, H, W] of [B, C, H, W] or [B, H, W, C]."""
    return x if order == "first" else ops.transpose(x, (0, 3, 1, 2))

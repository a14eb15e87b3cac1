"""From a Gymnasium space to leaves: which columns its values need, or why they cannot be stored.

    Dict(camera=Box, arm=Tuple(Box, Discrete))  named "observation"
      -> observation.camera   observation.arm.0   observation.arm.1

Rows have a fixed number of bytes, so a space whose values vary in size (Text, Sequence, Graph, OneOf) is refused here, when an
experiment is submitted, and not at step ten thousand. Dtypes stay those of the space: uint8 stays uint8, a float64 Box stays
float64 in rows; policies cast to float32 on their own side.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from rollstream.errors import SpaceError
from rollstream.spaces.leaf import Leaf

if TYPE_CHECKING:
    import gymnasium

__all__ = ["leaves", "stored_dtype"]

ADVICE = {
    "Text": "encode it in a wrapper as a Box or MultiDiscrete of fixed length",
    "Sequence": "pad it in a wrapper to a Box of fixed length, with a MultiBinary mask",
    "Graph": "encode it in a wrapper as a Dict of Boxes of fixed size (nodes, edges, mask)",
    "OneOf": "encode it in a wrapper as a Dict: a Discrete for the choice and one entry for each alternative",
}
DTYPE_KINDS = "biuf"


def leaves(space: gymnasium.Space[Any], name: str) -> tuple[Leaf, ...]:
    """The leaves of `space` under dotted names that start with `name`, in the order of its rows.

    Raises:
        SpaceError: it has a part that cannot be stored; the message starts with the path of that part.
    """
    found = tuple(_walk(space, name))
    if not found:
        raise SpaceError(f"{name}: the space {space} holds no values; give it at least one Box, Discrete or Multi* entry")
    return found


def stored_dtype(dtype: np.dtype[Any] | type[Any], path: str) -> str:
    """The little-endian dtype string under which values of `dtype` are stored.

    Raises:
        SpaceError: values of this dtype mean different bytes on different machines, or are no numbers.
    """
    given = np.dtype(dtype)
    if given.kind not in DTYPE_KINDS or given.itemsize > 8:
        raise SpaceError(
            f"{path}: dtype {given} cannot be stored; use bool, an integer of 8 to 64 bits or a float of 16 to 64 bits"
        )
    return str(given.newbyteorder("<").str)


def _walk(space: gymnasium.Space[Any], path: str) -> Iterator[Leaf]:
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        for key, child in space.spaces.items():
            yield from _walk(child, _joined(path, key))
    elif isinstance(space, spaces.Tuple):
        for index, child in enumerate(space.spaces):
            yield from _walk(child, f"{path}.{index}")
    else:
        yield _leaf(space, path)


def _joined(path: str, key: object) -> str:
    if not isinstance(key, str) or not key or "." in key:
        raise SpaceError(f"{path}: the Dict key {key!r} cannot name a column; use a string without dots")
    return f"{path}.{key}"


def _leaf(space: gymnasium.Space[Any], path: str) -> Leaf:
    from gymnasium import spaces

    if isinstance(space, spaces.Box):
        low, high = np.asarray(space.low, np.float64), np.asarray(space.high, np.float64)
        return Leaf(
            name=path,
            kind="box",
            dtype=stored_dtype(space.dtype, path),
            shape=tuple(space.shape),
            low=tuple(low.ravel().tolist()),
            high=tuple(high.ravel().tolist()),
        )
    if isinstance(space, spaces.Discrete):
        dtype = stored_dtype(np.dtype(space.dtype), path)
        return Leaf(name=path, kind="discrete", dtype=dtype, shape=(), counts=(int(space.n),), starts=(int(space.start),))
    if isinstance(space, spaces.MultiDiscrete):
        return Leaf(
            name=path,
            kind="multi_discrete",
            dtype=stored_dtype(np.dtype(space.dtype), path),
            shape=tuple(space.nvec.shape),
            counts=tuple(space.nvec.ravel().tolist()),
            starts=tuple(np.broadcast_to(space.start, space.nvec.shape).ravel().tolist()),
        )
    if isinstance(space, spaces.MultiBinary):
        return Leaf(name=path, kind="multi_binary", dtype=stored_dtype(np.dtype(space.dtype), path), shape=tuple(space.shape))
    kind = type(space).__name__
    advice = ADVICE.get(kind, "turn it in a wrapper into Box, Discrete, MultiDiscrete, MultiBinary, Dict or Tuple")
    raise SpaceError(f"{path}: a {kind} space cannot be stored in rows of fixed size; {advice}")

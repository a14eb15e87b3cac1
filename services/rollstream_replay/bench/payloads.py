"""What is written and sampled: rows of a given size, of random or compressible numbers or of frames; the same for every system.

`payload_bytes` is the user's data alone: 400 bytes are 100 float32 in one column (or in five). Flags and the version, which every row of
ours carries besides, are not counted, and neither is what the other system adds.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from rollstream.seeding import child_generator
from rollstream.spaces import Column, Episodes, Flag, Rollout, RowSpec

__all__ = ["DATA", "FRAME_SHAPE", "Data", "Payload", "rollouts"]

Data: TypeAlias = Literal["random", "compressible", "frames"]
DATA: tuple[str, ...] = get_args(Data)
FRAME_SHAPE = (84, 84)
POOL_BYTES = 64 << 20
"""Distinct rows are at most this much memory: more than any cache of the processor, less than what would crowd a small machine."""
POOL_ROLLOUTS_MAX = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """One kind of row."""

    payload_bytes: int
    columns: int = 1
    data: Data = "random"

    @staticmethod
    def of_frames() -> Payload:
        return Payload(payload_bytes=int(np.prod(FRAME_SHAPE)), data="frames")

    @property
    def row_spec(self) -> RowSpec:
        if self.data == "frames":
            return RowSpec((Column(name="observation", dtype="|u1", shape=FRAME_SHAPE),))
        shape = (max(1, self.payload_bytes // 4 // self.columns),)
        return RowSpec(tuple(Column(name=name, dtype="<f4", shape=shape) for name in self.names))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that carry data."""
        return ("observation",) if self.columns == 1 else tuple(f"column_{index}" for index in range(self.columns))

    def to_json(self) -> dict[str, Any]:
        """As `Payload(**...)` takes it, and as the peer's script does."""
        return asdict(self)


def rollouts(payload: Payload, *, environments: int, rows: int, seed: int) -> list[Rollout]:
    """A few rollouts of `rows` rows for each environment, to be written in turn; an episode begins with the first of them."""
    dtype = payload.row_spec.dtype
    generator = child_generator(seed, "bench", "payload")
    count = min(POOL_ROLLOUTS_MAX, max(1, POOL_BYTES // (environments * rows * dtype.itemsize)))
    made = []
    for index in range(count):
        packed = np.zeros((environments, rows), dtype)
        for name in payload.names:
            packed[name] = _values(payload, packed[name].shape, generator)
        if index == 0:
            packed["flags"][:, 0] = Flag.FIRST
        packed["version"] = 1
        made.append(
            Rollout(
                rows=packed.reshape(-1),
                offsets=np.arange(environments + 1, dtype=np.int64) * rows,
                next_observation={},
                version=1,
                env_steps=packed.size,
                episodes=Episodes(),
            )
        )
    return made


def _values(payload: Payload, shape: tuple[int, ...], generator: np.random.Generator) -> npt.NDArray[Any]:
    if payload.data == "frames":
        return _frames(shape)
    if payload.data == "random":
        return generator.standard_normal(shape, dtype=np.float32)
    levels = generator.integers(0, 8, (*shape[:-1], -(-shape[-1] // 16)))
    return np.repeat(levels, 16, axis=-1)[..., : shape[-1]].astype(np.float32)


def _frames(shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """A flat background, one sprite that moves by a few pixels a frame, and a paddle."""
    frames = np.full(shape, 87, np.uint8)
    for place in np.ndindex(shape[:-2]):
        step = place[0] * 31 + place[-1]
        row, column, paddle = (step * 3) % 76, (step * 5) % 76, (step * 7) % 70
        frames[place][row : row + 8, column : column + 8] = 200
        frames[place][80:84, paddle : paddle + 14] = 160
    return frames

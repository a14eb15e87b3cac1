"""What frames of Atari games cost in a table: stored bytes, Redis memory and time, as JSON.

    python tests/bench/frames.py --rows 4000

Two sources of 84x84 grey frames: `synthetic` (sprites that move over a still, textured background under a score that changes)
and `pong` (ALE/Pong-v5, frame skip 4, random actions; needs ale-py). They are compared with what replay buffers often store of each
transition: a stack of four frames and the next stack. Redis memory is what an embedded server uses more after all rows were
written, keys and allocator included.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.clock import SystemClock
from rollstream.replay.encoding import Codec
from rollstream.replay.row_fetch import RowFetch
from rollstream.replay.samples import COLUMNS, SampledItems
from rollstream.replay.spec import TableSpec
from rollstream.spaces import Column, Flag, RowSpec
from rollstream.store import Address, ChunkReader, ChunkWriter, EmbeddedServer, Store, chunk_prefix

Frames = npt.NDArray[np.uint8]

SIDE = 84
STACK = 4
ROWS = RowSpec(
    (
        Column(name="observation", dtype="|u1", shape=(SIDE, SIDE)),
        Column(name="action", dtype="<i8"),
        Column(name="reward", dtype="<f4"),
    )
)
OTHER_BYTES = ROWS.row_bytes - SIDE * SIDE
ONE_STACK_BYTES = STACK * SIDE * SIDE + OTHER_BYTES
NAIVE_BYTES = 2 * STACK * SIDE * SIDE + OTHER_BYTES
"""A transition as stack and next stack."""
TABLE = "bench.frames"
BATCH_ITEMS = 256


def synthetic_frames(count: int, *, seed: int = 0) -> Frames:
    """Five sprites that bounce over a textured background, under three digits of a score."""
    generator = np.random.default_rng(seed)
    background = (96 + 24 * generator.standard_normal((SIDE, SIDE))).clip(0, 255).astype(np.uint8)
    background[:10] = 20
    place, speed = generator.uniform(12, 74, (5, 2)), generator.uniform(-3, 3, (5, 2))
    sprites = generator.integers(128, 256, (5, 8, 8), dtype=np.uint8)
    digits = generator.integers(0, 2, (10, 7, 5), dtype=np.uint8) * 235
    frames = np.empty((count, SIDE, SIDE), np.uint8)
    for t in range(count):
        frames[t] = background
        place += speed
        speed = np.where((place < 11) | (place > 75), -speed, speed)
        place = place.clip(11, 75)
        for sprite, (y, x) in zip(sprites, place.astype(int), strict=True):
            frames[t, y : y + 8, x : x + 8] = sprite
        for at, digit in enumerate(f"{t // 37 % 1000:03}"):
            frames[t, 2:9, 60 + 7 * at : 65 + 7 * at] = digits[int(digit)]
    return frames


def pong_frames(count: int, *, seed: int = 0) -> Frames:
    """Grey frames of Pong, each the larger of two pictures in a row (sprites flicker), shrunk by averaging areas."""
    import ale_py
    import gymnasium

    gymnasium.register_envs(ale_py)
    env = gymnasium.make("ALE/Pong-v5", obs_type="grayscale", frameskip=1)
    generator = np.random.default_rng(seed)
    down, across = _area_weights(210), _area_weights(160).T
    frames = np.empty((count, SIDE, SIDE), np.uint8)
    picture, _ = env.reset(seed=seed)
    for t in range(count):
        frames[t] = np.rint(down @ picture @ across)
        action = generator.integers(env.action_space.n)  # type: ignore[attr-defined]
        ended, pictures = False, [picture]
        for _ in range(4):
            picture, _, terminated, truncated, _ = env.step(action)
            pictures.append(picture)
            ended = bool(terminated or truncated)
            if ended:
                break
        picture = env.reset()[0] if ended else np.maximum(*pictures[-2:])
    env.close()
    return frames


def _area_weights(size: int) -> npt.NDArray[np.float64]:
    """[84, size]: how much each of `size` pixels gives to each of 84."""
    edges = np.linspace(0, size, SIDE + 1)
    pixel = np.arange(size)
    overlap = np.minimum(edges[1:, None], pixel + 1) - np.maximum(edges[:-1, None], pixel)
    return np.asarray(overlap.clip(0) * SIDE / size)


def rows_of(frames: Frames, *, chunk_rows: int, seed: int = 0) -> npt.NDArray[np.void]:
    """Rows of one long episode, as many as fill whole chunks."""
    generator = np.random.default_rng(seed)
    rows = np.zeros(len(frames) // chunk_rows * chunk_rows, ROWS.dtype)
    rows["observation"] = frames[: len(rows)]
    rows["action"] = generator.integers(0, 6, len(rows))
    rows["reward"] = generator.choice([-1.0, 0.0, 1.0], len(rows), p=[0.02, 0.97, 0.01])
    rows["flags"][:1] = Flag.FIRST
    return rows


def measure(frames: Frames, *, encoding: str, chunk_rows: int, delta: bool | None) -> dict[str, Any]:
    """Stored bytes, memory and times of one way to store `frames`, on a server of its own."""
    with tempfile.TemporaryDirectory() as directory:
        server = EmbeddedServer(Path(directory), clock=SystemClock())
        try:
            return measure_on(server.start(), frames, encoding=encoding, chunk_rows=chunk_rows, delta=delta)
        finally:
            server.stop()


def measure_on(address: Address, frames: Frames, *, encoding: str, chunk_rows: int, delta: bool | None) -> dict[str, Any]:
    """As `measure`, on an empty server."""
    clock = SystemClock()
    spec = TableSpec.model_validate(
        {
            "name": "frames",
            "max_items": 1_000_000,
            "rows": ROWS,
            "chunk_rows": chunk_rows,
            "encoding": encoding,
            "delta": delta,
            "stack": {"observation": STACK},
        }
    )
    store = Store(address, clock=clock, name="bench")
    rows = rows_of(frames, chunk_rows=chunk_rows)
    payload = rows.view(np.uint8).reshape(-1, spec.chunk_bytes)
    env = np.zeros(len(payload), np.uint32)
    number = np.arange(len(payload), dtype=np.uint64)
    prefix = chunk_prefix(TABLE, 0)
    writer, reader = ChunkWriter(address, clock=clock), ChunkReader(address, clock=clock)
    before_bytes = _used_memory(store)
    encode_s, stored_bytes = 0.0, payload.nbytes
    if spec.resolved_encoding == "zstd":
        codec, values = Codec(spec), []
        began_s = time.perf_counter()
        for start in range(0, len(payload), 64):
            values += codec.encode(payload[start : start + 64]).values
        encode_s = time.perf_counter() - began_s
        stored_bytes = sum(map(len, values))
        writer.write_values(prefix, 1, env, number, values)
    else:
        writer.write(prefix, 1, env, number, payload)
    writer.close()  # with it go the buffers that the server keeps for it
    time.sleep(0.2)
    memory_bytes = _used_memory(store) - before_bytes
    fetch = RowFetch(reader, table_id=TABLE, shard=0, spec=spec)
    batch_s = []
    for seed in range(9):
        items = transitions(len(rows), seed=seed)
        began_s = time.perf_counter()
        fetch.read(items)
        batch_s.append(time.perf_counter() - began_s)
    reader.close()
    store.close()
    return {
        "encoding": encoding,
        "chunk_rows": chunk_rows,
        "delta": delta,
        "stored_bytes_per_row": round(stored_bytes / len(rows), 1),
        "redis_bytes_per_row": round(memory_bytes / len(rows), 1),
        "naive_bytes_over_redis_bytes": round(NAIVE_BYTES * len(rows) / memory_bytes, 1),
        "one_stack_bytes_over_redis_bytes": round(ONE_STACK_BYTES * len(rows) / memory_bytes, 1),
        "encode_us_per_row": round(encode_s / len(rows) * 1e6, 2),
        "read_ms_per_batch_of_256_stacked_transitions": round(float(np.median(batch_s)) * 1e3, 2),
    }


def transitions(rows: int, *, seed: int) -> SampledItems:
    """256 transitions drawn at random: two rows each, and up to three before them to complete stacks."""
    row = np.random.default_rng(seed).integers(0, rows - 1, BATCH_ITEMS)
    lead = np.minimum(row, STACK - 1)
    arrays: dict[str, Any] = {name: np.zeros(BATCH_ITEMS, dtype) for name, dtype in COLUMNS}
    arrays["writer"][:] = 1
    arrays["start"][:], arrays["length"][:], arrays["lead"][:] = row - lead, lead + 2, lead
    return SampledItems(**arrays, table_items=rows)


def _used_memory(store: Store) -> int:
    found: Any = store.run("report its memory", lambda client: client.info("memory"))
    return int(found["used_memory"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000, help="frames of each source")
    rows: int = parser.parse_args().rows
    ways: list[tuple[str, int, bool | None]] = [("raw", 1, None)]
    ways += [("zstd", chunk_rows, None) for chunk_rows in (1, 2, 4, 8, 16, 32)]
    ways += [("zstd", 8, delta) for delta in (True, False)]
    result = {
        name: [measure(frames, encoding=encoding, chunk_rows=chunk_rows, delta=delta) for encoding, chunk_rows, delta in ways]
        for name, frames in (("synthetic", synthetic_frames(rows)), ("pong", pong_frames(rows)))
    }
    print(json.dumps({"naive_bytes_per_transition": NAIVE_BYTES, "one_stack_bytes": ONE_STACK_BYTES, **result}, indent=2))


if __name__ == "__main__":
    main()

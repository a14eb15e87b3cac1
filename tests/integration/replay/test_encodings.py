"""Frames of games: how much smaller they are stored, on a real server, keys and allocator included."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from frames import NAIVE_BYTES, ONE_STACK_BYTES, ROWS, SIDE, STACK, Frames, measure, pong_frames, rows_of, synthetic_frames

from rollstream.replay.encoding import Codec
from rollstream.replay.spec import TableSpec

FRAMES = 480


@pytest.fixture(scope="module")
def synthetic() -> Frames:
    return synthetic_frames(FRAMES)


@pytest.fixture(scope="module")
def pong() -> Frames:
    return pong_frames(FRAMES)


def spec(**changes: object) -> TableSpec:
    return TableSpec.model_validate({"name": "frames", "max_items": 1000, "rows": ROWS, **changes})


def test_synthetic_frames_take_a_twentieth_of_stacks(synthetic: Frames) -> None:
    assert len(np.unique(synthetic.reshape(FRAMES, -1), axis=0)) > 0.9 * FRAMES, "the frames differ"
    assert np.unique(synthetic[0]).size > 100, "and are textured"
    measured = measure(synthetic, encoding="auto", chunk_rows=8, delta=None)
    assert measured["redis_bytes_per_row"] <= NAIVE_BYTES / 20
    assert measured["redis_bytes_per_row"] <= ONE_STACK_BYTES / 20, "also of one stack a transition"


def test_frames_of_pong_take_a_hundredth_of_stacks(pong: Frames) -> None:
    assert len(np.unique(pong.reshape(FRAMES, -1), axis=0)) > 0.5 * FRAMES
    measured = measure(pong, encoding="auto", chunk_rows=8, delta=None)
    assert measured["redis_bytes_per_row"] <= NAIVE_BYTES / 100


def test_raw_rows_store_a_frame_once(synthetic: Frames) -> None:
    measured = measure(synthetic, encoding="raw", chunk_rows=1, delta=None)
    assert SIDE * SIDE < measured["redis_bytes_per_row"] < 1.05 * SIDE * SIDE + 200
    assert measured["naive_bytes_over_redis_bytes"] > 2 * STACK - 1


@pytest.mark.parametrize("delta", [None, True, False])
def test_frames_come_back_as_they_were(synthetic: Frames, pong: Frames, delta: bool | None) -> None:
    for frames in (synthetic, pong):
        for chunk_rows in (1, 8):
            table = spec(chunk_rows=chunk_rows, delta=delta)
            assert table.resolved_encoding == "zstd"
            payload = rows_of(frames, chunk_rows=chunk_rows).view(np.uint8).reshape(-1, table.chunk_bytes)
            encoded = Codec(table).encode(payload)
            assert (Codec(table).decode(encoded.values) == payload).all()
            assert encoded.stored_bytes.sum() < payload.nbytes

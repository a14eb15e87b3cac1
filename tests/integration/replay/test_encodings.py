"""Frames of games: how much smaller they are stored, on a real server, keys and allocator included."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from frames import NAIVE_BYTES, ONE_STACK_BYTES, ROWS, SIDE, STACK, Frames, measure, pong_frames, rows_of, synthetic_frames

from rollstream.clock import SystemClock
from rollstream.replay import NStep, TableClient, TableWriter
from rollstream.replay.encoding import Codec
from rollstream.replay.spec import TableSpec
from rollstream.store import Address, Store

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


def test_frames_go_through_a_whole_service_stacked(
    replay_service: Any, client: TableClient, store: Store, address: Address, synthetic: Frames
) -> None:
    table = spec(name="replay", chunk_rows=8, stack={"observation": STACK})
    client.create(table)
    writer = TableWriter(
        store,
        address,
        table_id=client.table_id,
        spec=table,
        rule=NStep(1, history=STACK - 1),
        environments=1,
        clock=SystemClock(),
    )
    rows = rows_of(synthetic, chunk_rows=8)
    rows["action"] = np.arange(len(rows))
    writer.append_rows(rows, np.array([0, len(rows)]))
    writer.close()
    sample = client.sample(batch_items=64, deadline_s=20.0)
    assert sample.core_start == 0, "the rows that complete stacks are gone"
    assert sample.rows["observation"].shape == (64, 2, STACK, SIDE, SIDE)
    for k in range(64):
        for row in range(2):
            newest = int(sample.rows["action"][k, row])
            frames = np.maximum(np.arange(newest - STACK + 1, newest + 1), 0)
            assert (sample.rows["observation"][k, row] == synthetic[frames]).all()
    assert client.info()["bytes"] < len(rows) * ONE_STACK_BYTES / 20

"""Recorded rows, written through writers."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.clock import FakeClock
from rollstream.errors import TableError
from rollstream.replay import WriteResult
from rollstream.replay.offline import OfflineRows, Transitions, rows_of, write_rows
from rollstream.spaces import Flag, Rollout


class Sink:
    """Keeps what it is given; a flush takes a second."""

    def __init__(self, clock: FakeClock) -> None:
        self.rollouts: list[Rollout] = []
        self.flushed = 0
        self._clock = clock

    def append(self, rollout: Rollout, *, deadline_s: float | None = None) -> WriteResult:
        self.rollouts.append(rollout)
        self._clock.advance(1.0)
        return WriteResult(items=rollout.env_steps, rows=len(rollout.rows), waited_s=0.0, keys={})

    def flush(self, *, deadline_s: float) -> None:
        self.flushed = len(self.rollouts)

    @property
    def rows(self) -> np.ndarray:
        return np.concatenate([rollout.rows for rollout in self.rollouts])


def episodes(lengths: list[int]) -> OfflineRows:
    count = sum(lengths)
    terminated = np.zeros(count, np.bool_)
    terminated[np.cumsum(lengths) - 1] = True
    return rows_of(Transitions(source="walk.npz", columns={"action": np.arange(count)}, terminated=terminated))


def test_all_rows_are_written_in_order_in_large_flushes_and_counted(clock: FakeClock) -> None:
    sink, seen = Sink(clock), list[int]()
    data = episodes([70_000, 5])
    result = write_rows(data, [sink], clock=clock, report=seen.append)
    assert np.array_equal(sink.rows, data.rows)
    assert [len(rollout.rows) for rollout in sink.rollouts] == [32_768, 32_768, 4_471]
    assert sink.flushed == 3
    assert seen == [32_768, 65_536, 70_007]
    assert (result.rows, result.items, result.episodes, result.bytes) == (70_007, 70_005, 2, data.rows.nbytes)
    assert result.items_per_s == pytest.approx(70_005 / 3)
    assert result.mb_per_s == pytest.approx(data.rows.nbytes / 3e6)


def test_wide_rows_are_flushed_by_their_bytes(clock: FakeClock) -> None:
    sink = Sink(clock)
    data = rows_of(Transitions(source="frames.npz", columns={"frame": np.zeros((40, 512, 1024), np.uint8)}))
    write_rows(data, [sink], clock=clock)
    assert {len(rollout.rows) for rollout in sink.rollouts} == {7, 5}


@pytest.mark.parametrize("shards", [2, 3, 8])
def test_shards_get_whole_episodes(clock: FakeClock, shards: int) -> None:
    sinks = [Sink(clock) for _ in range(shards)]
    data = episodes([5, 9, 1, 4, 30, 2])
    result = write_rows(data, sinks, clock=clock)
    written = [sink.rows for sink in sinks if sink.rollouts]
    assert np.array_equal(np.concatenate(written), data.rows)
    assert result.rows == len(data.rows)
    for rows in written:
        assert rows["flags"][0] == Flag.FIRST
        assert rows["flags"][-1] & Flag.FINAL


def test_rows_without_episodes_are_dealt_out_evenly(clock: FakeClock) -> None:
    sinks = [Sink(clock) for _ in range(4)]
    write_rows(rows_of(Transitions(source="log.npz", columns={"action": np.arange(1000)})), sinks, clock=clock)
    assert [len(sink.rows) for sink in sinks] == [250] * 4


def test_nothing_to_write_is_said(clock: FakeClock) -> None:
    empty = rows_of(Transitions(source="empty.npz", columns={"action": np.zeros(0)}))
    with pytest.raises(TableError, match="empty.npz holds no rows; nothing was written"):
        write_rows(empty, [Sink(clock)], clock=clock)

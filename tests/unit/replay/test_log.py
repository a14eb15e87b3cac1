"""Log entries: packed and back, and what is refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from rollstream.errors import SchemaMismatch
from rollstream.replay.log import (
    DeleteEntry,
    InsertEntry,
    UpdateEntry,
    decode_delete,
    decode_insert,
    decode_update,
    encode_delete,
    encode_insert,
    encode_update,
)


def insert_entry(*, full: bool = True) -> InsertEntry:
    return InsertEntry(
        writer=3,
        sequence=9,
        keep=np.array([4, 5], np.uint64),
        end=np.array([6, 7], np.uint64),
        start=np.array([1, 2, 3], np.uint64),
        env=np.array([0, 0, 1], np.uint32),
        length=np.array([2, 2, 3 if full else 2], np.uint32),
        version=np.array([5, 5, 6 if full else 5], np.uint32),
        episode_env=np.array([1], np.uint32),
        episode_start=np.array([6], np.uint64),
        first_ordinal=77,
        tables=("replay", "recent") if full else (),
        chunk_bytes=np.array([10, 20], np.uint32) if full else None,
        lead=np.array([0, 1, 2], np.uint16) if full else None,
        table=np.array([0, 1, 0], np.uint8) if full else None,
        key=np.array([0, 1 << 63, 0], np.uint64) if full else None,
        priority=np.array([1.0, 0.5, 2.0], np.float32) if full else None,
    )


@pytest.mark.parametrize("full", [True, False])
def test_insert_entries_come_back_as_they_were(full: bool) -> None:
    there, back = insert_entry(full=full), decode_insert(encode_insert(insert_entry(full=full)))
    for field in dataclasses.fields(InsertEntry):
        before, after = getattr(there, field.name), getattr(back, field.name)
        if isinstance(before, np.ndarray):
            assert (after.dtype, after.tolist()) == (before.dtype, before.tolist()), field.name
        else:
            assert after == before, field.name


def test_numbers_that_are_all_alike_are_sent_once() -> None:
    assert len(encode_insert(insert_entry(full=False))) == 48 + 2 * 16 + 12 + 3 * 12


def test_updates_and_deletes_come_back_as_they_were() -> None:
    keys = np.array([1, 1 << 63], np.uint64)
    update = decode_update(encode_update(UpdateEntry(keys=keys, priority=np.array([1.5, 0.0], np.float32), refused=4)))
    assert (update.keys.tolist(), update.priority.tolist(), update.refused) == (keys.tolist(), [1.5, 0.0], 4)
    delete = decode_delete(encode_delete(DeleteEntry(keys=keys, missing=True)))
    assert (delete.keys.tolist(), delete.missing, delete.reset) == (keys.tolist(), True, "")
    assert decode_delete(encode_delete(DeleteEntry(keys=keys[:0], reset="replay"))).reset == "replay"


def test_an_unknown_layout_is_refused_with_both_versions() -> None:
    buffer = bytearray(encode_insert(insert_entry()))
    buffer[0] = 9
    with pytest.raises(SchemaMismatch, match="layout version 9, this release reads 2"):
        decode_insert(bytes(buffer))


@pytest.mark.parametrize("full", [True, False])
def test_a_cut_entry_is_refused_with_its_size(full: bool) -> None:
    with pytest.raises(SchemaMismatch, match="log entry of kind insert is 10 bytes long, its header alone needs 48"):
        decode_insert(encode_insert(insert_entry(full=full))[:10])
    with pytest.raises(SchemaMismatch, match="where its header announces"):
        decode_insert(encode_insert(insert_entry(full=full))[:-1])
    with pytest.raises(SchemaMismatch, match="where its header announces"):
        decode_update(encode_update(UpdateEntry(keys=np.ones(2, np.uint64), priority=np.ones(2, np.float32)))[:-1])
    with pytest.raises(SchemaMismatch, match="where its header announces"):
        decode_delete(encode_delete(DeleteEntry(keys=np.ones(2, np.uint64)))[:-1])

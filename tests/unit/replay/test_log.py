"""Log entries: packed and back, and what is refused."""

from __future__ import annotations

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


def insert_entry() -> InsertEntry:
    return InsertEntry(
        writer=3,
        sequence=9,
        default_priority=False,
        keep=np.array([4, 5], np.uint64),
        end=np.array([6, 7], np.uint64),
        start=np.array([1, 2, 3], np.uint64),
        env=np.array([0, 0, 1], np.uint32),
        length=np.array([2, 2, 3], np.uint32),
        priority=np.array([1.0, 0.5, 2.0], np.float32),
    )


def test_entries_come_back_as_they_were() -> None:
    entry = decode_insert(encode_insert(insert_entry()))
    for name in ("writer", "sequence", "default_priority"):
        assert getattr(entry, name) == getattr(insert_entry(), name)
    for name in ("keep", "end", "start", "env", "length", "priority"):
        assert getattr(entry, name).tolist() == getattr(insert_entry(), name).tolist()
    keys = np.array([1, 1 << 63], np.uint64)
    update = decode_update(encode_update(UpdateEntry(keys=keys, priority=np.array([1.5, 0.0], np.float32), refused=4)))
    assert (update.keys.tolist(), update.priority.tolist(), update.refused) == (keys.tolist(), [1.5, 0.0], 4)
    delete = decode_delete(encode_delete(DeleteEntry(keys=keys, missing=True)))
    assert (delete.keys.tolist(), delete.missing) == (keys.tolist(), True)


def test_an_unknown_layout_is_refused_with_both_versions() -> None:
    buffer = bytearray(encode_insert(insert_entry()))
    buffer[0] = 9
    with pytest.raises(SchemaMismatch, match="layout version 9, this release reads 1"):
        decode_insert(bytes(buffer))


def test_a_cut_entry_is_refused_with_its_size() -> None:
    with pytest.raises(SchemaMismatch, match="log entry of kind insert is 10 bytes long, its header alone needs 24"):
        decode_insert(encode_insert(insert_entry())[:10])
    with pytest.raises(SchemaMismatch, match="where its header announces"):
        decode_update(encode_update(UpdateEntry(keys=np.ones(2, np.uint64), priority=np.ones(2, np.float32)))[:-1])

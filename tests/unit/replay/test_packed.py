"""Packed arrays: back as they were, and damage is found."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.errors import SchemaMismatch
from rollstream.replay.packed import pack, unpack

ARRAYS = {"a": np.arange(5, dtype=np.int64), "empty": np.zeros((0, 3), np.uint8), "b": np.ones((2, 3), np.float32)}


def test_arrays_and_facts_come_back() -> None:
    state = unpack(pack({"x": 1, "big": 2**100}, ARRAYS), what="snapshot")
    assert state.facts == {"x": 1, "big": 2**100}
    assert {name: array.tolist() for name, array in state.arrays.items()} == {
        name: array.tolist() for name, array in ARRAYS.items()
    }
    assert state.arrays["b"].dtype == np.float32


def test_damage_is_found_and_named() -> None:
    buffer = bytearray(pack({}, ARRAYS))
    with pytest.raises(SchemaMismatch, match="snapshot of table t is 4 bytes long: it was cut off"):
        unpack(buffer[:4], what="snapshot of table t")
    with pytest.raises(SchemaMismatch, match="snapshot ends before its array 'b': it was cut off"):
        unpack(buffer[:-64], what="snapshot")
    buffer[-64] ^= 1
    with pytest.raises(SchemaMismatch, match="snapshot has a damaged array 'b': its checksum differs"):
        unpack(buffer, what="snapshot")
    buffer[20] ^= 1
    with pytest.raises(SchemaMismatch, match="snapshot has a damaged header: its checksum differs"):
        unpack(buffer, what="snapshot")
    with pytest.raises(SchemaMismatch, match="this release reads b'RSTS'"):
        unpack(b"JUNKJUNK" * 4, what="snapshot")

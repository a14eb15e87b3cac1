"""Sample requests and replies: packed and back, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.errors import SchemaMismatch
from rollstream.replay.samples import (
    SampledItems,
    SampleReply,
    SampleRequest,
    decode_items,
    decode_reply,
    decode_request,
    encode_reply,
    encode_request,
)


def reply() -> SampleReply:
    items = SampledItems(
        keys=np.array([7, 1 << 60], np.uint64),
        start=np.array([1, 2], np.uint64),
        probability=np.array([0.25, 0.75]),
        writer=np.array([1, 2], np.uint32),
        env=np.array([0, 3], np.uint32),
        length=np.array([2, 4], np.uint32),
        priority=np.array([1.0, 2.0], np.float32),
        times_sampled=np.array([1, 9], np.int32),
        version=np.array([3, 4], np.uint32),
        age_rows=np.array([100, 0], np.uint32),
        lead=np.array([0, 2], np.uint16),
        table_items=12,
    )
    return SampleReply(counts=np.array([1, 1], np.uint32), items=items, mass=3.5, newest_version=8, min_probability=0.01)


def test_requests_and_replies_come_back_as_they_were() -> None:
    request = SampleRequest(
        counts=np.array([256, 10], np.uint32), deadline_ms=1500, count_when_consumed=True, consumed=40, learner_version=6
    )
    asked = decode_request(encode_request(request))
    assert asked.counts.tolist() == [256, 10]
    assert (asked.deadline_ms, asked.count_when_consumed, asked.consumed, asked.learner_version) == (1500, True, 40, 6)
    back = decode_reply(encode_reply(reply()))
    assert back.counts.tolist() == [1, 1]
    assert (back.mass, back.newest_version, back.min_probability, back.table_items) == (3.5, 8, 0.01, 12)
    for name in ("keys", "start", "probability", "times_sampled", "version", "age_rows", "lead"):
        assert getattr(back.items, name).tolist() == getattr(reply().items, name).tolist(), name


def test_how_a_shard_stands_comes_without_items() -> None:
    nothing = SampleReply(counts=np.zeros(0, np.uint32), items=SampledItems.nothing(table_items=5), mass=2.0, newest_version=1)
    back = decode_reply(encode_reply(nothing))
    assert (len(back.items), back.table_items, back.mass) == (0, 5, 2.0)


def test_foreign_bytes_are_refused() -> None:
    with pytest.raises(SchemaMismatch, match="sample request is 3 bytes long"):
        decode_request(b"abc")
    with pytest.raises(SchemaMismatch, match="sample reply is 3 bytes long, its header alone needs"):
        decode_reply(b"abc")
    with pytest.raises(SchemaMismatch, match="where its header announces 2 items"):
        decode_reply(encode_reply(reply())[:-1])
    with pytest.raises(SchemaMismatch, match="where its header announces 2 batches"):
        decode_reply(encode_reply(reply())[:44])
    with pytest.raises(SchemaMismatch, match="where its header announces 9 batches"):
        decode_request(b"RSQ2\x02\0\0\0\x09\0\0\0" + bytes(12))
    with pytest.raises(SchemaMismatch, match="packed items need"):
        decode_items(b"", count=1, offset=0, table_items=1)
    with pytest.raises(SchemaMismatch, match=r"this release speaks b'RSA2' layout 2"):
        decode_reply(b"RSA2\x09" + encode_reply(reply())[5:])

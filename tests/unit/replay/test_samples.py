"""Sample requests and replies: packed and back, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.errors import SchemaMismatch
from rollstream.replay.samples import (
    SampledItems,
    SampleReply,
    SampleRequest,
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
        table_items=12,
    )
    return SampleReply(batches=1, batch_items=2, items=items)


def test_requests_and_replies_come_back_as_they_were() -> None:
    request = SampleRequest(batches=3, batch_items=256, deadline_ms=1500)
    assert decode_request(encode_request(request)) == request
    back = decode_reply(encode_reply(reply()))
    assert (back.batches, back.batch_items, back.items.table_items) == (1, 2, 12)
    assert back.items.keys.tolist() == [7, 1 << 60]
    assert back.items.probability.tolist() == [0.25, 0.75]
    assert back.items.times_sampled.tolist() == [1, 9]


def test_foreign_bytes_are_refused() -> None:
    with pytest.raises(SchemaMismatch, match="sample request is 3 bytes long"):
        decode_request(b"abc")
    with pytest.raises(SchemaMismatch, match="sample reply is 3 bytes long, its header alone needs"):
        decode_reply(b"abc")
    with pytest.raises(SchemaMismatch, match="where its header announces 2 items"):
        decode_reply(encode_reply(reply())[:-1])
    with pytest.raises(SchemaMismatch, match=r"this release speaks b'RSA1' layout 1"):
        decode_reply(b"RSA1\x09" + encode_reply(reply())[5:])

"""Samples on the wire between a client and a shard: packed columns, no row bytes.

    POST /v1/tables/{id}/samples
    request   header | counts u4[B]           items of each batch that is wanted; none: only how the shard stands
    reply     header | counts u4[B'] | the columns of `COLUMNS`, K = sum of counts' entries each

As many whole batches are answered as the limiter allows, at least the first. A client that keeps batches ahead may ask that the
limiter counts only what was used (`count_when_consumed`) and then tells with each request how much that was since the last one.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rollstream.errors import SchemaMismatch

__all__ = [
    "SampleReply",
    "SampleRequest",
    "SampledItems",
    "decode_items",
    "decode_reply",
    "decode_request",
    "encode_items",
    "encode_reply",
    "encode_request",
]

LAYOUT_VERSION = 2
COUNT_WHEN_CONSUMED, WANTS_MIN_PROBABILITY = 1, 2
REQUEST = struct.Struct("<4sHHIIII")
"""Magic, layout u2, flags u2, batches u4, deadline_ms u4, consumed u4, learner_version u4."""
REPLY = struct.Struct("<4sHHIIQdd")
"""Magic, layout u2, flags u2, batches u4, newest_version u4, table_items u8, mass f8, min_probability f8."""
COLUMNS: tuple[tuple[str, str], ...] = (
    ("keys", "<u8"),
    ("start", "<u8"),
    ("probability", "<f8"),
    ("writer", "<u4"),
    ("env", "<u4"),
    ("length", "<u4"),
    ("priority", "<f4"),
    ("times_sampled", "<i4"),
    ("version", "<u4"),
    ("age_rows", "<u4"),
    ("lead", "<u2"),
)
DTYPES = tuple((name, np.dtype(dtype)) for name, dtype in COLUMNS)
ITEM_BYTES = sum(np.dtype(dtype).itemsize for _, dtype in COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledItems:
    """Chosen items [K], where their rows are, and what importance weights need.

    Attributes:
        start, length: rows `start`..`start + length - 1` of environment `env` of `writer`.
        lead: how many of these rows stand before the item's core: burn-in, or frames that are needed for stacking.
        probability: with which each was drawn.
        times_sampled: including this time.
        version: of the weights that acted in the newest row.
        age_rows: rows written to the shard since the item came.
        table_items: items that could be drawn; N of importance weights.
    """

    keys: npt.NDArray[np.uint64]
    start: npt.NDArray[np.uint64]
    probability: npt.NDArray[np.float64]
    writer: npt.NDArray[np.uint32]
    env: npt.NDArray[np.uint32]
    length: npt.NDArray[np.uint32]
    priority: npt.NDArray[np.float32]
    times_sampled: npt.NDArray[np.int32]
    version: npt.NDArray[np.uint32]
    age_rows: npt.NDArray[np.uint32]
    lead: npt.NDArray[np.uint16]
    table_items: int

    def __len__(self) -> int:
        return len(self.keys)

    @staticmethod
    def nothing(*, table_items: int = 0) -> SampledItems:
        """No items, of a table of which `table_items` can be drawn."""
        return SampledItems(**{name: np.zeros(0, dtype) for name, dtype in COLUMNS}, table_items=table_items)

    def part(self, which: slice | npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> SampledItems:
        """Some of the items, of the same table size."""
        columns = {name: getattr(self, name)[which] for name, _ in COLUMNS}
        return SampledItems(**columns, table_items=self.table_items)

    def replaced(self, which: npt.NDArray[np.bool_], others: SampledItems) -> SampledItems:
        """The same items, those marked in `which` replaced by `others`, in order."""
        columns = {}
        for name, _ in COLUMNS:
            column = getattr(self, name).copy()
            column[which] = getattr(others, name)
            columns[name] = column
        return SampledItems(**columns, table_items=others.table_items)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRequest:
    """Batches of `counts` [B] items, of which the first must come within `deadline_ms` milliseconds.

    Attributes:
        count_when_consumed: the limiter does not count these draws now, but when a later request says that they were used.
        consumed: items that were used since the last request, of those drawn with `count_when_consumed`.
        learner_version: newest weights that the client knows; 0: it does not say.
        wants_min_probability: the reply shall tell it, which costs the shard a look at all that changed.
    """

    counts: npt.NDArray[np.uint32]
    deadline_ms: int
    count_when_consumed: bool = False
    consumed: int = 0
    learner_version: int = 0
    wants_min_probability: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleReply:
    """Batches of `counts` [B] items, one after another in `items`, and how the shard stands.

    Attributes:
        mass: what a batch is split over shards by: the sum of weights of this shard's items.
        table_items: items of this shard that can be drawn.
        newest_version: of the weights that acted, over all rows and what clients said.
        min_probability: smallest probability above 0 with which one draw gives some item; 0 where there is none.
    """

    counts: npt.NDArray[np.uint32]
    items: SampledItems
    mass: float
    newest_version: int
    min_probability: float = 0.0

    @property
    def table_items(self) -> int:
        return self.items.table_items


def encode_request(request: SampleRequest) -> bytes:
    """The body of a request."""
    header = REQUEST.pack(
        b"RSQ2",
        LAYOUT_VERSION,
        request.count_when_consumed * COUNT_WHEN_CONSUMED + request.wants_min_probability * WANTS_MIN_PROBABILITY,
        len(request.counts),
        request.deadline_ms,
        request.consumed,
        request.learner_version,
    )
    return header + request.counts.astype("<u4").tobytes()


def decode_request(body: bytes) -> SampleRequest:
    """The request in `body`; refuses another layout and a wrong size."""
    if len(body) < REQUEST.size:
        raise SchemaMismatch(f"sample request is {len(body)} bytes long, its header alone needs {REQUEST.size}")
    magic, layout, flags, batches, deadline_ms, consumed, learner_version = REQUEST.unpack_from(body)
    _require_layout(magic, layout, expected=b"RSQ2", what="sample request")
    if len(body) != REQUEST.size + 4 * batches:
        raise SchemaMismatch(f"sample request is {len(body)} bytes long where its header announces {batches} batches")
    return SampleRequest(
        counts=np.frombuffer(body, "<u4", count=batches, offset=REQUEST.size),
        deadline_ms=deadline_ms,
        count_when_consumed=bool(flags & COUNT_WHEN_CONSUMED),
        wants_min_probability=bool(flags & WANTS_MIN_PROBABILITY),
        consumed=consumed,
        learner_version=learner_version,
    )


def encode_reply(reply: SampleReply) -> bytes:
    """The body of a reply."""
    header = REPLY.pack(
        b"RSA2",
        LAYOUT_VERSION,
        0,
        len(reply.counts),
        reply.newest_version,
        reply.table_items,
        reply.mass,
        reply.min_probability,
    )
    return b"".join([header, reply.counts.astype("<u4", copy=False).tobytes(), *_columns(reply.items)])


def decode_reply(body: bytes | bytearray | memoryview) -> SampleReply:
    """The reply in `body`, as views of it; refuses as `decode_request` does."""
    if len(body) < REPLY.size:
        raise SchemaMismatch(f"sample reply is {len(body)} bytes long, its header alone needs {REPLY.size}")
    magic, layout, _, batches, newest_version, table_items, mass, min_probability = REPLY.unpack_from(body)
    _require_layout(magic, layout, expected=b"RSA2", what="sample reply")
    if len(body) < REPLY.size + 4 * batches:
        raise SchemaMismatch(f"sample reply is {len(body)} bytes long where its header announces {batches} batches")
    counts = np.frombuffer(body, "<u4", count=batches, offset=REPLY.size)
    items = int(counts.sum())
    offset = REPLY.size + 4 * batches
    if len(body) != offset + items * ITEM_BYTES:
        raise SchemaMismatch(f"sample reply is {len(body)} bytes long where its header announces {items} items")
    return SampleReply(
        counts=counts,
        items=decode_items(body, count=items, offset=offset, table_items=table_items),
        mass=mass,
        newest_version=newest_version,
        min_probability=min_probability,
    )


def encode_items(items: SampledItems) -> bytes:
    """The columns of `items`, one after another."""
    return b"".join(_columns(items))


def decode_items(body: bytes | bytearray | memoryview, *, count: int, offset: int, table_items: int) -> SampledItems:
    """`count` items whose columns begin at `offset` of `body`, as views of it."""
    if len(body) < offset + count * ITEM_BYTES:
        raise SchemaMismatch(f"packed items need {count * ITEM_BYTES} bytes from byte {offset}, there are {len(body)} in all")
    columns = {}
    for name, dtype in DTYPES:
        columns[name] = np.ndarray((count,), dtype, body, offset)  # twice as fast as frombuffer, which would look up the dtype
        offset += count * dtype.itemsize
    return SampledItems(**columns, table_items=table_items)


def _columns(items: SampledItems) -> list[bytes]:
    return [getattr(items, name).astype(dtype, copy=False).tobytes() for name, dtype in COLUMNS]


def _require_layout(magic: bytes, layout: int, *, expected: bytes, what: str) -> None:
    if magic != expected or layout != LAYOUT_VERSION:
        raise SchemaMismatch(
            f"{what} begins with {magic!r} layout {layout}, this release speaks {expected!r} layout "
            f"{LAYOUT_VERSION}; run the same release on learners and replay shards"
        )

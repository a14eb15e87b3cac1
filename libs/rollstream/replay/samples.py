"""A request for samples and its reply, as packed bytes: what goes over HTTP between a learner and a replay shard.

    request   magic "RSQ1" | layout u2 | batches u2 | batch_items u4 | deadline_ms u4
    reply     magic "RSA1" | layout u2 | batches u2 | batch_items u4 | flags u4 | table_items u8
              | key u8[K] | start u8[K] | probability f8[K] | writer u4[K] | env u4[K] | length u4[K] | priority f4[K]
              | times_sampled i4[K]

One call may ask for several batches, so that a client can prefetch at the price of one round trip; the reply holds at least one
batch, and K = batches x batch_items.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from rollstream.errors import SchemaMismatch

__all__ = ["SampleReply", "SampleRequest", "SampledItems", "decode_reply", "decode_request", "encode_reply", "encode_request"]

LAYOUT_VERSION = 1
REQUEST = np.dtype([("magic", "S4"), ("layout", "<u2"), ("batches", "<u2"), ("batch_items", "<u4"), ("deadline_ms", "<u4")])
REPLY = np.dtype(
    [("magic", "S4"), ("layout", "<u2"), ("batches", "<u2"), ("batch_items", "<u4"), ("flags", "<u4"), ("table_items", "<u8")]
)
COLUMNS: tuple[tuple[str, str], ...] = (
    ("keys", "<u8"),
    ("start", "<u8"),
    ("probability", "<f8"),
    ("writer", "<u4"),
    ("env", "<u4"),
    ("length", "<u4"),
    ("priority", "<f4"),
    ("times_sampled", "<i4"),
)
ITEM_BYTES = sum(np.dtype(dtype).itemsize for _, dtype in COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledItems:
    """Chosen items [K], where their rows are, and what importance weights need.

    Attributes:
        start, length: rows `start`..`start + length - 1` of environment `env` of `writer`.
        probability: with which each was drawn.
        times_sampled: including this time.
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
    table_items: int

    def __len__(self) -> int:
        return len(self.keys)

    def part(self, which: slice | npt.NDArray[np.bool_]) -> SampledItems:
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
    """Up to `batches` batches of `batch_items`, of which the first must come within `deadline_ms` milliseconds."""

    batches: int
    batch_items: int
    deadline_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleReply:
    """`batches` batches of `batch_items` items, one after another in `items`."""

    batches: int
    batch_items: int
    items: SampledItems


def encode_request(request: SampleRequest) -> bytes:
    """The body of a request."""
    header = np.zeros((), REQUEST)
    header["magic"], header["layout"] = b"RSQ1", LAYOUT_VERSION
    for field in fields(request):
        header[field.name] = getattr(request, field.name)
    return header.tobytes()


def decode_request(body: bytes) -> SampleRequest:
    """The request in `body`; refuses another layout and a wrong size."""
    if len(body) != REQUEST.itemsize:
        raise SchemaMismatch(f"sample request is {len(body)} bytes long where {REQUEST.itemsize} are expected")
    header = np.frombuffer(body, REQUEST)[0]
    _require_layout(header, magic=b"RSQ1", what="sample request")
    return SampleRequest(
        batches=int(header["batches"]), batch_items=int(header["batch_items"]), deadline_ms=int(header["deadline_ms"])
    )


def encode_reply(reply: SampleReply) -> bytes:
    """The body of a reply."""
    header = np.zeros((), REPLY)
    header["magic"], header["layout"] = b"RSA1", LAYOUT_VERSION
    header["batches"], header["batch_items"] = reply.batches, reply.batch_items
    header["table_items"] = reply.items.table_items
    columns = [getattr(reply.items, name).astype(dtype, copy=False).tobytes() for name, dtype in COLUMNS]
    return b"".join([header.tobytes(), *columns])


def decode_reply(body: bytes | bytearray | memoryview) -> SampleReply:
    """The reply in `body`, as views of it; refuses as `decode_request` does."""
    if len(body) < REPLY.itemsize:
        raise SchemaMismatch(f"sample reply is {len(body)} bytes long, its header alone needs {REPLY.itemsize}")
    header = np.frombuffer(body, REPLY, count=1)[0]
    _require_layout(header, magic=b"RSA1", what="sample reply")
    batches, batch_items = int(header["batches"]), int(header["batch_items"])
    count = batches * batch_items
    if len(body) != REPLY.itemsize + count * ITEM_BYTES:
        raise SchemaMismatch(f"sample reply is {len(body)} bytes long where its header announces {count} items")
    offset, columns = REPLY.itemsize, {}
    for name, dtype in COLUMNS:
        columns[name] = np.frombuffer(body, dtype, count=count, offset=offset)
        offset += columns[name].nbytes
    items = SampledItems(**columns, table_items=int(header["table_items"]))
    return SampleReply(batches=batches, batch_items=batch_items, items=items)


def _require_layout(header: np.void, *, magic: bytes, what: str) -> None:
    if header["magic"] != magic or header["layout"] != LAYOUT_VERSION:
        raise SchemaMismatch(
            f"{what} begins with {header['magic']!r} layout {header['layout']}, this release speaks {magic!r} layout "
            f"{LAYOUT_VERSION}; run the same release on learners and replay shards"
        )

"""The requests that a shard's REST API takes, answered in the thread of the one who asks.

`LocalLink` has the methods of `ShardLink`, so a `TableClient` does not know the difference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np

from rollstream.config import load
from rollstream.errors import TableError
from rollstream.replay.inspection import (
    choose_items,
    describe_index,
    describe_items,
    describe_limiter,
    priority_histogram,
)
from rollstream.replay.local_shards import LocalShards
from rollstream.replay.log import DeleteEntry, encode_delete
from rollstream.replay.packed import pack, unpack
from rollstream.replay.row_fetch import RowFetch
from rollstream.replay.samples import SampledItems, decode_request, encode_items, encode_reply
from rollstream.replay.shard import TableShard
from rollstream.replay.shard_link import never_sent
from rollstream.replay.spec import TableSpec
from rollstream.replay.spec_changes import changed_spec, require_same
from rollstream.replay.table import Table
from rollstream.replay.table_state import table_state
from rollstream.replay.uninterrupted import uninterrupted
from rollstream.store import ChunkReader

__all__ = ["LocalLink"]

PATH = re.compile(r"/v1/tables/([a-zA-Z0-9._-]{1,128})(/.*)?")


class LocalLink:
    """Requests to one shard of a `LocalReplay`. Thread-safe, except that `receive` follows `send`."""

    def __init__(self, shards: LocalShards, *, shard: int) -> None:
        self._shards = shards
        self._shard = shard
        self._sent: tuple[str, str, bytes] | None = None

    def send(self, method: str, path: str, body: bytes = b"", *, content_type: str = "application/octet-stream") -> None:
        """Keep a request; `receive` does it."""
        self._sent = (method, path, body)

    def receive(self, *, deadline_s: float) -> bytes:
        """The reply to what was sent last."""
        if self._sent is None:
            raise never_sent(self._shard)
        (method, path, body), self._sent = self._sent, None
        return self._answer(method, path, body)

    def request(
        self, method: str, path: str, body: bytes = b"", *, deadline_s: float, content_type: str = "application/octet-stream"
    ) -> bytes:
        """Body of the reply; raises what a shard would refuse with."""
        return self._answer(method, path, body)

    def request_json(self, method: str, path: str, content: Any = None, *, deadline_s: float) -> Any:
        """As `request`, with JSON both ways."""
        body = b"" if content is None else json.dumps(content).encode()
        return json.loads(self._answer(method, path, body) or b"null")

    def close(self) -> None:
        """Nothing is open."""
        self._sent = None

    # --- inside ----------------------------------------------------------------------------------------------------------

    def _answer(self, method: str, path: str, body: bytes) -> bytes:
        parts = urlsplit(path)
        found = PATH.fullmatch(parts.path)
        if found is None:
            raise TableError(f"LocalReplay knows no request {method} {path}; it answers what a shard answers under /v1/tables")
        table_id, what = found.group(1), found.group(2) or ""
        if (method, what) == ("POST", "/samples"):
            return encode_reply(self._shards.sample(table_id, self._shard, decode_request(body)))
        with self._shards.locked():
            self._shards.pump()
            reply = self._reply(method, table_id, what, dict(parse_qsl(parts.query)), body)
            return reply if isinstance(reply, bytes) else json.dumps(reply).encode()

    def _reply(self, method: str, table_id: str, what: str, query: Mapping[str, str], body: bytes) -> Any:
        match method, what:
            case "PUT", "":
                return self._put(table_id, load(TableSpec, json.loads(body), what="table spec"))
            case "DELETE", "":
                return {"deleted_keys": self._shards.drop(table_id) if table_id in self._shards.table_ids() else 0}
            case "PATCH", "":
                self._shards.change(table_id, changed_spec(table_id, self._shards.spec(table_id), json.loads(body)))
                return self._described(table_id)
            case "GET", "":
                return self._described(table_id)
            case "GET", "/limiter":
                return describe_limiter(self._shard_of(table_id), table_id)
            case "GET", "/items":
                order: Any = query.get("order", "priority")
                items = choose_items(self._table(table_id), order=order, limit=int(query.get("limit", 20)))
                return {"items": self._with_rows(table_id, items)}
            case "POST", "/items/find":
                found, known = self._table(table_id).get(np.frombuffer(body, np.uint64))
                return known.astype(np.uint8).tobytes() + encode_items(found)
            case ("POST", "/reset") | ("DELETE", "/items"):
                return self._removed(table_id, DeleteEntry(keys=np.zeros(0, np.uint64), reset=self._table(table_id).spec.name))
            case "POST", "/items/delete":
                return self._removed(table_id, DeleteEntry(keys=np.array(json.loads(body)["keys"], np.uint64)))
            case "GET", "/samples/possible":
                return {"possible": self._table(table_id).can_sample(int(query.get("batch_items", 1)))}
            case "GET", "/priorities/histogram":
                table = self._table(table_id)
                return priority_histogram(table.items.priority[table.items.live()], bins=int(query.get("bins", 20)))
            case "GET", "/snapshot":
                state = table_state(self._table(table_id))
                return pack(state.facts, state.arrays)
            case "PUT", "/snapshot":
                return self._restored(table_id, body, keep_limiter=query.get("keep_limiter") == "true")
            case "POST", "/snapshot":
                self._shards.save()
                return {"saved": True}
            case "GET", item if item.startswith("/items/"):
                return self._one_item(table_id, int(item.removeprefix("/items/")))
        raise TableError(f"LocalReplay knows no request {method} {what or '/'} for table {table_id}")

    def _put(self, table_id: str, spec: TableSpec) -> dict[str, Any]:
        if table_id in self._shards.table_ids():
            require_same(table_id, self._shards.spec(table_id), spec)
        else:
            self._shards.add(table_id, spec)
        return self._described(table_id)

    def _removed(self, table_id: str, entry: DeleteEntry) -> dict[str, int]:
        """Remove items by the log, so that a restart removes them again."""
        table, rows = self._table(table_id), self._shards.rows_of(table_id, self._shard)
        before = table.size
        buffer = encode_delete(entry)
        self._shards.store.run("remove items", lambda client: client.xadd(rows.log_key, {b"d": buffer}))
        self._shards.pump()
        return {"deleted": before - table.size}

    def _restored(self, table_id: str, body: bytes, *, keep_limiter: bool) -> int:
        rows = self._shards.rows_of(table_id, self._shard)
        state = unpack(body, what=f"index for table {table_id}")
        with uninterrupted():
            count = rows.shard.replace(state, table_id=table_id, keep_limiter=keep_limiter)
        rows.save()
        return count

    def _one_item(self, table_id: str, key: int) -> dict[str, Any]:
        items, _ = self._table(table_id).get(np.array([key], np.uint64))
        if not len(items):
            raise TableError(f"table {table_id} has no item {key}; it was removed, or never was there")
        return self._with_rows(table_id, items)[0]

    def _with_rows(self, table_id: str, items: SampledItems) -> list[dict[str, Any]]:
        shard = self._shard_of(table_id)
        reader = ChunkReader(self._shards.address, clock=self._shards.clock)
        try:
            spec = self._table(table_id).spec.model_copy(update={"view": (), "stack": {}})  # what is stored
            fetch = RowFetch(reader, table_id=shard.table_id, shard=self._shard, spec=spec)
            return describe_items(items, fetch.read(items))
        finally:
            reader.close()

    def _described(self, table_id: str) -> dict[str, Any]:
        return {**describe_index(self._shard_of(table_id), table_id), "samplers_waiting": 0}

    def _shard_of(self, table_id: str) -> TableShard:
        return self._shards.rows_of(table_id, self._shard).shard

    def _table(self, table_id: str) -> Table:
        return self._shard_of(table_id).tables[table_id]

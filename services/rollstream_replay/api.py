"""The REST API of a replay shard, except for samples (`sample_protocol`), which have a shorter way.

PUT/GET/PATCH/DELETE /v1/tables/{id}         create, look, change live, drop with all keys
GET/DELETE /v1/tables/{id}/items             the inspector: items with their rows; remove all (also POST .../reset)
GET /v1/tables/{id}/items/{key}              one item with its rows
POST /v1/tables/{id}/items/find              packed: which keys are known, and their items
POST /v1/tables/{id}/items/delete            remove items by key
GET /v1/tables/{id}/priorities/histogram     how priorities are spread
GET /v1/tables/{id}/limiter                  counters, bounds, who waits
GET/PUT /v1/tables/{id}/snapshot             the index for a checkpoint, and back
POST /v1/tables/{id}/snapshot                save the index to Redis now
POST /v1/tables/{id}/samples                 packed binary, see `rollstream.replay.samples`
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Body, Path, Query, Request, Response

from rollstream.errors import SchemaMismatch
from rollstream.replay.inspection import ItemOrder, choose_items, describe_items, priority_histogram
from rollstream.replay.log import DeleteEntry
from rollstream.replay.packed import pack, unpack
from rollstream.replay.samples import encode_items
from rollstream.replay.table_state import table_state
from rollstream_replay.absent import Absent
from rollstream_replay.inspector import fetch_rows
from rollstream_replay.removal import Removal
from rollstream_replay.shard_server import ShardServer
from rollstream_replay.table_report import describe_limiter, describe_table

__all__ = ["table_router"]

TableId = Annotated[str, Path(pattern=r"^[a-zA-Z0-9._-]{1,128}$", description="`<experiment id>.<table name>`")]
ItemKey = Annotated[int, Path(ge=0, lt=1 << 64, description="Key of an item, as writers and samples give it")]
PACKED = "application/octet-stream"


def table_router(server: ShardServer) -> APIRouter:
    """Routes of the tables that `server` serves."""
    router = APIRouter(prefix="/v1/tables", tags=["tables"])
    catalog, removal = server.catalog, Removal(server)

    def described(table_id: str) -> dict[str, Any]:
        rows = server.rows_of(table_id)
        return {**describe_table(rows, rows.tables[table_id]), "redis_full": server.pressure.why}

    @router.get("", summary="Tables of this shard")
    async def list_tables() -> dict[str, Any]:
        server.require_serving()
        return {"tables": [described(table_id) for table_id in sorted(server.tables)]}

    @router.put("/{table_id}", summary="Create a table, or make sure that it is there with this spec")
    async def put_table(table_id: TableId, spec_document: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
        await catalog.put(table_id, spec_document)
        return described(table_id)

    @router.get("/{table_id}", summary="Numbers, limiter state and spec of a table")
    async def get_table(table_id: TableId) -> dict[str, Any]:
        return described(table_id)

    @router.patch("/{table_id}", summary="Change sampler, remover, limiter or sizes of a living table")
    async def patch_table(table_id: TableId, changes: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
        await catalog.change(table_id, changes)
        return described(table_id)

    @router.delete("/{table_id}", summary="Drop a table with all its keys")
    async def delete_table(
        table_id: TableId,
        with_shared: Annotated[bool, Query(description="Also the tables that share its rows")] = False,
    ) -> dict[str, int]:
        return {"deleted_keys": await catalog.drop(table_id, with_shared=with_shared)}

    @router.get("/{table_id}/items", summary="Look at items and their rows")
    async def get_items(
        table_id: TableId,
        order: ItemOrder = "priority",
        limit: Annotated[int, Query(ge=1, le=1000)] = 20,
    ) -> dict[str, Any]:
        table = server.table(table_id)
        items = choose_items(table.table, order=order, limit=limit)
        fetched = await server.in_thread(lambda: fetch_rows(server.address, table, items))
        return {"items": describe_items(items, fetched)}

    @router.get("/{table_id}/items/{key}", summary="Look at one item and its rows")
    async def get_item(table_id: TableId, key: ItemKey) -> dict[str, Any]:
        table = server.table(table_id)
        items, known = table.table.get(np.array([key], np.uint64))
        if not known.all():
            raise Absent(
                f"table {table_id} has no item with the key {key} on shard {server.shard}; it was removed, or never there"
            )
        fetched = await server.in_thread(lambda: fetch_rows(server.address, table, items))
        return describe_items(items, fetched)[0]

    @router.post("/{table_id}/items/find", summary="Which keys are known, and their items (packed)", response_class=Response)
    async def find_items(table_id: TableId, request: Request) -> Response:
        body = await request.body()
        if len(body) % 8:
            raise SchemaMismatch(f"keys to find are packed u8, 8 bytes each; got {len(body)} bytes")
        table = server.table(table_id).table
        items, known = table.get(np.frombuffer(body, "<u8").astype(np.uint64))
        return Response(known.astype("<u1").tobytes() + encode_items(items), media_type=PACKED)

    @router.post("/{table_id}/items/delete", summary="Remove items by key")
    async def delete_items(table_id: TableId, keys: Annotated[list[int], Body(embed=True)]) -> dict[str, int]:
        wanted = np.array([key for key in keys if 0 <= key < 1 << 64], np.uint64)
        table = server.table(table_id).table
        _, known = table.items.find(np.unique(wanted))
        await removal.remove(table_id, DeleteEntry(keys=wanted))
        return {"deleted": int(known.sum())}

    @router.post("/{table_id}/reset", summary="Remove all items")
    @router.delete("/{table_id}/items", summary="Remove all items")
    async def reset_table(table_id: TableId) -> dict[str, int]:
        table = server.table(table_id).table
        there = table.size
        await removal.remove(table_id, DeleteEntry(keys=np.zeros(0, np.uint64), reset=table.spec.name))
        return {"deleted": there}

    @router.get("/{table_id}/priorities/histogram", summary="How the priorities are spread")
    async def get_histogram(table_id: TableId, bins: Annotated[int, Query(ge=1, le=200)] = 20) -> dict[str, Any]:
        items = server.table(table_id).table.items
        priority = items.priority[: items.high][items.alive[: items.high]]
        return await server.in_thread(lambda: priority_histogram(priority, bins=bins))

    @router.get("/{table_id}/limiter", summary="Counters and bounds of the limiter, who may go on and who waits")
    async def get_limiter(table_id: TableId) -> dict[str, Any]:
        rows = server.rows_of(table_id)
        return {**describe_limiter(rows, rows.tables[table_id]), "redis_full": server.pressure.why}

    @router.get("/{table_id}/samples/possible", summary="Whether a batch could be sampled now")
    async def get_possible(table_id: TableId, batch_items: Annotated[int, Query(ge=1)] = 1) -> dict[str, bool]:
        return {"possible": server.table(table_id).table.can_sample(batch_items)}

    @router.get("/{table_id}/snapshot", summary="The index as packed arrays", response_class=Response)
    async def get_snapshot(table_id: TableId) -> Response:
        state = table_state(server.table(table_id).table)
        packed = await server.in_thread(lambda: pack(state.facts, state.arrays))
        return Response(packed, media_type=PACKED)

    @router.put("/{table_id}/snapshot", summary="Replace the items by restored ones, whose rows are in Redis already")
    async def put_snapshot(
        table_id: TableId,
        request: Request,
        keep_limiter: Annotated[
            bool, Query(description="Go on with the exported counts, even when nothing may be sampled")
        ] = False,
    ) -> int:
        rows = server.rows_of(table_id)
        state = unpack(await request.body(), what=f"index for table {table_id}")
        count = rows.shard.replace(state, table_id=table_id, keep_limiter=keep_limiter)
        rows.writers_dirty = True
        server.advance(rows)
        await server.save_snapshot(rows)
        return count

    @router.post("/{table_id}/snapshot", summary="Save the index to Redis now and trim the log")
    async def post_snapshot(table_id: TableId) -> dict[str, bool]:
        return {"saved": await server.save_snapshot(server.rows_of(table_id))}

    return router

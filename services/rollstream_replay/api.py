"""The REST API of a replay shard, except for samples (`sample_gate`), which have a shorter way.

PUT/GET/PATCH/DELETE /v1/tables/{id}         create, look, change live, drop with all keys
GET /v1/tables/{id}/items                    the inspector: items with their rows
GET/PUT /v1/tables/{id}/snapshot             the index for a checkpoint, and back
POST /v1/tables/{id}/snapshot                save the index to Redis now
POST /v1/tables/{id}/samples                 packed binary, see `rollstream.replay.samples`
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Path, Query, Request, Response

from rollstream.config import load
from rollstream.errors import ConfigError
from rollstream.replay.packed import pack, unpack
from rollstream.replay.spec import TableSpec
from rollstream.replay.table_state import table_state
from rollstream.store import Changes, Store, keys
from rollstream_replay.inspector import inspect_items
from rollstream_replay.shard_server import ShardServer

__all__ = ["table_router"]

TableId = Annotated[str, Path(pattern=r"^[a-zA-Z0-9._-]{1,128}$", description="`<experiment id>.<table name>`")]
IMMUTABLE = ("name", "rows", "chunk_rows")


def table_router(server: ShardServer, store: Store) -> APIRouter:
    """Routes of the tables that `server` serves."""
    router = APIRouter(prefix="/v1/tables", tags=["tables"])
    creating = asyncio.Lock()

    @router.get("", summary="Tables of this shard")
    async def list_tables() -> dict[str, Any]:
        server.require_serving()
        return {"tables": [table.describe() for _, table in sorted(server.tables.items())]}

    @router.put("/{table_id}", summary="Create a table, or make sure that it is there with this spec")
    async def put_table(table_id: TableId, spec_document: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
        server.require_serving()
        spec = load(TableSpec, spec_document, what="table spec")
        async with creating:
            if table_id in server.tables:
                _require_same(table_id, server.tables[table_id].shard.table.spec, spec)
                return server.table(table_id).describe()
            _require_own_keys(server, table_id, spec)
            await server.in_thread(lambda: _require_memory(server, store, table_id, spec))
            await server.in_thread(lambda: _store_spec(server, table_id, spec))
            table = await server.add_table(table_id, spec)
        await server.in_thread(lambda: Changes(store).announce("table", table_id))
        return table.describe()

    @router.get("/{table_id}", summary="Numbers, limiter state and spec of a table")
    async def get_table(table_id: TableId) -> dict[str, Any]:
        return server.table(table_id).describe()

    @router.patch("/{table_id}", summary="Change sampler, remover, limiter or sizes of a living table")
    async def patch_table(table_id: TableId, changes: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
        table = server.table(table_id)
        before = table.shard.table.spec
        for name in IMMUTABLE:
            if name in changes:
                raise ConfigError(f"{name} of table {table_id} cannot change, got {changes[name]!r}; make a new table")
        spec = load(TableSpec, {**before.model_dump(mode="json"), **changes}, what="table spec")
        await server.in_thread(lambda: _store_spec(server, table_id, spec))
        table.shard.table.apply(spec)
        table.samples_dirty = True
        server.advance(table)
        return table.describe()

    @router.delete("/{table_id}", summary="Drop a table with all its keys")
    async def delete_table(table_id: TableId) -> dict[str, int]:
        server.require_serving()
        async with creating:
            return {"deleted_keys": await server.drop_table(table_id)}

    @router.get("/{table_id}/items", summary="Look at items and their rows")
    async def get_items(
        table_id: TableId,
        order: Literal["priority", "newest", "oldest"] = "priority",
        limit: Annotated[int, Query(ge=1, le=1000)] = 20,
    ) -> dict[str, Any]:
        return {"items": await inspect_items(server, server.table(table_id), order=order, limit=limit)}

    @router.get("/{table_id}/samples/possible", summary="Whether a batch could be sampled now")
    async def get_possible(table_id: TableId, batch_items: Annotated[int, Query(ge=1)] = 1) -> dict[str, bool]:
        return {"possible": server.table(table_id).shard.table.can_sample(batch_items)}

    @router.get("/{table_id}/snapshot", summary="The index as packed arrays", response_class=Response)
    async def get_snapshot(table_id: TableId) -> Response:
        state = table_state(server.table(table_id).shard.table, with_streams=False)
        packed = await server.in_thread(lambda: pack(state.facts, state.arrays))
        return Response(packed, media_type="application/octet-stream")

    @router.put("/{table_id}/snapshot", summary="Replace the items by restored ones, whose rows are in Redis already")
    async def put_snapshot(table_id: TableId, request: Request) -> int:
        table = server.table(table_id)
        state = unpack(await request.body(), what=f"index for table {table_id}")
        count = table.shard.replace(state)
        table.writers_dirty = True
        server.advance(table)
        await server.save_snapshot(table)
        return count

    @router.post("/{table_id}/snapshot", summary="Save the index to Redis now and trim the log")
    async def post_snapshot(table_id: TableId) -> dict[str, bool]:
        table = server.table(table_id)
        possible = table.shard.table.admitting is None
        if possible:
            await server.save_snapshot(table)
        return {"saved": possible}

    return router


def _require_same(table_id: str, there: TableSpec, wanted: TableSpec) -> None:
    there.row_spec.require_equal(wanted.row_spec, ours=f"table {table_id}", theirs="the request")
    differing = [name for name in TableSpec.model_fields if getattr(there, name) != getattr(wanted, name)]
    if differing:
        listed = "; ".join(f"{name} is {getattr(there, name)!r}, wanted {getattr(wanted, name)!r}" for name in differing)
        raise ConfigError(f"table {table_id} exists with another spec ({listed}); change it with PATCH, or drop it first")


def _require_own_keys(server: ShardServer, table_id: str, spec: TableSpec) -> None:
    others = [(other, table.shard.table.spec.shards) for other, table in server.tables.items()]
    other = keys.table_with_same_tag(table_id, shards=spec.shards, others=others)
    if other is not None:
        raise ConfigError(
            f"table {table_id} would have the keys of table {other} (one hash tag for both, which happens once in two million "
            "cells); submit the experiment again under another name"
        )


def _require_memory(server: ShardServer, store: Store, table_id: str, spec: TableSpec) -> None:
    limit_bytes = store.check().maxmemory_bytes
    if not limit_bytes:
        return
    others_bytes = sum(table.shard.table.spec.predicted_bytes(name) for name, table in server.tables.items())
    predicted_bytes = spec.predicted_bytes(table_id)
    if others_bytes + predicted_bytes > limit_bytes:
        raise ConfigError(
            f"table {table_id} with max_items {spec.max_items} will need {predicted_bytes / 2**20:.0f} MiB, the other tables need "
            f"{others_bytes / 2**20:.0f} MiB, and Redis has maxmemory {limit_bytes / 2**20:.0f} MiB; lower max_items or raise maxmemory"
        )


def _store_spec(server: ShardServer, table_id: str, spec: TableSpec) -> None:
    text = spec.model_dump_json()
    server.guard(f"store the spec of table {table_id}", lambda pipeline: pipeline.hset(keys.tables(), table_id, text))

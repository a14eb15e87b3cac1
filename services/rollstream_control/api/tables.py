"""Endpoints of replay tables: control asks the shards that serve them, and puts their answers side by side."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Path, Request

from rollstream.store import MemberRecord, keys
from rollstream_control.api.experiments import ExperimentId
from rollstream_control.api.models import ShardTable, TableList, TableView
from rollstream_control.api.parts import CellParts, Parts
from rollstream_control.api.problems import responses
from rollstream_control.api.tokens import require_viewer
from rollstream_control.api.views import require_status
from rollstream_control.failure import Failure
from rollstream_control.submission.document import finite

if TYPE_CHECKING:
    import httpx

__all__ = ["router"]

router = APIRouter(prefix="/v1/experiments/{experiment}/tables", tags=["tables"], dependencies=[Depends(require_viewer)])

TableName = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="Name of the table in the experiment's flow.")]
SHARD_TIMEOUT_S = 3.0
"""A shard that is busy longer than this is shown as such, and the others are shown anyway."""


@router.get("", responses=responses(404), summary="Replay tables of an experiment")
async def list_tables(request: Request, parts: Parts, experiment: ExperimentId) -> TableList:
    """Each with what every shard says about its part: items, bytes, limiter, rates."""
    names, shards = await asyncio.to_thread(_look, parts, experiment)
    client = _client(request)
    tables = await asyncio.gather(*(_table(client, shards, experiment, name) for name in names))
    return TableList(tables=tuple(tables))


@router.get("/{name}", responses=responses(404), summary="Look at one replay table")
async def get_table(request: Request, parts: Parts, experiment: ExperimentId, name: TableName) -> TableView:
    """As in the list."""
    names, shards = await asyncio.to_thread(_look, parts, experiment)
    if name not in names:
        there = f"it has {', '.join(names)}" if names else "it has none"
        raise Failure(f"experiment {experiment} has no table {name!r}: {there}", status=404, kind="no-table")
    return await _table(_client(request), shards, experiment, name)


def _look(parts: CellParts, experiment: str) -> tuple[list[str], list[MemberRecord]]:
    """Names of the experiment's tables, and the replay shards that are live."""
    require_status(parts, experiment)
    known: Any = parts.store.run("list the tables", lambda client: client.hkeys(keys.tables()))
    prefix = f"{experiment}."
    names = sorted(table.decode().removeprefix(prefix) for table in known if table.decode().startswith(prefix))
    shards = [member for member in parts.members.list() if member.role == "replay"]
    return names, sorted(shards, key=lambda member: (member.shard or 0, member.id))


async def _table(client: httpx.AsyncClient, shards: list[MemberRecord], experiment: str, name: str) -> TableView:
    table_id = f"{experiment}.{name}"
    asked = await asyncio.gather(*(_ask(client, shard, table_id) for shard in shards))
    if not asked:
        problem = "no replay shard is live: the table is safe in Redis and served again when one comes"
        asked = [ShardTable(shard=0, member="", info=None, problem=problem)]
    return TableView(name=name, id=table_id, shards=tuple(asked))


async def _ask(client: httpx.AsyncClient, shard: MemberRecord, table_id: str) -> ShardTable:
    import httpx

    info: dict[str, Any] | None = None
    problem = ""
    try:
        reply = await client.get(f"{shard.url.rstrip('/')}/v1/tables/{table_id}")
        if reply.is_success:
            info = finite(reply.json())
        else:
            problem = f"{shard.id} answered HTTP {reply.status_code}: {reply.text[:500]}"
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        problem = f"{shard.id} at {shard.url or 'no address'} could not be asked: {error or type(error).__name__}"
    return ShardTable(shard=shard.shard or 0, member=shard.id, info=info, problem=problem)


def _client(request: Request) -> httpx.AsyncClient:
    """One client for all requests, made when first needed: `httpx` takes a tenth of a second to import."""
    import httpx

    state = request.app.state
    if not hasattr(state, "shard_client"):
        state.shard_client = httpx.AsyncClient(timeout=SHARD_TIMEOUT_S, follow_redirects=False, trust_env=False)
    client: httpx.AsyncClient = state.shard_client
    return client

"""Endpoints of replay tables: control asks the shards that serve them, and puts their answers side by side."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request

from rollstream.store import MemberRecord, keys
from rollstream_control.api.experiments import ExperimentId
from rollstream_control.api.models import ShardTable, TableList, TableView
from rollstream_control.api.parts import CellParts, Parts
from rollstream_control.api.problems import responses
from rollstream_control.api.shards import Shards
from rollstream_control.api.tokens import require_viewer
from rollstream_control.api.views import require_status
from rollstream_control.failure import Failure

__all__ = ["router"]

router = APIRouter(prefix="/v1/experiments/{experiment}/tables", tags=["tables"], dependencies=[Depends(require_viewer)])

TableName = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="Name of the table in the experiment's flow.")]


@router.get("", responses=responses(404), summary="Replay tables of an experiment")
async def list_tables(request: Request, parts: Parts, experiment: ExperimentId) -> TableList:
    """Each with what every shard says about its part: items, bytes, limiter, rates."""
    names, live = await asyncio.to_thread(_look, parts, experiment)
    tables = await asyncio.gather(*(_table(request.app.state.shards, live, experiment, name) for name in names))
    return TableList(tables=tuple(tables))


@router.get("/{name}", responses=responses(404), summary="Look at one replay table")
async def get_table(request: Request, parts: Parts, experiment: ExperimentId, name: TableName) -> TableView:
    """As in the list."""
    names, live = await asyncio.to_thread(_look, parts, experiment)
    if name not in names:
        there = f"it has {', '.join(names)}" if names else "it has none"
        raise Failure(f"experiment {experiment} has no table {name!r}: {there}", status=404, kind="no-table")
    return await _table(request.app.state.shards, live, experiment, name)


def _look(parts: CellParts, experiment: str) -> tuple[list[str], list[MemberRecord]]:
    """Names of the experiment's tables, and the replay shards that are live."""
    require_status(parts, experiment)
    known: Any = parts.store.run("list the tables", lambda client: client.hkeys(keys.tables()))
    prefix = f"{experiment}."
    names = sorted(table.decode().removeprefix(prefix) for table in known if table.decode().startswith(prefix))
    shards = [member for member in parts.members.list() if member.role == "replay"]
    return names, sorted(shards, key=lambda member: (member.shard or 0, member.id))


async def _table(shards: Shards, live: list[MemberRecord], experiment: str, name: str) -> TableView:
    table_id = f"{experiment}.{name}"
    asked = await asyncio.gather(*(shards.ask(shard, table_id) for shard in live))
    if not asked:
        problem = "no replay shard is live: the table is safe in Redis and served again when one comes"
        asked = [ShardTable(shard=0, member="", info=None, problem=problem)]
    return TableView(name=name, id=table_id, shards=tuple(asked))

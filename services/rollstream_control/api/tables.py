"""Endpoints of replay tables: control asks the shards that serve them, and puts their answers side by side."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import APIRouter, Body, Depends, Path, Query, Request

from rollstream.store import MemberRecord, keys
from rollstream_control.api.experiments import ExperimentId
from rollstream_control.api.models import ShardTable, TableList, TableView
from rollstream_control.api.parts import CellParts, Parts
from rollstream_control.api.problems import responses
from rollstream_control.api.shards import ShardAnswer, Shards
from rollstream_control.api.tokens import require_operator, require_viewer
from rollstream_control.api.views import require_status
from rollstream_control.failure import Failure

__all__ = ["router"]

router = APIRouter(prefix="/v1/experiments/{experiment}/tables", tags=["tables"], dependencies=[Depends(require_viewer)])

TableName = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="Name of the table in the experiment's flow.")]
ItemKey = Annotated[int, Path(ge=0, lt=1 << 64, description="Key of an item, as writers and samples give it.")]
ItemOrder: TypeAlias = Literal["priority", "lowest", "newest", "oldest"]
SHARD_SHIFT = 56
"""A key carries the number of its shard in its highest byte; see `rollstream.replay.item_keys`."""
Change = Annotated[
    dict[str, Any],
    Body(description="Fields of the table's spec that change: sampler, remover, limiter, max_items, max_times_sampled, ..."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    """What the cell knows of an experiment's tables: on how many shards each lies, and which shards are live."""

    shards: Mapping[str, int]
    live: list[MemberRecord]

    def serving(self, name: str) -> list[MemberRecord]:
        """The live shards that hold a part of the table; of two members of one number the one that is ready."""
        first = {member.shard or 0: member for member in reversed(self.live)}
        return [member for number, member in sorted(first.items()) if number < self.shards[name]]


@router.get("", responses=responses(404), summary="Replay tables of an experiment")
async def list_tables(request: Request, parts: Parts, experiment: ExperimentId) -> TableList:
    """Each with what every shard says about its part: items, bytes, limiter, rates."""
    cell = await asyncio.to_thread(_look, parts, experiment)
    shards: Shards = request.app.state.shards
    tables = await asyncio.gather(*(_side_by_side(shards, cell, experiment, name) for name in sorted(cell.shards)))
    return TableList(tables=tuple(tables))


@router.get("/{name}", responses=responses(404), summary="Look at one replay table")
async def get_table(request: Request, parts: Parts, experiment: ExperimentId, name: TableName) -> TableView:
    """As in the list."""
    return await _ask_all(request, parts, experiment, name)


@router.patch(
    "/{name}",
    responses=responses(400, 403, 404, 409, 422, 503),
    dependencies=[Depends(require_operator)],
    summary="Change a living replay table",
)
async def patch_table(request: Request, parts: Parts, experiment: ExperimentId, name: TableName, changes: Change) -> TableView:
    """Sampler, remover, limiter and sizes, on all shards. A limiter under which writers and samplers could wait for each other is
    refused with the inequality that fails. A shard that is away takes the change up when it comes back."""
    cell = await asyncio.to_thread(_look, parts, experiment)
    _require_table(cell, experiment, name)
    shards: Shards = request.app.state.shards
    asked = [shards.ask(shard, f"{experiment}.{name}", method="PATCH", content=changes) for shard in cell.serving(name)]
    answers = await asyncio.gather(*asked)
    _require_success(answers, experiment, name)
    return _view(answers, experiment, name)


@router.get("/{name}/items", responses=responses(404), summary="Look at items of a replay table")
async def get_items(
    *,
    request: Request,
    parts: Parts,
    experiment: ExperimentId,
    name: TableName,
    order: ItemOrder = "priority",
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
) -> TableView:
    """Of each shard up to `limit` items under `items`: key, priority, use, address, and their rows decoded."""
    return await _ask_all(request, parts, experiment, name, path="/items", query={"order": order, "limit": limit})


@router.get("/{name}/items/{key}", responses=responses(404, 503), summary="Look at one item of a replay table")
async def get_item(request: Request, parts: Parts, experiment: ExperimentId, name: TableName, key: ItemKey) -> ShardTable:
    """Its key tells which shard holds it; that one is asked."""
    cell = await asyncio.to_thread(_look, parts, experiment)
    _require_table(cell, experiment, name)
    number = key >> SHARD_SHIFT
    holders = [member for member in cell.serving(name) if (member.shard or 0) == number]
    if number >= cell.shards[name]:
        raise Failure(
            f"table {name} has {cell.shards[name]} shards, and {key} is a key of shard {number}", status=404, kind="no-item"
        )
    if not holders:
        raise Failure(f"replay shard {number}, which holds the item {key}, is not live", status=503, kind="shard-away")
    shards: Shards = request.app.state.shards
    answer = await shards.ask(holders[0], f"{experiment}.{name}/items/{key}")
    _require_success([answer], experiment, name)
    return answer.shown()


@router.get("/{name}/histogram", responses=responses(404), summary="How the priorities of a replay table are spread")
async def get_histogram(
    *,
    request: Request,
    parts: Parts,
    experiment: ExperimentId,
    name: TableName,
    bins: Annotated[int, Query(ge=1, le=200)] = 20,
) -> TableView:
    """Of each shard: counts by bins of equal ratio, the number of zeros, least, greatest and mean."""
    return await _ask_all(request, parts, experiment, name, path="/priorities/histogram", query={"bins": bins})


@router.get("/{name}/limiter", responses=responses(404), summary="Who may go on and who waits at a replay table")
async def get_limiter(request: Request, parts: Parts, experiment: ExperimentId, name: TableName) -> TableView:
    """Of each shard: the limiter's counters and bounds, which writers and samplers wait, for what and for how long."""
    return await _ask_all(request, parts, experiment, name, path="/limiter")


async def _ask_all(
    request: Request,
    parts: CellParts,
    experiment: str,
    name: str,
    *,
    path: str = "",
    query: Mapping[str, str | int] | None = None,
) -> TableView:
    cell = await asyncio.to_thread(_look, parts, experiment)
    _require_table(cell, experiment, name)
    return await _side_by_side(request.app.state.shards, cell, experiment, name, path=path, query=query)


async def _side_by_side(
    shards: Shards,
    cell: _Cell,
    experiment: str,
    name: str,
    *,
    path: str = "",
    query: Mapping[str, str | int] | None = None,
) -> TableView:
    asked = [shards.ask(shard, f"{experiment}.{name}{path}", query=query) for shard in cell.serving(name)]
    return _view(await asyncio.gather(*asked), experiment, name)


def _view(answers: list[ShardAnswer], experiment: str, name: str) -> TableView:
    shown = tuple(answer.shown() for answer in answers)
    if not shown:
        problem = "no replay shard is live: the table is safe in Redis and served again when one comes"
        shown = (ShardTable(shard=0, member="", info=None, problem=problem),)
    return TableView(name=name, id=f"{experiment}.{name}", shards=shown)


def _look(parts: CellParts, experiment: str) -> _Cell:
    """The experiment's tables, and the replay shards that are live."""
    require_status(parts, experiment)
    known: Any = parts.store.run("list the tables", lambda client: client.hgetall(keys.tables()))
    prefix = f"{experiment}."
    shards = {
        table.decode().removeprefix(prefix): int(json.loads(spec).get("shards", 1))
        for table, spec in known.items()
        if table.decode().startswith(prefix)
    }
    live = [member for member in parts.members.list() if member.role == "replay"]
    return _Cell(shards=shards, live=sorted(live, key=lambda member: (member.shard or 0, not member.ready, member.id)))


def _require_table(cell: _Cell, experiment: str, name: str) -> None:
    if name not in cell.shards:
        there = f"it has {', '.join(sorted(cell.shards))}" if cell.shards else "it has none"
        raise Failure(f"experiment {experiment} has no table {name!r}: {there}", status=404, kind="no-table")


def _require_success(answers: list[ShardAnswer], experiment: str, name: str) -> None:
    """Every shard that was asked did it; otherwise the first refusal, or who could not be asked."""
    for answer in answers:
        if 400 <= answer.status < 500:
            kind = {404: "no-item", 409: "table", 422: "invalid"}.get(answer.status, "table")
            raise Failure(answer.problem, status=answer.status, kind=kind)
    away = [answer.problem for answer in answers if answer.problem]
    if away or not answers:
        told = "; ".join(away) or "no replay shard is live"
        raise Failure(f"table {name} of {experiment}: {told}", status=503, kind="shard-away")

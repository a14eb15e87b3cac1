"""Endpoints of what an experiment tells: reports, faults, its flow, and its events as they happen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi.responses import StreamingResponse

from rollstream.config import FINAL_PHASES
from rollstream.errors import StoreError
from rollstream_control.api.experiments import ExperimentId
from rollstream_control.api.models import FaultList, FlowView, ReportList, StreamEntry
from rollstream_control.api.parts import CellParts, Parts
from rollstream_control.api.problems import responses
from rollstream_control.api.tokens import require_viewer
from rollstream_control.api.views import require_status
from rollstream_control.submission.document import finite

__all__ = ["router"]

router = APIRouter(prefix="/v1/experiments/{experiment}", tags=["journals"], dependencies=[Depends(require_viewer)])

POSITION = r"^\d{1,15}(-\d{1,15})?$"
After = Annotated[str, Query(pattern=POSITION, description="Id of the last entry that you have; 0 for all.")]
Limit = Annotated[int, Query(ge=1, le=10_000, description="Most entries in the reply.")]
EVENTS_AT_ONCE = 200
RETRY_MS = 2_000
"""What a browser waits before it connects again: control is back from a restart by then."""


@router.get("/reports", responses=responses(404), summary="Reports of an experiment")
def reports(parts: Parts, experiment: ExperimentId, after: After = "0", limit: Limit = 1_000) -> ReportList:
    """About one a second; numbers that do not exist (a mean over no episodes) are null."""
    require_status(parts, experiment)
    entries = parts.experiments.reports(experiment, after=after, limit=limit)
    shown = tuple(StreamEntry(id=entry, data=finite(report)) for entry, report in entries)
    return ReportList(reports=shown, next_after=shown[-1].id if shown else after)


@router.get("/faults", responses=responses(404), summary="Faults of an experiment")
def faults(parts: Parts, experiment: ExperimentId, after: After = "0", limit: Limit = 100) -> FaultList:
    """What went wrong in the user's code, each with operator, file, line, actor and the user's own traceback."""
    require_status(parts, experiment)
    entries = parts.experiments.faults(experiment, after=after, limit=limit)
    shown = tuple(StreamEntry(id=entry, data=finite(asdict(fault))) for entry, fault in entries)
    return FaultList(faults=shown, next_after=shown[-1].id if shown else after)


@router.get("/flow", responses=responses(404), summary="Dataflow graph of an experiment")
def flow(parts: Parts, experiment: ExperimentId) -> FlowView:
    """Nodes and edges with live rates, depth, work and waits, and the bottleneck in words, as the learner last described them."""
    require_status(parts, experiment)
    described = parts.experiments.flow(experiment)
    return FlowView(id=experiment, flow=None if described is None else finite(described))


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses=responses(404)
    | {
        200: {"description": "Events as they happen", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
        204: {"description": "The experiment has ended and you have all of its events: do not connect again"},
    },
    summary="Events of an experiment, live",
)
async def events(
    parts: Parts,
    experiment: ExperimentId,
    after: Annotated[str | None, Query(pattern=POSITION, description="Id of the last event that you have.")] = None,
    last_event_id: Annotated[str | None, Header(pattern=POSITION, description="As `after`; browsers send it.")] = None,
) -> Response:
    """Server-sent events (`id`, `event`, `data`): first those that have happened, then each as it happens.

    A comment every few seconds keeps the connection open. The stream ends after the event of the final phase.
    """
    start = last_event_id or after or "0"
    status = await asyncio.to_thread(require_status, parts, experiment)
    if status.ended and not await asyncio.to_thread(parts.experiments.events, experiment, after=start, limit=1):
        return Response(status_code=204)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_stream(parts, experiment, start), media_type="text/event-stream", headers=headers)


async def _stream(parts: CellParts, experiment: str, after: str) -> AsyncIterator[bytes]:
    yield f"retry: {RETRY_MS}\n\n".encode()
    while not parts.wakeups.closed:
        woken = parts.wakeups.subscribe()
        try:
            entries = await asyncio.to_thread(parts.experiments.events, experiment, after=after, limit=EVENTS_AT_ONCE)
        except StoreError as error:
            yield f": {' '.join(str(error).split())}\n\n".encode()
            entries = []
        for position, event in entries:
            yield _event(position, event)
            if event.get("kind") == "phase" and event.get("phase") in FINAL_PHASES:
                return
        after = entries[-1][0] if entries else after
        if len(entries) < EVENTS_AT_ONCE:
            await parts.wakeups.wait(woken, timeout_s=parts.heartbeat_every_s)
            if not woken.is_set():
                yield b": heartbeat\n\n"


def _event(entry: str, event: dict[str, Any]) -> bytes:
    kind = str(event.get("kind", "event")).replace("\n", " ").replace("\r", " ")
    data = json.dumps(finite(event), allow_nan=False, separators=(",", ":"))
    return f"id: {entry}\nevent: {kind}\ndata: {data}\n\n".encode()

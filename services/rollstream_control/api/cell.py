"""Endpoints of the cell: who is there, and how many actors there should be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Depends

from rollstream.store import MemberRecord, keys
from rollstream_control.api.models import ActorsView, CellView, MemberView, ReplicasReply, ReplicasRequest, ServerView
from rollstream_control.api.parts import CellParts, Parts
from rollstream_control.api.problems import responses
from rollstream_control.api.tokens import require_operator, require_viewer
from rollstream_control.failure import Failure
from rollstream_control.submission.document import finite

__all__ = ["router"]

router = APIRouter(prefix="/v1/cell", tags=["cell"])

RECORD_LIVES_S = 6.0
"""Life of a member's record: what is left of it tells the age of its last heartbeat."""


@router.get("", dependencies=[Depends(require_viewer)], summary="Look at the cell")
def get_cell(parts: Parts) -> CellView:
    """Members with role, release and health, numbers of actors, and the server."""
    members = parts.members.list()
    seated = parts.assignments.all()
    actors = [member.id for member in members if member.role == "actor"]
    server = parts.server()
    return CellView(
        version=parts.version,
        backend=parts.backend,
        scheduling=parts.scheduling(),
        actors=ActorsView(wanted=_wanted(parts), live=len(actors), assigned=sum(actor in seated for actor in actors)),
        experiments_open=len(parts.experiments.open_ids()),
        server=None
        if server is None
        else ServerView(
            product=server.product,
            version=server.version,
            used_memory_bytes=server.used_memory_bytes,
            maxmemory_bytes=server.maxmemory_bytes,
        ),
        members=tuple(_member(member, left_ms) for member, left_ms in zip(members, _left_ms(parts, members), strict=True)),
    )


@router.put(
    "/actors",
    status_code=202,
    responses=responses(400, 409, 413, 422, 502),
    dependencies=[Depends(require_operator)],
    summary="Scale the actors",
)
def put_actors(parts: Parts, wish: ReplicasRequest) -> ReplicasReply:
    """Ask for so many actors. Safe to repeat. Actors that leave finish their rollout first."""
    parts.scaling.scale(wish.replicas)
    return ReplicasReply(replicas=wish.replicas, backend=parts.backend)


def _wanted(parts: CellParts) -> int | None:
    try:
        return parts.scaling.wanted()
    except Failure:  # the cluster cannot say; what is live still can be shown
        return None


def _left_ms(parts: CellParts, members: Sequence[MemberRecord]) -> list[int]:
    def operation(client: Any) -> list[int]:
        with client.pipeline(transaction=False) as pipeline:
            for member in members:
                pipeline.pttl(keys.member(member.id))
            replies: list[int] = pipeline.execute()
            return replies

    return parts.store.run("read the age of heartbeats", operation) if members else []


def _member(member: MemberRecord, left_ms: int) -> MemberView:
    age_s = None if left_ms < 0 else round(max(0.0, RECORD_LIVES_S - left_ms / 1000), 3)
    told = finite(asdict(member))
    del told["operators"]  # shown with the flow
    return MemberView.model_validate(told | {"heartbeat_age_s": age_s})

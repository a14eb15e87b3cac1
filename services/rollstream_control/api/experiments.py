"""Endpoints of experiments: submit, list, look at one, and give orders."""

from __future__ import annotations

import functools
from typing import Annotated, Any, Literal

import anyio.to_thread
from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response

from rollstream.config import ExperimentSpec, Phase
from rollstream.errors import ConfigError
from rollstream_control.api.models import ExperimentList, ExperimentView, OrderReply
from rollstream_control.api.parts import CellParts, Parts
from rollstream_control.api.problems import responses
from rollstream_control.api.tokens import require_operator, require_viewer
from rollstream_control.api.views import Surroundings, item, require_status, view
from rollstream_control.failure import Failure
from rollstream_control.submission.document import parse_json

__all__ = ["ExperimentId", "router"]

router = APIRouter(prefix="/v1/experiments", tags=["experiments"])

ID_PATTERN = r"^[a-z0-9][a-z0-9-]{0,41}-[0-9a-f]{6}$"
ExperimentId = Annotated[str, Path(pattern=ID_PATTERN, description="Id of an experiment: its name and six hex digits.")]
IdempotencyKey = Annotated[
    str | None,
    Header(
        pattern=r"^[\x21-\x7e]{1,200}$",
        description="Makes the request safe to repeat: the same key with the same body gives the same experiment, for a day.",
    ),
]
WantedId = Annotated[
    str | None,
    Query(
        alias="id",
        pattern=ID_PATTERN,
        description="Id that the experiment shall have: a second request with it and the same spec changes nothing.",
    ),
]
SPEC_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ExperimentSpec"}}},
    }
}
VALIDATIONS_AT_ONCE = 8
"""Submissions that are looked at together; others wait, and no other endpoint waits with them."""


@router.post(
    "",
    status_code=201,
    response_model=ExperimentView,
    responses=responses(400, 409, 413, 415, 422) | {200: {"description": "Known already by its key", "model": ExperimentView}},
    openapi_extra=SPEC_BODY,
    dependencies=[Depends(require_operator)],
    summary="Submit an experiment",
)
async def submit(
    request: Request, response: Response, parts: Parts, idempotency_key: IdempotencyKey = None, wanted_id: WantedId = None
) -> Any:
    """Check the spec and put it into the queue. A 422 lists every bad field with its path."""
    content_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if content_type != "application/json":
        raise Failure(
            f"send the spec as application/json, got {content_type or 'no Content-Type'}", status=415, kind="media-type"
        )
    try:
        document = parse_json(await request.body(), what="experiment spec")
    except ConfigError as error:
        raise Failure(str(error), status=400, kind="not-json") from error
    work = functools.partial(_submit, parts, document, idempotency_key, wanted_id)
    created, shown = await anyio.to_thread.run_sync(work, limiter=request.app.state.validations)
    response.status_code = 201 if created else 200
    response.headers["Location"] = f"/v1/experiments/{shown.id}"
    return shown


def _submit(parts: CellParts, document: dict[str, Any], key: str | None, wanted_id: str | None) -> tuple[bool, ExperimentView]:
    submitted = parts.submitter.submit(document, idempotency_key=key, wanted_id=wanted_id)
    shown = view(parts, parts.experiments.status(submitted.id), Surroundings.read(parts))
    return submitted.created, shown


@router.get("", dependencies=[Depends(require_viewer)], summary="List experiments")
def list_experiments(
    parts: Parts,
    phase: Annotated[list[Phase] | None, Query(description="Only these phases; may be given several times.")] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Most experiments in the reply.")] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000_000, description="How many of the newest to leave out.")] = 0,
) -> ExperimentList:
    """The newest first."""
    ids = parts.experiments.ids()
    around = Surroundings.read(parts)
    shown, skipped = [], 0
    for experiment in reversed(ids):
        status = parts.experiments.status(experiment)
        if phase and status.phase not in phase:
            continue
        if skipped < offset:
            skipped += 1
            continue
        shown.append(item(parts, status, around))
        if len(shown) == limit:
            break
    return ExperimentList(experiments=tuple(shown), total=len(ids))


@router.get(
    "/{experiment}",
    responses=responses(404),
    dependencies=[Depends(require_viewer)],
    summary="Look at one experiment",
)
def get_experiment(parts: Parts, experiment: ExperimentId) -> ExperimentView:
    """Spec, phase, condition, actors, counters, the newest report and, when it has ended, the summary."""
    status = require_status(parts, experiment)
    return view(parts, status, Surroundings.read(parts))


def _add_order(path: str, order: Literal["run", "pause", "stop", "checkpoint"], summary: str, description: str) -> None:
    def endpoint(parts: Parts, experiment: ExperimentId) -> OrderReply:
        status = require_status(parts, experiment)
        unchanged = order != "checkpoint" and parts.experiments.wanted(experiment) == order and not status.ended
        if not unchanged:
            try:
                parts.experiments.order(experiment, order)
            except ConfigError as error:
                raise Failure(str(error), status=409, kind="has-ended") from error
        return OrderReply(id=experiment, ordered=order, phase=status.phase)

    router.add_api_route(
        f"/{{experiment}}/{path}",
        endpoint,
        methods=["POST"],
        status_code=202,
        responses=responses(404, 409),
        dependencies=[Depends(require_operator)],
        summary=summary,
        description=description + " Safe to repeat.",
        name=path,
        operation_id=f"{path}_experiment",
    )


_add_order("stop", "stop", "Stop an experiment", "It saves a checkpoint, writes its summary and ends in phase `stopped`.")
_add_order("pause", "pause", "Pause an experiment", "It saves a checkpoint and gives its actors back.")
_add_order("resume", "run", "Resume an experiment", "It gets actors again and goes on where it paused.")
_add_order("checkpoint", "checkpoint", "Save a checkpoint now", "One more checkpoint, besides the regular ones.")


def spec_schemas() -> dict[str, Any]:
    """Schemas of `ExperimentSpec` and its parts, for the components of the OpenAPI document."""
    schema = ExperimentSpec.model_json_schema(ref_template="#/components/schemas/{model}", mode="validation")
    parts: dict[str, Any] = schema.pop("$defs", {})
    return {**parts, "ExperimentSpec": schema}

"""Errors as RFC 9457 problem documents: one shape for every failure, with all bad fields in `errors`."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import Field
from starlette.exceptions import HTTPException

from rollstream.config import Frozen
from rollstream.errors import ConfigError, DeadlineExceeded, Problem, RollstreamError, StoreRefused, StoreUnavailable
from rollstream_control.failure import Failure

__all__ = ["MEDIA_TYPE", "FieldProblem", "ProblemDocument", "install", "problem_response", "responses"]

MEDIA_TYPE = "application/problem+json"


class FieldProblem(Frozen):
    """One bad field of a request."""

    path: str
    """Where it stands, dotted; empty for the request as a whole."""
    message: str
    """What is wrong with it, and what is allowed."""


class ProblemDocument(Frozen):
    """What every error reply looks like (RFC 9457)."""

    type: str
    """URN that a program may compare, e.g. `urn:rollstream:problem:invalid`."""
    title: str
    """The status in words."""
    status: int
    """HTTP status, repeated."""
    detail: str
    """What is wrong and what to do, for a person."""
    errors: tuple[FieldProblem, ...] = Field(default=())
    """Every bad field at once; empty when the request as a whole is the problem."""


def problem_response(
    detail: str,
    *,
    status: int,
    kind: str,
    problems: Sequence[Problem] = (),
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    """A problem document as a response."""
    document = ProblemDocument(
        type=f"urn:rollstream:problem:{kind}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        errors=tuple(FieldProblem(path=problem.path, message=problem.message) for problem in problems),
    )
    return JSONResponse(document.model_dump(mode="json"), status_code=status, media_type=MEDIA_TYPE, headers=headers)


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The part of an endpoint's OpenAPI that says which problems it may answer with (besides those that all may)."""
    reference = {"$ref": "#/components/schemas/ProblemDocument"}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": reference}}} for status in statuses
    }


def install(app: FastAPI) -> None:
    """Make `app` answer every error as a problem document."""

    @app.exception_handler(Failure)
    async def _failure(_: Request, error: Failure) -> JSONResponse:
        return problem_response(str(error), status=error.status, kind=error.kind, headers=error.headers)

    @app.exception_handler(RequestValidationError)
    async def _invalid_request(_: Request, error: RequestValidationError) -> JSONResponse:
        problems = [
            Problem(path=".".join(str(part) for part in entry["loc"][1:]) or str(entry["loc"][0]), message=entry["msg"])
            for entry in error.errors()
        ]
        listed = "; ".join(str(problem) for problem in problems)
        return problem_response(f"the request is invalid: {listed}", status=422, kind="invalid", problems=problems)

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> JSONResponse:
        detail = str(error.detail)
        if error.status_code == 404:
            detail = f"there is no {request.url.path}; /openapi.json lists what there is"
        kind = "too-big" if error.status_code == 413 else HTTPStatus(error.status_code).name.lower().replace("_", "-")
        headers = dict(error.headers) if error.headers else None
        return problem_response(detail, status=error.status_code, kind=kind, headers=headers)

    @app.exception_handler(RollstreamError)
    async def _ours(request: Request, error: RollstreamError) -> JSONResponse:
        if isinstance(error, ConfigError):
            return problem_response(str(error), status=422, kind="invalid", problems=error.problems)
        structlog.get_logger("rollstream").warning("request failed", path=request.url.path, reason=str(error))
        if isinstance(error, StoreUnavailable):
            return problem_response(str(error), status=503, kind="store-unavailable", headers={"Retry-After": "2"})
        if isinstance(error, StoreRefused):
            return problem_response(str(error), status=503, kind="store-refused")
        if isinstance(error, DeadlineExceeded):
            return problem_response(str(error), status=504, kind="deadline-exceeded")
        return problem_response(str(error), status=500, kind="internal")

    @app.exception_handler(Exception)
    async def _unexpected(request: Request, error: Exception) -> JSONResponse:
        structlog.get_logger("rollstream").error("request failed", path=request.url.path, reason=repr(error))
        return problem_response("an unexpected error; control's log has it", status=500, kind="internal")

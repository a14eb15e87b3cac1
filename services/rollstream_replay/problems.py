"""Errors as `application/problem+json`, with a `kind` by which a client knows which of our own errors it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError

from rollstream.errors import ConfigError, DeadlineExceeded, RollstreamError, SchemaMismatch, StoreError, TableError
from rollstream_replay.absent import Absent, NotServing

__all__ = ["ProblemDocument", "add_error_handlers", "describe_problem"]

CONTENT_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemDocument:
    """A reply that tells an error."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def describe_problem(error: RollstreamError) -> ProblemDocument:
    """The answer that tells `error`."""
    status, kind = _classified(error)
    content: dict[str, Any] = {"title": type(error).__name__, "status": status, "kind": kind, "detail": str(error)}
    if isinstance(error, ConfigError):
        content["problems"] = [{"path": entry.path, "message": entry.message} for entry in error.problems]
    headers = {"Retry-After": "1"} if status == 503 else {}
    return ProblemDocument(status=status, body=json.dumps(content).encode(), headers=headers)


def _classified(error: RollstreamError) -> tuple[int, str]:
    match error:
        case NotServing():
            return 503, "starting"
        case StoreError():
            return 503, "store"
        case DeadlineExceeded():
            return 504, "deadline"
        case ConfigError():
            return 422, "config"
        case SchemaMismatch():
            return 409, "schema"
        case Absent():
            return 404, "table"
        case TableError():
            return 409, "table"
        case _:
            return 500, "error"


def add_error_handlers(app: FastAPI) -> None:
    """Answer our own errors, and requests that do not fit the schema, as problems."""

    def answered(error: RollstreamError) -> Response:
        told = describe_problem(error)
        return Response(told.body, status_code=told.status, media_type=CONTENT_TYPE, headers=dict(told.headers))

    async def ours(_: Request, error: Exception) -> Response:
        assert isinstance(error, RollstreamError), "registered for our errors only"
        return answered(error)

    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError), "registered for validation errors only"
        listed = "; ".join(f"{'.'.join(str(part) for part in entry['loc'])}: {entry['msg']}" for entry in error.errors())
        return answered(ConfigError(f"request does not fit: {listed}"))

    app.add_exception_handler(RollstreamError, ours)
    app.add_exception_handler(RequestValidationError, invalid)

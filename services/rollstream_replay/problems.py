"""Errors as `application/problem+json`, with a `kind` by which a client knows which of our own errors it was."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError

from rollstream.errors import ConfigError, DeadlineExceeded, RollstreamError, SchemaMismatch, StoreError, TableError
from rollstream_replay.shard_server import NotServing

__all__ = ["add_error_handlers", "problem"]

CONTENT_TYPE = "application/problem+json"


def problem(error: RollstreamError) -> Response:
    """The answer that tells `error`."""
    status, kind = _classified(error)
    content: dict[str, Any] = {"title": type(error).__name__, "status": status, "kind": kind, "detail": str(error)}
    if isinstance(error, ConfigError):
        content["problems"] = [{"path": entry.path, "message": entry.message} for entry in error.problems]
    headers = {"Retry-After": "1"} if status == 503 else None
    return Response(json.dumps(content), status_code=status, media_type=CONTENT_TYPE, headers=headers)


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
        case TableError() if "does not exist" in str(error):
            return 404, "table"
        case TableError():
            return 409, "table"
        case _:
            return 500, "error"


def add_error_handlers(app: FastAPI) -> None:
    """Answer our own errors, and requests that do not fit the schema, as problems."""

    async def ours(_: Request, error: Exception) -> Response:
        assert isinstance(error, RollstreamError), "registered for our errors only"
        return problem(error)

    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError), "registered for validation errors only"
        listed = "; ".join(f"{'.'.join(str(part) for part in entry['loc'])}: {entry['msg']}" for entry in error.errors())
        return problem(ConfigError(f"request does not fit: {listed}"))

    app.add_exception_handler(RollstreamError, ours)
    app.add_exception_handler(RequestValidationError, invalid)

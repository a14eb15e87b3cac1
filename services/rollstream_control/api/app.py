"""The application: routers, errors, tokens, limits, and one OpenAPI document for all of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from fastapi import APIRouter, FastAPI

from rollstream_control.api import act, cell, experiments, journals, tables
from rollstream_control.api.body_limit import BodyLimit
from rollstream_control.api.counting import Counting
from rollstream_control.api.parts import CellParts
from rollstream_control.api.problems import ProblemDocument, install, responses
from rollstream_control.api.shards import Shards
from rollstream_control.api.tokens import Tokens

__all__ = ["create_app"]


def create_app(
    parts: CellParts,
    *,
    tokens: Tokens,
    probes: APIRouter,
    max_body_bytes: int,
    count: Callable[[str, int], None],
) -> FastAPI:
    """The REST API of control as an ASGI application.

    Args:
        probes: routes of `/healthz`, `/readyz` and `/metrics`.
        count: called with route and status of every answer.
    """
    app = FastAPI(
        title="Rollstream",
        version=parts.version,
        summary="Experiments on a cell: submit, watch, stop, scale.",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        responses=responses(401, 403, 500, 503),
        separate_input_output_schemas=False,
    )
    app.state.parts = parts
    app.state.tokens = tokens
    app.add_middleware(BodyLimit, max_body_bytes=max_body_bytes)
    app.add_middleware(Counting, count=count)
    install(app)
    for router in (experiments.router, act.router, journals.router, tables.router, cell.router):
        app.include_router(router)
    app.include_router(probes)
    _complete_schema(app)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.shards = Shards()
    app.state.validations = anyio.CapacityLimiter(experiments.VALIDATIONS_AT_ONCE)
    app.state.acts = anyio.CapacityLimiter(act.ACTS_AT_ONCE)
    yield
    await app.state.shards.close()


def _complete_schema(app: FastAPI) -> None:
    """Add what endpoints refer to but FastAPI cannot see: the spec, which is validated by hand, and the shape of errors."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = generate()
            schemas = schema.setdefault("components", {}).setdefault("schemas", {})
            schemas.update(experiments.spec_schemas())
            schemas.update(_schemas_of_problems())
            for operation in (entry for path in schema["paths"].values() for entry in path.values()):
                _say_problem(operation)
        assert app.openapi_schema is not None, "it was made just now"
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _schemas_of_problems() -> dict[str, Any]:
    schema = ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}", mode="serialization")
    parts: dict[str, Any] = schema.pop("$defs", {})
    return {**parts, "ProblemDocument": schema}


def _say_problem(operation: dict[str, Any]) -> None:
    """FastAPI announces its own shape of 422; ours is a problem document like all others."""
    invalid = operation["responses"].get("422")
    if invalid is not None and "application/json" in invalid.get("content", {}):
        operation["responses"]["422"] = responses(422)[422]

"""Refuses request bodies that are too big before they are in memory, for every endpoint at once."""

from __future__ import annotations

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rollstream_control.api.problems import problem_response

__all__ = ["BodyLimit"]


class BodyLimit:
    """ASGI middleware: 413 at once when the announced length is too big, else once so much has come."""

    def __init__(self, app: ASGIApp, *, max_body_bytes: int) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = f"the body is larger than {self._max_body_bytes} bytes"
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if length.isdigit() and int(length) > self._max_body_bytes:
            response = problem_response(refusal, status=413, kind="too-big", headers={"Connection": "close"})
            await response(scope, receive, send)
            return
        received_bytes = 0

        async def limited() -> Message:
            nonlocal received_bytes
            message = await receive()
            received_bytes += len(message.get("body", b""))
            if received_bytes > self._max_body_bytes:
                raise HTTPException(413, refusal, headers={"Connection": "close"})
            return message

        await self._app(scope, limited, send)

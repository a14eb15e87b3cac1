"""Counts requests by route (with its parameters' names, so the number of series stays small) and status."""

from __future__ import annotations

from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Counting"]


class Counting:
    """ASGI middleware: calls `count(route, status)` when an answer has begun.

    A path that is no route counts under `other`: strangers must not make series.
    """

    def __init__(self, app: ASGIApp, *, count: Callable[[str, int], None]) -> None:
        self._app = app
        self._count = count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._count(_route(scope), int(message["status"]))
            await send(message)

        await self._app(scope, receive, noted)


def _route(scope: Scope) -> str:
    """`/v1/experiments/{experiment}` rather than the path itself."""
    route = scope.get("route")
    path = getattr(route, "path", None)
    return path if isinstance(path, str) else "other"

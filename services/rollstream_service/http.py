"""Serve an ASGI application in the main thread until the process is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from fastapi import APIRouter, Request, Response
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from rollstream.errors import ConfigError
from rollstream_service.health import Health
from rollstream_service.lifecycle import Life
from rollstream_service.probes import answer

__all__ = ["listen", "probe_router", "serve"]


def listen(host: str, port: int) -> socket.socket:
    """A bound TCP socket, or a `ConfigError` that says which port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise ConfigError(
            f"cannot listen on {host}:{port} ({error.strerror}); free the port, or set ROLLSTREAM_PORT to another (0: any)"
        ) from error
    bound.setblocking(False)
    bound.listen(1024)
    return bound


def probe_router(health: Health, metrics: Callable[[], bytes]) -> APIRouter:
    """Routes for `/healthz`, `/readyz` and `/metrics`, answered in the event loop: they touch memory only."""
    router = APIRouter(tags=["probes"])

    async def probe(request: Request) -> Response:
        reply = answer(request.url.path, health=health, metrics=metrics)
        assert reply is not None, "the router only has probe paths"
        return Response(content=reply.body, status_code=reply.status, media_type=reply.content_type)

    verdict = {"type": "object", "properties": {"ok": {"type": "boolean"}, "why": {"type": "string"}}, "required": ["ok", "why"]}
    said = {"description": "The verdict, and why", "content": {"application/json": {"schema": verdict}}}
    text = {"description": "Prometheus' text format", "content": {"text/plain": {"schema": {"type": "string"}}}}
    routes: tuple[tuple[str, str, dict[int | str, dict[str, Any]]], ...] = (
        ("/healthz", "Is the process alive: do its loops make progress?", {200: said, 503: said}),
        ("/readyz", "Can it do its job now?", {200: said, 503: said}),
        ("/metrics", "Prometheus metrics.", {200: text}),
    )
    for path, sentence, replies in routes:
        router.add_api_route(
            path, probe, methods=["GET"], summary=sentence, name=path[1:], response_class=Response, responses=replies
        )
    return router


class _Server(uvicorn.Server):
    """uvicorn, except that signals are the life cycle's business."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(
    app: Any,
    bound: socket.socket,
    *,
    life: Life,
    grace_s: float,
    connection: Callable[[asyncio.Protocol], asyncio.Protocol] = lambda inner: inner,
) -> None:
    """Answer requests on `bound` until `life.stopping`; then finish open ones within `grace_s` seconds.

    Args:
        connection: put around the web server's protocol of each connection, e.g. to answer some requests before it sees them.
    """
    config = uvicorn.Config(
        app,
        http=lambda **parts: connection(AutoHTTPProtocol(**parts)),  # type: ignore[arg-type]
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=max(1, int(grace_s)),
        timeout_keep_alive=75,
        lifespan="on",
    )
    server = _Server(config)

    async def run() -> None:
        serving = asyncio.create_task(server.serve(sockets=[bound]))
        stopping = asyncio.create_task(asyncio.to_thread(_wait, life, serving))
        await serving
        life.stopping.set()
        await stopping

    def _wait(life: Life, serving: asyncio.Task[None]) -> None:
        while not life.stopping.wait(0.5) and not serving.done():
            pass
        server.should_exit = True

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(run())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # not on Windows
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory

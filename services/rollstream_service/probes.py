"""`/healthz`, `/readyz` and `/metrics` for services without an API of their own (actor, learner): a small thread, no framework.

The services with an API (control, replay) answer the same three paths from it: see `answer`.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from rollstream.errors import ConfigError
from rollstream_service.health import Health, Verdict

__all__ = ["Answer", "ProbeServer", "answer"]

WAKE_WITHIN_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One HTTP answer to a probe."""

    status: int
    content_type: str
    body: bytes


def answer(path: str, *, health: Health, metrics: Callable[[], bytes]) -> Answer | None:
    """The answer to `GET path`, or None when the path is not a probe's."""
    if path == "/healthz":
        return _verdict(health.live())
    if path == "/readyz":
        return _verdict(health.ready())
    if path == "/metrics":
        return Answer(status=200, content_type="text/plain; version=0.0.4; charset=utf-8", body=metrics())
    return None


def _verdict(verdict: Verdict) -> Answer:
    body = json.dumps({"ok": verdict.ok, "why": verdict.why}).encode()
    return Answer(status=200 if verdict.ok else 503, content_type="application/json", body=body)


class ProbeServer:
    """Answers probes from a thread of its own, so that a busy main loop never delays them."""

    def __init__(self, *, host: str, port: int, health: Health, metrics: Callable[[], bytes]) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                reply = answer(self.path.split("?")[0], health=health, metrics=metrics)
                reply = reply or Answer(status=404, content_type="text/plain", body=b"probes: /healthz /readyz /metrics")
                self.send_response(reply.status)
                self.send_header("Content-Type", reply.content_type)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, format: str, *args: object) -> None:
                """Probes come every few seconds: not worth a line each."""

        try:
            self._server = ThreadingHTTPServer((host, port), Handler)
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {host}:{port} ({error.strerror}); free the port, or set ROLLSTREAM_PORT to another (0: any)"
            ) from error
        self._server.daemon_threads = True
        self._host = host
        self.port: int = self._server.server_address[1]
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="probes", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop answering and join the thread."""
        self._stopping.set()
        with contextlib.suppress(OSError):  # a connection wakes it; without one it has seen the end by itself
            socket.create_connection((self._host or "127.0.0.1", self.port), timeout=WAKE_WITHIN_S).close()
        self._thread.join(timeout=WAKE_WITHIN_S)
        self._server.server_close()

    def _serve(self) -> None:
        """Sleep until somebody connects: `serve_forever` would look twice a second whether it is to end, and end that late."""
        while not self._stopping.is_set():
            self._server.handle_request()

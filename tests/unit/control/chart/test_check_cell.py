"""What `helm test` finds out about a cell."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from rollstream.clock import FakeClock
from rollstream_control.chart.check_cell import check, lacking

ROLES = ("actor", "control")


def cell(*members: tuple[str, bool], scheduling: bool = True, server: dict[str, str] | None = None) -> dict[str, Any]:
    shown = [{"role": role, "ready": ready} for role, ready in members]
    return {"members": shown, "scheduling": scheduling, "server": server or {"product": "redis"}}


def test_a_cell_with_a_ready_member_of_each_role_lacks_nothing() -> None:
    assert lacking(cell(("actor", False), ("actor", True), ("control", True)), roles=ROLES) == []


def test_what_lacks_is_said_in_sentences() -> None:
    missing = cell(("control", True), ("actor", False), scheduling=False) | {"server": None}
    assert lacking(missing, roles=ROLES) == [
        "no actor is ready",
        "control does not assign actors yet",
        "control has not heard from Redis",
    ]


@pytest.fixture
def refusing() -> Iterator[str]:
    """URL of a server that refuses everybody."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(401)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_cell_that_refuses_the_token_is_told_after_the_deadline(refusing: str) -> None:
    told = check(url=refusing, token="wrong", roles=ROLES, clock=FakeClock(), deadline_s=3.0)
    assert told == [f"{refusing}/v1/cell: HTTP Error 401: Unauthorized"]

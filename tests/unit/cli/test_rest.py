"""The client of a cell's REST API, against a real HTTP server that says what the test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from rollstream.clock import FakeClock, SystemClock
from rollstream.errors import ConfigError
from rollstream_cli.errors import RestError
from rollstream_cli.rest import Rest

Reply = tuple[int, str, str]
Answer = Callable[[str, str, str], Reply]


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], str]]:
    servers: list[ThreadingHTTPServer] = []

    def start(answer: Answer) -> str:
        class Handler(BaseHTTPRequestHandler):
            def respond(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                status, kind, text = answer(self.command, self.path, body)
                data = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = respond  # noqa: N815

            def log_message(self, *_: Any) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def problem(status: int, **fields: Any) -> Reply:
    return status, "application/problem+json", json.dumps({"status": status, **fields})


def test_json_comes_back_and_query_and_body_go_out(serve: Callable[[Answer], str]) -> None:
    seen: list[tuple[str, str, str]] = []

    def answer(method: str, path: str, body: str) -> Reply:
        seen.append((method, path, body))
        return 200, "application/json", '{"ok": true}'

    rest = Rest(serve(answer), clock=SystemClock())
    assert rest.get("/v1/things", after="3", limit=None) == {"ok": True}
    assert rest.post("/v1/things", {"a": 1}, id="x") == {"ok": True}
    assert rest.put("/v1/things", {"b": 2}) == {"ok": True}
    assert [entry[:2] for entry in seen] == [("GET", "/v1/things?after=3"), ("POST", "/v1/things?id=x"), ("PUT", "/v1/things")]
    assert json.loads(seen[1][2]) == {"a": 1}
    rest.close()


def test_a_refused_spec_lists_all_fields(serve: Callable[[Answer], str]) -> None:
    errors = [{"path": "environment.id", "message": "unknown"}, {"path": "seed", "message": "negative"}]
    rest = Rest(serve(lambda *_: problem(422, detail="2 bad fields", errors=errors)), clock=SystemClock())
    with pytest.raises(ConfigError, match="2 bad fields") as error:
        rest.post("/v1/experiments", {})
    assert [str(entry) for entry in error.value.problems] == ["environment.id: unknown", "seed: negative"]


def test_a_missing_token_says_how_to_give_one(serve: Callable[[Answer], str]) -> None:
    rest = Rest(serve(lambda *_: problem(401, detail="this needs a token")), clock=SystemClock())
    with pytest.raises(RestError, match="this needs a token; give it with --token or ROLLSTREAM_TOKEN") as error:
        rest.get("/v1/cell")
    assert error.value.status == 401


def test_any_other_refusal_names_request_and_status(serve: Callable[[Answer], str]) -> None:
    rest = Rest(serve(lambda *_: (404, "text/plain", "no such page")), clock=SystemClock())
    with pytest.raises(RestError, match=r"no such page \(GET /v1/none: 404\)"):
        rest.get("/v1/none")


def test_a_request_is_repeated_while_control_is_away(serve: Callable[[Answer], str]) -> None:
    replies = [problem(503, detail="starting"), problem(502, detail="starting"), (200, "application/json", "[1]")]
    rest = Rest(serve(lambda *_: replies.pop(0)), clock=FakeClock())
    assert rest.get("/v1/cell") == [1]


def test_a_cell_that_does_not_answer_is_told_with_its_url() -> None:
    rest = Rest("http://127.0.0.1:9", clock=FakeClock(), deadline_s=1.0)
    with pytest.raises(RestError, match=r"no cell answers at http://127.0.0.1:9 .*`rollstream up` starts one"):
        rest.get("/v1/cell")
    assert not rest.ready()


def test_a_url_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="the URL of a cell starts with http:// or https://, got"):
        Rest("localhost:80", clock=FakeClock())


def test_a_cell_is_ready_when_it_says_so(serve: Callable[[Answer], str]) -> None:
    replies = [(503, "text/plain", "no"), (200, "text/plain", "yes")]
    rest = Rest(serve(lambda *_: replies.pop(0)), clock=FakeClock())
    assert [rest.ready(), rest.ready()] == [False, True]


def test_events_are_parsed_and_heartbeats_passed_over(serve: Callable[[Answer], str]) -> None:
    text = (
        'retry: 2000\n\n: heartbeat\n\nid: 1-0\nevent: phase\ndata: {"phase":\ndata:  "running"}\n\n'
        "id: 2-0\ndata: not json\n\nid: 3-0\ndata: [1]\n\nid: 4-0\nevent: order\ndata: {}\n\n"
    )
    paths: list[str] = []

    def answer(_: str, path: str, __: str) -> Reply:
        paths.append(path)
        return 200, "text/event-stream", text

    rest = Rest(serve(answer), clock=SystemClock())
    events = list(rest.stream("/v1/experiments/x/events", after="0"))
    assert [(event.id, event.kind, event.data) for event in events] == [
        ("1-0", "phase", {"phase": "running"}),
        ("4-0", "order", {}),
    ]
    assert paths == ["/v1/experiments/x/events?after=0"]


def test_a_stream_that_is_refused_says_why(serve: Callable[[Answer], str]) -> None:
    rest = Rest(serve(lambda *_: problem(404, detail="there is no experiment")), clock=SystemClock())
    with pytest.raises(RestError, match="there is no experiment"):
        list(rest.stream("/v1/experiments/x/events", after="0"))


def test_a_stream_that_breaks_says_so() -> None:
    rest = Rest("http://127.0.0.1:9", clock=SystemClock())
    with pytest.raises(RestError, match="the stream http://127.0.0.1:9/v1/x broke"):
        list(rest.stream("/v1/x", after="0"))

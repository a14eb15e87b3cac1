"""The way to a cell's tables: by the shards themselves, or through control."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from rollstream.errors import ConfigError, TableError
from rollstream_cli.errors import RestError
from rollstream_cli.replay import CellTables, connect_tables

Answers = dict[str, Any]
"""`METHOD path` -> JSON, or (status, JSON)."""
Serve = Callable[[Answers], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts small servers that answer from a dictionary; what they do not know is a 404 problem."""
    servers: list[ThreadingHTTPServer] = []

    def start(answers: Answers) -> str:
        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                found = answers.get(f"{self.command} {self.path}", (404, {"detail": f"nothing at {self.path}"}))
                status, content = found if isinstance(found, tuple) else (200, found)
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PATCH = answer  # noqa: N815

            def log_message(self, *_: object) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def member(number: int, url: str, *, ready: bool = True, id: str = "") -> dict[str, Any]:
    return {"id": id or f"replay-{number}", "role": "replay", "shard": number, "url": url, "ready": ready}


def shard(*tables: str, **more: Any) -> Answers:
    return {"GET /v1/tables": {"tables": [{"id": table} for table in tables]}, "GET /healthz": {}, **more}


def connect(serve: Serve, *members: dict[str, Any], **more: Any) -> CellTables:
    url = serve({"GET /v1/cell": {"members": list(members)}, **more})
    return connect_tables(url=url, token=None, directory=None, runs_dir=Path("runs"))


def test_every_shard_of_a_table_is_asked_and_no_other(serve: Serve) -> None:
    first = serve(
        shard("run.replay", "run.big", **{"GET /v1/tables/run.big": {"items": 1}, "GET /v1/tables/run.replay": {"items": 3}})
    )
    second = serve(shard("run.big", **{"GET /v1/tables/run.big": {"items": 2}}))
    tables = connect(serve, member(1, second), member(0, first))
    assert tables.table_ids() == ["run.big", "run.replay"]
    assert [says.info for says in tables.look("run.big")] == [{"items": 1}, {"items": 2}]
    assert [says.info for says in tables.look("run.replay")] == [{"items": 3}]


def test_of_two_members_of_one_number_the_ready_one_is_asked(serve: Serve) -> None:
    standby, serving = serve(shard("old.replay")), serve(shard("run.replay"))
    tables = connect(serve, member(0, standby, ready=False, id="z"), member(0, serving, id="a"))
    assert tables.table_ids() == ["run.replay"]


def test_names_are_completed_when_only_one_table_can_be_meant(serve: Serve) -> None:
    tables = connect(serve, member(0, serve(shard("cart-a1.replay", "cart-a1.demos", "pole-b2.replay"))))
    assert tables.resolve("pole-b2.replay") == "pole-b2.replay"
    assert tables.resolve("demos") == "cart-a1.demos"
    assert tables.resolve("pole") == "pole-b2.replay"
    with pytest.raises(
        TableError, match="'replay' may be any of 2 tables: cart-a1.replay, pole-b2.replay; give one of these ids"
    ):
        tables.resolve("replay")
    with pytest.raises(TableError, match="there is no table 'nope'; there are: cart-a1.demos, cart-a1.replay, pole-b2.replay"):
        tables.resolve("nope")


def test_a_refusal_and_a_silent_shard_are_told_beside_the_others(serve: Serve) -> None:
    busy = serve(shard("run.replay", **{"GET /v1/tables/run.replay": (503, {"detail": "recovering tables"})}))
    fine = serve(shard("run.replay", **{"GET /v1/tables/run.replay": {"items": 1}}))
    tables = connect(serve, member(0, fine), member(1, busy))
    assert [(says.info, says.problem) for says in tables.look("run.replay")] == [({"items": 1}, ""), (None, "recovering tables")]


def test_a_shard_that_does_not_answer_is_named(serve: Serve) -> None:
    with pytest.raises(RestError, match="replay-1 at http://127.0.0.1:9 did not answer"):
        connect(serve, member(0, serve(shard("run.replay"))), member(1, "http://127.0.0.1:9")).table_ids()


def test_changes_raise_the_first_refusal(serve: Serve) -> None:
    answers = {
        "PATCH /v1/tables/run.replay": (422, {"detail": "samples_per_insert must be > 0"}),
        "POST /v1/tables/run.replay/reset": (500, {"oops": 1}),
    }
    tables = connect(serve, member(0, serve(shard("run.replay", **answers))))
    with pytest.raises(ConfigError, match="samples_per_insert must be > 0"):
        tables.change("run.replay", "PATCH", content={})
    with pytest.raises(RestError, match="replay-0 answered HTTP 500"):
        tables.change("run.replay", "POST", "/reset")


def test_an_item_is_asked_of_the_shard_in_its_key(serve: Serve) -> None:
    key = (1 << 56) + 5
    answers = {f"GET /v1/tables/run.replay/items/{key}": {"key": key}}
    tables = connect(serve, member(0, serve(shard("run.replay"))), member(1, serve(shard("run.replay", **answers))))
    assert tables.look_at_item("run.replay", key) == {"key": key}
    with pytest.raises(RestError, match="no live replay shard has the number 2, which is in that key; is it a key of run.replay"):
        tables.look_at_item("run.replay", 2 << 56)
    with pytest.raises(RestError, match="nothing at /v1/tables/run.replay/items/7"):
        tables.look_at_item("run.replay", 7)


def test_where_shards_cannot_be_reached_control_is_asked(serve: Serve) -> None:
    part = {"shard": 0, "member": "replay-0", "info": {"items": 4}, "problem": ""}
    path = "/v1/experiments/run-a1/tables"
    tables = connect(
        serve,
        member(0, "http://127.0.0.1:9"),
        **{
            "GET /v1/experiments": {"experiments": [{"id": "run-a1"}]},
            f"GET {path}": {"tables": [{"id": "run-a1.replay"}]},
            f"GET {path}/replay": {"shards": [part]},
            f"GET {path}/replay/histogram?bins=3": {"shards": [part]},
            f"GET {path}/replay/items/7": part,
            f"PATCH {path}/replay": {"shards": [part]},
        },
    )
    assert tables.resolve("replay") == "run-a1.replay"
    assert tables.look("run-a1.replay")[0].info == {"items": 4}
    assert tables.look("run-a1.replay", "/priorities/histogram", bins=3)[0].info == {"items": 4}
    assert tables.look_at_item("run-a1.replay", 7) == {"items": 4}
    assert tables.change("run-a1.replay", "PATCH", content={})[0].info == {"items": 4}
    with pytest.raises(RestError, match="the replay shards cannot be reached from here, and control only looks at tables"):
        tables.change("run-a1.replay", "POST", "/reset")


def test_a_cell_without_replay_shards_says_how_to_get_one(serve: Serve) -> None:
    with pytest.raises(RestError, match="has no live replay shard; start one with `rollstream up --replay-shards 1`"):
        connect(serve)


def test_a_table_that_nobody_serves_any_more_is_told(serve: Serve) -> None:
    path = "GET /v1/experiments/run-a1/tables/replay"
    tables = connect(
        serve, member(0, "http://127.0.0.1:9"), **{path: {"shards": []}, path.replace("GET", "PATCH"): {"shards": []}}
    )
    with pytest.raises(RestError, match="no replay shard is live; the tables are safe in Redis"):
        tables.change("run-a1.replay", "PATCH", content={})

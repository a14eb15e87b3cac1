"""Replay tables: control asks the shards that it finds among the members."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI

from rollstream.store import MemberRecord, Members, Store, keys

SPEC = {"name": "cart", "algorithm": "dqn", "environment": {"id": "CartPole-v1"}}


@pytest.fixture
def shard_url() -> Iterator[str]:
    """A small server that answers as a replay shard does; its ratio is NaN, written the way Python does."""
    app = FastAPI()

    @app.get("/v1/tables/{table}")
    async def info(table: str) -> Any:
        from fastapi.responses import Response

        return Response(f'{{"table": "{table}", "items": 7, "ratio": NaN}}', media_type="application/json")

    bound = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[bound])))
    thread.start()
    yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.fixture
def experiment(control: Any, store: Store) -> str:
    experiment = str(control.http.post("/v1/experiments", json=SPEC).json()["id"])
    store.client.hset(keys.tables(), f"{experiment}.replay", "{}")
    store.client.hset(keys.tables(), "other-000000.replay", "{}")
    return experiment


def test_tables_are_shown_with_what_each_shard_says(control: Any, store: Store, experiment: str, shard_url: str) -> None:
    Members(store).announce(MemberRecord(id="replay-0", role="replay", shard=0, url=shard_url))
    tables = control.http.get(f"/v1/experiments/{experiment}/tables").json()["tables"]
    info = {"table": f"{experiment}.replay", "items": 7, "ratio": None}
    shard = {"shard": 0, "member": "replay-0", "info": info, "problem": ""}
    assert tables == [{"name": "replay", "id": f"{experiment}.replay", "shards": [shard]}]
    assert control.http.get(f"/v1/experiments/{experiment}/tables/replay").json() == tables[0]


def test_a_shard_that_does_not_answer_is_named_and_the_others_are_shown(
    control: Any, store: Store, experiment: str, shard_url: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        dead_url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    Members(store).announce(MemberRecord(id="replay-0", role="replay", shard=0, url=dead_url))
    Members(store).announce(MemberRecord(id="replay-1", role="replay", shard=1, url=shard_url))
    shards = control.http.get(f"/v1/experiments/{experiment}/tables/replay").json()["shards"]
    assert [shard["info"] is None for shard in shards] == [True, False]
    assert f"replay-0 at {dead_url} could not be asked" in shards[0]["problem"]


def test_without_a_live_shard_the_table_is_shown_as_waiting(control: Any, experiment: str) -> None:
    shards = control.http.get(f"/v1/experiments/{experiment}/tables/replay").json()["shards"]
    assert "no replay shard is live" in shards[0]["problem"]


def test_a_table_that_is_not_there_is_a_404_that_lists_what_is(control: Any, experiment: str) -> None:
    reply = control.http.get(f"/v1/experiments/{experiment}/tables/reply")
    assert (reply.status_code, reply.json()["type"]) == (404, "urn:rollstream:problem:no-table")
    assert "has no table 'reply': it has replay" in reply.json()["detail"]

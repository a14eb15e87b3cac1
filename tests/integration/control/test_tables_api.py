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

    @app.get("/v1/tables/{table}/items")
    async def items(table: str, order: str, limit: int) -> Any:
        return {"items": [{"order": order, "limit": limit}]}

    @app.get("/v1/tables/{table}/items/{key}")
    async def item(table: str, key: int) -> Any:
        from fastapi.responses import JSONResponse

        if key == 7:
            return {"key": key}
        return JSONResponse({"detail": f"table {table} has no item {key}"}, status_code=404)

    @app.get("/v1/tables/{table}/priorities/histogram")
    async def histogram(table: str, bins: int) -> Any:
        return {"counts": [0] * bins}

    @app.get("/v1/tables/{table}/limiter")
    async def limiter(table: str) -> Any:
        return {"can_insert": True}

    @app.patch("/v1/tables/{table}")
    async def patch(table: str, changes: dict[str, Any]) -> Any:
        from fastapi.responses import JSONResponse

        if changes.get("max_items") == 0:
            return JSONResponse({"detail": "max_items: must be >= 1"}, status_code=422)
        return {"changed": changes}

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
    store.client.hset(keys.tables(), f"{experiment}.replay", '{"shards": 2}')
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


def test_only_the_shards_of_a_table_are_asked_and_of_two_members_the_ready_one(
    control: Any, store: Store, experiment: str, shard_url: str
) -> None:
    for member, shard, ready in (("replay-0", 0, False), ("replay-0b", 0, True), ("replay-1", 1, True)):
        Members(store).announce(MemberRecord(id=member, role="replay", shard=shard, url=shard_url, ready=ready))
    view = control.http.get(f"/v1/experiments/{experiment}/tables/replay").json()
    assert [shard["member"] for shard in view["shards"]] == ["replay-0b"]


def test_items_histogram_and_limiter_are_shown_side_by_side(control: Any, store: Store, experiment: str, shard_url: str) -> None:
    store.client.hset(keys.tables(), f"{experiment}.replay", '{"shards": 2}')
    for number in range(2):
        Members(store).announce(MemberRecord(id=f"replay-{number}", role="replay", shard=number, url=shard_url))
    path = f"/v1/experiments/{experiment}/tables/replay"

    def infos(what: str) -> list[Any]:
        return [shard["info"] for shard in control.http.get(path + what).json()["shards"]]

    assert infos("/items?order=lowest&limit=3") == [{"items": [{"order": "lowest", "limit": 3}]}] * 2
    assert infos("/histogram?bins=4") == [{"counts": [0] * 4}] * 2
    assert infos("/limiter") == [{"can_insert": True}] * 2
    assert control.http.get(f"{path}/items?order=random").status_code == 422


def test_one_item_is_asked_of_the_shard_in_its_key(control: Any, store: Store, experiment: str, shard_url: str) -> None:
    Members(store).announce(MemberRecord(id="replay-0", role="replay", shard=0, url=shard_url))
    path = f"/v1/experiments/{experiment}/tables/replay/items"
    assert control.http.get(f"{path}/7").json()["info"] == {"key": 7}
    reply = control.http.get(f"{path}/8")
    assert (reply.status_code, reply.json()["type"]) == (404, "urn:rollstream:problem:no-item")
    assert "has no item 8" in reply.json()["detail"]
    reply = control.http.get(f"{path}/{2 << 56}")
    assert (reply.status_code, reply.json()["detail"]) == (404, f"table replay has 1 shards, and {2 << 56} is a key of shard 2")
    Members(store).leave("replay-0")
    reply = control.http.get(f"{path}/7")
    assert (reply.status_code, reply.json()["detail"]) == (503, "replay shard 0, which holds the item 7, is not live")


def test_a_change_goes_to_all_shards_and_a_refusal_is_told(control: Any, store: Store, experiment: str, shard_url: str) -> None:
    store.client.hset(keys.tables(), f"{experiment}.replay", '{"shards": 2}')
    path = f"/v1/experiments/{experiment}/tables/replay"
    reply = control.http.patch(path, json={"max_items": 5})
    assert (reply.status_code, "no replay shard is live" in reply.json()["detail"]) == (503, True)
    for number in range(2):
        Members(store).announce(MemberRecord(id=f"replay-{number}", role="replay", shard=number, url=shard_url))
    reply = control.http.patch(path, json={"max_items": 5})
    assert [shard["info"] for shard in reply.json()["shards"]] == [{"changed": {"max_items": 5}}] * 2
    reply = control.http.patch(path, json={"max_items": 0})
    assert (reply.status_code, "max_items: must be >= 1" in reply.json()["detail"]) == (422, True)


def test_a_viewer_may_look_at_a_table_and_not_change_it(start_control: Any) -> None:
    with start_control(token="look-at-it", operator_token="operate-it", viewer_token="look-at-it") as control:
        reply = control.http.patch("/v1/experiments/cart-000000/tables/replay", json={})
        assert reply.status_code == 403
        assert control.http.get("/v1/experiments/cart-000000/tables/replay").status_code == 404

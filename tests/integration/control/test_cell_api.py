"""The cell over HTTP: members, scale, tokens, probes."""

from __future__ import annotations

from typing import Any

import pytest

from rollstream.store import Assignment, Assignments, MemberRecord, Members, Store, keys

SPEC = {"name": "cart", "algorithm": "ppo", "environment": {"id": "CartPole-v1"}}


def test_the_cell_shows_members_actors_and_server(control: Any, store: Store, eventually: Any) -> None:
    Members(store).announce(
        MemberRecord(
            id="actor-0", role="actor", url="http://127.0.0.1:1", version="0.1.0", ready=True, doing="x-000000", rss_mb=80.5
        )
    )
    Assignments(store).assign("actor-0", Assignment(experiment="x-000000", ordinal=0, generation=1))
    cell = eventually(lambda: (found := control.http.get("/v1/cell").json())["server"] and found)
    assert cell["server"]["product"] in ("redis", "valkey")
    assert cell["actors"]["live"] == 1
    members = {member["id"]: member for member in cell["members"]}
    assert set(members) == {"actor-0", "control-0"}
    assert (members["actor-0"]["rss_mb"], members["actor-0"]["ready"], members["actor-0"]["doing"]) == (80.5, True, "x-000000")
    assert 0 <= members["actor-0"]["heartbeat_age_s"] < 6
    assert members["control-0"]["version"] == cell["version"]


def test_the_local_backend_writes_what_the_supervisor_reads(control: Any, store: Store) -> None:
    reply = control.http.put("/v1/cell/actors", json={"replicas": 5})
    assert (reply.status_code, reply.json()) == (202, {"replicas": 5, "backend": "local"})
    assert store.client.get(keys.wanted_actors()) == b"5"
    assert control.http.get("/v1/cell").json()["actors"]["wanted"] == 5


def test_without_a_backend_the_reply_says_how_to_scale(start_control: Any) -> None:
    with start_control(backend="none") as control:
        reply = control.http.put("/v1/cell/actors", json={"replicas": 3})
        assert (reply.status_code, reply.json()["type"]) == (409, "urn:rollstream:problem:no-backend")
        assert "this cell cannot start actors by itself" in reply.json()["detail"]
        assert "--scale actor=3" in reply.json()["detail"]
        assert control.http.get("/v1/cell").json()["actors"]["wanted"] is None


@pytest.mark.parametrize(
    "wish", [{"replicas": -1}, {"replicas": 10_001}, {"replicas": "3"}, {"replicas": 1.5}, {}, {"actors": 2}]
)
def test_impossible_wishes_are_refused_by_field(control: Any, store: Store, wish: dict[str, Any]) -> None:
    reply = control.http.put("/v1/cell/actors", json=wish)
    assert reply.status_code == 422
    assert "replicas" in {error["path"] for error in reply.json()["errors"]}
    assert store.client.get(keys.wanted_actors()) is None


def test_roles_decide_who_may_look_and_who_may_change(start_control: Any) -> None:
    tokens = {"operator_token": "operate-it", "viewer_token": "look-at-it"}
    with start_control(**tokens) as control:
        asked = {
            name: [
                control.http.get("/v1/cell", headers=headers).status_code,
                control.http.put("/v1/cell/actors", json={"replicas": 1}, headers=headers).status_code,
                control.http.post("/v1/experiments", json=SPEC, headers=headers).status_code,
            ]
            for name, headers in {
                "nobody": {},
                "wrong": {"Authorization": "Bearer guess-again"},
                "viewer": {"Authorization": "Bearer look-at-it"},
                "operator": {"Authorization": "Bearer operate-it"},
            }.items()
        }
        assert asked == {
            "nobody": [401, 401, 401],
            "wrong": [401, 401, 401],
            "viewer": [200, 403, 403],
            "operator": [200, 202, 201],
        }
        refusal = control.http.get("/v1/cell")
        assert "this needs a valid token" in refusal.json()["detail"]
        assert refusal.headers["www-authenticate"].startswith("Bearer")
        forbidden = control.http.put("/v1/cell/actors", json={"replicas": 1}, headers={"Authorization": "Bearer look-at-it"})
        assert "a viewer's token cannot change things" in forbidden.json()["detail"]


def test_probes_and_schema_need_no_token(start_control: Any, eventually: Any) -> None:
    with start_control(operator_token="operate-it") as control:
        eventually(lambda: control.http.get("/readyz").status_code == 200)
        for path in ("/healthz", "/metrics", "/openapi.json"):
            assert control.http.get(path).status_code == 200


def test_without_tokens_pages_of_other_sites_may_not_change_anything(control: Any) -> None:
    foreign = control.http.put("/v1/cell/actors", json={"replicas": 1}, headers={"Origin": "https://evil.example"})
    assert (foreign.status_code, foreign.json()["type"]) == (403, "urn:rollstream:problem:forbidden")
    assert "may not change things here without a token" in foreign.json()["detail"]
    own = control.http.put("/v1/cell/actors", json={"replicas": 1}, headers={"Origin": control.url})
    assert own.status_code == 202


def test_metrics_count_members_and_experiments(control: Any, store: Store, eventually: Any) -> None:
    control.http.post("/v1/experiments", json=SPEC)
    Members(store).announce(MemberRecord(id="learner-0", role="learner"))
    eventually(lambda: 'rollstream_experiments{phase="queued"} 1.0' in control.http.get("/metrics").text)
    eventually(lambda: 'rollstream_members{role="learner"} 1.0' in control.http.get("/metrics").text)


def test_metrics_count_requests_by_route_and_not_by_path(control: Any) -> None:
    for path in ("/v1/experiments/a-000000", "/v1/experiments/b-000000", "/made-up-1", "/made-up-2"):
        control.http.get(path)
    lines = [line for line in control.http.get("/metrics").text.splitlines() if line.startswith("rollstream_http_requests_total")]
    assert 'rollstream_http_requests_total{route="/v1/experiments/{experiment}",status="404"} 2.0' in lines
    assert 'rollstream_http_requests_total{route="other",status="404"} 2.0' in lines
    assert "made-up" not in str(lines)

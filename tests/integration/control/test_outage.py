"""Redis goes away and comes back: control stays alive, says that it is not ready, and goes on scheduling."""

from __future__ import annotations

from typing import Any

from rollstream.store import Assignments, EmbeddedServer, MemberRecord, Members, Store

SPEC = {"name": "cart", "algorithm": "ppo", "environment": {"id": "CartPole-v1"}}


def test_readiness_follows_redis_and_scheduling_goes_on_afterwards(
    control: Any, store: Store, server: EmbeddedServer, eventually: Any
) -> None:
    experiment = control.http.post("/v1/experiments", json=SPEC).json()["id"]
    eventually(lambda: control.http.get("/readyz").status_code == 200)
    server.stop()
    try:
        verdict = eventually(lambda: (reply := control.http.get("/readyz")).status_code == 503 and reply.json())
        assert "Redis" in verdict["why"]
        assert control.http.get("/healthz").status_code == 200
    finally:
        server.start()
    eventually(lambda: control.http.get("/readyz").status_code == 200)
    Members(store).announce(MemberRecord(id="actor-0", role="actor"), ttl_s=60.0)
    assert eventually(lambda: Assignments(store).get("actor-0")).experiment == experiment

"""O98: a scaler that slept at zero did not wake for a single message (`>` where `>=` was meant). Here one experiment and one
actor are enough, in either order, and the scale can go to 0 and back to 1."""

from __future__ import annotations

from typing import Any

from rollstream.store import Assignments, MemberRecord, Members, Store, keys

SPEC = {"name": "cart", "algorithm": "ppo", "environment": {"id": "CartPole-v1"}}


def test_one_experiment_gets_the_one_actor_that_comes_later(control: Any, store: Store, eventually: Any) -> None:
    experiment = control.http.post("/v1/experiments", json=SPEC).json()["id"]
    Members(store).announce(MemberRecord(id="actor-0", role="actor"), ttl_s=60.0)
    assignment = eventually(lambda: Assignments(store).get("actor-0"))
    assert (assignment.experiment, assignment.ordinal) == (experiment, 0)


def test_one_waiting_actor_gets_the_one_experiment_that_comes_later(control: Any, store: Store, eventually: Any) -> None:
    Members(store).announce(MemberRecord(id="actor-0", role="actor"), ttl_s=60.0)
    experiment = control.http.post("/v1/experiments", json=SPEC).json()["id"]
    assert eventually(lambda: Assignments(store).get("actor-0")).experiment == experiment


def test_the_scale_goes_to_nothing_and_back_to_one(control: Any, store: Store) -> None:
    for replicas in (0, 1):
        assert control.http.put("/v1/cell/actors", json={"replicas": replicas}).status_code == 202
        assert control.http.get("/v1/cell").json()["actors"]["wanted"] == replicas
        assert store.client.get(keys.wanted_actors()) == str(replicas).encode()

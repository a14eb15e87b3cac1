"""O68: the learner died, actors burned CPU for hours, and the status still said "running". Here its condition says
what is missing."""

from __future__ import annotations

from typing import Any

import pytest

from rollstream.store import Experiments, MemberRecord, Members, Store

SPEC = {"name": "cart", "algorithm": "ppo", "environment": {"id": "CartPole-v1"}, "actors": 1}


@pytest.fixture
def experiment(control: Any, store: Store, eventually: Any) -> str:
    """An experiment with a learner and an actor at work."""
    experiment = str(control.http.post("/v1/experiments", json=SPEC).json()["id"])
    Members(store).announce(MemberRecord(id="learner-0", role="learner", doing=experiment), ttl_s=60.0)
    Members(store).announce(MemberRecord(id="actor-0", role="actor"), ttl_s=60.0)
    Experiments(store).set_phase(experiment, "running", learner="learner-0")
    eventually(lambda: look(control, experiment)["condition"] == "OK")
    return experiment


def look(control: Any, experiment: str) -> dict[str, Any]:
    view: dict[str, Any] = control.http.get(f"/v1/experiments/{experiment}").json()
    return view


def test_a_dead_learner_shows_as_degraded_and_a_new_one_heals_it(control: Any, store: Store, experiment: str) -> None:
    Members(store).leave("learner-0")
    view = look(control, experiment)
    assert (view["phase"], view["condition"]) == ("running", "DEGRADED")
    assert view["why"] == ["no live learner runs it: it goes on from its last checkpoint when one comes"]
    assert control.http.get("/v1/experiments").json()["experiments"][0]["condition"] == "DEGRADED"
    Members(store).announce(MemberRecord(id="learner-1", role="learner", doing=experiment), ttl_s=60.0)
    assert look(control, experiment)["condition"] == "OK"


def test_actors_that_are_gone_show_as_degraded(control: Any, store: Store, experiment: str) -> None:
    Members(store).leave("actor-0")
    view = look(control, experiment)
    assert view["condition"] == "DEGRADED"
    assert "no live actor serves it" in view["why"][0]
    assert all(not seat["live"] for seat in view["actors"])

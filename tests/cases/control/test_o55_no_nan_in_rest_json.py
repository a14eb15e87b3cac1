"""O55: a mean over no finished episode was NaN, and NaN is no JSON. Here it is null, in every reply."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from rollstream.store import Experiments, Fault, MemberRecord, Members, Store

SPEC = {"name": "long", "algorithm": "ppo", "environment": {"id": "CartPole-v1"}}


def strictly(text: str) -> Any:
    """Read JSON as a browser does: `NaN` and `Infinity` are errors."""

    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def experiment(control: Any, store: Store) -> str:
    experiment = str(control.http.post("/v1/experiments", json=SPEC).json()["id"])
    told = Experiments(store)
    told.add_report(experiment, {"mean_return": math.nan, "episodes": 0, "metrics": {"loss": math.inf}, "lag": None})
    told.add_event(experiment, "note", "odd numbers", value=math.nan)
    told.set_flow(experiment, {"nodes": [{"items_per_s": math.nan}]})
    told.add_fault(experiment, Fault(kind="learner", message="loss is nan"))
    told.set_summary(experiment, {"mean_return": -math.inf})
    return experiment


def test_no_reply_has_a_number_that_json_has_not(control: Any, store: Store, experiment: str) -> None:
    Members(store).announce(MemberRecord(id="actor-0", role="actor", rss_mb=1.5, detail={"env_steps_per_s": 0.0}))
    for path in ("", "/reports", "/flow", "/faults"):
        reply = control.http.get(f"/v1/experiments/{experiment}{path}")
        assert reply.status_code == 200, reply.text
        strictly(reply.text)
    strictly(control.http.get("/v1/cell").text)
    strictly(control.http.get("/v1/experiments").text)


def test_the_report_says_null_and_how_many_episodes(control: Any, experiment: str) -> None:
    report = control.http.get(f"/v1/experiments/{experiment}/reports").json()["reports"][0]["data"]
    assert (report["mean_return"], report["episodes"], report["metrics"]["loss"]) == (None, 0, None)


def test_events_carry_no_nan_either(control: Any, store: Store, experiment: str) -> None:
    Experiments(store).set_phase(experiment, "stopped")
    with control.http.stream("GET", f"/v1/experiments/{experiment}/events") as response:
        data = [strictly(line.removeprefix("data: ")) for line in response.iter_lines() if line.startswith("data: ")]
    assert [event["value"] for event in data if event["kind"] == "note"] == [None]


def test_metrics_show_no_nan(control: Any, experiment: str) -> None:
    assert "nan" not in control.http.get("/metrics").text.lower()


@pytest.mark.parametrize("body", ['{"stop": {"mean_return": NaN}}', '{"settings": {"discount": 1e999}}', '{"weight": -Infinity}'])
def test_a_spec_with_such_a_number_is_refused_by_its_path(control: Any, body: str) -> None:
    reply = control.http.post("/v1/experiments", content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code == 422
    (error,) = strictly(reply.text)["errors"]
    assert error["path"] in ("stop.mean_return", "settings.discount", "weight")
    assert "must be a finite number" in error["message"]

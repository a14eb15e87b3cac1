"""Submitting, listing, looking at and ordering experiments over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from rollstream.store import Experiments, Store

SPEC = {"name": "cart", "algorithm": "ppo", "environment": {"id": "CartPole-v1"}}


def test_a_submitted_experiment_is_queued_and_shown_with_its_defaults(control: Any) -> None:
    reply = control.http.post("/v1/experiments", json=SPEC)
    assert reply.status_code == 201, reply.text
    view = reply.json()
    assert view["id"].startswith("cart-")
    assert (view["phase"], view["wanted"], view["condition"]) == ("queued", "run", "WAITING")
    assert view["spec"]["envs_per_actor"] == 8
    assert view["report"] is None
    assert reply.headers["location"] == f"/v1/experiments/{view['id']}"
    shown = control.http.get(reply.headers["location"]).json()
    assert {**shown, "why": ""} == {**view, "why": ""}


def test_every_bad_field_comes_back_in_one_problem_document(control: Any) -> None:
    bad = SPEC | {"algorithm": "pppo", "environment": {"id": "CartPole-v11"}, "actors": -1, "sed": 3}
    reply = control.http.post("/v1/experiments", json=bad)
    assert reply.status_code == 422
    assert reply.headers["content-type"] == "application/problem+json"
    problem = reply.json()
    assert {error["path"] for error in problem["errors"]} == {"algorithm", "environment.id", "actors", "sed"}
    assert (problem["status"], problem["type"]) == (422, "urn:rollstream:problem:invalid")
    assert control.http.get("/v1/experiments").json()["total"] == 0


@pytest.mark.parametrize(
    ("body", "content_type", "status", "kind"),
    [
        (b"{", "application/json", 400, "not-json"),
        (b"[]", "application/json", 400, "not-json"),
        (b"{}", "text/plain", 415, "media-type"),
        (b'{"x": "' + b"y" * (1 << 20) + b'"}', "application/json", 413, "too-big"),
    ],
)
def test_bodies_that_are_no_spec_are_refused(control: Any, body: bytes, content_type: str, status: int, kind: str) -> None:
    reply = control.http.post("/v1/experiments", content=body, headers={"Content-Type": content_type})
    assert (reply.status_code, reply.json()["type"]) == (status, f"urn:rollstream:problem:{kind}")


def test_a_body_of_unknown_length_is_cut_off_at_the_limit(control: Any) -> None:
    chunks = (b"x" * 65_536 for _ in range(40))
    reply = control.http.post("/v1/experiments", content=chunks, headers={"Content-Type": "application/json"})
    assert (reply.status_code, reply.json()["type"]) == (413, "urn:rollstream:problem:too-big")
    assert "larger than 1048576 bytes" in reply.json()["detail"]


def test_the_same_key_and_body_give_the_same_experiment(control: Any) -> None:
    headers = {"Idempotency-Key": "attempt-1"}
    first = control.http.post("/v1/experiments", json=SPEC, headers=headers)
    again = control.http.post("/v1/experiments", json=SPEC, headers=headers)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    assert control.http.get("/v1/experiments").json()["total"] == 1


def test_the_same_key_with_another_body_is_a_conflict(control: Any) -> None:
    headers = {"Idempotency-Key": "attempt-1"}
    control.http.post("/v1/experiments", json=SPEC, headers=headers)
    reply = control.http.post("/v1/experiments", json=SPEC | {"seed": 1}, headers=headers)
    assert (reply.status_code, reply.json()["type"]) == (409, "urn:rollstream:problem:idempotency-key-reused")
    assert "was used for another body" in reply.json()["detail"]


def test_a_wanted_id_is_taken_once_and_only_for_one_spec(control: Any) -> None:
    first = control.http.post("/v1/experiments?id=cart-00abcd", json=SPEC)
    again = control.http.post("/v1/experiments?id=cart-00abcd", json=SPEC)
    other = control.http.post("/v1/experiments?id=cart-00abcd", json=SPEC | {"seed": 1})
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
    assert first.json()["id"] == "cart-00abcd"


def test_the_list_shows_the_newest_first_in_pages_and_by_phase(control: Any, store: Store) -> None:
    ids = [control.http.post("/v1/experiments", json=SPEC | {"seed": seed}).json()["id"] for seed in range(4)]
    Experiments(store).set_phase(ids[1], "failed", reason="the loss was not finite")
    listed = control.http.get("/v1/experiments", params={"limit": 2, "offset": 1}).json()
    assert [item["id"] for item in listed["experiments"]] == [ids[2], ids[1]]
    assert listed["total"] == 4
    failed = control.http.get("/v1/experiments", params={"phase": "failed"}).json()["experiments"]
    assert [(item["id"], item["condition"], item["reason"]) for item in failed] == [(ids[1], "ENDED", "the loss was not finite")]


def test_an_unknown_experiment_is_a_404_everywhere(control: Any) -> None:
    for method, path in (
        ("GET", ""),
        ("POST", "/stop"),
        ("POST", "/pause"),
        ("GET", "/reports"),
        ("GET", "/faults"),
        ("GET", "/flow"),
        ("GET", "/events"),
        ("GET", "/tables"),
        ("GET", "/tables/replay"),
    ):
        reply = control.http.request(method, f"/v1/experiments/nothing-000000{path}")
        assert (reply.status_code, reply.json()["type"]) == (404, "urn:rollstream:problem:no-experiment"), path
    assert "there is no experiment 'nothing-000000'" in reply.json()["detail"]


def test_pause_and_resume_are_safe_to_repeat(control: Any, store: Store) -> None:
    experiment = control.http.post("/v1/experiments", json=SPEC).json()["id"]
    experiments = Experiments(store)
    for order, wanted in (("pause", "pause"), ("pause", "pause"), ("resume", "run"), ("resume", "run")):
        assert control.http.post(f"/v1/experiments/{experiment}/{order}").status_code == 202
        assert experiments.wanted(experiment) == wanted
    orders = [event["message"] for _, event in experiments.events(experiment) if event["kind"] == "order"]
    assert orders == ["pause", "run"]


def test_a_checkpoint_is_ordered_from_the_learner(control: Any, store: Store) -> None:
    experiment = control.http.post("/v1/experiments", json=SPEC).json()["id"]
    assert control.http.post(f"/v1/experiments/{experiment}/checkpoint").json()["ordered"] == "checkpoint"
    assert Experiments(store).status(experiment).checkpoints_ordered == 1


def test_an_experiment_that_has_ended_cannot_go_on_but_can_be_stopped_again(control: Any, store: Store) -> None:
    experiment = control.http.post("/v1/experiments", json=SPEC).json()["id"]
    Experiments(store).set_phase(experiment, "succeeded")
    for order in ("pause", "resume", "checkpoint"):
        reply = control.http.post(f"/v1/experiments/{experiment}/{order}")
        assert (reply.status_code, reply.json()["type"]) == (409, "urn:rollstream:problem:has-ended")
    assert control.http.post(f"/v1/experiments/{experiment}/stop").status_code == 202


def test_stopping_what_no_learner_has_begun_ends_it_at_once(control: Any, store: Store, eventually: Any) -> None:
    experiment = control.http.post("/v1/experiments", json=SPEC).json()["id"]
    control.http.post(f"/v1/experiments/{experiment}/stop")
    status = eventually(lambda: (found := Experiments(store).status(experiment)).ended and found)
    assert (status.phase, status.reason) == ("stopped", "stopped by order before a learner began")


def test_reports_come_in_pages(control: Any, store: Store) -> None:
    experiment = control.http.post("/v1/experiments", json=SPEC).json()["id"]
    for number in range(5):
        Experiments(store).add_report(experiment, {"number": number, "env_steps": 100 * number})
    first = control.http.get(f"/v1/experiments/{experiment}/reports", params={"limit": 3}).json()
    rest = control.http.get(f"/v1/experiments/{experiment}/reports", params={"after": first["next_after"]}).json()
    last = control.http.get(f"/v1/experiments/{experiment}/reports", params={"after": rest["next_after"]}).json()
    assert [entry["data"]["number"] for entry in first["reports"] + rest["reports"]] == [0, 1, 2, 3, 4]
    assert last == {"reports": [], "next_after": rest["next_after"]}
    assert control.http.get(f"/v1/experiments/{experiment}").json()["report"]["number"] == 4


def test_the_flow_is_shown_as_the_learner_described_it(control: Any, store: Store) -> None:
    experiment = control.http.post("/v1/experiments", json=SPEC).json()["id"]
    assert control.http.get(f"/v1/experiments/{experiment}/flow").json() == {"id": experiment, "flow": None}
    Experiments(store).set_flow(experiment, {"nodes": [{"name": "rollouts", "items_per_s": 12.5}], "edges": []})
    assert control.http.get(f"/v1/experiments/{experiment}/flow").json()["flow"]["nodes"][0]["name"] == "rollouts"


def test_bad_parameters_are_named(control: Any) -> None:
    reply = control.http.get("/v1/experiments", params={"limit": "many", "phase": "asleep"})
    assert reply.status_code == 422
    assert {error["path"] for error in reply.json()["errors"]} == {"limit", "phase.0"}


def test_an_unknown_path_is_a_problem_document_too(control: Any) -> None:
    reply = control.http.get("/v1/experimints")
    assert (reply.status_code, reply.headers["content-type"]) == (404, "application/problem+json")
    assert "/openapi.json lists what there is" in reply.json()["detail"]
    assert control.http.delete("/v1/experiments").status_code == 405

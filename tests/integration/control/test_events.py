"""Events as they happen, by SSE."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from rollstream.store import Experiments, Store

SPEC = {"name": "cart", "algorithm": "ppo", "environment": {"id": "CartPole-v1"}}


@pytest.fixture
def experiment(control: Any) -> str:
    return str(control.http.post("/v1/experiments", json=SPEC).json()["id"])


def entries(response: httpx.Response) -> Iterator[dict[str, Any]]:
    """Events of a stream; comments come as `{"comment": ...}`."""
    fields: dict[str, Any] = {}
    for line in response.iter_lines():
        if not line:
            if fields and "retry" not in fields:
                yield fields
            fields = {}
        elif line.startswith(":"):
            yield {"comment": line[1:].strip()}
        else:
            name, _, value = line.partition(": ")
            fields[name] = json.loads(value) if name == "data" else value


def test_a_stream_tells_the_past_then_the_present_and_ends_with_the_final_phase(
    control: Any, store: Store, experiment: str
) -> None:
    told = Experiments(store)
    with control.http.stream("GET", f"/v1/experiments/{experiment}/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        events = (event for event in entries(response) if "comment" not in event)
        assert next(events)["data"]["phase"] == "queued"
        told.add_event(experiment, "checkpoint", "saved", env_steps=512)
        event = next(events)
        assert (event["event"], event["data"]["message"], event["data"]["env_steps"]) == ("checkpoint", "saved", 512)
        told.set_phase(experiment, "succeeded")
        assert [event["data"]["phase"] for event in events] == ["succeeded"]


def test_a_silent_stream_is_kept_open_by_comments(control: Any, experiment: str) -> None:
    with control.http.stream("GET", f"/v1/experiments/{experiment}/events") as response:
        comments = (event["comment"] for event in entries(response) if "comment" in event)
        assert next(comments) == "heartbeat"
        assert next(comments) == "heartbeat"


@pytest.mark.parametrize("how", ["header", "query"])
def test_a_broken_stream_goes_on_after_the_last_event(control: Any, store: Store, experiment: str, how: str) -> None:
    told = Experiments(store)
    for number in range(3):
        told.add_event(experiment, "step", f"number {number}")
    told.set_phase(experiment, "stopped")
    path = f"/v1/experiments/{experiment}/events"
    with control.http.stream("GET", path) as response:
        all_events = list(entries(response))
    seen = all_events[1]["id"]
    resume = {"headers": {"Last-Event-ID": seen}} if how == "header" else {"params": {"after": seen}}
    with control.http.stream("GET", path, **resume) as response:
        assert [event["id"] for event in entries(response)] == [event["id"] for event in all_events[2:]]


def test_a_stream_of_which_nothing_is_left_tells_browsers_not_to_come_back(control: Any, store: Store, experiment: str) -> None:
    Experiments(store).set_phase(experiment, "stopped")
    last = Experiments(store).events(experiment)[-1][0]
    reply = control.http.get(f"/v1/experiments/{experiment}/events", headers={"Last-Event-ID": last})
    assert (reply.status_code, reply.content) == (204, b"")


def test_a_position_that_is_none_is_refused(control: Any, experiment: str) -> None:
    reply = control.http.get(f"/v1/experiments/{experiment}/events", headers={"Last-Event-ID": "yesterday"})
    assert reply.status_code == 422


def test_many_streams_are_served_together_and_cost_no_worker_thread(control: Any, store: Store, experiment: str) -> None:
    barrier = threading.Barrier(61)
    ends: list[str] = []

    def follow() -> None:
        with httpx.stream("GET", f"{control.url}/v1/experiments/{experiment}/events", timeout=30.0) as response:
            events = (event for event in entries(response) if "comment" not in event)
            next(events)
            barrier.wait()
            ends.extend(event["data"]["phase"] for event in events)

    followers = [threading.Thread(target=follow) for _ in range(60)]
    for follower in followers:
        follower.start()
    barrier.wait()  # all 60 streams are open; the pool of worker threads has 40
    Experiments(store).set_phase(experiment, "succeeded")
    for follower in followers:
        follower.join()
    assert ends == ["succeeded"] * 60


def test_stopping_control_ends_open_streams(start_control: Any, store: Store) -> None:
    ended = threading.Event()
    opened = threading.Event()

    def follow(url: str, experiment: str) -> None:
        with httpx.stream("GET", f"{url}/v1/experiments/{experiment}/events", timeout=30.0) as response:
            for event in entries(response):
                opened.set() if event.get("event") == "phase" else None
        ended.set()

    with start_control(heartbeat_every_s=600.0) as control:
        experiment = control.http.post("/v1/experiments", json=SPEC).json()["id"]
        thread = threading.Thread(target=follow, args=(control.url, experiment))
        thread.start()
        opened.wait()
    thread.join()
    assert ended.is_set()

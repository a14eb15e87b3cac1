"""O71, O105, O106: a blocked server, a slow shard, a hanging environment or a big body froze the event loop, and the
pod was killed. Here probes are answered in the loop from memory, and everything that may block is elsewhere.

Not a stopwatch decides, but order: the probe's answer is there while the slow requests still are not.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from rollstream.store import EmbeddedServer, MemberRecord, Members, Store, keys

SPEC = {"name": "cart", "algorithm": "ppo", "environment": {"id": "CartPole-v1"}}


@contextmanager
def requests_under_way(url: str, method: str, path: str, *, count: int, **arguments: Any) -> Iterator[list[httpx.Response]]:
    """Sends `count` requests from threads; the list fills as their answers come. Joined at the end of the block."""
    answers: list[httpx.Response] = []
    started = threading.Barrier(count + 1)

    with httpx.Client(base_url=url, timeout=60.0, limits=httpx.Limits(max_connections=None)) as client:

        def send() -> None:
            started.wait()
            answers.append(client.request(method, path, **arguments))

        threads = [threading.Thread(target=send) for _ in range(count)]
        for thread in threads:
            thread.start()
        started.wait()
        yield answers
        for thread in threads:
            thread.join()


def test_probes_answer_while_redis_does_not(control: Any, server: EmbeddedServer) -> None:
    control.http.get("/v1/cell")
    os.kill(server.pid, signal.SIGSTOP)
    try:
        with requests_under_way(control.url, "GET", "/v1/cell", count=60) as answers:
            for _ in range(20):
                assert control.http.get("/healthz").status_code == 200
                assert control.http.get("/metrics").status_code == 200
            assert answers == []  # more blocked requests than worker threads, and none has come back yet
            os.kill(server.pid, signal.SIGCONT)
    finally:
        os.kill(server.pid, signal.SIGCONT)
    assert {answer.status_code for answer in answers} <= {200, 503}


def test_probes_answer_while_a_shard_hangs(control: Any, store: Store) -> None:
    silent = socket.create_server(("127.0.0.1", 0), backlog=64)  # takes connections, and never says a word
    url = f"http://127.0.0.1:{silent.getsockname()[1]}"
    experiment = control.http.post("/v1/experiments", json=SPEC).json()["id"]
    store.client.hset(keys.tables(), f"{experiment}.replay", "{}")
    Members(store).announce(MemberRecord(id="replay-0", role="replay", shard=0, url=url), ttl_s=60.0)
    with requests_under_way(control.url, "GET", f"/v1/experiments/{experiment}/tables", count=50) as answers:
        for _ in range(20):
            assert control.http.get("/healthz").status_code == 200
        assert answers == []
        silent.close()  # which resets the connections
    shards = [answer.json()["tables"][0]["shards"][0] for answer in answers]
    assert all("could not be asked" in shard["problem"] for shard in shards)


def test_probes_and_other_requests_answer_while_environments_hang(
    start_control: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = tmp_path / "release"
    source = f"import os, time\n\ndef make():\n    while not os.path.exists({str(release)!r}):\n        time.sleep(0.01)\n"
    (tmp_path / "sleepy_environments.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    sleepy = SPEC | {"environment": {"id": "sleepy_environments:make"}}
    with (
        start_control(environment_modules="sleepy_environments", inspection_deadline_s=60.0) as control,
        requests_under_way(control.url, "POST", "/v1/experiments", count=6, json=sleepy) as answers,
    ):
        for _ in range(20):
            assert control.http.get("/healthz").status_code == 200
            assert control.http.get("/v1/experiments").json()["total"] == 0
        assert answers == []
        release.touch()
    assert [answer.status_code for answer in answers] == [422] * 6


def test_a_big_body_is_refused_before_it_is_in_memory(control: Any) -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while True:
            sent += 65_536
            yield b"x" * 65_536

    with pytest.raises(httpx.HTTPError), httpx.Client(base_url=control.url, timeout=30.0) as client:
        reply = client.post("/v1/experiments", content=endless(), headers={"Content-Type": "application/json"})
        raise httpx.HTTPError(f"answered {reply.status_code}")
    assert sent < 64 << 20
    assert control.http.get("/healthz").status_code == 200


def test_no_reply_needs_a_command_over_all_keys(control: Any, store: Store) -> None:
    experiment = control.http.post("/v1/experiments", json=SPEC).json()["id"]
    store.client.config_resetstat()
    for path in ("", f"/{experiment}", f"/{experiment}/reports", f"/{experiment}/tables", f"/{experiment}/flow"):
        assert control.http.get(f"/v1/experiments{path}").status_code == 200
    assert control.http.get("/v1/cell").status_code == 200
    used = {name.removeprefix("cmdstat_") for name in store.client.info("commandstats")}
    assert used.isdisjoint({"keys", "scan", "lrange", "flushall", "sort", "monitor"})

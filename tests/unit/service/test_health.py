"""Liveness sees stuck loops; readiness is a set of conditions."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest

from rollstream.clock import FakeClock
from rollstream.errors import ConfigError
from rollstream_service.health import Health
from rollstream_service.probes import ProbeServer, answer


def test_a_loop_that_does_not_beat_is_stuck_and_named() -> None:
    clock = FakeClock()
    health = Health(clock)
    health.expect("work", within_s=5.0)
    clock.advance(4.0)
    health.beat("work")
    clock.advance(4.0)
    assert health.live().ok
    clock.advance(2.0)
    assert health.live().why == "loop 'work' has made no progress for 6 s (allowed 5 s)"
    health.forget("work")
    assert health.live().ok


def test_not_ready_before_any_condition_and_while_one_fails() -> None:
    health = Health(FakeClock())
    assert health.ready().why == "starting"
    health.condition("redis", ok=True)
    assert health.ready().ok
    health.condition("lease", ok=False, why="another holds it")
    assert health.ready().why == "lease: another holds it"
    health.condition("lease", ok=True)
    assert health.ready().ok


def test_a_stuck_process_is_not_ready() -> None:
    clock = FakeClock()
    health = Health(clock)
    health.condition("redis", ok=True)
    health.expect("work", within_s=1.0)
    clock.advance(2.0)
    assert not health.ready().ok


def test_probes_answer_over_http() -> None:
    health = Health(FakeClock())
    server = ProbeServer(host="127.0.0.1", port=0, health=health, metrics=lambda: b"# none\n")
    server.start()
    try:
        base = f"http://127.0.0.1:{server.port}"
        with urllib.request.urlopen(f"{base}/healthz", timeout=5) as reply:
            assert json.load(reply)["ok"] is True
        with pytest.raises(urllib.error.HTTPError, match="503"):
            urllib.request.urlopen(f"{base}/readyz", timeout=5)
        with urllib.request.urlopen(f"{base}/metrics", timeout=5) as reply:
            assert reply.read() == b"# none\n"
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{base}/other", timeout=5)
        with pytest.raises(ConfigError, match="cannot listen on 127.0.0.1"):
            ProbeServer(host="127.0.0.1", port=server.port, health=health, metrics=lambda: b"")
    finally:
        server.stop()


def test_other_paths_are_not_probes() -> None:
    assert answer("/v1/cell", health=Health(FakeClock()), metrics=lambda: b"") is None

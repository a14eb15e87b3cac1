"""`rollstream resume` of an experiment of a cell, against a real HTTP server that plays control."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from rollstream.config import EnvironmentSpec, ExperimentSpec
from rollstream.errors import ConfigError
from rollstream_cli.commands.resume import resume

SPEC = ExperimentSpec(name="ppo", algorithm="ppo", environment=EnvironmentSpec(id="CartPole-v1")).model_dump(mode="json")
Asked = list[tuple[str, str, Any]]


@pytest.fixture
def control() -> Iterator[Callable[..., tuple[str, Asked]]]:
    servers: list[ThreadingHTTPServer] = []

    def start(**view: Any) -> tuple[str, Asked]:
        asked: Asked = []

        class Handler(BaseHTTPRequestHandler):
            def respond(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                asked.append((self.command, self.path.split("?")[0], json.loads(body) if body.strip(b"null") else None))
                data = json.dumps({"id": "ppo-000001", "spec": SPEC, "summary": {}, **view}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = respond  # noqa: N815

            def log_message(self, *_: Any) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}", asked

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_paused_experiment_goes_on(control: Callable[..., tuple[str, Asked]]) -> None:
    url, asked = control(phase="paused")
    resume("ppo-000001", url=url)
    assert asked[-1][:2] == ("POST", "/v1/experiments/ppo-000001/resume")


def test_settings_of_an_open_experiment_cannot_change(control: Callable[..., tuple[str, Asked]]) -> None:
    url, _ = control(phase="running")
    with pytest.raises(ConfigError, match="its settings cannot change; stop it first, then resume it with them"):
        resume("ppo-000001", url=url, stop_steps=5)


def test_one_that_has_ended_is_submitted_again_from_its_checkpoint(
    control: Callable[..., tuple[str, Asked]], tmp_path: Path
) -> None:
    url, asked = control(phase="stopped", summary={"checkpoint": str(tmp_path)})
    resume("ppo-000001", url=url, stop_steps=5)
    method, path, spec = asked[-1]
    assert (method, path) == ("POST", "/v1/experiments")
    assert (spec["from_checkpoint"], spec["stop"]["env_steps"]) == (str(tmp_path), 5)


def test_one_that_has_ended_without_a_checkpoint_is_refused(control: Callable[..., tuple[str, Asked]]) -> None:
    url, _ = control(phase="failed")
    with pytest.raises(ConfigError, match="has ended without a checkpoint; submit it again to start afresh"):
        resume("ppo-000001", url=url)

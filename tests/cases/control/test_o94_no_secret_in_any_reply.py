"""O94: passwords and tokens turned up in `/config` and logs. Here no reply, log line or record has one."""

from __future__ import annotations

from typing import Any

import pytest

from rollstream.store import Store, keys
from rollstream_control.settings import ControlSettings

SECRETS = ("operate-it-secretly", "look-at-it-secretly", "redis-p@ss")
SPEC = {"name": "cart", "algorithm": "ppo", "environment": {"id": "CartPole-v1"}}


def test_no_reply_log_line_or_record_has_a_secret(start_control: Any, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    seen = []
    tokens = {"operator_token": SECRETS[0], "viewer_token": SECRETS[1]}
    with start_control(token=SECRETS[0], **tokens) as control:
        experiment = control.http.post("/v1/experiments", json=SPEC).json()["id"]
        paths = ["/v1/cell", "/v1/experiments", "/openapi.json", "/metrics", "/healthz", "/readyz", "/nothing"]
        paths += [f"/v1/experiments/{experiment}{rest}" for rest in ("", "/reports", "/faults", "/flow", "/tables", "/tables/x")]
        for path in paths:
            reply = control.http.get(path)
            seen.append(f"{reply.headers} {reply.text}")
        seen.append(control.http.get("/v1/cell", headers={"Authorization": f"Bearer {SECRETS[1]}x"}).text)
        seen.append(control.http.post("/v1/experiments", json={"token": 1}).text)
        seen.append(str(store.client.get(keys.member("control-0"))))
    captured = capsys.readouterr()
    everything = "\n".join([*seen, captured.out, captured.err])
    assert [secret for secret in SECRETS if secret in everything] == []


def test_settings_do_not_show_them_when_printed() -> None:
    settings = ControlSettings(
        redis_url="redis://cache", redis_password=SECRETS[2], operator_token=SECRETS[0], viewer_token=SECRETS[1]
    )
    shown = f"{settings!r} {settings} {settings.model_dump_json()}"
    assert [secret for secret in SECRETS if secret in shown] == []


def test_a_redis_that_is_away_is_named_without_its_password(start_control: Any, store: Store, server: Any) -> None:
    with start_control() as control:
        server.stop()
        try:
            reply = control.http.get("/v1/cell")
        finally:
            server.start()
    assert reply.status_code == 503
    assert reply.json()["type"] == "urn:rollstream:problem:store-unavailable"
    assert reply.headers["retry-after"] == "2"

"""Settings of services come from the environment and are checked at start."""

from __future__ import annotations

import socket

import pytest

from rollstream.errors import ConfigError
from rollstream_service.settings import CommonSettings, read_settings


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROLLSTREAM_REDIS_URL", "ROLLSTREAM_PORT", "ROLLSTREAM_MEMBER_ID"):
        monkeypatch.delenv(name, raising=False)


def test_the_redis_url_is_required() -> None:
    with pytest.raises(ConfigError, match="ROLLSTREAM_REDIS_URL: is required"):
        read_settings(CommonSettings)


def test_every_bad_variable_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLSTREAM_PORT", "99999999")
    monkeypatch.setenv("ROLLSTREAM_GRACE_S", "-1")
    with pytest.raises(ConfigError, match="3 bad environment variable") as caught:
        read_settings(CommonSettings)
    assert {problem.path for problem in caught.value.problems} == {
        "ROLLSTREAM_REDIS_URL",
        "ROLLSTREAM_PORT",
        "ROLLSTREAM_GRACE_S",
    }


@pytest.mark.parametrize("name", ["ROLLSTREAM_REDIS_ULR", "ROLLSTREAM_REDIS_UR", "ROLLSTREAM_REDISS_URL", "ROLLSTREAM_REDIS_URK"])
def test_a_misspelt_variable_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("ROLLSTREAM_REDIS_URL", "unix:///x")
    monkeypatch.setenv(name, "redis://x")
    with pytest.raises(ConfigError, match="unknown environment variable ROLLSTREAM_REDIS"):
        read_settings(CommonSettings)


def test_variables_of_other_services_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLSTREAM_REDIS_URL", "unix:///x")
    monkeypatch.setenv("ROLLSTREAM_SHARD", "0")
    monkeypatch.setenv("ROLLSTREAM_ENVIRONMENT_MODULES", "a.b, c")
    settings = read_settings(CommonSettings)
    assert settings.allowed_modules == ("a.b", "c")
    assert settings.member_name("actor").startswith("actor-")


def test_the_password_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLSTREAM_REDIS_URL", "unix:///x")
    monkeypatch.setenv("ROLLSTREAM_REDIS_PASSWORD", "hunter2")
    assert "hunter2" not in repr(read_settings(CommonSettings))


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("::1", "http://[::1]:80"),
        ("0.0.0.0", f"http://{socket.gethostname()}:80"),
        ("::", f"http://{socket.gethostname()}:80"),
    ],
)
def test_who_listens_everywhere_is_reached_by_name(monkeypatch: pytest.MonkeyPatch, host: str, url: str) -> None:
    monkeypatch.setenv("ROLLSTREAM_REDIS_URL", "unix:///x")
    monkeypatch.setenv("ROLLSTREAM_HOST", host)
    assert read_settings(CommonSettings).url(80) == url


def test_an_advertised_url_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLSTREAM_REDIS_URL", "unix:///x")
    monkeypatch.setenv("ROLLSTREAM_ADVERTISE_URL", "http://replay:8080")
    assert read_settings(CommonSettings).url(80) == "http://replay:8080"

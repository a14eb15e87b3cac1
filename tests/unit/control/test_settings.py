"""Settings of control: tokens, addresses, backends."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rollstream.errors import ConfigError
from rollstream_control.settings import ControlSettings
from rollstream_service.settings import read_settings


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("ROLLSTREAM_REDIS_URL", "redis://127.0.0.1")
    return monkeypatch


def test_without_tokens_loopback_is_fine(environment: pytest.MonkeyPatch) -> None:
    for host in ("127.0.0.1", "::1", "localhost", "127.1.2.3"):
        environment.setenv("ROLLSTREAM_HOST", host)
        assert read_settings(ControlSettings).operator_secret is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "control.example.org"])
def test_without_tokens_an_address_that_others_reach_is_refused(environment: pytest.MonkeyPatch, host: str) -> None:
    environment.setenv("ROLLSTREAM_HOST", host)
    with pytest.raises(ConfigError, match="can be reached from other machines and there is no token") as caught:
        read_settings(ControlSettings)
    assert caught.value.exit_code == 2


def test_anonymous_access_must_be_allowed_in_words(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("ROLLSTREAM_HOST", "0.0.0.0")
    environment.setenv("ROLLSTREAM_ALLOW_ANONYMOUS", "true")
    assert read_settings(ControlSettings).allow_anonymous


def test_a_token_opens_every_address_and_is_not_shown(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("ROLLSTREAM_HOST", "0.0.0.0")
    environment.setenv("ROLLSTREAM_OPERATOR_TOKEN", "correct-horse")
    settings = read_settings(ControlSettings)
    assert settings.operator_secret == "correct-horse"
    assert "correct-horse" not in repr(settings)


def test_an_empty_token_counts_as_none(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("ROLLSTREAM_OPERATOR_TOKEN", "")
    environment.setenv("ROLLSTREAM_EXPERIMENT_FILE", "")
    settings = read_settings(ControlSettings)
    assert (settings.operator_secret, settings.experiment_file) == (None, None)


def test_a_short_token_is_refused_without_being_repeated(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("ROLLSTREAM_OPERATOR_TOKEN", "hunter2")
    with pytest.raises(ConfigError, match="a token needs at least 8 characters") as caught:
        read_settings(ControlSettings)
    assert "hunter2" not in str(caught.value)


def test_a_viewer_alone_is_refused(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("ROLLSTREAM_VIEWER_TOKEN", "only-looking")
    with pytest.raises(ConfigError, match="without ROLLSTREAM_OPERATOR_TOKEN leaves nobody who may act"):
        read_settings(ControlSettings)


def test_equal_tokens_are_refused(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("ROLLSTREAM_VIEWER_TOKEN", "same-same")
    environment.setenv("ROLLSTREAM_OPERATOR_TOKEN", "same-same")
    with pytest.raises(ConfigError, match="make the two different"):
        read_settings(ControlSettings)


def test_kubernetes_needs_the_name_of_the_deployment() -> None:
    with pytest.raises(ValidationError, match="ROLLSTREAM_BACKEND=kubernetes needs ROLLSTREAM_ACTOR_DEPLOYMENT"):
        ControlSettings(redis_url="redis://127.0.0.1", backend="kubernetes")

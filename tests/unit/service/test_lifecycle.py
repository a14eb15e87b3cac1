"""How a service ends: its exit code, and a last line of JSON that says why."""

from __future__ import annotations

import json
import logging
import signal
from collections.abc import Iterator

import pytest

from rollstream.errors import CheckpointError, ConfigError, RollstreamError, StoreRefused, StoreUnavailable
from rollstream_service.lifecycle import Life, run
from rollstream_service.settings import CommonSettings


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Signals and loggers belong to the process, so they are put back."""
    monkeypatch.setenv("ROLLSTREAM_REDIS_URL", "unix:///nowhere")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    root = logging.getLogger()
    loggers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = loggers, level
    for number, handler in handlers.items():
        signal.signal(number, handler)


def ended_with(error: Exception | None) -> int:
    def main(settings: CommonSettings, life: Life) -> None:
        if error is not None:
            raise error

    return run("actor", CommonSettings, main)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("bad port"), 2),
        (StoreUnavailable("no Redis"), 3),
        (StoreRefused("wrong password"), 4),
        (CheckpointError("damaged"), 5),
        (RollstreamError("other"), 1),
    ],
)
def test_what_was_foreseen_has_its_code_and_no_traceback(
    error: RollstreamError, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended_with(error) == code
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["event"], told["reason"], told["exit_code"]) == ("cannot go on", str(error), code)
    assert "exception" not in told


def test_what_was_not_foreseen_is_1_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended_with(KeyError("x")) == 1
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["reason"] == "KeyError('x')" and "Traceback" in told["exception"]


def test_a_normal_end_is_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended_with(None) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["event"] == "stopped"


def test_bad_variables_are_told_as_json_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("ROLLSTREAM_LOG_FORMAT", "xml")
    assert ended_with(None) == 2
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["event"], told["role"], told["exit_code"]) == ("cannot start", "actor", 2)
    assert "1 bad environment variable(s): ROLLSTREAM_LOG_FORMAT" in told["reason"]

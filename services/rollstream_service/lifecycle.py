"""The life of a service process: settings, logs, signals, work, exit code.

start ──▶ main(settings, life) ──▶ returns ─────────────────▶ exit 0
                 │    ▲
                 │    └── SIGTERM/SIGINT set `life.stopping`: finish, flush, leave ─▶ not done in `grace_s`: exit 1
                 └── RollstreamError ──▶ last line says why ─▶ its exit code
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rollstream.clock import Clock, SystemClock
from rollstream.errors import RollstreamError
from rollstream_service.health import Health
from rollstream_service.logs import configure
from rollstream_service.settings import CommonSettings, read_settings

__all__ = ["Life", "run"]

Settings = TypeVar("Settings", bound=CommonSettings)


@dataclass(frozen=True, kw_only=True)
class Life:
    """What a service's main function gets: its name, its clock, its health, its log, and the wish to stop."""

    role: str
    member: str
    clock: Clock
    health: Health
    log: Any
    stopping: threading.Event = field(default_factory=threading.Event)


def run(role: str, settings_type: type[Settings], main: Callable[[Settings, Life], None]) -> int:
    """Run a service until it ends or is told to stop; returns the exit code of the process.

    Exit codes: 0 done or stopped; 2 bad settings; 3 Redis unreachable; 4 Redis refused; 5 checkpoint; 1 anything else.
    """
    clock = SystemClock()
    try:
        settings = read_settings(settings_type)
    except RollstreamError as error:
        configure(role=role, member=role).error("cannot start", reason=str(error), exit_code=error.exit_code)
        return error.exit_code
    member = settings.member_name(role)
    log = configure(role=role, member=member, log_level=settings.log_level, log_format=settings.log_format)
    life = Life(role=role, member=member, clock=clock, health=Health(clock), log=log)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: life.stopping.set())
    threading.Thread(target=_leave_in_time, args=(life, settings.grace_s), name="grace", daemon=True).start()
    try:
        main(settings, life)
    except RollstreamError as error:
        life.log.error("cannot go on", reason=str(error), error=type(error).__name__, exit_code=error.exit_code)
        return error.exit_code
    except Exception as error:
        life.log.error("failed", reason=repr(error), exc_info=True, exit_code=1)
        return 1
    life.log.info("stopped")
    return 0


def _leave_in_time(life: Life, grace_s: float) -> None:
    """End the process when it has not ended by itself in time: who waits for somebody that is gone would else be killed silently."""
    while not life.stopping.wait(60.0):
        pass
    life.clock.sleep(grace_s)
    life.log.error("could not finish in time after the order to stop; leaving now", grace_s=grace_s, exit_code=1)
    os._exit(1)

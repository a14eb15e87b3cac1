"""Running other programs in end-to-end tests: every command has a deadline, and a failure shows all that the program said."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from rollstream.clock import Deadline, SystemClock

__all__ = ["CLOCK", "Steps", "run", "wait_until"]

CLOCK = SystemClock()
Seen = TypeVar("Seen")


def run(*command: str, timeout_s: float = 60.0, environment: Mapping[str, str] | None = None, stdin: str | None = None) -> str:
    """Standard output of `command`; the test fails with everything it said when it does not exit with 0 in time."""
    try:
        done = subprocess.run(
            command,
            input=stdin,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        pytest.fail(f"{' '.join(command)} did not end within {timeout_s:.0f} s: {error.stdout!r} {error.stderr!r}")
    if done.returncode != 0:
        pytest.fail(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-4000:]}\n{done.stderr[-8000:]}")
    return done.stdout


def wait_until(what: str, look: Callable[[], Seen | None], *, deadline_s: float, every_s: float = 0.5) -> Seen:
    """What `look` returns as soon as that is true; the test fails when the deadline passes."""
    deadline = Deadline(CLOCK, after_s=deadline_s)
    while True:
        seen = look()
        if seen:
            return seen
        if deadline.passed():
            pytest.fail(f"not within {deadline_s:.0f} s: {what}")
        CLOCK.sleep(every_s)


@dataclass(slots=True)
class Steps:
    """How long each step took, printed as it ends and all together as JSON."""

    name: str
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        began_s = CLOCK.monotonic_s()
        yield
        self.seconds[what] = round(CLOCK.monotonic_s() - began_s, 1)
        print(f"{self.name}: {what}: {self.seconds[what]} s", flush=True)

    def print(self) -> None:
        """One line of JSON."""
        print(json.dumps({self.name: {"seconds": self.seconds}}), flush=True)

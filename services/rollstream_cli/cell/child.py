"""A child process that is kept alive: started, waited for, started again with back-off when it dies.

    start ─▶ running ─▶ died ─┬─ asked to stop ────────────────▶ ended
                ▲             ├─ can never work (exit 2 or 4) ─▶ given up: `on_hopeless` is told its last line
                └── back-off ─┘

Each child has one thread that starts it and waits for it. That is no waste: on Linux the leash ends a process when the *thread*
that started it ends, so the thread has to live as long as its process. The process gets a session of its own, so Ctrl-C in the
terminal reaches the supervisor alone, and what it started itself (environments in processes of their own) can be ended with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rollstream.clock import Clock
from rollstream_cli.cell.backoff import Backoff
from rollstream_cli.cell.nursery import ForkedProcess, Nursery

__all__ = ["Child", "ChildSpec", "last_words"]

HOPELESS_EXIT_CODES = frozenset({2, 4})
"""Bad settings, or Redis said no: starting again changes nothing."""
CRASHES = frozenset({signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV})
"""Signals that a process brings upon itself, by its native code; others come from outside, and say nothing about it."""
LOG_MAX_BYTES = 64 << 20
"""A log above this is moved to `<name>.log.1` when its process starts, so restarts cannot fill the disk."""
LAST_WORDS_BYTES = 16 << 10
LOOK_EVERY_S = 0.1
"""While stopping, how soon a wish to hurry is noticed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec:
    """How to start one process of a cell."""

    member: str
    role: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    log: Path


class Child:
    """One process of a cell, kept alive by a thread of its own."""

    def __init__(
        self,
        spec: ChildSpec,
        *,
        clock: Clock,
        on_hopeless: Callable[[str], None],
        on_death: Callable[[str], None] = lambda _: None,
        nursery: Nursery | None = None,
        deaths_allowed: int | None = 5,
    ) -> None:
        """
        Args:
            nursery: where a process may wait already, which then is the first; None: the first is started like all others.
            on_hopeless: called once, with one message for a person, when the process cannot ever work.
            on_death: called with a sentence each time the process died and is going to be started again.
            deaths_allowed: so many deaths in a row, the last not by a signal from outside, are hopeless too; None: never.
        """
        self.spec = spec
        self.restarts = 0
        self._clock = clock
        self._on_hopeless = on_hopeless
        self._on_death = on_death
        self._nursery = nursery
        self._deaths_allowed = deaths_allowed
        self._backoff = Backoff()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | ForkedProcess | None = None
        self._thread = threading.Thread(target=self._live, name=f"child-{spec.member}", daemon=True)

    def start(self) -> None:
        """Start the process, in the background."""
        self._thread.start()

    def never_give_up(self) -> None:
        """From now on every death is an accident, and is followed by a restart."""
        self._deaths_allowed = None

    @property
    def pid(self) -> int | None:
        """Of the running process; None between two lives."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    def ask_to_stop(self) -> None:
        """SIGTERM, once; the process is not started again. Returns at once."""
        with self._lock:
            self._stopping.set()
            if self._process is not None:
                self._process.send_signal(signal.SIGTERM)

    @property
    def ended(self) -> bool:
        """The process is gone and is not started again."""
        return self._thread.ident is not None and not self._thread.is_alive()

    def end(self, *, remaining_s: Callable[[], float], hurry: threading.Event | None = None) -> bool:
        """Wait for the end after `ask_to_stop` while `remaining_s()` is above 0 and `hurry` is not set, then SIGKILL.

        Returns:
            True when the process ended by itself.
        """
        if self._thread.ident is None:
            return True
        while self._thread.is_alive() and (left_s := remaining_s()) > 0 and not (hurry is not None and hurry.is_set()):
            self._thread.join(timeout=min(left_s, LOOK_EVERY_S if hurry is not None else left_s))
        if not self._thread.is_alive():
            return True
        with self._lock:
            if self._process is not None:
                _signal_group(self._process.pid, signal.SIGKILL)
        self._thread.join(timeout=5.0)
        return False

    def _live(self) -> None:
        while True:
            with self._lock:
                if self._stopping.is_set():
                    return
                started_s = self._clock.monotonic_s()
                try:
                    log_start = self._spawn()
                except OSError as error:
                    self._on_hopeless(f"{self.spec.member} cannot be started: {error}")
                    return
            assert self._process is not None, "_spawn sets it"
            code = self._process.wait()
            _signal_group(self._process.pid, signal.SIGKILL)  # what it left behind
            if self._stopping.is_set():
                return
            wait_s = self._backoff.next_s(lived_s=self._clock.monotonic_s() - started_s)
            if self._is_hopeless(code):
                self._on_hopeless(self._why(code, log_start))
                return
            self.restarts += 1
            self._on_death(f"{self.spec.member} ended with {_how(code)}: starting it again")
            if self._stopping.wait(wait_s):
                return

    def _spawn(self) -> int:
        """Start the process; returns where in the log its lines begin."""
        log = self.spec.log
        if log.exists() and log.stat().st_size > LOG_MAX_BYTES:
            log.replace(log.with_name(log.name + ".1"))
        forked, self._nursery = self._nursery.take(self.spec.role) if self._nursery is not None else None, None
        with log.open("ab") as output:
            start = output.tell()
            if forked is not None:
                self._process = forked
                forked.let_go(environment=self.spec.environment, log=log)
                return start
            self._process = subprocess.Popen(
                self.spec.command,
                env=dict(self.spec.environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return start

    def _is_hopeless(self, code: int) -> bool:
        limit = self._deaths_allowed
        by_itself = code > 0 or -code in CRASHES
        failed_again = by_itself and limit is not None and self._backoff.deaths_in_a_row >= limit
        return code in HOPELESS_EXIT_CODES or failed_again

    def _why(self, code: int, log_start: int) -> str:
        words = last_words(self.spec.log, start=log_start)
        if code in HOPELESS_EXIT_CODES:
            return f"{self.spec.member} cannot work ({_how(code)}): {words or 'it wrote nothing'}; see {self.spec.log}"
        told = f"its last line is {words!r}" if words else "it wrote nothing"
        deaths = self._backoff.deaths_in_a_row
        return f"{self.spec.member} ended {deaths} times in a row, now with {_how(code)}; {told}; see {self.spec.log}"


def _how(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"


def last_words(log: Path, *, start: int = 0) -> str:
    """The last line that a process wrote: the reason in it when it is a JSON log line, otherwise the line."""
    try:
        with log.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(start, end - LAST_WORDS_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    written = [line.strip() for line in lines if line.strip()]
    if not written:
        return ""
    try:
        entry = json.loads(written[-1])
    except ValueError:
        return written[-1]
    if not isinstance(entry, dict):
        return written[-1]
    return str(entry.get("reason") or entry.get("event") or written[-1])


def _signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)

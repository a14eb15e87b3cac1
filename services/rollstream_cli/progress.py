"""Live progress: one line that changes on a terminal, one line every few seconds elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from rich.console import Console
from rich.live import Live
from rich.text import Text

from rollstream.clock import Clock

__all__ = ["LiveProgress", "PlainProgress", "Progress", "describe_report", "make_progress"]

PLAIN_EVERY_S = 3.0


class Progress(Protocol):
    """Shows how a run goes."""

    def say(self, message: str) -> None:
        """A sentence that stays."""
        ...

    def report(self, report: Mapping[str, Any]) -> None:
        """The newest numbers."""
        ...

    def close(self) -> None: ...


def make_progress(console: Console, *, clock: Clock) -> Progress:
    """What suits the console: a line that changes, or plain lines."""
    return LiveProgress(console, clock=clock) if console.is_terminal else PlainProgress(console, clock=clock)


class PlainProgress:
    """For files and pipes: the first report, then one every few seconds."""

    def __init__(self, console: Console, *, clock: Clock) -> None:
        self._console = console
        self._clock = clock
        self._start_s = clock.monotonic_s()
        self._shown_s: float | None = None

    def say(self, message: str) -> None:
        self._console.print(message, markup=False, highlight=False, soft_wrap=True)

    def report(self, report: Mapping[str, Any]) -> None:
        now_s = self._clock.monotonic_s()
        if self._shown_s is not None and now_s - self._shown_s < PLAIN_EVERY_S:
            return
        self._shown_s = now_s
        self.say(f"{now_s - self._start_s:6.0f} s  {describe_report(report)}")

    def close(self) -> None: ...


class LiveProgress:
    """For terminals: the newest report in one place, sentences above it."""

    def __init__(self, console: Console, *, clock: Clock) -> None:
        self._console = console
        self._clock = clock
        self._start_s = clock.monotonic_s()
        self._live = Live(console=console, refresh_per_second=4, transient=True)
        self._live.start()

    def say(self, message: str) -> None:
        self._console.print(message, markup=False, highlight=False)

    def report(self, report: Mapping[str, Any]) -> None:
        seconds = self._clock.monotonic_s() - self._start_s
        self._live.update(Text(f"{seconds:6.0f} s  {describe_report(report)}", overflow="fold"))

    def close(self) -> None:
        self._live.stop()


def describe_report(report: Mapping[str, Any]) -> str:
    """The numbers of a report that people look at, in one line.

    >>> describe_report({"env_steps": 12_000, "env_steps_per_s": 4_000.0, "updates": 40, "mean_return": None, "lag": 1.5})
    'env steps 12,000 (4,000/s)  updates 40  return -  lag 1.5'
    """
    parts = [
        _counted("env steps", report.get("env_steps"), report.get("env_steps_per_s")),
        _counted("updates", report.get("updates"), report.get("updates_per_s")),
        f"return {_number(report.get('mean_return'))}",
        f"lag {_number(report.get('lag'))}",
    ]
    waits = describe_waits(report.get("waits"))
    if waits:
        parts.append(f"waits: {waits}")
    return "  ".join(part for part in parts if part)


def describe_waits(waits: object) -> str:
    """Who waits and for how much of the time, the longest first: `learner 12 %, actors 3 %`."""
    if not isinstance(waits, Mapping):
        return ""
    shares = [(str(name), float(value)) for name, value in waits.items() if isinstance(value, (int, float)) and value >= 0.005]
    shares.sort(key=lambda entry: -entry[1])
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares[:3])


def _counted(name: str, value: object, per_s: object) -> str:
    if not isinstance(value, (int, float)):
        return ""
    rate = f" ({per_s:,.0f}/s)" if isinstance(per_s, (int, float)) else ""
    return f"{name} {value:,.0f}{rate}"


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, (int, float)) else "-"

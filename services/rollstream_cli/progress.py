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
    return LiveProgress(console) if console.is_terminal else PlainProgress(console, clock=clock)


class PlainProgress:
    """For files and pipes: the first report, then one every few seconds."""

    def __init__(self, console: Console, *, clock: Clock) -> None:
        self._console = console
        self._clock = clock
        self._line = _Line()
        self._shown_s: float | None = None

    def say(self, message: str) -> None:
        self._console.print(message, markup=False, highlight=False, soft_wrap=True)

    def report(self, report: Mapping[str, Any]) -> None:
        line = self._line.of(report)
        now_s = self._clock.monotonic_s()
        if self._shown_s is not None and now_s - self._shown_s < PLAIN_EVERY_S:
            return
        self._shown_s = now_s
        self.say(line)

    def close(self) -> None: ...


class LiveProgress:
    """For terminals: the newest report in one place, sentences above it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._line = _Line()
        self._live = Live(console=console, refresh_per_second=4, transient=True)
        self._live.start()

    def say(self, message: str) -> None:
        self._console.print(message, markup=False, highlight=False)

    def report(self, report: Mapping[str, Any]) -> None:
        self._live.update(Text(self._line.of(report), overflow="fold"))

    def close(self) -> None:
        self._live.stop()


class _Line:
    """Reports as lines; remembers the last one, because waits are seconds since then."""

    def __init__(self) -> None:
        self._last_wall_s = 0.0

    def of(self, report: Mapping[str, Any]) -> str:
        wall_s = float(report.get("wall_s") or 0.0)
        since_s = wall_s - self._last_wall_s
        self._last_wall_s = wall_s
        return f"{wall_s:6.0f} s  {describe_report(report, since_s=since_s)}"


def describe_report(report: Mapping[str, Any], *, since_s: float = 0.0) -> str:
    """The numbers of a report that people look at, in one line.

    Args:
        since_s: seconds since the report before; shares of waiting are of these.

    >>> describe_report({"env_steps": 12_000, "env_steps_per_s": 4_000.0, "updates": 40, "mean_return": None, "lag": 1.5})
    'env steps 12,000 (4,000/s)  updates 40  return -  lag 1.5'
    """
    parts = [
        _counted("env steps", report.get("env_steps"), report.get("env_steps_per_s")),
        _counted("updates", report.get("updates"), report.get("updates_per_s")),
        f"return {_number(report.get('mean_return'))}",
        f"lag {_number(report.get('lag'))}",
        str(report.get("bottleneck") or "") or describe_waits(report.get("waits"), since_s=since_s),
    ]
    return "  ".join(part for part in parts if part)


def describe_waits(waits: object, *, since_s: float) -> str:
    """Who waits for whom, and for how much of the time, the longest first.

    >>> describe_waits({"learner -> actors": 0.5, "actor-0 -> learner": 0.1}, since_s=2.0)
    'waits: learner -> actors 25 %, actor-0 -> learner 5 %'
    """
    if not isinstance(waits, Mapping) or since_s <= 0.0:
        return ""
    shares = [(str(name), float(value) / since_s) for name, value in waits.items() if isinstance(value, (int, float))]
    shown = sorted((entry for entry in shares if entry[1] >= 0.01), key=lambda entry: -entry[1])[:3]
    return "waits: " + ", ".join(f"{name} {100 * share:.0f} %" for name, share in shown) if shown else ""


def _counted(name: str, value: object, per_s: object) -> str:
    if not isinstance(value, (int, float)):
        return ""
    rate = f" ({per_s:,.0f}/s)" if isinstance(per_s, (int, float)) else ""
    return f"{name} {value:,.0f}{rate}"


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, (int, float)) else "-"

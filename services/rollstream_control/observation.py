"""What control shows to Prometheus: its own requests, and how the cell stands. A scrape reads memory only.

The numbers of the cell are taken over from the scheduler's looks at it, so that a scrape never waits for Redis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from rollstream.metrics import Exposition, Gauges, names, render
from rollstream.store import MemberRecord

__all__ = ["Observation"]

ROLES = ("actor", "learner", "replay", "control")
PHASES = ("queued", "starting", "running", "paused")


class Observation:
    """Gauges of the cell. `look` is called by the scheduler's thread, `metrics` by the event loop."""

    def __init__(self) -> None:
        self._gauges = Gauges()
        self._registry = Exposition(self._gauges).registry()

    @property
    def metrics(self) -> Callable[[], bytes]:
        """The text that `/metrics` answers."""
        return lambda: render(self._registry)

    def look(self, members: Sequence[MemberRecord], *, phases: Sequence[str]) -> None:
        """Take over what the scheduler saw: live members, and the phase of each experiment that has not ended."""
        by_role = Counter[str](member.role for member in members)
        by_phase = Counter(phases)
        for role in ROLES:
            self._gauges.set(names.MEMBERS, by_role[role], role=role)
        for phase in PHASES:
            self._gauges.set(names.EXPERIMENTS, by_phase[phase], phase=phase)

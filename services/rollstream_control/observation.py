"""What control shows to Prometheus: its own requests, and how the cell stands. A scrape reads memory only.

The numbers of the cell are taken over from the scheduler's looks at it, so that a scrape never waits for Redis.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from rollstream.metrics import Exposition, Gauges, Sample, names, render
from rollstream.store import MemberRecord
from rollstream_service.health import Health

__all__ = ["Observation"]

ROLES = ("actor", "learner", "replay", "control")
PHASES = ("queued", "starting", "running", "paused")


class Observation:
    """`look` is called by the scheduler's thread, `count` and `metrics` by the event loop."""

    def __init__(self, health: Health) -> None:
        self._gauges = Gauges()
        self._requests = Counter[tuple[str, int]]()
        self._lock = threading.Lock()
        self._registry = Exposition(self._gauges, self._counted, health.samples).registry()

    @property
    def metrics(self) -> Callable[[], bytes]:
        """The text that `/metrics` answers."""
        return lambda: render(self._registry)

    def count(self, route: str, status: int) -> None:
        """One request to `route` was answered with `status`."""
        with self._lock:
            self._requests[route, status] += 1

    def _counted(self) -> Iterable[Sample]:
        with self._lock:
            counted = list(self._requests.items())
        return [
            Sample(metric=names.HTTP_REQUESTS, value=number, labels={"route": route, "status": str(status)})
            for (route, status), number in counted
        ]

    def look(self, members: Sequence[MemberRecord], *, phases: Sequence[str]) -> None:
        """Take over what the scheduler saw: live members, and the phase of each experiment that has not ended."""
        by_role = Counter[str](member.role for member in members)
        by_phase = Counter(phases)
        for role in ROLES:
            self._gauges.set(names.MEMBERS, by_role[role], role=role)
        for phase in PHASES:
            self._gauges.set(names.EXPERIMENTS, by_phase[phase], phase=phase)

"""throttle: one item an interval, of seconds or of environment steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rollstream.flow.ledger import Parcel
from rollstream.flow.operators.operator import Operator

__all__ = ["Throttle"]


class Throttle(Operator):
    """One item an interval; the others are dropped and counted. The first interval begins with the flow."""

    def prepare(self) -> None:
        settings = self.node.settings
        self.every = float(settings.get("every_s", settings.get("every_steps")) or 0)
        self.by_time = "every_s" in settings
        self.last: float | None = None

    def parcels(self) -> Iterator[Parcel]:
        self.last = last = self._now() if self.last is None else self.last
        for parcel in self.inputs[0].parcels():
            now = self._now()
            if now - last >= self.every:
                self.last = last = now
                yield self.passed(parcel)
            else:
                self.running.ledger.drop(parcel, reason=self.node.name)

    def state(self) -> dict[str, Any]:
        return {"since_last": 0.0 if self.last is None else self._now() - self.last}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.last = self._now() - float(state["since_last"])

    def _now(self) -> float:
        if self.by_time:
            return self.running.side.clock.monotonic_s()
        return float(self.running.side.counters.value("env_steps_sampled"))

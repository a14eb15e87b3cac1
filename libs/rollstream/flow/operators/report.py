"""report: the end of a flow; from all that happened since the last one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rollstream.flow.ledger import Parcel
from rollstream.flow.operators.operator import Operator
from rollstream.metrics import Report
from rollstream.spaces import Batch

__all__ = ["Reporting"]


class Reporting(Operator):
    """Uses up items, and tells from time to time what became of them; the first update at once.

    What is known to the flow is filled in; the run adds its name, its tables and its wall time from before a restart.
    """

    def prepare(self) -> None:
        self.every_s = float(self.node.settings["every_s"] or 0.0)
        self.number = 0
        self.metrics: dict[str, float] = {}
        self._mark()
        self.began_s = self.marked_s

    def parcels(self) -> Iterator[Parcel]:
        self._mark()
        self.began_s = self.marked_s
        for parcel in self.inputs[0].parcels():
            if isinstance(parcel.item, Batch):
                self.metrics.update(parcel.item.metrics)
            self.running.ledger.finish(parcel)
            first_result = self.number == 0 and self.running.side.updates() > 0
            if first_result or self._elapsed_s() >= self.every_s:
                yield self.passed(Parcel(self._report()))

    def state(self) -> dict[str, Any]:
        return {"number": self.number, "since_last_s": self._elapsed_s(), "tally": self.running.tally.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.number = int(state["number"])
        self.running.tally.restore(state["tally"])
        self._mark()

    def _report(self) -> Report:
        elapsed_s = self._elapsed_s()
        side, tally = self.running.side, self.running.tally
        before_sampled, before_trained, before_updates = self.sampled, self.trained, self.updates
        before_waited_s = self.waited_s
        self._mark()
        self.number += 1
        lag = tally.take_lag()
        report = Report(
            number=self.number,
            wall_s=self.marked_s - self.began_s,
            env_steps=self.sampled,
            env_steps_per_s=_rate(self.sampled - before_sampled, elapsed_s),
            env_steps_trained=self.trained,
            env_steps_trained_per_s=_rate(self.trained - before_trained, elapsed_s),
            updates=self.updates,
            updates_per_s=_rate(self.updates - before_updates, elapsed_s),
            episodes=side.counters.value("episodes"),
            mean_return=tally.mean_return(),
            mean_episode_steps=tally.mean_episode_steps(),
            version=side.version(),
            lag=lag.mean,
            max_lag=lag.largest,
            waits={
                f"{name} -> {self.running.meters[name].waited_for}": waited_s - before_waited_s.get(name, 0.0)
                for name, waited_s in self.waited_s.items()
                if waited_s > before_waited_s.get(name, 0.0)
            },
            metrics={**self.metrics, **{f"{policy}.mean_return": mean for policy, mean in tally.mean_returns().items()}},
            counters=side.counters.snapshot(),
        )
        self.metrics = {}
        return report

    def _mark(self) -> None:
        """Remember where the counters stand now; the next report tells what has been added."""
        side = self.running.side
        self.marked_s = side.clock.monotonic_s()
        self.sampled = side.counters.value("env_steps_sampled")
        self.trained = side.counters.value("env_steps_trained")
        self.updates = side.updates()
        self.waited_s = {name: meter.waited_s for name, meter in self.running.meters.items()}

    def _elapsed_s(self) -> float:
        return self.running.side.clock.monotonic_s() - self.marked_s


def _rate(amount: int, elapsed_s: float) -> float | None:
    return amount / elapsed_s if elapsed_s > 0 else None

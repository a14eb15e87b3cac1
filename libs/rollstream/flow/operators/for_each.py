"""for_each: a step and every item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rollstream.flow.fault import require_conserved
from rollstream.flow.ledger import Parcel
from rollstream.flow.operators.bound_step import BoundStep
from rollstream.flow.operators.operator import Operator
from rollstream.spaces import Batch

__all__ = ["ForEach"]


class ForEach(Operator):
    """Applies its step to every item."""

    def prepare(self) -> None:
        self.step = BoundStep(self.node, self.running, self.meter)

    def parcels(self) -> Iterator[Parcel]:
        step, settles, tells_episodes = self.step, self.step.step.settles, self.step.step.tells_episodes
        for parcel in self.inputs[0].parcels():
            item = parcel.item
            result = step(item)
            if result is not item:
                require_conserved(self.node, item, result)
                parcel.item = result
            if settles is not None:
                self.running.ledger.settle(parcel, settles)
                if settles == "trained" and isinstance(item, Batch):
                    self._note_lag(item)
            if tells_episodes and len(result.episodes):
                self.running.tally.episodes_ended(result.episodes)
                self.running.side.counters.add("episodes", len(result.episodes))
            yield self.passed(parcel)

    def state(self) -> dict[str, Any]:
        return self.step.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        self.step.restore(state)

    def close(self) -> None:
        self.step.close()

    def _note_lag(self, batch: Batch) -> None:
        version = self.running.side.version()
        self.running.tally.trained(oldest_lag=version - batch.version, newest_lag=version - batch.newest_version, rows=batch.rows)

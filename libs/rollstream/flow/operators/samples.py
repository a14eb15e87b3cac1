"""samples: batches of a replay table, as its limiter allows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rollstream.errors import DeadlineExceeded
from rollstream.flow.fault import raise_at_operator
from rollstream.flow.ledger import Parcel
from rollstream.flow.operators.operator import Operator
from rollstream.spaces import Batch

__all__ = ["Samples"]

SLICE_S = 1.0
"""How long one request waits at the table: how late a stop may be noticed."""
INLINE_DEADLINE_S = 30.0
"""In one thread nobody else can fill the table, so a wait of this length will never end."""


class Samples(Operator):
    """Samples until the flow stops."""

    def prepare(self) -> None:
        self.batch_items = int(self.node.settings["batch_items"] or 1)

    def parcels(self) -> Iterator[Parcel]:
        while (batch := self._sample()) is not None:
            yield self.passed(Parcel(batch))

    def ready(self) -> bool:
        return self.running.side.can_sample(self.node.table, batch_items=self.batch_items)

    def _sample(self) -> Batch | None:
        side = self.running.side
        deadline_s = INLINE_DEADLINE_S if self.running.inline else SLICE_S
        with self.running.waits(self.node, self.meter, f"samples of table {self.node.table}") as waiting:
            while not self.running.stopping():
                waiting.look_up()
                try:
                    batch = side.sample(self.node.table, batch_items=self.batch_items, deadline_s=deadline_s)
                except DeadlineExceeded as error:
                    if self.running.inline:
                        raise_at_operator(error, self.node)
                    continue
                except Exception as error:
                    raise_at_operator(error, self.node)
                return batch if not batch.env_steps else replace(batch, env_steps=0)
        return None

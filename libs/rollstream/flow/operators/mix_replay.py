"""mix_replay: every batch, and behind it some earlier ones (Espeholt et al. 2018, section 5.2.2).

inputs   1    2    3    4            share = 0.5, slots = 2: one replayed behind every second input that has a past
items    1    2    3 r  4            r is one of the last `slots` batches before 3
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from rollstream.flow.batches import batch_from_state, batch_to_state
from rollstream.flow.fault import broken
from rollstream.flow.ledger import Parcel
from rollstream.flow.operators.operator import Operator
from rollstream.seeding import child_generator
from rollstream.spaces import Batch, Episodes

__all__ = ["MixReplay"]

NONE_ENDED = Episodes()
ROUNDING = 1e-9
"""Ten times a share of 0.1 is one batch, though its floating-point sum is a little less."""


class MixReplay(Operator):
    """Remembers the last batches; what comes again accounts for no environment steps, so every step is trained on once."""

    def prepare(self) -> None:
        settings = self.node.settings
        self.share = float(settings["share"] or 0.0)
        self.ring: deque[Batch] = deque(maxlen=int(settings["slots"] or 1))
        self.meter.bound_items = self.ring.maxlen or 0
        self.generator = child_generator(int(settings["seed"] or 0), "mix_replay", self.node.name)
        self.mixed = 0

    def parcels(self) -> Iterator[Parcel]:
        for parcel in self.inputs[0].parcels():
            batch = parcel.item
            if not isinstance(batch, Batch):
                raise broken(
                    self.node, f"replays batches, got a {type(batch).__name__}; put it before what makes that of batches"
                )
            yield self.passed(parcel)
            again = self._drawn()
            self.ring.append(batch)
            self.meter.depth_items = len(self.ring)
            for replayed in again:
                yield self.passed(Parcel(replace(replayed, env_steps=0, episodes=NONE_ENDED, metrics={})))

    def state(self) -> dict[str, Any]:
        return {
            "ring": [batch_to_state(batch) for batch in self.ring],
            "generator": self.generator.bit_generator.state,
            "mixed": self.mixed,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.ring.extend(batch_from_state(batch) for batch in state["ring"])
        self.meter.depth_items = len(self.ring)
        self.generator.bit_generator.state = state["generator"]
        self.mixed = int(state["mixed"])

    def _drawn(self) -> list[Batch]:
        """What comes again behind one more input; nothing as long as nothing went before."""
        if not self.ring:
            return []
        due = math.floor((self.mixed + 1) * self.share + ROUNDING) - math.floor(self.mixed * self.share + ROUNDING)
        self.mixed += 1
        return [self.ring[int(slot)] for slot in self.generator.integers(len(self.ring), size=due)] if due else []

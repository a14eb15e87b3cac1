"""Orders: checkpoints and pauses of a running flow, obeyed between two items and also while the flow waits.

    report ──▶ act()                        due or ordered ─▶ checkpoint
    flow waits, twice a second ──▶ wants() ──▶ act()       ─▶ pause: checkpoint, `paused`, stand still, `running`

Control takes the actors away as soon as it sees the order to pause, so the flow that is to pause may never have another item.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from rollstream.metrics import Waits
from rollstream_learner.guard import Guard
from rollstream_service.lifecycle import Life

__all__ = ["Orders"]

SLICE_S = 0.5
"""How often a paused learner shows that it is alive."""


class Orders:
    """Implements `rollstream.flow.Owner` for one experiment.

    Args:
        every_s: seconds between checkpoints that nobody ordered.
        checkpoint: makes one, or tells why there is none.
        phase: tells the cell where the experiment stands.
    """

    def __init__(
        self,
        guard: Guard,
        *,
        life: Life,
        waits: Waits,
        every_s: float,
        checkpoint: Callable[[], object],
        phase: Callable[[Literal["running", "paused"]], None],
    ) -> None:
        self._guard = guard
        self._life = life
        self._waits = waits
        self._every_s = every_s
        self._checkpoint = checkpoint
        self._phase = phase
        self._made = guard.checkpoints_ordered
        self._saved_s = life.clock.monotonic_s()
        self.paused_s = 0.0
        """How long the experiment has stood still."""

    def wants(self) -> bool:
        """Whether somebody waits for a pause or a checkpoint."""
        self._life.health.beat("flow")
        return self._guard.paused or self._is_ordered

    def act(self) -> None:
        """Make the checkpoint that is due or ordered, and pause for as long as that is the order."""
        if self._is_ordered or self._life.clock.monotonic_s() - self._saved_s >= self._every_s:
            self._save()
        if self._guard.paused:
            began_s = self._life.clock.monotonic_s()
            self._pause()
            self.paused_s += self._life.clock.monotonic_s() - began_s

    @property
    def _is_ordered(self) -> bool:
        return self._guard.checkpoints_ordered > self._made

    def _save(self) -> None:
        self._made, self._saved_s = self._guard.checkpoints_ordered, self._life.clock.monotonic_s()
        self._checkpoint()

    def _pause(self) -> None:
        """Stand still, with a checkpoint: who pauses may be about to take machines away."""
        self._save()
        self._phase("paused")
        with self._waits.waiting(who=self._life.member, for_whom="the order to resume"):
            while not self._guard.wait_while_paused(timeout_s=SLICE_S):
                self._life.health.beat("flow")
                if self._is_ordered:
                    self._save()
        if self._guard.verdict is None:
            self._phase("running")

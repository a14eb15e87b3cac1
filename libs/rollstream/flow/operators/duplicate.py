"""duplicate: the same items for several users. One of them pulls; what the others have not taken waits in bounded buffers."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from rollstream.errors import DeadlineExceeded
from rollstream.flow.bell import Bell
from rollstream.flow.ledger import Parcel
from rollstream.flow.operators.operator import Operator
from rollstream.flow.running import SLICE_S

__all__ = ["Duplicate"]

BOUND_ITEMS = 16
"""How far one user may be ahead of another."""
DEADLINE_S = 60.0


class Duplicate(Operator):
    """Pulls once for all copies. An item is done with, and acknowledged, when all copies are."""

    def prepare(self) -> None:
        self.meter.bound_items = BOUND_ITEMS
        self.waiting: list[deque[Parcel]] = [deque() for _ in range(int(self.node.settings["copies"] or 2))]
        self.bell = Bell()
        self.pulling = threading.Lock()
        self.gone: set[int] = set()
        self.ended = False
        self.source: Iterator[Parcel] | None = None

    def parcels(self) -> Iterator[Parcel]:
        return iter(())

    def pull(self, index: int) -> Parcel | None:
        """The next parcel of copy `index`; None at the end."""
        waiting = self.waiting[index]
        while not waiting:
            if self.ended and not waiting:  # what came before the end is taken first
                return None
            if self._others_keep_up() and self.pulling.acquire(blocking=False):
                try:
                    if not waiting and not self.ended:
                        self._pull()
                finally:
                    self.pulling.release()
                    self.bell.ring()
            else:
                self._wait(index)
        try:
            parcel = waiting.popleft()
        except IndexError:  # left meanwhile, by another thread
            return None
        self.meter.depth_items = max(map(len, self.waiting))
        self.bell.ring()
        return parcel

    def can_pull(self, index: int) -> bool:
        """Whether `pull` would not have to wait."""
        if self.waiting[index] or self.ended:
            return True
        return self._may_pull(index) and self.inputs[0].ready()

    def wake(self) -> None:
        self.ended = True
        self.bell.ring()

    def leave(self, index: int) -> None:
        """Copy `index` is not pulled any more: the others go on without it."""
        self.gone.add(index)
        self._finish_left(index)
        self.bell.ring()
        if len(self.gone) == len(self.waiting):
            self.inputs[0].abandon()

    def _pull(self) -> None:
        """Let the next parcel wait for every copy; by one thread at a time."""
        try:
            if self.source is None:
                self.source = self.inputs[0].parcels()
            parcel = next(self.source, None)
        except BaseException:
            self.ended = True
            raise
        if parcel is None:
            self.ended = True
            return
        counted = next((index for index in range(len(self.waiting)) if index not in self.gone), 0) if self.gone else 0
        for waiting, copy in zip(
            self.waiting, self.running.ledger.copies(parcel, len(self.waiting), counted=counted), strict=True
        ):
            waiting.append(copy)
        for index in tuple(self.gone):
            self._finish_left(index)

    def _finish_left(self, index: int) -> None:
        """What waits for a copy that is gone has gone its way."""
        with suppress(IndexError):
            while True:
                self.running.ledger.finish(self.waiting[index].popleft())

    def _others_keep_up(self) -> bool:
        return max(map(len, self.waiting)) < BOUND_ITEMS

    def _may_pull(self, index: int) -> bool:
        return bool(self.waiting[index]) or self.ended or (self._others_keep_up() and not self.pulling.locked())

    def _wait(self, index: int) -> None:
        behind = max(range(len(self.waiting)), key=lambda other: len(self.waiting[other]) if other != index else -1)
        what = f"copy {behind + 1} of {self.node.name}"
        left_s = 0.0 if self.running.inline else DEADLINE_S
        with self.running.waits(self.node, self.meter, what) as waiting:
            while not self.bell.wait_for(partial(self._may_pull, index), min(SLICE_S, left_s)):
                if not self.pulling.locked():  # else the other copy waits too: for what it pulls, however long that takes
                    left_s -= SLICE_S
                if left_s <= 0.0:
                    raise DeadlineExceeded(
                        f"copy {index + 1} of {self.node} is {BOUND_ITEMS} items ahead and waits for copy {behind + 1}, "
                        "which nobody pulls; use both copies at the same pace"
                    )
                waiting.look_up()

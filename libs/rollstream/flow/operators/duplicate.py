"""duplicate: the same items for several users. One of them pulls; what the others have not taken waits in bounded buffers."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator

from rollstream.errors import DeadlineExceeded
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
        self.changed = threading.Condition()
        self.gone: set[int] = set()
        self.is_pulling = False
        self.ended = False
        self.source: Iterator[Parcel] | None = None

    def parcels(self) -> Iterator[Parcel]:
        return iter(())

    def pull(self, index: int) -> Parcel | None:
        """The next parcel of copy `index`; None at the end."""
        with self.changed:
            if not self._may_pull(index):
                self._wait(index)
            if self.waiting[index]:
                return self._taken(index)
            if self.ended:
                return None
            self.is_pulling = True
        try:
            if self.source is None:
                self.source = self.inputs[0].parcels()
            parcel = next(self.source, None)
        except BaseException:
            self._pulled(None)
            raise
        self._pulled(parcel)
        if parcel is None:
            return None
        with self.changed:
            return self._taken(index)

    def can_pull(self, index: int) -> bool:
        """Whether `pull` would not have to wait."""
        with self.changed:
            if self.waiting[index] or self.ended:
                return True
            is_free = self._may_pull(index)
        return is_free and self.inputs[0].ready()

    def wake(self) -> None:
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def leave(self, index: int) -> None:
        """Copy `index` is not pulled any more: the others go on without it."""
        with self.changed:
            self.gone.add(index)
            left, self.waiting[index] = self.waiting[index], deque()
            self.changed.notify_all()
        for parcel in left:
            self.running.ledger.finish(parcel)
        if len(self.gone) == len(self.waiting):
            self.inputs[0].abandon()

    def _may_pull(self, index: int) -> bool:
        others_keep_up = all(len(queue) < BOUND_ITEMS for other, queue in enumerate(self.waiting) if other != index)
        return bool(self.waiting[index]) or self.ended or (others_keep_up and not self.is_pulling)

    def _wait(self, index: int) -> None:
        behind = max(range(len(self.waiting)), key=lambda other: len(self.waiting[other]) if other != index else -1)
        what = f"copy {behind + 1} of {self.node.name}"
        left_s = 0.0 if self.running.inline else DEADLINE_S
        with self.running.waits(self.node, self.meter, what) as waiting:
            while not self.changed.wait_for(lambda: self._may_pull(index), timeout=min(SLICE_S, left_s)):
                if not self.is_pulling:  # else the other copy waits too: for what it pulls, however long that takes
                    left_s -= SLICE_S
                if left_s <= 0.0:
                    raise DeadlineExceeded(
                        f"copy {index + 1} of {self.node} is {BOUND_ITEMS} items ahead and waits for copy {behind + 1}, "
                        "which nobody pulls; use both copies at the same pace"
                    )
                self.changed.release()
                try:
                    waiting.look_up()
                finally:
                    self.changed.acquire()

    def _pulled(self, parcel: Parcel | None) -> None:
        unwanted: list[Parcel] = []
        with self.changed:
            self.is_pulling = False
            if parcel is None:
                self.ended = True
            else:
                first = next((index for index in range(len(self.waiting)) if index not in self.gone), 0)
                for index, copy in enumerate(self.running.ledger.copies(parcel, len(self.waiting), counted=first)):
                    (unwanted if index in self.gone else self.waiting[index]).append(copy)
            self.changed.notify_all()
        for copy in unwanted:
            self.running.ledger.finish(copy)

    def _taken(self, index: int) -> Parcel:
        parcel = self.waiting[index].popleft()
        self.meter.depth_items = max(map(len, self.waiting))
        self.changed.notify_all()
        return parcel

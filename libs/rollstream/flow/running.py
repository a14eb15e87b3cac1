"""What the operators of one running flow share: the learner's side, the ledger, stopping, failing, and waiting.

Threads of a flow (`prefetch`, branches of `union`) run behind a gate each. A thread holds its gate while it works and opens it
while it waits, so whoever closes all gates (`quiet`) sees no step under way anywhere: the moment for a checkpoint.

The thread that pulls has no gate. While it waits, the flow asks its owner whether there is something to do (`look_up`): a flow
that nothing reaches any more gives no report either, and must obey all the same.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType

from rollstream.flow.bounded_queue import BoundedQueue
from rollstream.flow.channel import Channel
from rollstream.flow.ledger import Ledger, Parcel
from rollstream.flow.meter import Meter
from rollstream.flow.node import Node
from rollstream.flow.sides import LearnerSide, Owner
from rollstream.flow.tally import Tally

__all__ = ["SLICE_S", "Running", "Waiting"]

SLICE_S = 0.5
"""Longest single wait on something outside the process: how late a stop or a dead actor may be noticed."""


class _Local(threading.local):
    """What each thread of a flow knows of itself."""

    gate: threading.Lock | None = None


class Running:
    """One running flow."""

    def __init__(self, side: LearnerSide, *, inline: bool, nodes: Sequence[Node], owner: Owner | None = None) -> None:
        self.side = side
        self.owner = owner
        self.inline = inline
        self.meters: dict[str, Meter] = {node.name: Meter() for node in nodes}
        self.ledger = Ledger(side.counters)
        self.tally = Tally()
        self.closing = False
        self._stop_is_set = side.stop.is_set
        self._local = _Local()
        self._gates: list[threading.Lock] = []
        self._queues: list[BoundedQueue] = []
        self._channels: dict[str, Channel] = {}
        self._failure: BaseException | None = None
        self.lock = threading.Lock()

    def stopping(self) -> bool:
        """Whether sources shall end. Raises what another thread of the flow failed with."""
        if self._failure is not None:
            raise self._failure
        return self.closing or self._stop_is_set()

    def fail(self, error: BaseException) -> None:
        """Another thread failed: whoever waits at a queue wakes up, and the puller raises `error`. The first one counts."""
        with self.lock:
            if self._failure is None:
                self._failure = error
            queues: list[BoundedQueue | Channel] = [*self._queues, *self._channels.values()]
        for queue in queues:
            queue.close()

    def make_queue(self, bound_items: int) -> BoundedQueue:
        """A queue between two threads of this flow."""
        queue = BoundedQueue(bound_items)
        with self.lock:
            self._queues.append(queue)
        return queue

    def channel(self, node: Node) -> Channel:
        """The channel that the enqueue or dequeue `node` names; the same for all of its name."""
        settings = node.settings
        name = str(settings["queue"])
        if name not in self._channels:
            self._channels[name] = Channel(
                self, name=name, bound_items=int(settings["bound_items"] or 1), deadline_s=float(settings["deadline_s"] or 0.0)
            )
        return self._channels[name]

    def open_gate(self) -> AbstractContextManager[None]:
        """The calling thread waits for another thread of the flow as long as the context lasts."""
        return _opened(self._local.gate)

    def make_gate(self) -> threading.Lock:
        """A gate for a new thread."""
        gate = threading.Lock()
        with self.lock:
            self._gates.append(gate)
        return gate

    def enter_gate(self, gate: threading.Lock) -> AbstractContextManager[None]:
        """The calling thread works behind `gate` from here on."""
        return _behind(gate, self._local)

    def waits(self, node: Node, meter: Meter, what: str) -> Waiting:
        """The calling thread waits for `what` as long as the context lasts; its gate is open meanwhile.

        One and the same can be entered again and again, by one thread at a time.
        """
        return Waiting(self, node, meter, what)

    def take(self, queue: BoundedQueue, node: Node, meter: Meter, what: str) -> Parcel | None:
        """Wait for the next parcel of `queue`; None when there will be none."""
        parcels = queue.parcels
        if not parcels:
            with self.waits(node, meter, what) as waiting:
                while not queue.wait(timeout_s=SLICE_S):
                    waiting.look_up()
        parcel = queue.get()
        meter.depth_items = len(parcels)
        return parcel

    def put(self, queue: BoundedQueue, parcel: Parcel, meter: Meter) -> bool:
        """Wait for room in `queue`, with the calling thread's gate open, and put `parcel` in; False when nobody wants it."""
        taken = queue.offer(parcel)
        if not taken:
            with self.open_gate():
                taken = queue.put(parcel)
        meter.depth_items = len(queue.parcels)
        return taken

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """All threads of the flow stand between two items as long as the context lasts."""
        held: list[threading.Lock] = []
        try:
            for gate in list(self._gates):
                gate.acquire()
                held.append(gate)
            yield
        finally:
            for gate in held:
                gate.release()


@contextmanager
def _behind(gate: threading.Lock, local: threading.local) -> Iterator[None]:
    with gate:
        local.gate = gate
        try:
            yield
        finally:
            local.gate = None


@contextmanager
def _opened(gate: threading.Lock | None) -> Iterator[None]:
    if gate is None:
        yield
        return
    gate.release()
    try:
        yield
    finally:
        gate.acquire()


class Waiting:
    """A wait: recorded on the meter and on the learner's side, with the thread's gate open."""

    __slots__ = ("_began_s", "_gate", "_local", "_meter", "_now_s", "_owner", "_recorded", "_what")

    def __init__(self, running: Running, node: Node, meter: Meter, what: str) -> None:
        self._local = running._local
        self._owner = running.owner
        self._recorded = running.side.waits(node.name, what)
        self._meter = meter
        self._what = what
        self._now_s = running.side.clock.monotonic_s

    def __enter__(self) -> Waiting:
        meter = self._meter
        meter.waits_for = self._what
        meter.waits_since_s = self._began_s = self._now_s()
        self._recorded.__enter__()
        self._gate = gate = self._local.gate
        if gate is not None:
            gate.release()
        return self

    def look_up(self) -> None:
        """Call it from the loop that waits, every `SLICE_S`. What the owner does now is no part of the wait."""
        owner = self._owner
        if owner is None or self._gate is not None or not owner.wants():
            return
        self.__exit__(None, None, None)
        try:
            owner.act()
        finally:
            self.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._gate is not None:
            self._gate.acquire()
        self._recorded.__exit__(kind, error, trace)
        meter = self._meter
        meter.waited_for = self._what
        meter.waits_for = ""
        meter.waited_s += self._now_s() - self._began_s

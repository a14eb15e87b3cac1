"""union: several branches that all make progress, in threads (`as_ready`) or in turn (`round_robin`, and always in inline mode).

as_ready, one branch emitted          the puller ── learn ──▶ items
                                      thread     ── store ──▶ finished there

as_ready, several emitted             thread ── a ──╮
                                      thread ── b ──┴ queue ──▶ items
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from rollstream.clock import Deadline
from rollstream.errors import DeadlineExceeded
from rollstream.flow.ledger import Parcel
from rollstream.flow.operators.dequeue import Dequeue
from rollstream.flow.operators.enqueue import Enqueue
from rollstream.flow.operators.operator import Operator
from rollstream.flow.operators.prefetch import Prefetch
from rollstream.flow.pump import Pump

__all__ = ["Union"]

ROUNDING = 1e-9
"""Ten times a weight of 0.1 is one item, though its floating-point sum is a little less."""
IDLE_S = 0.01
IDLE_DEADLINE_S = 30.0
"""Inline, when no branch can go on: how often to look again, and when to give up."""


class Union(Operator):
    """Several branches as one."""

    def prepare(self) -> None:
        settings = self.node.settings
        emitted = {int(index) for index in str(settings["emit"]).split(",")}
        self.emits = [index in emitted for index in range(len(self.inputs))]
        self.weights = [float(weight) for weight in str(settings["weights"]).split(",")]
        self.turn = 0
        self.in_turn = self.running.inline or settings["mode"] == "round_robin"
        self.branch = 0
        self.used = 0
        self.branches: list[Iterator[Parcel]] = []
        self.driven: list[tuple[int, Parcel]] = []
        self.pumps: list[Pump] = []
        self.open_pumps = 0
        self.queue = self.running.make_queue(len(self.inputs))

    def parcels(self) -> Iterator[Parcel]:
        if self.in_turn:
            return self._in_turn()
        return self._one_emitted() if sum(self.emits) == 1 else self._several_emitted()

    def ready(self) -> bool:
        return any(before.ready() for before in self.inputs)

    def state(self) -> dict[str, Any]:
        return {"branch": self.branch, "used": self.used, "turn": self.turn} if self.in_turn else {}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.branch = int(state.get("branch", 0))
        self.used = int(state.get("used", 0))
        self.turn = int(state.get("turn", 0))

    def wake(self) -> None:
        self.queue.close()

    def close(self) -> None:
        for pump in self.pumps:
            pump.join()

    def _in_turn(self) -> Iterator[Parcel]:
        self.branches = [iter(before.parcels()) for before in self.inputs]
        self._drive_queues()
        branches, emits, inline, finish = self.branches, self.emits, self.running.inline, self.running.ledger.finish
        left = set(range(len(branches)))
        emitted = sum(emits)
        passed_over, due = 0, self._due()
        while emitted:
            index = self.branch
            if self.used >= due or index not in left:
                due = self._next_branch()
                continue
            if inline and not self.inputs[index].ready():
                due = self._next_branch()
                passed_over += 1
                if passed_over >= len(left):
                    if self.running.stopping():
                        return
                    self._wait_for_any(left)
                    passed_over = 0
                continue
            passed_over = 0
            parcel = next(branches[index], None)
            if self.driven:  # to fill a queue, other branches were driven meanwhile: what came out of them
                driven, self.driven = self.driven, []
                for other, out in driven:
                    if emits[other]:
                        yield self.passed(out)
                    else:
                        finish(out)
            if parcel is None:
                left.discard(index)
                emitted -= emits[index]
                continue
            self.used += 1
            if emits[index]:
                yield self.passed(parcel)
            else:
                finish(parcel)

    def _due(self) -> int:
        """Items of the present branch in this turn: a running remainder, so that fractions come out even over many turns."""
        weight = self.weights[self.branch]
        if weight.is_integer():
            return int(weight)
        return math.floor((self.turn + 1) * weight + ROUNDING) - math.floor(self.turn * weight + ROUNDING)

    def _next_branch(self) -> int:
        self.branch = (self.branch + 1) % len(self.inputs)
        self.used = 0
        if self.branch == 0:
            self.turn += 1
        return self._due()

    def _drive_queues(self) -> None:
        """Queues with both ends in this thread: who finds one empty lets the branch that fills it go on."""
        ends = [(index, operator) for index, before in enumerate(self.inputs) for operator in self._pulled_here(before)]
        drained = {operator.channel for _, operator in ends if isinstance(operator, Dequeue)}
        for index, operator in ends:
            if isinstance(operator, Enqueue) and operator.channel in drained:
                operator.channel.in_one_thread(partial(self._drive, index))

    def _drive(self, index: int) -> bool:
        parcel = next(self.branches[index], None)
        if parcel is not None:
            self.driven.append((index, parcel))
        return parcel is not None

    def _pulled_here(self, operator: Operator) -> Iterator[Operator]:
        """`operator` and those before it that the calling thread itself pulls."""
        yield operator
        in_threads = isinstance(operator, Prefetch) or (isinstance(operator, Union) and not operator.in_turn)
        if self.running.inline or not in_threads:
            for before in operator.inputs:
                yield from self._pulled_here(before)

    def _wait_for_any(self, left: set[int]) -> None:
        """Inline, nobody can go on: something outside may still change that, but not for ever."""
        clock = self.running.side.clock
        deadline = Deadline(clock, after_s=IDLE_DEADLINE_S)
        names = " and ".join(self.inputs[index].node.name for index in sorted(left))
        with self.running.waits(self.node, self.meter, f"{names} to be ready"):
            while not any(self.inputs[index].ready() for index in left) and not self.running.stopping():
                if deadline.passed():
                    raise DeadlineExceeded(
                        f"{self.node} has waited {IDLE_DEADLINE_S:.0f} s and none of its branches can go on: "
                        f"{names}. In one thread they wait for each "
                        "other: let the table's limiter allow more inserts before it needs samples, or samples earlier"
                    )
                clock.sleep(IDLE_S)

    def _one_emitted(self) -> Iterator[Parcel]:
        """The emitted branch in the puller's own thread, so that between two items it stands still."""
        emitted = self.emits.index(True)
        for index, before in enumerate(self.inputs):
            if index != emitted:
                self._pump(before, deliver=self._finish)
        for parcel in self.inputs[emitted].parcels():
            self.running.stopping()  # raises what another branch failed with
            yield self.passed(parcel)

    def _several_emitted(self) -> Iterator[Parcel]:
        self.open_pumps = sum(self.emits)
        self.meter.bound_items = self.queue.bound_items
        for index, before in enumerate(self.inputs):
            self._pump(before, deliver=self._put if self.emits[index] else self._finish, counts=self.emits[index])
        while (parcel := self.running.take(self.queue, self.node, self.meter, "items of any branch")) is not None:
            yield self.passed(parcel)
        self.running.stopping()

    def _pump(self, before: Operator, *, deliver: Any, counts: bool = False) -> None:
        pump = Pump(
            before.node.name,
            before.parcels,
            running=self.running,
            deliver=deliver,
            end=self._emitted_ended if counts else _nothing_more,
        )
        self.pumps.append(pump)
        pump.start()

    def _emitted_ended(self) -> None:
        with self.running.lock:
            self.open_pumps -= 1
            is_last = self.open_pumps == 0
        if is_last:
            self.queue.end()

    def _finish(self, parcel: Parcel) -> bool:
        self.running.ledger.finish(parcel)
        return True

    def _put(self, parcel: Parcel) -> bool:
        return self.running.put(self.queue, parcel, self.meter)


def _nothing_more() -> None:
    """A branch that is not emitted has ended; the others go on."""

"""The ledger: every environment step that enters a flow leaves it as trained, stored or dropped, and until then is in flight.

An item travels in a parcel, which remembers how many environment steps are not accounted for yet and which messages the item
came from. Operators see parcels; steps see items. Whatever an operator does to items it does to parcels here (`merge`, `split`,
`drop`, `absorb`, `finish`), so the law holds by construction:

    sampled = trained + stored + dropped + in flight

A message is acknowledged when the last parcel that came from it is finished (it passed the end of its branch), dropped, or
absorbed into a buffer that is part of the checkpoint. So an actor gets new credit only after the update and the publication that
its data led to.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from rollstream.flow.step import Settles
from rollstream.metrics import Counters, counter_key
from rollstream.spaces import Batch

__all__ = ["Ledger", "Parcel", "Receipt"]

SAMPLED, TRAINED, STORED, DROPPED = "env_steps_sampled", "env_steps_trained", "env_steps_stored", "env_steps_dropped"
NOT_TRAINED = counter_key(DROPPED, "not_trained")


class Receipt(msgspec.Struct, eq=False, gc=False):
    """Messages that wait for their acknowledgement (`acknowledge(*messages)`), and how many parcels still hold something of them."""

    acknowledge: Callable[..., None]
    messages: Sequence[Any]
    holders: int = 1


class Parcel(msgspec.Struct, eq=False, gc=False):
    """An item under way: what it is, environment steps not accounted for yet, and the messages it came from.

    A `Struct`, since making one is most of what many operators do; not seen by the collector of cycles, since nothing that an item
    holds leads back to its parcel.
    """

    item: Any
    env_steps: int = 0
    receipts: tuple[Receipt, ...] = ()


class Ledger:
    """Keeps the books of one running flow. Thread-safe; acknowledgements are sent outside the lock."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._count = counters.add
        self._lock = threading.Lock()
        self._in_flight = 0

    @property
    def in_flight_env_steps(self) -> int:
        """Environment steps that entered and did not leave yet."""
        with self._lock:
            return self._in_flight

    def admit(self, item: Batch, stored: bool, acknowledge: Callable[..., None], messages: Sequence[Batch]) -> Parcel:
        """A parcel for an item that enters the flow, made of `messages`.

        Args:
            stored: its rows lie in a table already, only counts travel on.
        """
        env_steps = item.env_steps
        self._count(SAMPLED, env_steps)
        if stored:
            self._count(STORED, env_steps)
            env_steps = 0
        else:
            with self._lock:
                self._in_flight += env_steps
        return Parcel(item, env_steps, (Receipt(acknowledge, messages),))

    def count_dropped(self, env_steps: int, *, reason: str) -> None:
        """Environment steps that were dropped before they could enter: sampled and dropped."""
        if env_steps:
            self._counters.add(SAMPLED, env_steps)
            self._counters.add(DROPPED, env_steps, reason=reason)

    def settle(self, parcel: Parcel, how: Settles) -> None:
        """The parcel's environment steps are done with; the item may travel on."""
        self._leave(parcel, TRAINED if how == "trained" else STORED)

    def drop(self, parcel: Parcel, *, reason: str) -> None:
        """The item goes no further."""
        self._leave(parcel, counter_key(DROPPED, reason))
        self._give_back(parcel)

    def finish(self, parcel: Parcel) -> None:
        """The item passed the end of its branch."""
        if parcel.env_steps:
            self._leave(parcel, NOT_TRAINED)
        if parcel.receipts:
            self._give_back(parcel)

    def absorb(self, parcel: Parcel) -> None:
        """The item now lies in a buffer that is part of the checkpoint: acknowledge, keep its environment steps in flight."""
        self._give_back(parcel)

    def merge(self, item: Any, parcels: Sequence[Parcel]) -> Parcel:
        """One parcel in place of several."""
        if len(parcels) == 1:
            return Parcel(item, parcels[0].env_steps, parcels[0].receipts)
        receipts = tuple(receipt for parcel in parcels for receipt in parcel.receipts)
        return Parcel(item, sum(parcel.env_steps for parcel in parcels), receipts)

    def split(self, parcel: Parcel, items: Sequence[Any], shares: Sequence[int]) -> list[Parcel]:
        """Several parcels in place of one; `shares` are their environment steps, which add up to the parcel's."""
        self._held_by(parcel, len(items))
        return [Parcel(item, share, parcel.receipts) for item, share in zip(items, shares, strict=True)]

    def copies(self, parcel: Parcel, count: int, *, counted: int) -> list[Parcel]:
        """`count` parcels of the same item; the one numbered `counted` has its environment steps."""
        self._held_by(parcel, count)
        item, receipts = parcel.item, parcel.receipts
        made = [Parcel(item, 0, receipts) for _ in range(count)]
        made[counted].env_steps = parcel.env_steps
        return made

    def resume(self, *, held_env_steps: int) -> None:
        """Square the books after a restart: counters and buffers were restored, what else was under way is lost.

        Messages that were not acknowledged come again and are counted again, so what was in flight outside of buffers leaves as
        dropped (`restart`). Buffers older than the counters bring environment steps back, which enter again.
        """
        left = sum(self._counters.value(name) for name in (TRAINED, STORED, DROPPED))
        lost = self._counters.value(SAMPLED) - left - held_env_steps
        if lost > 0:
            self._counters.add(DROPPED, lost, reason="restart")
        elif lost < 0:
            self._counters.add(SAMPLED, -lost)
        with self._lock:
            self._in_flight = held_env_steps

    def _held_by(self, parcel: Parcel, holders: int) -> None:
        """`holders` parcels in place of this one hold something of its messages."""
        if holders > 1 and parcel.receipts:
            with self._lock:
                for receipt in parcel.receipts:
                    receipt.holders += holders - 1

    def _leave(self, parcel: Parcel, counter: str) -> None:
        """The parcel's environment steps are from now on what `counter` says."""
        env_steps = parcel.env_steps
        if env_steps:
            parcel.env_steps = 0
            with self._lock:
                self._in_flight -= env_steps
                self._count(counter, env_steps)

    def _give_back(self, parcel: Parcel) -> None:
        """Acknowledge the messages of which no other parcel holds anything."""
        receipts, parcel.receipts = parcel.receipts, ()
        for receipt in receipts:
            if receipt.holders > 1:  # else nobody but this parcel can change it
                with self._lock:
                    receipt.holders -= 1
                    if receipt.holders:
                        continue
            receipt.acknowledge(*receipt.messages)

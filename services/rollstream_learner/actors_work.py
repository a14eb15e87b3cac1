"""What the actors of an experiment tell of their part of its flow, put together for the view of the flow."""

from __future__ import annotations

from rollstream.errors import StoreError
from rollstream.flow.rates import NodeWork, together
from rollstream.store import Store
from rollstream.store.members import Members

__all__ = ["ActorsWork"]


class ActorsWork:
    """Reads the records that actors announce every two seconds."""

    def __init__(self, store: Store, *, experiment: str) -> None:
        self._members = Members(store)
        self._experiment = experiment
        self._told: dict[str, NodeWork] = {}

    def told(self) -> dict[str, NodeWork]:
        """By node; what was told last while Redis is away."""
        try:
            records = self._members.list()
        except StoreError:
            return self._told
        self._told = together([one.operators for one in records if one.role == "actor" and one.doing == self._experiment])
        return self._told

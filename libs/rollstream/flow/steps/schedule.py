"""Doing something once every so many updates, on a schedule that survives a restart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rollstream.errors import ConfigError
from rollstream.flow.place import calling_place
from rollstream.flow.sides import LearnerSide

__all__ = ["EveryUpdates", "require_interval"]


@dataclass(slots=True)
class EveryUpdates:
    """Passes items on; calls `action` when `every_updates` updates have passed since it last did.

    Updates are those of `policy`, where one is named. An item that brought several updates calls it once. The first interval begins
    with the updates that there were at the start.
    """

    side: LearnerSide
    action: Callable[[], object]
    every_updates: int
    last_updates: int
    policy: str = ""

    def __call__(self, item: Any) -> Any:
        updates = self.side.updates(policy=self.policy) if self.policy else self.side.updates()
        if updates - self.last_updates >= self.every_updates:
            self.action()
            self.last_updates = updates
        return item

    def state(self) -> dict[str, Any]:
        return {"last_updates": self.last_updates}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.last_updates = int(state["last_updates"])


def require_interval(every_updates: int, *, what: str) -> None:
    """Refuse an interval below one update."""
    if every_updates < 1:
        raise ConfigError(f"every_updates of {what} must be >= 1, got {every_updates} ({calling_place()})")

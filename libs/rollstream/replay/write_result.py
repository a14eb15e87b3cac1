"""What a writer says of a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollstream.replay.item_keys import Keys

__all__ = ["WriteResult"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """What one call wrote: items and rows, seconds spent waiting for room, and the new items' keys by table."""

    items: int
    rows: int
    waited_s: float
    keys: Mapping[str, Keys]

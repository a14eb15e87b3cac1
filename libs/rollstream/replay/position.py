"""How far a shard has come in its log, as it writes it down in Redis with every acknowledgement.

After a restart the entries up to here are applied again whatever the limiter says: they had been admitted. Writers that wait read
here why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rollstream.store import Store, keys

__all__ = ["Position", "read_position"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where a shard stands.

    Attributes:
        log_id: the newest insert entry that is admitted, wholly or in part.
        offset: how many of its items are in; -1: all.
        generation: number of the newest snapshot; 0: none was made.
        waits: for what the next insert waits, for people; empty: for nothing.
    """

    log_id: str = "0-0"
    offset: int = -1
    generation: int = 0
    inserted: int = 0
    sampled: int = 0
    size: int = 0
    waits: str = ""

    def fields(self) -> dict[str, str]:
        return {name: str(getattr(self, name)) for name in self.__slots__}


def read_position(store: Store, *, table_id: str, shard: int) -> Position | None:
    """What the shard wrote down last; None when it never did."""
    reply: Any = store.run("read the shard's position", lambda client: client.hgetall(keys.table_position(table_id, shard)))
    if not reply:
        return None
    text = {name.decode(): value.decode() for name, value in reply.items()}
    return Position(
        log_id=text["log_id"],
        waits=text["waits"],
        **{name: int(text[name]) for name in ("offset", "generation", "inserted", "sampled", "size")},
    )

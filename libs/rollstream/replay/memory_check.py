"""Whether a new table will fit into Redis when it is full: said when it is created, not when it is full."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

from rollstream.errors import ConfigError
from rollstream.replay.spec import TableSpec
from rollstream.store import Store

__all__ = ["require_memory"]

MIB = 1 << 20


def require_memory(store: Store, table_id: str, spec: TableSpec, others: Mapping[str, TableSpec]) -> None:
    """Refuse a table which, when it and the `others` are full, needs more than Redis may use.

    Raises:
        ConfigError: says what each needs, and what would fit.
    """
    limit_bytes = store.check().maxmemory_bytes
    if not limit_bytes:
        return
    needs = {other: each.predicted_bytes(other) for other, each in others.items()}
    others_bytes, predicted_bytes = sum(needs.values()), spec.predicted_bytes(table_id)
    if others_bytes + predicted_bytes <= limit_bytes:
        return
    per_item_bytes = predicted_bytes / spec.max_items
    room_bytes = limit_bytes - others_bytes
    fits_items = bisect_right(
        range(1, spec.max_items),
        room_bytes,
        key=lambda items: spec.model_copy(update={"max_items": items}).predicted_bytes(table_id),
    )
    lower = f"lower max_items to {fits_items}, or " if fits_items else ""
    listed = f" ({', '.join(f'{other} {size / MIB:.0f} MiB' for other, size in sorted(needs.items()))})" if needs else ""
    raise ConfigError(
        f"table {table_id} with max_items {spec.max_items} will need {predicted_bytes / MIB:.0f} MiB in Redis for rows, log and "
        f"snapshot, {per_item_bytes:.0f} bytes an item, the other tables need {others_bytes / MIB:.0f} MiB{listed}, and Redis has "
        f"maxmemory {limit_bytes / MIB:.0f} MiB; {lower}raise maxmemory"
    )

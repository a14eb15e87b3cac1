"""What may change on a living table, and whether two specs are the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollstream.config import load
from rollstream.errors import ConfigError
from rollstream.replay.spec import TableSpec

__all__ = ["IMMUTABLE", "changed_spec", "require_same"]

IMMUTABLE = ("name", "rows", "rows_of", "chunk_rows", "encoding", "delta", "shards", "view", "stack")
"""Fields that say how rows are stored and read: a table with others is another table."""


def changed_spec(table_id: str, before: TableSpec, changes: Mapping[str, Any]) -> TableSpec:
    """The spec with some fields changed.

    Raises:
        ConfigError: a field cannot change, or the result cannot work.
    """
    present = before.model_dump(mode="json")
    for name in IMMUTABLE:
        if name in changes and changes[name] != present[name]:
            raise ConfigError(f"{name} of table {table_id} cannot change, got {changes[name]!r}; make a new table")
    return load(TableSpec, {**present, **changes}, what="table spec")


def require_same(table_id: str, there: TableSpec, wanted: TableSpec) -> None:
    """Refuse a spec that differs from that of the table which is there, by its first column or by its fields."""
    there.row_spec.require_equal(wanted.row_spec, ours=f"table {table_id}", theirs="the request")
    differing = [name for name in TableSpec.model_fields if getattr(there, name) != getattr(wanted, name)]
    if differing:
        listed = "; ".join(f"{name} is {getattr(there, name)!r}, wanted {getattr(wanted, name)!r}" for name in differing)
        raise ConfigError(f"table {table_id} exists with another spec ({listed}); change it with PATCH, or drop it first")

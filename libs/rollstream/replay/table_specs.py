"""Specs of the tables of one row space, as they stand in Redis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rollstream.clock import Clock, Deadline
from rollstream.errors import ConfigError, TableError
from rollstream.replay.spec import TableSpec
from rollstream.store import Changes, Store, keys

__all__ = ["read_row_space"]


def read_row_space(
    store: Store, *, experiment: str, names: Sequence[str], clock: Clock, wait_s: float = 0.0
) -> dict[str, TableSpec]:
    """Specs by name: of the tables named, and of the one whose rows they use, if it is not among them.

    Args:
        wait_s: how long to wait for tables that do not exist yet.

    Raises:
        TableError: a table does not exist; lists those that do.
        ConfigError: the tables do not all use the same rows.
    """
    if not names:
        raise ConfigError("a writer needs the name of at least one table, got none")
    changes, deadline = Changes(store), Deadline(clock, after_s=wait_s)
    while True:
        seen = changes.latest()
        stored: Any = store.run("read the tables", lambda client: client.hgetall(keys.tables()))
        there = {
            name.decode().removeprefix(f"{experiment}."): text
            for name, text in stored.items()
            if name.decode().startswith(f"{experiment}.")
        }
        missing = [name for name in names if name not in there]
        if not missing:
            break
        if deadline.passed():
            raise TableError(
                f"there is no table {experiment}.{missing[0]}; {experiment} has: {', '.join(sorted(there)) or 'none'}. "
                "Create it first, or wait for it with table_wait_s"
            )
        changes.wait(seen, timeout_s=min(1.0, deadline.remaining_s()))
    specs = {name: TableSpec.model_validate_json(there[name]) for name in names}
    primaries = {spec.rows_of or spec.name for spec in specs.values()}
    if len(primaries) > 1:
        raise ConfigError(
            f"the tables {', '.join(names)} hold rows of {' and of '.join(sorted(primaries))}; one writer writes the rows of one table, "
            "so create the others with rows_of"
        )
    (primary,) = primaries
    if primary not in specs:
        if primary not in there:
            raise TableError(f"table {experiment}.{primary}, whose rows the others use, does not exist")
        specs[primary] = TableSpec.model_validate_json(there[primary])
    return specs

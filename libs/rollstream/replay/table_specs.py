"""Specs of the tables of one row space, as they stand in Redis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rollstream.clock import Clock, Deadline
from rollstream.errors import ConfigError, SchemaMismatch, TableError
from rollstream.replay.patterns import Pattern
from rollstream.replay.rules import ItemRule
from rollstream.replay.spec import TableSpec
from rollstream.store import Changes, Store, keys

__all__ = ["check_row_space", "read_row_space", "require_fitting_rules"]


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


def check_row_space(store: Store, *, table_id: str, spec: TableSpec, tables: Mapping[str, ItemRule | Sequence[ItemRule]]) -> bool:
    """Whether a writer's tables exist.

    Args:
        table_id, spec: of the table that the rows belong to, as the writer knows it.

    Raises:
        SchemaMismatch: that table was created with other rows, or a pattern is for another view.
        ConfigError: another of the tables holds other rows, or a rule leaves too few before an item.
    """
    experiment = table_id.removesuffix(f".{spec.name}")
    others = [f"{experiment}.{name}" for name in tables if name != spec.name]
    stored: Any = store.run("read the table's spec", lambda client: client.hmget(keys.tables(), [table_id, *others]))
    if any(one is None for one in stored):
        return False
    there = TableSpec.model_validate_json(stored[0])
    spec.row_spec.require_equal(there.row_spec, ours="this writer", theirs=f"table {table_id}")
    specs = {spec.name: there}
    for other, text in zip(others, stored[1:], strict=True):
        found = TableSpec.model_validate_json(text)
        specs[found.name] = found
        rows_of = found.rows_of
        if rows_of != spec.name:
            raise ConfigError(
                f"table {other} has {f'the rows of {rows_of}' if rows_of else 'rows of its own'}, this writer writes those of "
                f"{spec.name}; create it with rows_of={spec.name!r}, or give it a writer of its own"
            )
    require_fitting_rules(tables, specs)
    return True


def require_fitting_rules(tables: Mapping[str, ItemRule | Sequence[ItemRule]], specs: Mapping[str, TableSpec]) -> None:
    """Refuse rules whose items could not be read as their tables want it.

    Raises:
        SchemaMismatch: a pattern's samples would not be what the table's view says.
        ConfigError: items begin later than the stacks of the table need.
    """
    for name, rules in tables.items():
        needed = max(specs[name].stack.values(), default=1) - 1
        for rule in rules if isinstance(rules, Sequence) else (rules,):
            if isinstance(rule, Pattern) and rule.view != specs[name].view:
                raise SchemaMismatch(
                    f"table {name} has another view than the pattern that is to fill it; create the table with view=pattern.view"
                )
            lead = getattr(rule, "history", needed) + getattr(rule, "burn_in", 0)
            if lead < needed:
                raise ConfigError(
                    f"table {name} stacks {needed + 1} frames, and {type(rule).__name__} keeps {lead} rows before an item; give it "
                    f"history={needed}"
                )

"""From the cut of one flush to its log entry, and to the keys that its new items get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError, TableError
from rollstream.replay.cut_items import CutItems
from rollstream.replay.item_keys import Keys
from rollstream.replay.log import InsertEntry
from rollstream.replay.open_rows import Cut
from rollstream.replay.rules import ItemRule

__all__ = ["TableRules", "entry_of", "keys_by_table"]

TABLES_MAX = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRules:
    """The tables of one writer, and which rule makes items of which.

    Attributes:
        names: of the tables.
        rules, table: the rules [R], and the number of each one's table [R].
        plain: whether the only table is the one that the rows belong to.
    """

    names: tuple[str, ...]
    rules: tuple[ItemRule, ...]
    table: npt.NDArray[np.uint8]
    plain: bool

    @staticmethod
    def of(primary: str, *, rule: ItemRule | None, tables: Mapping[str, ItemRule | Sequence[ItemRule]] | None) -> TableRules:
        """From what a writer is given: one rule for the table of the rows, or rules by table."""
        if (rule is None) == (tables is None):
            raise ConfigError(
                f"a writer of table {primary} takes either rule or tables, got {'none' if rule is None else 'both'}"
            )
        if tables is None:
            assert rule is not None
            tables = {primary: rule}
        if not 0 < len(tables) <= TABLES_MAX:
            raise ConfigError(f"a writer writes to between 1 and {TABLES_MAX} tables, got {len(tables)}")
        by_table = [tuple(given) if isinstance(given, Sequence) else (given,) for given in tables.values()]
        return TableRules(
            names=tuple(tables),
            rules=tuple(one for rules in by_table for one in rules),
            table=np.repeat(np.arange(len(by_table), dtype=np.uint8), [len(rules) for rules in by_table]),
            plain=tuple(tables) == (primary,),
        )

    @property
    def by_name(self) -> dict[str, list[ItemRule]]:
        """The rules of each table."""
        return {
            name: [rule for rule, table in zip(self.rules, self.table, strict=True) if table == number]
            for number, name in enumerate(self.names)
        }

    def tables_of(self, items: CutItems) -> npt.NDArray[np.uint8]:
        """Number of each item's table. Shapes: -> [M]."""
        return np.concatenate([self.table[items.rule], items.rest.table]) if len(items.rest) else self.table[items.rule]


def entry_of(
    cut: Cut,
    *,
    writer: int,
    sequence: int,
    first_ordinal: int,
    rules: TableRules | None = None,
    chunk_bytes: npt.NDArray[np.uint32] | None = None,
    priority: npt.NDArray[np.float32] | None = None,
) -> InsertEntry:
    """The log entry of a flush.

    Args:
        rules: None: all items are of the table that the rows belong to.
        priority: of the items that the rules made, instead of what the rules say.

    Raises:
        TableError: as many priorities as items were not given.
    """
    items = cut.items
    given = items.priority
    if priority is not None:
        if len(priority) != items.made or len(items.rest):
            raise TableError(f"{len(priority)} priorities were given for {len(items)} new items; give one for each")
        given = priority
    key = None
    if len(items.rest):
        key = np.zeros(len(items), np.uint64)
        key[items.made :] = items.rest.key
    named = rules if rules is not None and not rules.plain else None
    return InsertEntry(
        writer=writer,
        sequence=sequence,
        keep=cut.keep,
        end=cut.end,
        start=items.start,
        env=items.env,
        length=items.length,
        version=items.version,
        episode_env=cut.episode_env,
        episode_start=cut.episode_start,
        first_ordinal=first_ordinal & 0xFFFFFFFF,
        tables=named.names if named else (),
        table=named.tables_of(items) if named and len(named.names) > 1 else None,
        chunk_bytes=chunk_bytes,
        lead=items.lead,
        key=key,
        priority=given,
    )


def keys_by_table(items: CutItems, made: Keys, rules: TableRules) -> dict[str, Keys]:
    """Keys of the new items of each table, in the order of the log entry; those asked for by name are known already."""
    if len(rules.names) == 1:
        return {rules.names[0]: made}
    table = rules.table[items.rule]
    return {name: made[table == number] for number, name in enumerate(rules.names)}

"""The learner's side of a table: sample items, fetch their rows, return priorities, look, change, export and restore.

    sample ─▶ shards (HTTP): which items ─▶ Redis (MGET): their rows ─▶ arrays [B, L, ...]
    update_priorities ─▶ Redis (XADD to the logs of the table) ─▶ shards

Row bytes come straight from Redis. A row that was evicted between choosing and fetching is noticed, counted, reported to the
shard and replaced by another sample. Every call has a deadline, and a person's Ctrl-C ends each wait.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rollstream.clock import Clock, Deadline
from rollstream.errors import ConfigError, DeadlineExceeded, RollstreamError, TableError
from rollstream.replay.keyed_items import DeleteResult, KeyedItems, UpdateResult
from rollstream.replay.row_fetch import FetchedRows
from rollstream.replay.sample import Sample
from rollstream.replay.samples import SampledItems
from rollstream.replay.sampling import Draws, DrawSettings
from rollstream.replay.shard_draws import DrawnItems
from rollstream.replay.shard_link import Link, ShardLink
from rollstream.replay.shard_rows import ShardRows
from rollstream.replay.spec import TableSpec
from rollstream.replay.table_control import TableControl
from rollstream.replay.table_exports import RestoreLimiter, TableExport, TableExports
from rollstream.replay.table_shards import TableShards
from rollstream.replay.weighting import ImportanceWeights
from rollstream.seeding import child_generator
from rollstream.store import Address, ChunkReader, Store

__all__ = ["DeleteResult", "Sample", "TableClient", "UpdateResult"]

DEADLINE_S = 30.0
"""How long calls wait when they are not told."""
EXPORT_S = 300.0
CLOSE_DEADLINE_S = 1.0
Changes: TypeAlias = Mapping[str, Any] | None
Exported: TypeAlias = bytes | bytearray | memoryview


class TableClient:
    """One reader of one table, over all its shards. One thread samples; everything else may be called from others meanwhile.

    In a child process (fork) it makes connections of its own and leaves what its parent had asked ahead to the parent.

    Args:
        ahead_batches: how many batches more than needed are asked for at once; 0 samples at the time of the call, more hides the
            round trip, at the price of older samples. Not done where `max_times_sampled` uses items up: their rows go with them.
        freshness: `strict` splits a batch over several shards by their masses at the time of the call, which costs a second round
            trip; `relaxed` by those of the last replies. None: strict, but relaxed with `ahead_batches`.
        count_when_consumed: the limiter counts a batch when it is handed out rather than when it was asked ahead.
        importance: fills `Sample.weights`.
        seed: of the split over shards.
        locate: where the shard is, for a table of one shard; by default looked up among the members of the cell.
        make_link: makes the way to a shard; by default HTTP.

    Attributes:
        learner_version: newest version of the weights that the user of the samples knows. Set it: lag is measured by it.
        rows_missing: items drawn whose rows were gone.
    """

    def __init__(
        self,
        store: Store,
        address: Address,
        *,
        table_id: str,
        clock: Clock,
        ahead_batches: int = 0,
        freshness: Literal["strict", "relaxed"] | None = None,
        count_when_consumed: bool = False,
        importance: ImportanceWeights | None = None,
        seed: int = 0,
        locate: Callable[[], str | None] | None = None,
        make_link: Callable[[int], Link] | None = None,
    ) -> None:
        if ahead_batches < 0 or (ahead_batches and freshness == "strict"):
            raise ConfigError(
                f"ahead_batches must be 0 with strict freshness and >= 0 otherwise, got {ahead_batches}; batches that were asked for "
                "ahead are not drawn at the time of the call"
            )
        self.table_id = table_id
        self.learner_version = 0
        self.rows_missing = 0
        self._store = store
        self._address = address
        self._clock = clock
        self._settings = DrawSettings(
            ahead_batches=ahead_batches,
            relaxed=freshness == "relaxed" or ahead_batches > 0,
            count_when_consumed=count_when_consumed,
            wants_min_probability=importance is not None and importance.normalize == "table",
        )
        self._importance = importance
        self._seed = seed
        self._stream: tuple[str | int, ...] = ()
        self._make_link = make_link or (lambda shard: ShardLink(store, shard=shard, clock=clock, locate=locate))
        self._begin()

    def _begin(self) -> None:
        """Everything that holds a connection; made again in a child process."""
        self._process = os.getpid()
        self._shards = TableShards(self._store, table_id=self.table_id, make_link=self._make_link)
        self._control = TableControl(self._shards, clock=self._clock)
        self._keyed = KeyedItems(self._shards, clock=self._clock)
        self._rows = ShardRows(self._shards, ChunkReader(self._address, clock=self._clock))
        self._draws: Draws | None = None
        self._again: Draws | None = None
        self._held: DrawnItems | None = None

    # --- the table itself ------------------------------------------------------------------------------------------------

    def create(self, spec: TableSpec, *, deadline_s: float = DEADLINE_S) -> None:
        """Create the table on all its shards, or make sure that it is there with the same spec.

        Raises:
            ConfigError: it cannot work, would not fit into Redis' memory, or exists with another spec.
            DeadlineExceeded: a shard did not serve the request in time; names it.
        """
        self._own()
        self._forget_spec()
        self._control.create(spec, deadline_s=deadline_s)

    def drop(self, *, with_shared: bool = False, deadline_s: float = DEADLINE_S) -> None:
        """Delete the table with all its keys; nothing happens when there is none.

        Args:
            with_shared: also the tables that share its rows; without, they keep it from being dropped.
        """
        self._own()
        self._control.drop(deadline_s=deadline_s, with_shared=with_shared)
        self._forget_spec()

    def change(self, changes: Mapping[str, Any], *, deadline_s: float = DEADLINE_S) -> TableSpec:
        """Change some fields of the spec on the living table, on all shards or on none; returns the new spec."""
        self._own()
        return self._control.change(changes, deadline_s=deadline_s)

    def reset(self, *, deadline_s: float = DEADLINE_S) -> int:
        """Remove all items; writers go on. Returns how many there were."""
        self._own()
        removed = self._control.reset(deadline_s=deadline_s)
        self._held = None
        if self._draws is not None:
            self._draws.forget()
        return removed

    def spec(self, *, deadline_s: float = DEADLINE_S) -> TableSpec:
        """Settings of the table, as this client knows them."""
        self._own()
        return self._shards.spec(deadline_s=deadline_s)

    def describe(self, *, deadline_s: float = DEADLINE_S) -> dict[str, Any]:
        """Everything that the shards say about the table, as if they were one."""
        self._own()
        return self._control.describe(deadline_s=deadline_s)

    def info(self, *, deadline_s: float | None = None) -> dict[str, float]:
        """The numbers of `describe`: items, inserted, sampled, ratio, bytes, ...

        Args:
            deadline_s: None waits for the first answer ever, and later only briefly: while a shard is away, the numbers of
                the last time are given, so that a report does not stand still with it.
        """
        self._own()
        return self._control.info(deadline_s=deadline_s, first_deadline_s=DEADLINE_S)

    def items(self, *, order: str = "priority", limit: int = 20, deadline_s: float = DEADLINE_S) -> list[dict[str, Any]]:
        """A look into the table: its first `limit` items by `priority`, `lowest`, `newest` or `oldest`."""
        self._own()
        return self._control.items(order=order, limit=limit, deadline_s=deadline_s)

    # --- samples ---------------------------------------------------------------------------------------------------------

    def sample(self, *, batch_items: int, deadline_s: float = DEADLINE_S) -> Sample:
        """Draw `batch_items` items and fetch their rows. Nothing that was drawn is lost when the deadline passes.

        Raises:
            DeadlineExceeded: the limiter did not allow it in time; names the table, the limiter's state and who waits for whom.
            TableError: no such table, or a batch that it can never serve.
            StoreUnavailable: Redis was not there in time.
        """
        self._own()
        if batch_items < 1:
            raise TableError(f"table {self.table_id}: batch_items must be >= 1, got {batch_items}")
        deadline = Deadline(self._clock, after_s=deadline_s)
        draws = self._draws or self._made_draws(deadline)
        draws.learner_version = self.learner_version
        held = self._held
        drawn = held if held is not None and len(held.items) == batch_items else draws.next(batch_items, deadline=deadline)
        self._held = drawn  # until its rows are there: what was drawn once may not come again
        items = drawn.items
        fetched = self._rows.read(items, deadline=deadline)
        while fetched.missing.any():
            items, fetched = self._replace_missing(items, fetched, deadline)
        self._held = None
        draws.used(items.keys)
        if self._settings.ahead_batches and draws.ready_items == batch_items:
            with contextlib.suppress(RollstreamError):  # the next call will meet it again
                self._held = draws.next(batch_items, deadline=deadline)  # does not wait: while this batch is used, Redis gets
                self._rows.ask(self._held.items)  # the rows of the next
        weights = None
        if self._importance is not None:
            weights = self._importance.of(items.probability, table_items=items.table_items, min_probability=drawn.min_probability)
        newest_version = max(drawn.newest_version, self.learner_version)
        return Sample.of(items, fetched, newest_version=newest_version, weights=weights)

    def can_sample(self, *, batch_items: int) -> bool:
        """Whether `sample` would not have to wait for the limiter now; False while a shard is away."""
        self._own()
        held, draws = self._held, self._draws
        if (held is not None and len(held.items) == batch_items) or (draws is not None and draws.ready_items == batch_items):
            return True
        return self._control.can_sample(batch_items)

    def get(self, item_keys: npt.NDArray[Any], *, missing_ok: bool = False, deadline_s: float = DEADLINE_S) -> Sample:
        """Exactly the items of these keys [K], in their order; the limiter does not count them.

        `probability` is what one draw would give now: 0 of an item that cannot be drawn. `weights` are not filled.

        Args:
            missing_ok: leave out items that are gone rather than raise; `known` or the sample's keys tell which.

        Raises:
            TableError: some are unknown; says how many, and the first few.
        """
        self._own()
        rows = ShardRows(self._shards, ChunkReader(self._address, clock=self._clock))
        try:
            return self._keyed.sample(
                item_keys, rows, missing_ok=missing_ok, learner_version=self.learner_version, deadline_s=deadline_s
            )
        finally:
            rows.close()

    # --- items by key ----------------------------------------------------------------------------------------------------

    def known(self, item_keys: npt.NDArray[Any], *, deadline_s: float = DEADLINE_S) -> npt.NDArray[np.bool_]:
        """Which of the keys [K] belong to items that are in the table now."""
        self._own()
        return self._keyed.known(item_keys, deadline_s=deadline_s)

    def update_priorities(
        self,
        item_keys: npt.NDArray[Any],
        priorities: npt.NDArray[Any],
        *,
        learner_version: int | None = None,
        report_unknown: bool = False,
        deadline_s: float = DEADLINE_S,
    ) -> UpdateResult:
        """Set the priorities [K] of the items with `item_keys` [K]; neither array is changed.

        NaN, infinite and negative priorities are refused here, counted and logged; keys of items that are gone are ignored and
        counted by the shard. Safe to repeat.

        Args:
            learner_version: for the log line about refused ones; None: that of the client.
            report_unknown: ask the shards first how many of the keys they know, at the price of a round trip to each. An item that
                was written and waits for the limiter is not known yet.
        """
        self._own()
        version = self.learner_version if learner_version is None else learner_version
        return self._keyed.update(
            item_keys, priorities, learner_version=version, report_unknown=report_unknown, deadline_s=deadline_s
        )

    @property
    def priorities_refused(self) -> int:
        """Priorities that this client refused because they were NaN, infinite or negative."""
        return self._keyed.refused

    def delete_items(
        self, item_keys: npt.NDArray[Any], *, report_unknown: bool = False, deadline_s: float = DEADLINE_S
    ) -> DeleteResult:
        """Remove items by key; those that are gone already are ignored. `report_unknown` as in `update_priorities`."""
        self._own()
        return self._keyed.delete(item_keys, report_unknown=report_unknown, deadline_s=deadline_s)

    # --- checkpoints -----------------------------------------------------------------------------------------------------

    def export(self, *, rows_max_bytes: int, deadline_s: float = EXPORT_S) -> bytes:
        """The table as one buffer: its index and, newest items first up to `rows_max_bytes`, their rows as they are stored.

        Args:
            deadline_s: for the shards' part; Redis may be away for a third of it while rows are fetched.
        """
        return self._exports().begin(rows_max_bytes=rows_max_bytes, deadline_s=deadline_s, at_once=False).to_bytes()

    def export_to(self, path: Path | str, *, rows_max_bytes: int | None = None, deadline_s: float = EXPORT_S) -> dict[str, Any]:
        """As `export` into a file, in bounded memory; returns the facts of the export. A half file never has this name."""
        return self._exports().begin(rows_max_bytes=rows_max_bytes, deadline_s=deadline_s, at_once=False).to_file(Path(path))

    def begin_export(self, *, rows_max_bytes: int | None = None, deadline_s: float = EXPORT_S) -> TableExport:
        """The items as they are now, in memory; their rows are fetched when `.to_file(path)` or `.to_bytes()` is called.

        So a checkpoint holds others up for no longer than the items take. Rows that are evicted meanwhile are left out.
        """
        return self._exports().begin(rows_max_bytes=rows_max_bytes, deadline_s=deadline_s, at_once=True)

    def restore(
        self, exported: Exported, *, changes: Changes = None, limiter: RestoreLimiter = "reset", deadline_s: float = EXPORT_S
    ) -> int:
        """Replace the table's items by exported ones, whose rows are written anew; returns how many. Then it can be sampled.

        Args:
            changes: settings that differ from those that the table has (or, where there is none, those of the export).
            limiter: `reset` lets it be sampled at once; `keep` goes on with the exported counts.

        Raises:
            SchemaMismatch: the export is damaged or half, or its rows are not those of the table; names the columns.
            TableError: it holds no rows.
        """
        self._forget_spec()  # also what was asked of the items before
        return self._exports().restore(exported, changes=changes, limiter=limiter, deadline_s=deadline_s)

    def restore_from(
        self, path: Path | str, *, changes: Changes = None, limiter: RestoreLimiter = "reset", deadline_s: float = EXPORT_S
    ) -> int:
        """As `restore` from a file that `export_to` wrote, in bounded memory; the file is verified first."""
        self._forget_spec()
        return self._exports().restore(Path(path), changes=changes, limiter=limiter, deadline_s=deadline_s)

    def close(self) -> None:
        """Close all connections. With `count_when_consumed`, the shards hear of the last batches before."""
        self._own()
        if self._draws is not None:
            self._draws.close(deadline_s=CLOSE_DEADLINE_S)
        if self._again is not None:
            self._again.close(deadline_s=0.0)
        self._draws = self._again = None
        self._shards.close()
        self._rows.close()

    # --- inside ----------------------------------------------------------------------------------------------------------

    def _own(self) -> None:
        """A child process must not talk over its parent's connections, nor use up its parent's batches."""
        if os.getpid() != self._process:
            self._stream = ("process", os.getpid())
            self._begin()

    def _forget_spec(self) -> None:
        """The table may be another one now."""
        for draws in (self._draws, self._again):
            if draws is not None:
                draws.close(deadline_s=0.0)
        self._draws = self._again = self._held = None
        self._rows.forget()

    def _made_draws(self, deadline: Deadline) -> Draws:
        """Both kinds of draws: those of whole batches, and those of items in the place of others."""
        spec = self._shards.spec(deadline_s=deadline.remaining_s())
        at_once = replace(self._settings, ahead_batches=0)
        generator = child_generator(self._seed, "split", self.table_id, *self._stream)
        self._draws, self._again = (
            Draws(
                self._shards.own_links(deadline_s=deadline.remaining_s()),
                table_id=self.table_id,
                settings=settings,
                batch_problem=spec.batch_problem,
                generator=generator,
                clock=self._clock,
            )
            for settings in (at_once if spec.max_times_sampled else self._settings, at_once)
        )
        return self._draws

    def _replace_missing(self, items: SampledItems, fetched: FetchedRows, deadline: Deadline) -> tuple[SampledItems, FetchedRows]:
        """Tell the shards that rows of some items are gone, and draw others in their place."""
        gone = fetched.missing
        count = int(gone.sum())
        self.rows_missing += count
        self._keyed.delete(items.keys[gone], report_unknown=False, deadline_s=DEADLINE_S, missing=True)
        if deadline.passed():
            raise DeadlineExceeded(
                f"table {self.table_id}: rows of {count} of {len(items)} sampled items are gone from Redis, and no "
                f"others came within {deadline.waited_s():.1f} s"
            )
        assert self._again is not None, "made with the other draws"
        self._again.learner_version = self.learner_version
        items = items.replaced(gone, self._again.next(count, deadline=deadline).items)
        return items, self._rows.read(items, deadline=deadline)

    def _exports(self) -> TableExports:
        self._own()
        return TableExports(self._shards, control=self._control, store=self._store, address=self._address, clock=self._clock)

"""Writing to tables: rollouts in, rows and one log entry out, in one send.

    append(rollout) ─▶ room? ─▶ cut ─▶ MSET rows of all environments + XADD one entry with the new items of all tables
                                       └─ not waited for: the next flush is made while Redis works, and sent once this one is in

Rows are stored once, whatever number of items and tables use them. A writer runs ahead of its shard by a bounded amount (`Room`),
then waits, and after its deadline says for whom. A flush that Redis could not take is held and sent before anything else; `append`
may be called again with the same rollout after an error, and nothing is lost or written twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rollstream.clock import Clock, Deadline
from rollstream.errors import ConfigError, DeadlineExceeded, SchemaMismatch, StoreUnavailable, TableError
from rollstream.metrics import Waits
from rollstream.replay.cut_items import ExplicitItems
from rollstream.replay.flush_entry import TableRules, entry_of, keys_by_table
from rollstream.replay.item_keys import Keys, make_keys
from rollstream.replay.open_rows import Cut, OpenRows
from rollstream.replay.room import Room
from rollstream.replay.row_sender import Parcel, RowSender
from rollstream.replay.rules import ItemRule
from rollstream.replay.spec import TableSpec
from rollstream.replay.table_specs import check_row_space
from rollstream.replay.write_result import WriteResult
from rollstream.spaces import Columns, Flag, Rollout
from rollstream.store import Address, Changes, Store, keys

__all__ = ["TableWriter", "WriteResult"]

Ints = npt.NDArray[np.int64]
Rows: TypeAlias = npt.NDArray[np.void]
Rules: TypeAlias = Mapping[str, ItemRule | Sequence[ItemRule]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """A flush that is made but could not be sent. `source`: what the caller gave, to know it again."""

    source: object
    cut: Cut
    parcel: Parcel
    keys: Mapping[str, Keys]
    rows: int


class TableWriter:
    """The writer of one actor to one shard of one table, and of other tables over the same rows. Not thread-safe.

    Args:
        spec: of the table that the rows belong to; must have its rows as it was created, which is checked when writing starts.
        rule: how rows become items of that table.
        tables: instead of `rule`, by name of each table over these rows (`TableSpec.rows_of`), one rule or several.
        environments: N; every rollout must have as many.
        shard: None: the writers of a table take its shards in turn.
        writer_id: None takes a new one, as every incarnation of a writer must.
        deadline_s: how long a call waits for room, or for Redis to have memory.
        waits: where waits are shown; None: they are only logged.
        keep_rows: newest rows of each environment that items may be made of by `add_items`.
        while_waiting: as of `Room`.
    """

    def __init__(
        self,
        store: Store,
        address: Address,
        *,
        table_id: str,
        shard: int | None = None,
        spec: TableSpec,
        rule: ItemRule | None = None,
        tables: Rules | None = None,
        environments: int,
        clock: Clock,
        writer_id: int | None = None,
        deadline_s: float = 60.0,
        waits: Waits | None = None,
        keep_rows: int = 0,
        while_waiting: Callable[[bool], None] | None = None,
    ) -> None:
        if spec.rows_of:
            raise ConfigError(
                f"table {table_id} has the rows of {spec.rows_of}; make a writer of that table, with tables={{{spec.name!r}: ...}}"
            )
        self.table_id = table_id
        self.writer_id = writer_id if writer_id is not None else _new_writer_id(store)
        self.shard = self.writer_id % spec.shards if shard is None else shard
        self._store = store
        self._clock = clock
        self._spec = spec
        self._environments = environments
        self._deadline_s = deadline_s
        self._rules = TableRules.of(spec.name, rule=rule, tables=tables)
        self._rows = OpenRows(
            spec.row_spec.dtype,
            environments=environments,
            rule=self._rules.rules,
            chunk_rows=spec.chunk_rows,
            keep_rows=keep_rows,
        )
        self._waits = waits if waits is not None else Waits(clock)
        self._sender = RowSender(
            store,
            address,
            spec=spec,
            table_id=table_id,
            shard=self.shard,
            writer=self.writer_id,
            clock=clock,
            waits=self._waits,
        )
        self._room = Room(
            store,
            table_id=table_id,
            shard=self.shard,
            writer=self.writer_id,
            unread_entries=spec.unread_entries,
            unread_bytes=spec.unread_bytes,
            waits=self._waits,
            while_waiting=while_waiting,
        )
        self._process = os.getpid()
        self._sequence = 0
        self._ordinal = 0
        self._held: _Held | None = None
        self._next_observation: Columns = {}
        self._checked = False
        self._closed = False

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that it writes items to."""
        return self._rules.names

    @property
    def forked(self) -> bool:
        """Whether this is a copy of the writer in a child of the process that made it: it must not be used."""
        return os.getpid() != self._process

    def append(self, rollout: Rollout, *, deadline_s: float | None = None, beyond_bound: bool = False) -> WriteResult:
        """Write the rows of a rollout and the items that became complete.

        Args:
            beyond_bound: write without waiting for room: for the last rollout of a writer that has to go, so that it is not lost.

        Raises:
            DeadlineExceeded: no room within the deadline, or no memory in Redis; the call may be repeated.
            SchemaMismatch: the rows are not those of the table.
            StoreUnavailable: Redis did not take them; the call may be repeated.
        """
        result = self.append_rows(rollout.rows, rollout.offsets, deadline_s=deadline_s, beyond_bound=beyond_bound, source=rollout)
        self._next_observation = rollout.next_observation
        return result

    def append_rows(
        self,
        rows: Rows,
        offsets: Ints,
        *,
        deadline_s: float | None = None,
        beyond_bound: bool = False,
        pad: npt.NDArray[np.bool_] | None = None,
        over: npt.NDArray[np.bool_] | None = None,
        explicit: ExplicitItems | None = None,
        priority: npt.NDArray[np.float32] | None = None,
        source: object = None,
    ) -> WriteResult:
        """`append` for rows alone: [R], environment after environment by `offsets` [N+1].

        Args:
            pad: environments whose last chunk is filled up, so that all their rows are written now.
            over: environments whose newest episode is over, though no final row says so.
            explicit: items to make beside those of the rules, with keys from `take_keys`.
            priority: of the items that this call makes, in order; None: what the rules say.
            source: what a repeated call is known by; by default `rows`.

        Raises:
            As `append`.
        """
        self._require_fitting(rows, offsets)
        source = rows if source is None else source
        deadline = Deadline(self._clock, after_s=self._deadline_s if deadline_s is None else deadline_s)
        waited_s = -self._sender.waited_s
        repeated = self.holds(source)
        if self._held is not None:
            done = self._send(self._held, deadline)
            if repeated:
                return self._result(done, waited_s + self._sender.waited_s)
        if not (beyond_bound and self._table_exists()):
            waited_s += self._wait_for_room(deadline)
        made = self._make(rows, offsets, closing=False, pad=pad, over=over, explicit=explicit, priority=priority, source=source)
        done = self._send(made, deadline)
        return self._result(done, waited_s + self._sender.waited_s)

    @property
    def waiting_rows(self) -> int:
        """Rows that wait for their chunk to be full."""
        return self._rows.waiting_rows

    def holds(self, source: object) -> bool:
        """Whether the rows of this source are made into a flush that could not be sent yet."""
        return self._held is not None and self._held.source is source

    def take_keys(self, count: int) -> Keys:
        """Keys for the next new items; those of items that are asked for by name are taken before they are written."""
        taken = make_keys(self.shard, self.writer_id, self._ordinal, count)
        self._ordinal += count
        return taken

    def table_number(self, name: str) -> int:
        """Number of a table among this writer's, as `ExplicitItems.table` counts them."""
        if name not in self._rules.names:
            raise TableError(f"there is no table {name!r} here; this writer writes to: {', '.join(self._rules.names)}")
        return self._rules.names.index(name)

    def has_room(self) -> bool:
        """Whether `append` would not have to wait now."""
        return self._table_exists() and self._room.look()

    def wait_for_room(self, *, deadline_s: float) -> float:
        """Wait until `append` need not; returns the seconds that it took.

        Raises:
            DeadlineExceeded: names the table, the state of its limiter, and who waits for whom.
        """
        return self._wait_for_room(Deadline(self._clock, after_s=deadline_s))

    def settle(self, *, deadline_s: float | None = None) -> None:
        """Wait until Redis has everything that was written; raises as `append`."""
        self._require_same_process()
        deadline = Deadline(self._clock, after_s=self._deadline_s if deadline_s is None else deadline_s)
        if self._held is not None:
            self._send(self._held, deadline)
        self._sender.settle(deadline_s=deadline.remaining_s())

    def flush(self, *, deadline_s: float) -> None:
        """Wait until the shard has admitted everything that was written.

        Raises:
            DeadlineExceeded: as `wait_for_room`. What was written is safe in Redis in any case.
        """
        self._require_same_process()
        deadline = Deadline(self._clock, after_s=deadline_s)
        if self._held is not None:
            self._send(self._held, deadline)
        self._settle(deadline, "its rows to be admitted")
        self._room.wait_until_admitted(deadline)

    def close(self, *, deadline_s: float = 30.0) -> None:
        """End all open windows, so that no row is without its item, and let go of the rows. Waits for no limiter.

        An environment that was in the middle of an episode gets one more row: the observation that followed its last action,
        flagged FINAL and TRUNCATED, for this writer will not see how the episode goes on.
        """
        if self.forked or self._closed:
            return
        deadline = Deadline(self._clock, after_s=deadline_s)
        try:
            if self._held is not None:
                self._send(self._held, deadline)
            if self._sequence:
                rows, offsets = self._closing_rows()
                self._send(self._make(rows, offsets, closing=True, source=rows), deadline)
                self._sender.settle(deadline_s=deadline.remaining_s())
            self._closed = True
        finally:
            self._sender.close()

    # --- writing ---------------------------------------------------------------------------------------------------------

    def _make(
        self,
        rows: Rows,
        offsets: Ints,
        *,
        closing: bool,
        source: object,
        pad: npt.NDArray[np.bool_] | None = None,
        over: npt.NDArray[np.bool_] | None = None,
        explicit: ExplicitItems | None = None,
        priority: npt.NDArray[np.float32] | None = None,
    ) -> _Held:
        cut = self._rows.cut(rows, offsets, closing=closing, pad=pad, over=over, explicit=explicit)
        values, chunk_bytes = self._sender.encode(cut.payload)
        entry = entry_of(
            cut,
            writer=self.writer_id,
            sequence=self._sequence + 1,
            first_ordinal=self._ordinal,
            rules=self._rules,
            chunk_bytes=chunk_bytes,
            priority=priority,
        )
        made = self.take_keys(cut.items.made)
        return _Held(
            source=source,
            cut=cut,
            parcel=Parcel(env=cut.chunk_env, chunk_no=cut.chunk_no, payload=cut.payload, values=values, entry=entry),
            keys=keys_by_table(cut.items, made, self._rules),
            rows=len(rows),
        )

    def _send(self, held: _Held, deadline: Deadline) -> _Held:
        self._held = held
        write = self._sender.begin(held.parcel, deadline_s=deadline.remaining_s())
        self._held = None
        self._sequence += 1
        self._room.take(sequence=self._sequence, write=write, flush_bytes=held.parcel.stored_bytes)
        self._rows.advance(held.cut)
        return held

    def _result(self, done: _Held, waited_s: float) -> WriteResult:
        return WriteResult(items=len(done.cut.items), rows=done.rows, waited_s=waited_s, keys=done.keys)

    def _closing_rows(self) -> tuple[Rows, Ints]:
        """One row for each environment in the middle of an episode; none when the rows hold no observations."""
        dtype = self._spec.row_spec.dtype
        names = [name for name in dtype.names or () if name in self._next_observation]
        middle = np.flatnonzero(~self._rows.at_episode_end()) if names else np.zeros(0, np.int64)
        rows = np.zeros(len(middle), dtype)
        rows["flags"] = Flag.FINAL | Flag.TRUNCATED
        for name in names:
            rows[name] = self._next_observation[name][middle]
        return rows, np.searchsorted(middle, np.arange(self._environments + 1)).astype(np.int64)

    # --- checks and waits ------------------------------------------------------------------------------------------------

    def _require_fitting(self, rows: Rows, offsets: Ints) -> None:
        self._require_same_process()
        if self._closed:
            raise ConfigError(f"writer {self.writer_id} of table {self.table_id} is closed; make a new one to write more")
        if rows.dtype != self._spec.row_spec.dtype:
            raise SchemaMismatch(
                f"rows for table {self.table_id} have the columns {rows.dtype.descr}, the table has "
                f"{self._spec.row_spec.dtype.descr}; use the table's spec to make rows"
            )
        if len(offsets) != self._environments + 1:
            raise SchemaMismatch(
                f"rollout has {len(offsets) - 1} environments where the writer was made for {self._environments}"
            )

    def _require_same_process(self) -> None:
        if self.forked:
            raise ConfigError(
                f"writer {self.writer_id} of table {self.table_id} was made in process {self._process} and is used in process "
                f"{os.getpid()}, after a fork; both would write under one number, so make a writer in each process"
            )

    def _wait_for_room(self, deadline: Deadline) -> float:
        if self._table_exists() and self._room.there():
            return 0.0
        if not self._table_exists():
            self._wait_for_table(deadline)
        if not self._room.there():
            self._settle(deadline, "room for its next rows")
            self._room.wait(deadline)
        return deadline.waited_s()

    def _settle(self, deadline: Deadline, what: str) -> None:
        try:
            self._sender.settle(deadline_s=deadline.remaining_s())
        except StoreUnavailable as error:
            raise DeadlineExceeded(
                f"table {self.table_id} shard {self.shard}: writer {self.writer_id} waited {deadline.waited_s():.1f} s for {what} "
                f"while Redis is away: {error}"
            ) from error

    def _table_exists(self) -> bool:
        """Whether all tables were created; checks once that they have our rows."""
        if not self._checked:
            self._checked = check_row_space(self._store, table_id=self.table_id, spec=self._spec, tables=self._rules.by_name)
        return self._checked

    def _wait_for_table(self, deadline: Deadline) -> None:
        changes = Changes(self._store)
        with self._waits.waiting(who=f"writer {self.writer_id}", for_whom=f"table {self.table_id} to be created") as wait:
            while True:
                seen = changes.latest()
                if self._table_exists():
                    return
                if deadline.passed():
                    raise DeadlineExceeded(
                        f"table {self.table_id} does not exist after {deadline.waited_s():.1f} s; writer {self.writer_id} waits for "
                        f"the learner to create it, with the tables: {', '.join(self._rules.names)}"
                    )
                wait.still()
                changes.wait(seen, timeout_s=min(1.0, deadline.remaining_s()))


def _new_writer_id(store: Store) -> int:
    reply: Any = store.run("take a writer id", lambda client: client.incr(keys.writers()))
    return int(reply) & 0xFFFFFFFF

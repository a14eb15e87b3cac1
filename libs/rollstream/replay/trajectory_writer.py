"""Writing step by step: one call for a step of N environments, rules or explicit calls for items.

    with TrajectoryWriter(store, address, experiment="run-abc123", tables={"replay": NStep(3)}, environments=64, clock=clock) as w:
        while acting:
            w.append({"observation": o_t, "action": a_t, "reward": r_t}, terminated=done_t, truncated=cut_t, final={"observation": o_tp1})

Row t holds the observation, the action taken on it and that action's reward; where an episode ends, one more row holds its final
observation. Steps gather in a buffer and are written together; nothing waits for Redis until the bound of what may be unread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.clock import Clock, Deadline
from rollstream.errors import ConfigError, SchemaMismatch, TableError
from rollstream.metrics import Waits
from rollstream.replay.chosen_rows import Chosen, environment_numbers, require_environments, row_bounds
from rollstream.replay.cut_items import ExplicitItems
from rollstream.replay.insertion import Inserter
from rollstream.replay.item_keys import Keys, shard_of
from rollstream.replay.item_priority import require_priority
from rollstream.replay.rules import ItemRule
from rollstream.replay.step_buffer import StepBuffer
from rollstream.replay.step_endings import Mask, Steps, ending_of
from rollstream.replay.step_guards import StepGuards
from rollstream.replay.table_specs import read_row_space, require_fitting_rules
from rollstream.replay.writer import TableWriter, WriteResult
from rollstream.store import Address, Store

__all__ = ["TrajectoryWriter"]


class TrajectoryWriter:
    """Writes steps of N environments to one or more tables over the same rows. Not thread-safe; one process.

    Args:
        tables: by name, the rule or rules that make items; an empty list for a table that gets items by `create_item` only.
        experiment: what the tables' ids begin with (`<experiment>.<name>`).
        environments: N.
        keep_steps: newest rows of each environment that `create_item` may use.
        flush_steps, flush_bytes: rows of an environment, and bytes of all, that gather before they are written. By default 16 rows,
            with fewer than 16 environments as many as make 256 of all, but at most 64.
        deadline_s: how long a call waits for room, or for Redis to have memory.
        table_wait_s: how long to wait for the tables to be created.
        waits: where waits are shown; None: they are only logged.
        while_waiting: as of `rollstream.replay.room.Room`.

    Raises:
        TableError: a table does not exist; lists those that do.
    """

    def __init__(
        self,
        store: Store,
        address: Address,
        *,
        experiment: str,
        tables: Mapping[str, ItemRule | Sequence[ItemRule]],
        environments: int,
        clock: Clock,
        keep_steps: int = 1,
        flush_steps: int | None = None,
        flush_bytes: int = 4 << 20,
        deadline_s: float = 60.0,
        table_wait_s: float = 0.0,
        waits: Waits | None = None,
        while_waiting: Callable[[bool], None] | None = None,
    ) -> None:
        if flush_steps is None:
            flush_steps = min(64, max(16, 256 // max(1, environments)))
        for name, value in (("environments", environments), ("flush_steps", flush_steps), ("keep_steps", keep_steps)):
            if value < 1:
                raise ConfigError(f"TrajectoryWriter: {name} must be >= 1, got {value}")
        specs = read_row_space(store, experiment=experiment, names=tuple(tables), clock=clock, wait_s=table_wait_s)
        require_fitting_rules(tables, specs)
        spec = next(one for one in specs.values() if not one.rows_of)
        self._guards = StepGuards(
            rule for rules in tables.values() for rule in (rules if isinstance(rules, Sequence) else (rules,))
        )
        self.experiment = experiment
        self._environments = environments
        self._clock = clock
        self._keep_steps = keep_steps
        self._deadline_s = deadline_s
        self._chunk_rows = spec.chunk_rows
        self._writer = TableWriter(
            store,
            address,
            table_id=f"{experiment}.{spec.name}",
            spec=spec,
            tables=tables,
            environments=environments,
            clock=clock,
            deadline_s=deadline_s,
            waits=waits,
            keep_rows=keep_steps + spec.chunk_rows - 1,
            while_waiting=while_waiting,
        )
        self._inserter = Inserter(
            store,
            address,
            table_id=f"{experiment}.{spec.name}",
            spec=spec,
            tables=tables,
            clock=clock,
            waits=waits,
            while_waiting=while_waiting,
            finite=self._guards.finite,
        )
        rows = spec.row_spec
        capacity = max(2, min(flush_steps, flush_bytes // max(1, rows.row_bytes * environments)))
        self._buffer = StepBuffer(rows, environments=environments, capacity=capacity, finite=self._guards.finite)
        self._batch = object()
        self._late = False
        self._closed = False
        self._explicit: list[ExplicitItems] = []
        self._explicit_sent = 0

    # --- steps -----------------------------------------------------------------------------------------------------------

    def append(
        self,
        step: Steps,
        *,
        terminated: Mask | None = None,
        truncated: Mask | None = None,
        final: Steps | None = None,
        environments: Chosen | None = None,
        partial: bool = False,
        version: int = 0,
    ) -> WriteResult | None:
        """Take one step of all environments, or of some.

        Args:
            step: arrays [N, ...] by column; nested mappings are joined by dots. Of some environments: arrays [K, ...], or [N, ...].
            terminated, truncated: [N] (or [K]), where the episode is over after this step.
            final: the observation after the last action of those episodes, [N, ...] (or [K, ...]); only theirs is looked at.
                Without it a terminated episode gets a final row of zeros, for its value does not matter, and a truncated one ends
                with the row of this step, which then only serves to bootstrap the one before.
            environments: which ones, as a mask [N] or as numbers [K].
            partial: these columns of the step only; another call gives the others and completes it.
            version: of the weights that acted.

        Returns:
            What was written before, when this call had to make room for its rows.

        Raises:
            DeadlineExceeded: no room for earlier rows; this step was not taken, and the call may be repeated.
            SchemaMismatch: names the column that does not fit; the step was not taken.
            NonFiniteError, TableError: a rule could not take the step (`TdMix`, `Episode(overlong="error")`); it was not taken.
        """
        which = None if environments is None else environment_numbers(environments, environments=self._environments)
        if partial:
            if terminated is not None or truncated is not None or final is not None:
                raise SchemaMismatch("a partial step cannot end an episode; complete it first, or call end_episode")
            written = self._make_room(1)
            self._buffer.add_partial(step, which=which)
            return written
        ending = ending_of(terminated, truncated, final, which=which, environments=self._environments, layout=self._buffer.layout)
        if self._guards.longest_steps is not None:
            rows = self._buffer.episode_rows() + 1
            if ending is not None:
                rows[ending.env] += 1
            env = np.arange(self._environments) if which is None else which
            self._guards.require_short(env, rows[env])
        written = self._make_room(1 if ending is None else 2)
        self._buffer.add(step, which=which, version=version)
        if ending is not None:
            self._buffer.finish(ending.env, terminated=ending.terminated, final=ending.final, version=version)
        return written

    def end_episode(
        self,
        environments: Chosen | None = None,
        *,
        truncated: bool = True,
        final: Steps | None = None,
        version: int = 0,
    ) -> None:
        """End the running episodes of all environments, or of some.

        The final observation is what a partial step holds, or `final` [K, ...] of these environments. Where there is neither, a
        truncated episode ends with its newest row, a terminated one with a final row of zeros.
        """
        env = (
            np.arange(self._environments)
            if environments is None
            else environment_numbers(environments, environments=self._environments)
        )
        adds = self._buffer.has_partial[env] | (final is not None) | (not truncated)
        self._guards.require_short(env, self._buffer.episode_rows()[env] + adds)
        self._make_room(1)
        self._buffer.finish(env, terminated=np.full(len(env), not truncated), final=final, version=version)

    def episode_steps(self) -> npt.NDArray[np.int64]:
        """Rows of each environment's running episode so far [N]."""
        return self._buffer.episode_rows()

    # --- items -----------------------------------------------------------------------------------------------------------

    def create_item(
        self,
        table: str,
        *,
        env: int | Sequence[int] | npt.NDArray[np.integer[Any]],
        last: int | slice,
        priority: float | None = None,
        key: int | Keys | None = None,
    ) -> Keys:
        """An item of the newest rows of one environment, or one of each of several.

        Args:
            last: so many of the newest rows; or a slice counted from the newest, e.g. `slice(-5, -1)`.
            priority: None: the highest of the table so far.
            key: of an item made before: if it lives its priority changes, else it is made anew.

        Returns:
            The key of each item.

        Raises:
            TableError: there is no such table, or the rows are not kept (any more), or belong to two episodes.
        """
        number = self._writer.table_number(table)
        require_priority(priority)
        envs = np.atleast_1d(np.asarray(env, np.int64))
        require_environments(envs, environments=self._environments)
        start, stop = row_bounds(last)
        total = (self._buffer.total - self._buffer.padding)[envs]
        first, end = total + start, total + stop
        available = np.minimum(self._keep_steps, total - self._buffer.episode_begin[envs])
        short = np.flatnonzero(-start > available)
        if len(short):
            at = int(short[0])
            raise TableError(
                f"an item of table {table} asks for the row {-start} back of environment {envs[at]}, of which the newest "
                f"{available[at]} can be used: keep_steps is {self._keep_steps}, and its episode has "
                f"{total[at] - self._buffer.episode_begin[envs[at]]} rows; raise keep_steps, or create the item earlier"
            )
        count = len(envs)
        keys = self._writer.take_keys(count) if key is None else np.atleast_1d(np.asarray(key, np.uint64))
        if len(keys) != count:
            raise TableError(f"{len(keys)} keys were given for items of {count} environments; give one for each")
        elsewhere = np.flatnonzero(shard_of(keys) != self._writer.shard)
        if len(elsewhere):
            raise TableError(
                f"the item of key {keys[elsewhere[0]]} lies on shard {shard_of(keys)[elsewhere[0]]}, this writer writes to shard "
                f"{self._writer.shard}; change its priority with TableClient.update_priorities"
            )
        self._explicit.append(
            ExplicitItems(
                env=envs,
                start=first,
                length=end - first,
                table=np.full(count, number, np.uint8),
                key=keys,
                priority=np.full(count, np.nan if priority is None else priority, np.float32),
            )
        )
        return keys

    def insert(
        self,
        rows: Steps,
        *,
        priorities: npt.ArrayLike | None = None,
        offsets: npt.ArrayLike | None = None,
        terminated: npt.ArrayLike | None = None,
        table: str | None = None,
        version: int = 0,
        deadline_s: float | None = None,
    ) -> WriteResult:
        """Write recorded rows at once: each of M rows as one item, or whole episodes as the tables' rules say.

        Args:
            rows: arrays [M, ...] by column.
            priorities: [M]; only without `offsets`.
            offsets: [E+1]: episode e is the rows `offsets[e]..offsets[e+1]`, the last of which is its final observation.
            terminated: [E], whether each episode terminated; else it was truncated.
            table: which one the rows become items of, without `offsets`; None: the first.

        Raises:
            DeadlineExceeded: no room for the next rows; what was written before stays.
        """
        deadline_s = self._deadline_s if deadline_s is None else deadline_s
        if offsets is not None:
            if priorities is not None:
                raise TableError(
                    "insert takes priorities of rows or offsets of episodes, got both; rules give items their priorities"
                )
            return self._inserter.episodes(rows, offsets=offsets, terminated=terminated, version=version, deadline_s=deadline_s)
        name = self._writer.tables[0] if table is None else self._writer.tables[self._writer.table_number(table)]
        return self._inserter.rows(rows, table=name, priorities=priorities, version=version, deadline_s=deadline_s)

    # --- writing ---------------------------------------------------------------------------------------------------------

    def flush(self, *, deadline_s: float | None = None) -> WriteResult:
        """Write all whole rows, and wait until the shard has admitted them.

        With several rows in a chunk, those of an episode that goes on wait for their chunk to be full.

        Raises:
            DeadlineExceeded: names the table, the state of its limiter, and who waits for whom; the call may be repeated.
        """
        deadline = Deadline(self._clock, after_s=self._deadline_s if deadline_s is None else deadline_s)
        result = self._write(deadline, pad=True)
        self._writer.flush(deadline_s=deadline.remaining_s())
        self._inserter.flush(deadline_s=deadline.remaining_s())
        return result

    def close(self, *, deadline_s: float = 30.0) -> None:
        """Write everything, end all episodes, and let go. A partial step becomes its episode's final row. Waits for no limiter."""
        if self._closed or self._writer.forked:
            return
        deadline = Deadline(self._clock, after_s=deadline_s)
        try:
            if self._late or not self._buffer.has_room(1):
                self._write(deadline, beyond_bound=True)
            env = np.arange(self._environments)
            self._buffer.finish(env, terminated=np.zeros(len(env), np.bool_), final=None, version=0)
            self._write(deadline, beyond_bound=True)
            self._closed = True
        finally:
            self._writer.close(deadline_s=deadline.remaining_s())
            self._inserter.close(deadline_s=deadline.remaining_s())

    def __enter__(self) -> TrajectoryWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _make_room(self, rows: int) -> WriteResult | None:
        if not self._late and self._buffer.has_room(rows):
            return None
        return self._write(Deadline(self._clock, after_s=self._deadline_s))

    def _write(self, deadline: Deadline, *, pad: bool = False, beyond_bound: bool = False) -> WriteResult:
        """Hand the buffer over. When it fails the buffer stays as it is, and nothing is added before it is handed over."""
        if not (self._buffer.rows or self._explicit or (pad and self._writer.waiting_rows)):
            return WriteResult(items=0, rows=0, waited_s=0.0, keys={})
        steps = self._buffer.take()
        over = self._buffer.begins.copy()
        filled = over if pad and self._chunk_rows > 1 else None
        if not self._writer.holds(self._batch):
            self._explicit_sent = len(self._explicit)
        explicit = None
        for one in self._explicit[: self._explicit_sent]:
            explicit = one if explicit is None else explicit.then(one)
        self._late = True
        result = self._writer.append_rows(
            steps.rows,
            steps.offsets,
            deadline_s=deadline.remaining_s(),
            beyond_bound=beyond_bound,
            pad=filled,
            over=over,
            explicit=explicit,
            source=self._batch,
        )
        self._late = False
        self._batch = object()
        del self._explicit[: self._explicit_sent]
        self._buffer.clear()
        if filled is not None:
            self._buffer.skip(np.where(over, -self._buffer.total % self._chunk_rows, 0))
        return result

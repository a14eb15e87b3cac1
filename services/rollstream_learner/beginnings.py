"""What the tables of an experiment begin with: recorded data that its settings name, written before the first update."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from rollstream.algorithms.agent import Agent
from rollstream.clock import Clock
from rollstream.spaces import RowSpec
from rollstream.store import Address, Store

if TYPE_CHECKING:
    from rollstream.algorithms.recordings import Recorded
    from rollstream.replay import TableClient, TableSpec

__all__ = ["Beginnings"]


class Beginnings:
    """Reads the recordings of `agent`; most have none, and then nothing of replay is imported.

    Attributes:
        specs: the tables by name, as they must be to take what was recorded.
    """

    def __init__(self, agent: Agent, rows: RowSpec) -> None:
        self.specs: dict[str, TableSpec] = dict(agent.tables(rows))
        self._recorded: dict[str, Recorded] = {}
        if getattr(agent, "recordings", None):
            from rollstream.algorithms.recordings import read_recordings

            self._recorded = read_recordings(agent, self.specs)
            self.specs |= {name: found.spec for name, found in self._recorded.items()}

    def write(self, store: Store, address: Address, clients: Mapping[str, TableClient], *, clock: Clock) -> None:
        """Write what each table begins with, unless it has it already; a table that got only a part of it starts anew."""
        for name, found in self._recorded.items():
            client = clients[name]
            told = client.info()
            if told["inserted"] >= found.items:
                continue
            if told["items"]:
                client.reset()
            self._write(store, address, client.table_id, found, clock=clock)

    def _write(self, store: Store, address: Address, table_id: str, found: Recorded, *, clock: Clock) -> None:
        from rollstream.replay import TableWriter

        def open_writer(shard: int) -> TableWriter:
            return TableWriter(
                store, address, table_id=table_id, shard=shard, spec=found.spec, rule=found.rule, environments=1, clock=clock
            )

        with ExitStack() as open_writers:
            writers = [open_writers.enter_context(closing(open_writer(shard))) for shard in range(found.spec.shards)]
            found.write(writers, clock=clock)

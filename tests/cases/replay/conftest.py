"""Tables and entries for the replay cases, and a cell: an embedded server with a replay process, which may be killed."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from rollstream.clock import SystemClock
from rollstream.replay import EachRow, TableClient, TableGroup, TableSpec, TrajectoryWriter
from rollstream.replay.log import InsertEntry
from rollstream.spaces import Column, RowSpec
from rollstream.store import Address, EmbeddedServer, Members, Store

ROWS = RowSpec((Column(name="observation", dtype="<f4", shape=(2,)), Column(name="reward", dtype="<f4")))
CLOCK = SystemClock()
_NUMBERS = itertools.count(1)


def make_spec(**changes: Any) -> TableSpec:
    return TableSpec.model_validate({"name": "replay", "max_items": 1000, "rows": ROWS, **changes})


def insert(group: TableGroup, priorities: list[float], *, writer: int = 1, version: int = 0) -> np.ndarray:
    """Insert single-row items with these priorities; returns their keys."""
    streams = group.rows.streams.get(writer)
    first = int(streams.end[0]) if streams else 0
    count = len(priorities)
    entry = InsertEntry(
        writer=writer,
        sequence=streams.sequence + 1 if streams else 1,
        keep=np.array([first + count], np.uint64),
        end=np.array([first + count], np.uint64),
        start=np.arange(first, first + count, dtype=np.uint64),
        env=np.zeros(count, np.uint32),
        length=np.ones(count, np.uint32),
        version=np.full(count, version, np.uint32),
        episode_env=np.zeros(0, np.uint32),
        episode_start=np.zeros(0, np.uint64),
        first_ordinal=first,
        priority=np.array(priorities, np.float32),
    )
    assert group.begin(entry)
    assert group.admit() == count
    items = group.primary.items
    return items.key[items.live()[-count:]].copy()


@pytest.fixture
def table() -> Callable[..., TableGroup]:
    """Makes the index of a table on one shard, without a server."""
    return lambda **changes: TableGroup(make_spec(**changes), seed=3)


@pytest.fixture(name="insert")
def insert_items() -> Callable[..., np.ndarray]:
    return insert


def eventually(question: Callable[[], Any], *, within_s: float = 30.0) -> Any:
    """Waits until a question is answered with something true, and gives it."""
    end_s = CLOCK.monotonic_s() + within_s
    while not (answer := question()):
        assert CLOCK.monotonic_s() < end_s, "the state did not come about"
        CLOCK.sleep(0.02)
    return answer


@pytest.fixture(name="eventually")
def eventually_fixture() -> Callable[..., Any]:
    return eventually


class ReplayTable:
    """One table of a cell, its client, and writers of it."""

    def __init__(self, cell: Cell, spec: TableSpec, *, experiment: str) -> None:
        self.cell, self.spec, self.experiment = cell, spec, experiment
        self.id = f"{experiment}.{spec.name}"
        self._writers: list[TrajectoryWriter] = []
        self.client = self.make_client()

    def make_client(self, **settings: Any) -> TableClient:
        return TableClient(self.cell.store, self.cell.address, table_id=self.id, clock=CLOCK, **settings)

    def writer(self, rule: Any = None, *, environments: int = 1, **settings: Any) -> TrajectoryWriter:
        """A writer of steps; each row is an item unless a rule says otherwise."""
        self._writers.append(
            TrajectoryWriter(
                self.cell.store,
                self.cell.address,
                experiment=self.experiment,
                tables={self.spec.name: rule or EachRow()},
                environments=environments,
                clock=CLOCK,
                **{"deadline_s": 20.0, **settings},
            )
        )
        return self._writers[-1]

    def insert(self, count: int, **more: Any) -> np.ndarray:
        """Items of one row each, whose first observation counts them; returns their keys once they are in the table."""
        writer = self.writer()
        columns = {name: np.zeros((count, *shape), dtype) for name, dtype, shape in self.spec.rows}
        if "observation" in columns:
            columns["observation"].reshape(count, -1)[:, 0] = np.arange(count)
        result = writer.insert(columns, deadline_s=20.0, **more)
        writer.flush(deadline_s=20.0)
        return result.keys[self.spec.name]

    def close(self) -> None:
        self.client.close()


class Cell:
    """A server of its own and one replay process."""

    def __init__(self, directory: Path, *, binary: Path | None = None) -> None:
        self.server = EmbeddedServer(directory, clock=CLOCK, binary=binary)
        self.address: Address = self.server.start()
        self.store = Store(self.address, clock=CLOCK, deadline_s=20.0, name="test")
        self.process: subprocess.Popen[bytes] | None = None
        self.log = directory / "replay.log"
        self._tables: list[ReplayTable] = []
        self.start()

    def start(self) -> None:
        """Start the replay process; it is ready when its first request is answered."""
        environment = os.environ | {
            "ROLLSTREAM_REDIS_URL": str(self.address),
            "ROLLSTREAM_MEMBER_ID": "replay-0",
            "ROLLSTREAM_LEASE_TTL_S": "1.0",
        }
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "rollstream_replay"], env=environment, stdout=log, stderr=subprocess.STDOUT
            )

    def kill(self) -> None:
        """SIGKILL to the replay process."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(timeout=10)

    def rss_bytes(self) -> int:
        """Resident memory of the replay process."""
        assert self.process is not None
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def redis_bytes(self) -> int:
        """What the server has allocated for data."""
        info: Any = self.store.run("look at memory", lambda client: client.info("memory"))
        return int(info["used_memory"])

    def url(self) -> str:
        """Where the shard answers."""
        return str(eventually(lambda: [each.url for each in Members(self.store).list() if each.ready])[0])

    def table(self, **changes: Any) -> ReplayTable:
        """Create a table in an experiment of its own."""
        made = self.nobody(**changes)
        made.client.create(made.spec)
        return made

    def nobody(self, **changes: Any) -> ReplayTable:
        """A table that is not created."""
        self._tables.append(ReplayTable(self, make_spec(**changes), experiment=f"run-{next(_NUMBERS):06x}"))
        return self._tables[-1]

    def forget_tables(self) -> None:
        """Drop what a test made."""
        tables, self._tables = self._tables, []
        for table in tables:
            table.client.drop()
            table.close()

    def close(self) -> None:
        for table in self._tables:
            table.close()
        if self.process is not None and self.process.poll() is None:
            self.kill()
        self.store.close()
        self.server.stop()


@pytest.fixture(scope="module")
def _shared_cell(tmp_path_factory: pytest.TempPathFactory, server_binary: Path | None) -> Iterator[Cell]:
    made = Cell(tmp_path_factory.mktemp("cell"), binary=server_binary)
    yield made
    made.close()


@pytest.fixture
def cell(_shared_cell: Cell) -> Iterator[Cell]:
    """A cell that the tests of a file share; their tables go with them."""
    yield _shared_cell
    _shared_cell.forget_tables()


@pytest.fixture
def own_cell(tmp_path: Path, server_binary: Path | None) -> Iterator[Cell]:
    """A cell whose processes a test may end as it likes."""
    made = Cell(tmp_path / "cell", binary=server_binary)
    yield made
    made.close()

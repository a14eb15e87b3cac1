"""Our side: an embedded server and a replay service as processes of their own, and clients (`worker.py`) as processes of theirs."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from rollstream.clock import Clock, Deadline
from rollstream.errors import RollstreamError
from rollstream.replay import MinSize, Prioritized, TableClient, TableSpec, Uniform
from rollstream.store import EmbeddedServer, Store
from rollstream_replay.bench.line_process import LineProcess
from rollstream_replay.bench.system import ANSWER_WITHIN_S, BATCH_ITEMS, Operation, Run, TableCase, Variant, run_clients

__all__ = ["TABLE_ID", "Durability", "Ours"]

Durability: TypeAlias = Literal["none", "aof"]
TABLE_ID = "bench-000000.replay"
EXPONENT = 0.8
START_WITHIN_S = 60.0
APPLIED_WITHIN_S = 120.0
LEASH = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
"""Lets no server outlive this process, where the system has the program for it."""
UNKNOWN_KEY = np.array([(1 << 56) - 1], np.uint64)
"""A key that no item ever has."""
FILL_FLUSH_ITEMS = 1000
FILL_FLUSH_BYTES = 8 << 20


class Ours:
    """The system of this package.

    Args:
        folder: where servers keep their files; each gets one of its own.
        durability: `aof` as a cell runs; `none` without the append-only file, to be compared with a system that keeps nothing on disk.
        binary: the Redis or Valkey to start; None: the embedded one.
        chunk_rows: rows under one key.
    """

    name = "rollstream"

    def __init__(
        self, folder: Path, *, clock: Clock, durability: Durability, binary: Path | None = None, chunk_rows: int = 1
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._durability = durability
        self._binary = binary
        self._chunk_rows = chunk_rows
        self._opened = 0
        self._workers: list[LineProcess] = []
        self._connected = 0
        self._shard: subprocess.Popen[bytes] | None = None
        self.server: EmbeddedServer | None = None
        self.store: Store | None = None
        self.client: TableClient | None = None
        self.spec: TableSpec | None = None
        self._case: TableCase | None = None

    # --- a table ---------------------------------------------------------------------------------------------------------

    def open(self, case: TableCase) -> None:
        """A fresh server, shard and table."""
        self.close()
        self._opened += 1
        folder = self._folder / f"server-{self._opened}"
        settings = {"appendonly": "no"} if self._durability == "none" else {}
        self.server = EmbeddedServer(folder, clock=self._clock, settings=settings, binary=self._binary, launcher=LEASH)
        self.server.start()
        self.start_shard()
        self.store = Store(self.server.address, clock=self._clock, name="bench")
        self._case = case
        self.spec = TableSpec(
            name="replay",
            sampler=Uniform() if case.selector == "uniform" else Prioritized(exponent=EXPONENT),
            limiter=MinSize(),
            max_items=case.max_items,
            chunk_rows=self._chunk_rows,
            rows=case.payload.row_spec,  # type: ignore[arg-type]
        )
        self.client = TableClient(self.store, self.server.address, table_id=TABLE_ID, clock=self._clock)
        self.client.create(self.spec, deadline_s=START_WITHIN_S)
        self._connected = 0

    def fill(self) -> None:
        """Put the case's items into the table."""
        case = self.case
        if case.fill_items:
            flush_items = max(8, min(FILL_FLUSH_ITEMS, FILL_FLUSH_BYTES // case.payload.payload_bytes))
            self.workers(1)[0].ask(do="fill", items=case.fill_items, flush_items=flush_items, deadline_s=1800.0)
            self.wait_until_applied()

    def close(self) -> None:
        """End table, shard and server; workers stay."""
        if self.client is not None:
            self.client.close()
            self.client = None
        if self.store is not None:
            self.store.close()
            self.store = None
        for worker in self._workers:
            worker.ask(do="close", deadline_s=ANSWER_WITHIN_S)
        self.end_shard(signal.SIGTERM)
        if self.server is not None:
            self.server.stop()
            self.server = None

    def end(self) -> None:
        """Close, and end the workers too."""
        with contextlib.suppress(RollstreamError):
            self.close()
        self.end_shard(signal.SIGKILL)
        if self.server is not None:
            self.server.stop()
        for worker in self._workers:
            worker.close()
        self._workers = []

    @property
    def case(self) -> TableCase:
        assert self._case is not None, "open comes first"
        return self._case

    # --- the shard -------------------------------------------------------------------------------------------------------

    def start_shard(self) -> None:
        """Start the replay service; it answers some time later."""
        assert self.server is not None
        environment = {
            **os.environ,
            "ROLLSTREAM_REDIS_URL": str(self.server.address),
            "ROLLSTREAM_MEMBER_ID": "replay-0",
            "ROLLSTREAM_SHARD": "0",
            "OMP_NUM_THREADS": "1",
        }
        command = [*LEASH, sys.executable, "-m", "rollstream_replay"]
        with (self._folder / "replay.log").open("ab") as log:
            self._shard = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)

    def end_shard(self, how: signal.Signals) -> None:
        """Send a signal and wait for the end."""
        shard, self._shard = self._shard, None
        if shard is None:
            return
        shard.send_signal(how)
        try:
            shard.wait(timeout=30.0)
        except subprocess.TimeoutExpired:
            shard.kill()
            shard.wait()

    @property
    def shard_pid(self) -> int:
        assert self._shard is not None
        return self._shard.pid

    @property
    def server_pids(self) -> tuple[int, ...]:
        """The processes that serve: Redis and the shard."""
        assert self.server is not None
        return (self.server.pid, self.shard_pid)

    # --- runs ------------------------------------------------------------------------------------------------------------

    def workers(self, count: int) -> list[LineProcess]:
        """`count` clients, connected to the table."""
        while len(self._workers) < count:
            index = len(self._workers)
            worker = LineProcess(
                [sys.executable, "-m", "rollstream_replay.bench.worker"],
                name=f"client {index} of ours",
                log=self._folder / f"worker-{index}.log",
                clock=self._clock,
                environment={"OMP_NUM_THREADS": "1"},
            )
            worker.receive(deadline_s=START_WITHIN_S)
            self._workers.append(worker)
        assert self.server is not None
        assert self.spec is not None
        for index in range(self._connected, count):
            self._workers[index].ask(
                do="connect",
                address=str(self.server.address),
                table_id=TABLE_ID,
                spec=self.spec.model_dump(mode="json"),
                payload=self.case.payload.to_json(),
                seed=index,
                deadline_s=START_WITHIN_S,
            )
        self._connected = max(self._connected, count)
        return self._workers[:count]

    def variants(self, operation: Operation) -> tuple[Variant, ...]:
        """Ours has one API for each operation; flush sizes are tried as for the other system."""
        batch: dict[str, Any] = {"batch_items": self.case.batch_items}
        if operation == "insert":
            sizes = self.case.flush_items
            return tuple(Variant(api="writer", name=f"flush {items}", message={"flush_items": items}) for items in sizes)
        if operation == "sample":
            return (Variant(api="client", name="asked ahead", message={**batch, "ahead": True}),)
        if operation == "sample_strict":
            return (Variant(api="client", name="strict", message={**batch, "ahead": False}),)
        return (Variant(api="client", name=f"batches of {BATCH_ITEMS}", message={"batch_items": BATCH_ITEMS}),)

    def run(self, operation: Operation, variant: Variant, *, clients: int, seconds: float, warm_up_s: float) -> Run:
        """Do it; updates count when the shard has applied them."""
        workers = self.workers(clients)
        what = "sample" if operation == "sample_strict" else operation
        message = {"do": what, "seconds": seconds, "warm_up_s": warm_up_s, **variant.message}
        run, answers = run_clients(workers, message, servers=self.server_pids, seconds=seconds, clock=self._clock)
        if operation != "update":
            return run
        waited_s = self.wait_until_applied()
        items_per_s = sum(answer["count"] / (answer["elapsed_s"] + waited_s) for answer in answers)
        return replace(run, items_per_s=items_per_s)

    def wait_until_applied(self) -> float:
        """Seconds until the shard has read all that its log holds."""
        assert self.client is not None
        deadline = Deadline(self._clock, after_s=APPLIED_WITHIN_S)
        # An update of a key that nobody has stands behind all others: when it is counted as unknown, those are applied.
        before = self.client.info(deadline_s=APPLIED_WITHIN_S)
        self.client.update_priorities(UNKNOWN_KEY, np.ones(1))
        while not deadline.passed():
            if self.client.info(deadline_s=APPLIED_WITHIN_S)["keys_stale"] > before["keys_stale"]:
                break
            self._clock.sleep(0.002)
        return deadline.waited_s()

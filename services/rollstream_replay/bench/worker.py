"""One client of ours as a process of its own: writes, samples and updates for some seconds, when it is told to.

It is asked and answers in lines of JSON (`line_process.py`), in the same words as the client of the other system.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.clock import Clock, SystemClock
from rollstream.errors import RollstreamError
from rollstream.replay import EachRow, TableClient, TableSpec, TableWriter
from rollstream.seeding import child_generator
from rollstream.spaces import Rollout
from rollstream.store import Store, parse_address
from rollstream_replay.bench.payloads import Payload, rollouts

__all__ = ["ENVIRONMENTS", "Worker", "main"]

ENVIRONMENTS = 8
AHEAD_BATCHES = 8
WAIT_S = 60.0
PRIORITIES = 8
UPDATE_BATCHES = 8
SAMPLE_BYTES = 16 << 20


class Worker:
    """What the process can do; each public method is one kind of message, and returns its answer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._store: Store | None = None
        self._clients: dict[int, TableClient] = {}
        self._pools: dict[tuple[int, int], list[Rollout]] = {}
        self._updates: list[npt.NDArray[np.uint64]] = []
        self._held: TableWriter | None = None

    def connect(self, *, address: str, table_id: str, spec: dict[str, Any], payload: dict[str, Any], seed: int) -> dict[str, Any]:
        """Work on this table from now on."""
        self.close()
        self._address = parse_address(address)
        self._store = Store(self._address, clock=self._clock, name="bench", deadline_s=WAIT_S)
        self._table_id = table_id
        self._spec = TableSpec.model_validate(spec)
        self._payload = Payload(**payload)
        self._seed = seed
        self._pools = {}
        self._updates = []
        return {}

    # --- inserts ---------------------------------------------------------------------------------------------------------

    def fill(self, *, items: int, flush_items: int) -> dict[str, Any]:
        """Insert `items`; with a prioritized sampler they get several priorities."""
        writer, pool = self._writer(flush_items)
        inserted = 0
        while inserted < items:
            result = writer.append(pool[inserted // flush_items % len(pool)])
            inserted += result.items
            keys = getattr(result, "keys", None)
            if keys is not None and self._spec.sampler.kind != "uniform":
                self._spread_priorities(next(iter(keys.values())), inserted)
        writer.flush(deadline_s=WAIT_S)
        writer.close()
        return {"items": inserted}

    def _spread_priorities(self, keys: npt.NDArray[np.uint64], seed: int) -> None:
        levels = child_generator(self._seed, "bench", "priorities", seed).integers(0, PRIORITIES, len(keys))
        self._client(0).update_priorities(keys, 0.1 + 0.2 * levels)

    def insert(self, *, flush_items: int, warm_up_s: float, seconds: float) -> dict[str, Any]:
        """Insert for some seconds, `flush_items` at a time; counted when the shard has admitted them."""
        writer, pool = self._writer(flush_items)
        flushes = 0

        def once() -> int:
            nonlocal flushes
            flushes += 1
            return writer.append(pool[flushes % len(pool)]).items

        with contextlib.closing(writer):
            return self._timed(once, warm_up_s=warm_up_s, seconds=seconds, finish=lambda: writer.flush(deadline_s=WAIT_S))

    def _writer(self, flush_items: int) -> tuple[TableWriter, list[Rollout]]:
        environments = min(ENVIRONMENTS, flush_items)
        rows = max(1, flush_items // environments)
        writer = TableWriter(
            self._opened(),
            self._address,
            table_id=self._table_id,
            spec=self._spec,
            rule=EachRow(),
            environments=environments,
            clock=self._clock,
        )
        pool = self._pools.get((environments, rows))
        if pool is None:
            pool = rollouts(self._payload, environments=environments, rows=rows, seed=self._seed)
            self._pools = {(environments, rows): pool}
        return writer, pool

    # --- samples and updates ---------------------------------------------------------------------------------------------

    def sample(self, *, batch_items: int, ahead: bool, warm_up_s: float, seconds: float) -> dict[str, Any]:
        """Sample batches for some seconds, each asked for at the time of the call or some of them ahead."""
        client = self._client(AHEAD_BATCHES if ahead else 0)

        def once() -> int:
            sample = client.sample(batch_items=batch_items, deadline_s=WAIT_S)
            for name in self._payload.names:
                sample.rows[name]  # an array of its own, as users get it
            return len(sample.keys)

        return self._timed(once, warm_up_s=warm_up_s, seconds=seconds)

    def update(self, *, batch_items: int, warm_up_s: float, seconds: float) -> dict[str, Any]:
        """Give batches of items other priorities; counted when sent, the caller waits until the shard has applied them."""
        client = self._client(0)
        if not self._updates:
            parts = max(1, batch_items * self._payload.payload_bytes // SAMPLE_BYTES)  # their rows come along
            for _ in range(UPDATE_BATCHES):
                drawn = [client.sample(batch_items=batch_items // parts, deadline_s=WAIT_S).keys for _ in range(parts)]
                self._updates.append(np.unique(np.concatenate(drawn)))
        priorities = child_generator(self._seed, "bench", "updates").random(batch_items) + 1e-3
        batches = 0

        def once() -> int:
            nonlocal batches
            batches += 1
            keys = self._updates[batches % len(self._updates)]
            return client.update_priorities(keys, priorities[: len(keys)]).sent

        return self._timed(once, warm_up_s=warm_up_s, seconds=seconds)

    # --- a server that goes away -----------------------------------------------------------------------------------------

    def hold_writer(self) -> dict[str, Any]:
        """A writer and a sampler that have worked once, for `reconnected`."""
        self._held, _ = self._writer(1)
        self.reconnected(patience_s=WAIT_S)
        return {}

    def reconnected(self, *, patience_s: float) -> dict[str, Any]:
        """Seconds until the held writer has an item admitted, and until a batch is sampled after that."""
        assert self._held is not None
        began_s = self._clock.monotonic_s()
        self._held.append(self._pools[1, 1][0], deadline_s=patience_s)
        self._held.flush(deadline_s=patience_s)
        inserted_s = self._clock.monotonic_s() - began_s
        self._client(0).sample(batch_items=1, deadline_s=patience_s)
        return {"elapsed_s": inserted_s, "sampled_after_s": self._clock.monotonic_s() - began_s}

    def close(self) -> dict[str, Any]:
        """Close all connections."""
        if self._held is not None:
            self._held.close()
            self._held = None
        for client in self._clients.values():
            client.close()
        self._clients = {}
        if self._store is not None:
            self._store.close()
            self._store = None
        return {}

    # --- inside ----------------------------------------------------------------------------------------------------------

    def _opened(self) -> Store:
        assert self._store is not None, "connect comes first"
        return self._store

    def _client(self, ahead_batches: int) -> TableClient:
        if ahead_batches not in self._clients:
            self._clients[ahead_batches] = TableClient(
                self._opened(), self._address, table_id=self._table_id, clock=self._clock, ahead_batches=ahead_batches
            )
        return self._clients[ahead_batches]

    def _timed(
        self, once: Callable[[], int], *, warm_up_s: float, seconds: float, finish: Callable[[], None] = lambda: None
    ) -> dict[str, Any]:
        clock = self._clock
        cpu_began_s, all_items = _cpu_s(), 0
        began_s = clock.monotonic_s()
        while clock.monotonic_s() - began_s < warm_up_s:
            all_items += once()
        finish()
        count = 0
        batch_ms: list[float] = []
        began_s = now_s = clock.monotonic_s()
        while now_s - began_s < seconds:
            count += once()
            before_s, now_s = now_s, clock.monotonic_s()
            batch_ms.append(round(1e3 * (now_s - before_s), 4))
        finish()
        return {
            "count": count,
            "elapsed_s": clock.monotonic_s() - began_s,
            "all_items": all_items + count,
            "cpu_s": _cpu_s() - cpu_began_s,
            "batch_ms": batch_ms,
        }


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system


def main() -> int:
    """Answer until standard input ends."""
    worker = Worker(SystemClock())
    print(json.dumps({"ready": True, "pid": os.getpid()}), flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        try:
            answer = getattr(worker, message.pop("do"))(**message)
        except RollstreamError as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
    worker.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What a row costs on its way into Redis and out again, by stage, and how far from the practical limit that is, as JSON.

    python tests/bench/row_path.py --seconds 1 --runs 3

One client, one connection, an embedded server without its append-only file; rows of random bytes. Each run measures, in turn, writes,
writes that are not waited for, reads and the server's own benchmark program; medians are printed. Stages are processor time of the
client's thread, measured in runs of their own, since measuring costs too:

    packing      keys (and small rows) into the command          parsing      headers of replies compared
    socket       send and receive, the copies of the kernel       assembling   rows copied to their columns, where not received there
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rollstream.clock import SystemClock
from rollstream.store import Address, ChunkReader, ChunkWriter, EmbeddedServer, chunk_prefix, keys
from rollstream.store.chunk_keys import CommandBuffer
from rollstream.store.chunk_reply import ChunkReply
from rollstream.store.raw_connection import RawConnection
from rollstream_replay.bench.limit import practical_limit

TABLE_ID = "bench-000000.replay"
FLUSH_ROWS = 256
BATCH_ROWS = 256
BATCH_BYTES = 12 << 20
TABLE_ROWS = 200_000
TABLE_BYTES = 400 << 20
LOG_BYTES_A_ROW = 40
STAGES = (
    (CommandBuffer, "fill", "packing"),
    (CommandBuffer, "around", "packing"),
    (RawConnection, "send", "socket"),
    (RawConnection, "receive_into", "socket"),
    (RawConnection, "receive_into_parts", "socket"),
    (ChunkReply, "headers_right", "parsing"),
    (ChunkReply, "copy_out", "assembling"),
)


class RowPath:
    """Rows of one size in one server, written and read by one client."""

    def __init__(self, address: Address, pid: int, row_bytes: int) -> None:
        clock = SystemClock()
        self._writer = ChunkWriter(address, clock=clock)
        self._reader = ChunkReader(address, clock=clock)
        self._pid = pid
        self._row_bytes = row_bytes
        self._batch = max(1, min(BATCH_ROWS, BATCH_BYTES // row_bytes))
        self._rows = max(self._batch, min(TABLE_ROWS, TABLE_BYTES // row_bytes) // self._batch * self._batch)
        generator = np.random.default_rng(0)
        self._payload = generator.integers(0, 256, (self._batch, row_bytes), dtype=np.uint8)
        self._which = generator.integers(0, self._rows, (1000, self._batch), dtype=np.uint64)
        self._dtype = np.dtype([("flags", "u1"), ("version", "<u4"), ("observation", "u1", (row_bytes - 5,))])
        self._prefix = chunk_prefix(TABLE_ID, 0)
        self._env = np.zeros(self._batch, np.uint32)
        self._writer_id = np.ones(self._batch, np.uint32)
        self._then = [("XADD", keys.table_log(TABLE_ID, 0), "MAXLEN", "~", 100, "*", "i", bytes(LOG_BYTES_A_ROW * self._batch))]
        self._step = 0
        while self._step * self._batch < self._rows:
            self.write()

    def write(self) -> None:
        self._writer.write(self._prefix, 1, self._env, self._next(), self._payload, then=self._then)

    def begin(self) -> None:
        self._writer.begin(self._prefix, 1, self._env, self._next(), self._payload, then=self._then)

    def read(self) -> None:
        self._step += 1
        out = {
            name: np.empty((self._batch, *self._dtype[name].shape), self._dtype[name].base) for name in self._dtype.names or ()
        }
        which = self._which[self._step % len(self._which)]
        missing = self._reader.read_columns(self._prefix, self._dtype, self._writer_id, self._env, which, out=out)
        if missing.any():
            raise RuntimeError("bench: rows are missing")

    def close(self) -> None:
        self._writer.close()
        self._reader.close()

    def timed(self, operation: Callable[[], None], *, seconds: float) -> dict[str, float]:
        """Run `operation` for a while: rows per second, and processor time a row of both sides."""
        for _ in range(3):
            operation()
        latencies_s = []
        client_s, server_s, began_s = time.process_time(), _processor_s(self._pid), time.perf_counter()
        now_s = began_s
        while now_s - began_s < seconds:
            before_s = now_s
            operation()
            now_s = time.perf_counter()
            latencies_s.append(now_s - before_s)
        rows = len(latencies_s) * self._batch
        return {
            "rows_per_s": rows / (now_s - began_s),
            "mb_per_s": rows * self._row_bytes / (now_s - began_s) / 1e6,
            "batch_p50_ms": statistics.median(latencies_s) * 1e3,
            "client_us_a_row": (time.process_time() - client_s) / rows * 1e6,
            "server_us_a_row": (_processor_s(self._pid) - server_s) / rows * 1e6,
        }

    def stages(self, operation: Callable[[], None], *, seconds: float) -> dict[str, float]:
        """Processor time a row of each stage of the client."""
        with _measured() as spent_s:
            began_s, rows = time.perf_counter(), 0
            while time.perf_counter() - began_s < seconds:
                operation()
                rows += self._batch
        return {stage: spent_s[stage] / rows * 1e6 for stage in dict.fromkeys(stage for _, _, stage in STAGES)}

    def _next(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        start = self._step * self._batch % self._rows
        self._step += 1
        return np.arange(start, start + self._batch, dtype=np.uint64)


def _processor_s(pid: int) -> float:
    """Processor time of all threads of a process, to the nanosecond."""
    threads = Path(f"/proc/{pid}/task")
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads.iterdir()) / 1e9


@contextmanager
def _measured() -> Iterator[dict[str, float]]:
    """Count processor time of the stages while inside; a stage within another counts once."""
    spent_s: dict[str, float] = defaultdict(float)
    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in STAGES]

    def measured(function: Callable[..., Any], stage: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            before_s = time.thread_time()
            try:
                return function(*arguments, **named)
            finally:
                spent_s[stage] += time.thread_time() - before_s

        return call

    for (owner, name, function), (_, _, stage) in zip(originals, STAGES, strict=True):
        setattr(owner, name, measured(function, stage))
    try:
        yield spent_s
    finally:
        for owner, name, function in originals:
            setattr(owner, name, function)


def measure(row_bytes: int, *, seconds: float, runs: int, binary: Path | None) -> dict[str, Any]:
    """Medians of some runs, each of which does everything in turn."""
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        settings = {"appendonly": "no"}
        with EmbeddedServer(place / "ours", clock=SystemClock(), settings=settings, binary=binary) as server:
            path = RowPath(server.address, server.pid, row_bytes)
            for run in range(runs):
                limit = practical_limit(
                    row_bytes,
                    seconds=seconds,
                    folder=place / f"limit-{run}",
                    clock=SystemClock(),
                    durability="none",
                    binary=binary,
                )
                one: dict[str, Any] = {}
                for name, operation in (("write", path.write), ("begin", path.begin), ("read", path.read)):
                    one[name] = path.timed(operation, seconds=seconds)
                    one[name] |= path.stages(operation, seconds=seconds / 2)
                    of = limit["get_per_s" if name == "read" else "set_per_s"]
                    one[name] |= {"limit_per_s": of, "share_of_limit": one[name]["rows_per_s"] / of}
                found.append(one)
            path.close()
    return {
        name: {figure: float(f"{statistics.median(one[name][figure] for one in found):.4g}") for figure in found[0][name]}
        for name in found[0]
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--row-bytes", type=int, nargs="+", default=[400, 4_000, 40_000, 400_000])
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--server", type=Path, default=None, help="server binary; default: the embedded one")
    options = parser.parse_args()
    for row_bytes in options.row_bytes:
        figures = measure(row_bytes, seconds=options.seconds, runs=options.runs, binary=options.server)
        print(json.dumps({"row_bytes": row_bytes, **figures}), flush=True)


if __name__ == "__main__":
    main()

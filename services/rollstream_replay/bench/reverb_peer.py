"""Measures dm-reverb; run by a Python that has it (`PYTHON reverb_peer.py server|client|check`), never imported by this package.

It needs dm-reverb with TensorFlow and NumPy, nothing of ours. It is asked in lines of JSON on standard input and answers in lines of JSON
on standard output; whatever libraries print goes to standard error. Inserts count when the server has confirmed them, samples when they
are NumPy arrays. Every API is used as its documentation advises, with chunk length 1, since an item is one step here.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from time import perf_counter, process_time, sleep
from typing import Any

import numpy as np

__all__ = ["Client", "Server", "main"]

TABLE = "bench"
EXPONENT = 0.8
PRIORITIES = 8
POOL_BYTES = 64 << 20
POOL_STEPS_MAX = 256
FILL_FLUSH = 40
UPDATE_BATCHES = 8


def steps_of(payload: dict[str, Any], seed: int) -> list[list[Any]]:
    """Distinct steps, each a list of columns: the same kinds of data as `payloads.py` makes."""
    generator = np.random.default_rng(seed)
    count = max(4, min(POOL_STEPS_MAX, POOL_BYTES // payload["payload_bytes"]))
    if payload["data"] == "frames":
        return [[_frame(index)] for index in range(count)]
    columns = payload["columns"]
    values = max(1, payload["payload_bytes"] // 4 // columns)
    if payload["data"] == "random":
        return [[generator.standard_normal(values, dtype=np.float32) for _ in range(columns)] for _ in range(count)]
    return [
        [np.repeat(generator.integers(0, 8, -(-values // 16)), 16)[:values].astype(np.float32) for _ in range(columns)]
        for _ in range(count)
    ]


def _frame(step: int) -> Any:
    frame = np.full((84, 84), 87, np.uint8)
    row, column, paddle = (step * 3) % 76, (step * 5) % 76, (step * 7) % 70
    frame[row : row + 8, column : column + 8] = 200
    frame[80:84, paddle : paddle + 14] = 160
    return frame


class Server:
    """One reverb.Server with one table."""

    def __init__(self) -> None:
        self.reverb = importlib.import_module("reverb")
        self.server: Any = None
        self.client: Any = None

    def serve(self, *, selector: str, max_items: int, port: int | None = None, checkpoints: str | None = None) -> dict[str, Any]:
        """Start; with `checkpoints` (a folder) it first loads the newest one that is there."""
        reverb = self.reverb
        began_s = perf_counter()
        table = reverb.Table(
            name=TABLE,
            sampler=reverb.selectors.Uniform() if selector == "uniform" else reverb.selectors.Prioritized(EXPONENT),
            remover=reverb.selectors.Fifo(),
            max_size=max_items,
            rate_limiter=reverb.rate_limiters.MinSize(1),
        )
        checkpointer = None
        if checkpoints is not None:
            checkpointers = importlib.import_module("reverb.platform.checkpointers_lib")
            checkpointer = checkpointers.DefaultCheckpointer(checkpoints)
        self.server = reverb.Server(tables=[table], port=port, checkpointer=checkpointer)
        self.client = reverb.Client(f"localhost:{self.server.port}")
        items = self.client.server_info()[TABLE].current_size
        return {"port": self.server.port, "items": items, "elapsed_s": perf_counter() - began_s}

    def checkpoint(self) -> dict[str, Any]:
        """Save everything; answers with the bytes on disk."""
        began_s = perf_counter()
        folder = self.client.checkpoint()
        elapsed_s = perf_counter() - began_s
        files = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names]  # noqa: PTH118
        return {"elapsed_s": elapsed_s, "bytes": sum(map(os.path.getsize, files))}

    def items(self) -> dict[str, Any]:
        """How many there are."""
        return {"items": self.client.server_info()[TABLE].current_size}

    def stop(self) -> dict[str, Any]:
        """Stop serving; the process stays."""
        if self.server is not None:
            self.client = None
            self.server.stop()
            self.server = None
        return {}


class Client:
    """One process that writes, samples and updates, as a user of dm-reverb would."""

    def __init__(self) -> None:
        self.reverb = importlib.import_module("reverb")
        self.structured = importlib.import_module("reverb.structured_writer")
        self.address = ""
        self.client: Any = None
        self.steps: list[list[Any]] = []
        self.datasets: dict[str, Iterator[Any]] = {}
        self.updates: list[dict[int, float]] = []

    def connect(self, *, port: int, payload: dict[str, Any], seed: int) -> dict[str, Any]:
        """Speak with the server at `port` from now on."""
        self.address = f"localhost:{port}"
        self.client = self.reverb.Client(self.address)
        self.steps = steps_of(payload, seed)
        self.datasets, self.updates = {}, []
        return {}

    # --- inserts

    def _structured_writer(self, priority: float = 1.0) -> Any:
        columns = len(self.steps[0])
        reference = self.structured.create_reference_step([None] * columns)
        config = self.structured.create_config(
            [reference[index][-1:] for index in range(columns)], TABLE, priority=self.structured.constant_priority_fn(priority)
        )
        return self.client.structured_writer([config])

    def fill(self, items: int) -> dict[str, Any]:
        """Insert `items`, of several priorities."""
        for part in range(PRIORITIES):
            writer = self._structured_writer(0.1 + 0.2 * part)
            for index in range(part * items // PRIORITIES, (part + 1) * items // PRIORITIES):
                writer.append(self.steps[index % len(self.steps)])
                if index % FILL_FLUSH == 0:
                    writer.flush(block_until_num_items=FILL_FLUSH)
            writer.flush()
        return {"items": items}

    def insert(self, *, api: str, flush_items: int, warm_up_s: float, seconds: float) -> dict[str, Any]:
        """Insert for some seconds; each call of `once` inserts `flush_items` items."""
        finish: Callable[[], Any] = lambda: None  # noqa: E731
        steps, at = self.steps, [0]
        if api == "client":
            flush_items = 1

            def once() -> None:
                self.client.insert(steps[at[0] % len(steps)], priorities={TABLE: 1.0})
                at[0] += 1

        elif api == "structured":
            writer = self._structured_writer()
            finish = writer.flush

            def once() -> None:
                for _ in range(flush_items):
                    writer.append(steps[at[0] % len(steps)])
                    at[0] += 1
                writer.flush(block_until_num_items=flush_items)

        else:
            columns = len(steps[0])
            trajectory = self.client.trajectory_writer(num_keep_alive_refs=1)
            for index in range(columns):
                trajectory.configure((index,), num_keep_alive_refs=1, max_chunk_length=1)
            finish = trajectory.flush

            def once() -> None:
                for _ in range(flush_items):
                    trajectory.append(steps[at[0] % len(steps)])
                    history = trajectory.history
                    trajectory.create_item(TABLE, 1.0, [history[index][-1:] for index in range(columns)])
                    at[0] += 1
                trajectory.flush(block_until_num_items=flush_items)

        return timed(once, items=flush_items, warm_up_s=warm_up_s, seconds=seconds, finish=finish)

    # --- samples

    def sample(
        self,
        *,
        api: str,
        batch_items: int,
        warm_up_s: float,
        seconds: float,
        in_flight: int = 0,
        workers: int = 0,
        prefetch: int = 0,
    ) -> dict[str, Any]:
        """Sample batches for some seconds, by `client.sample` or by a dataset that goes on from one call to the next."""
        if api == "client":
            return timed(
                lambda: [each for each in self.client.sample(TABLE, batch_items)],  # noqa: C416
                items=batch_items,
                warm_up_s=warm_up_s,
                seconds=seconds,
            )
        name = f"{batch_items} {in_flight} {workers} {prefetch}"
        if name not in self.datasets:
            self.datasets = {name: self._dataset(batch_items, in_flight, workers, prefetch)}
        dataset = self.datasets[name]
        return timed(lambda: next(dataset), items=batch_items, warm_up_s=warm_up_s, seconds=seconds)

    def _dataset(self, batch_items: int, in_flight: int, workers: int, prefetch: int) -> Iterator[Any]:
        tensorflow = importlib.import_module("tensorflow")
        dataset = self.reverb.TrajectoryDataset(
            server_address=self.address,
            table=TABLE,
            dtypes=[tensorflow.as_dtype(column.dtype) for column in self.steps[0]],
            shapes=[tensorflow.TensorShape([1, *column.shape]) for column in self.steps[0]],
            max_in_flight_samples_per_worker=in_flight,
            num_workers_per_iterator=workers,
        ).batch(batch_items, drop_remainder=True)
        if prefetch:
            dataset = dataset.prefetch(prefetch)
        iterator: Iterator[Any] = dataset.as_numpy_iterator()
        return iterator

    def close_datasets(self) -> dict[str, Any]:
        """Let go of datasets, whose threads would go on sampling."""
        self.datasets = {}
        return {}

    # --- the rest

    def update(self, *, batch_items: int, warm_up_s: float, seconds: float) -> dict[str, Any]:
        """Give batches of items other priorities."""
        if not self.updates:
            generator = np.random.default_rng(1)
            for _ in range(UPDATE_BATCHES):
                keys = {int(each[0].info.key) for each in self.client.sample(TABLE, batch_items)}
                self.updates.append({key: float(generator.random()) + 1e-3 for key in keys})
        at = [0]

        def once() -> int:
            updates = self.updates[at[0] % len(self.updates)]
            self.client.mutate_priorities(TABLE, updates=updates)
            at[0] += 1
            return len(updates)

        return timed(once, items=batch_items, warm_up_s=warm_up_s, seconds=seconds)

    def hold_writer(self) -> dict[str, Any]:
        """A writer that has written once, for `reconnected`."""
        self.held = self._trajectory()
        self._one_item(self.held)
        return {}

    def reconnected(self, patience_s: float) -> dict[str, Any]:
        """Seconds until the held writer has an item confirmed."""
        began_s = perf_counter()
        while perf_counter() - began_s < patience_s:
            try:
                self._one_item(self.held)
            except Exception:  # the library has several kinds, and all mean: not yet
                sleep(0.01)
            else:
                return {"elapsed_s": perf_counter() - began_s}
        return {"elapsed_s": patience_s}

    def _trajectory(self) -> Any:
        writer = self.client.trajectory_writer(num_keep_alive_refs=1)
        for index in range(len(self.steps[0])):
            writer.configure((index,), num_keep_alive_refs=1, max_chunk_length=1)
        return writer

    def _one_item(self, writer: Any) -> None:
        writer.append(self.steps[0])
        writer.create_item(TABLE, 1.0, [writer.history[index][-1:] for index in range(len(self.steps[0]))])
        writer.flush(timeout_ms=30_000)


def timed(
    once: Callable[[], Any], *, items: int, warm_up_s: float, seconds: float, finish: Callable[[], Any] = lambda: None
) -> dict[str, Any]:
    """Call `once` for some seconds; what it returns counts when it is a number, else `items` does."""
    cpu_began_s, all_items = process_time(), 0
    began_s = perf_counter()
    while perf_counter() - began_s < warm_up_s:
        once()
        all_items += items
    finish()
    count = 0
    batch_ms: list[float] = []
    began_s = now_s = perf_counter()
    while now_s - began_s < seconds:
        done = once()
        count += done if isinstance(done, int) else items
        before_s, now_s = now_s, perf_counter()
        batch_ms.append(round(1e3 * (now_s - before_s), 4))
    finish()
    return {
        "count": count,
        "elapsed_s": perf_counter() - began_s,
        "all_items": all_items + count,
        "cpu_s": process_time() - cpu_began_s,
        "batch_ms": batch_ms,
    }


def main(role: str) -> None:
    """Answer until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print must not stand among the answers
    here = os.path.dirname(os.path.realpath(__file__))  # noqa: PTH120
    sys.path[:] = [place for place in sys.path if os.path.realpath(place) != here]  # (`reverb` is not our reverb.py)
    try:
        made: Any = {"server": Server, "client": Client, "check": _check}[role]()
    except Exception as error:  # told to whoever asked, in their terms
        print(json.dumps({"error": repr(error)}), file=answers)
        return
    print(json.dumps({"ready": True, "pid": os.getpid(), **(made if role == "check" else {})}), file=answers)
    for line in sys.stdin:
        message = json.loads(line)
        try:
            answer = getattr(made, message.pop("do"))(**message)
        except Exception as error:
            answer = {"error": repr(error)}
        print(json.dumps(answer), file=answers)
    os._exit(0)  # threads of datasets would keep it for long


def _check() -> dict[str, Any]:
    reverb, tensorflow = importlib.import_module("reverb"), importlib.import_module("tensorflow")
    metadata = importlib.import_module("importlib.metadata")
    return {
        "python": sys.version.split()[0],
        "dm_reverb": metadata.version("dm-reverb"),
        "tensorflow": tensorflow.__version__,
        "apis": hasattr(reverb, "TrajectoryDataset"),
    }


if __name__ == "__main__":
    main(sys.argv[1])

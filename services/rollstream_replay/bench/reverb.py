"""The other side: dm-reverb, run by a Python that has it; nothing of it is imported here.

One process is the server of the table at hand, and up to four are clients that stay for the whole measurement, because each needs
seconds to import TensorFlow. Which APIs are measured, and with which settings: those that its documentation advises for speed.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from rollstream.clock import Clock
from rollstream.errors import ConfigError, RollstreamError
from rollstream_replay.bench.line_process import LineProcess
from rollstream_replay.bench.system import ANSWER_WITHIN_S, BATCH_ITEMS, Operation, Run, TableCase, Variant, run_clients

__all__ = ["PEER_SCRIPT", "Reverb", "check_reverb"]

PEER_SCRIPT = Path(__file__).with_name("reverb_peer.py")
IMPORT_WITHIN_S = 120.0
FILL_WITHIN_S = 3600.0
ENVIRONMENT = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", "PYTHONPATH": ""}
TRAJECTORY_FLUSH_ITEMS = (40, 256)
IN_FLIGHT_BATCHES = (2, 3, 8)
"""Batches that each of the two workers of a dataset may have in flight: what was found to be fastest for large, middle and small rows."""


def check_reverb(python: Path, *, folder: Path, clock: Clock) -> dict[str, Any]:
    """Versions of the peer.

    Raises:
        ConfigError: `python` is no program, or has no dm-reverb that works.
    """
    if not (python.is_file() and os.access(python, os.X_OK)):
        raise ConfigError(f"--reverb-python {python} is no program that can be run; give the path of a Python with dm-reverb")
    process = _process(python, "check", name="the check for dm-reverb", folder=folder, clock=clock)
    try:
        answer = process.receive(deadline_s=IMPORT_WITHIN_S)
    except RollstreamError as error:
        raise ConfigError(
            f"--reverb-python {python} cannot import dm-reverb; run `{python} -m pip install 'dm-reverb[tensorflow]==0.14.0'` "
            f"(Python 3.9 to 3.11) or give another Python: {error}"
        ) from error
    finally:
        process.close()
    return {name: answer[name] for name in ("dm_reverb", "tensorflow", "python")}


def _process(python: Path, role: str, *, name: str, folder: Path, clock: Clock) -> LineProcess:
    return LineProcess(
        [str(python), str(PEER_SCRIPT), role],
        name=name,
        log=folder / f"{name.replace(' ', '-')}.log",
        clock=clock,
        environment=ENVIRONMENT,
    )


class Reverb:
    """The system of dm-reverb."""

    name = "reverb"

    def __init__(self, python: Path, folder: Path, *, clock: Clock) -> None:
        self._python = python
        self._folder = folder
        self._clock = clock
        self.server: LineProcess | None = None
        self.port = 0
        self._clients: list[LineProcess] = []
        self._connected = 0
        self._case: TableCase | None = None
        self._opened = 0

    # --- a table ---------------------------------------------------------------------------------------------------------

    def open(self, case: TableCase) -> None:
        """A fresh server process with one table."""
        self.close()
        self._case = case
        self._opened += 1
        self.server = _process(
            self._python, "server", name=f"server {self._opened} of reverb", folder=self._folder, clock=self._clock
        )
        self.server.receive(deadline_s=IMPORT_WITHIN_S)
        self.serve()

    def serve(self, *, port: int | None = None, checkpoints: Path | None = None, anew: bool = False) -> dict[str, Any]:
        """Let the server process serve the table, instead of the one before when `anew`; loaded from the newest checkpoint when there is
        a folder of them."""
        assert self.server is not None
        if anew:
            self.server.ask(do="stop", deadline_s=ANSWER_WITHIN_S)
        answer = self.server.ask(
            do="serve",
            selector=self.case.selector,
            max_items=self.case.max_items,
            port=port,
            checkpoints=str(checkpoints) if checkpoints else None,
            deadline_s=FILL_WITHIN_S,
        )
        self.port = answer["port"]
        self._connected = 0
        return answer

    def fill(self) -> None:
        """Put the case's items into the table."""
        if self.case.fill_items:
            self.clients(1)[0].ask(do="fill", items=self.case.fill_items, deadline_s=FILL_WITHIN_S)

    def close(self) -> None:
        """End the server; clients stay, but let go of it."""
        server, self.server = self.server, None
        if server is None:
            return
        for client in self._clients:
            client.ask(do="close_datasets", deadline_s=ANSWER_WITHIN_S)
        server.close()

    def end(self) -> None:
        """Close, and end the clients too."""
        with contextlib.suppress(RollstreamError):
            self.close()
        for client in self._clients:
            client.kill()
        self._clients = []

    @property
    def case(self) -> TableCase:
        assert self._case is not None, "open comes first"
        return self._case

    @property
    def server_pids(self) -> tuple[int, ...]:
        """The process that serves."""
        assert self.server is not None
        return (self.server.pid,)

    # --- runs ------------------------------------------------------------------------------------------------------------

    def clients(self, count: int) -> list[LineProcess]:
        """`count` clients, connected to the server."""
        fresh = [
            _process(self._python, "client", name=f"client {index} of reverb", folder=self._folder, clock=self._clock)
            for index in range(len(self._clients), count)
        ]
        for client in fresh:
            client.receive(deadline_s=IMPORT_WITHIN_S)
        self._clients += fresh
        for index in range(self._connected, count):
            self._clients[index].ask(
                do="connect", port=self.port, payload=self.case.payload.to_json(), seed=index, deadline_s=ANSWER_WITHIN_S
            )
        self._connected = max(self._connected, count)
        return self._clients[:count]

    def variants(self, operation: Operation) -> tuple[Variant, ...]:
        """Its public APIs, each with the settings that make it fast."""
        if operation == "insert":
            return tuple(self._insert_variants())
        batch_items = self.case.batch_items
        if operation == "update":
            return (Variant(api="mutate_priorities", name=f"batches of {BATCH_ITEMS}", message={"batch_items": BATCH_ITEMS}),)
        if operation == "sample":
            return tuple(self._dataset_variant(times * batch_items, 2, 2) for times in IN_FLIGHT_BATCHES)
        message = {"api": "client", "batch_items": batch_items}
        return (
            self._dataset_variant(batch_items, 1, 0, api="dataset without prefetch"),
            Variant(api="client.sample", name="one batch a call", message=message, clients_max=1),
        )

    def _insert_variants(self) -> list[Variant]:
        found = [
            Variant(api="structured_writer", name=f"flush {items}", message={"api": "structured", "flush_items": items})
            for items in self.case.flush_items
        ]
        found += [
            Variant(api="trajectory_writer", name=f"flush {items}", message={"api": "trajectory", "flush_items": items})
            for items in TRAJECTORY_FLUSH_ITEMS
            if items in self.case.flush_items
        ]
        message = {"api": "client", "flush_items": 1}
        return [*found, Variant(api="client.insert", name="one item a call", message=message, clients_max=1)]

    def _dataset_variant(self, in_flight: int, workers: int, prefetch: int, *, api: str = "dataset") -> Variant:
        return Variant(
            api=api,
            name=f"{in_flight} in flight, {workers} workers, prefetch {prefetch}",
            message={
                "api": "dataset",
                "batch_items": self.case.batch_items,
                "in_flight": in_flight,
                "workers": workers,
                "prefetch": prefetch,
            },
        )

    def run(self, operation: Operation, variant: Variant, *, clients: int, seconds: float, warm_up_s: float) -> Run:
        """Do it."""
        what = "sample" if operation == "sample_strict" else operation
        message = {"do": what, "seconds": seconds, "warm_up_s": warm_up_s, **variant.message}
        run, _ = run_clients(self.clients(clients), message, servers=self.server_pids, seconds=seconds, clock=self._clock)
        return run

"""The practical limit: what the server's own benchmark program reaches with pipelined SET and GET of the same payload.

Where the program is not installed, a loop of ours over a plain socket stands in for it: whole pipelines sent and received as they are,
nothing is parsed.
"""

from __future__ import annotations

import csv
import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rollstream.clock import Clock
from rollstream.errors import RollstreamError
from rollstream.store import EmbeddedServer
from rollstream_replay.bench.ours import Durability

__all__ = ["find_benchmark", "practical_limit"]

PIPELINE_BYTES = 256 << 10
PIPELINE_MAX = 256
KEYS_BYTES = 400 << 20
KEYS_MAX = 200_000
CONNECTIONS = (1, 4)
WITHIN_S = 300.0
TRIAL_S = 0.2


def find_benchmark() -> Path | None:
    """The server's own benchmark program, if there is one."""
    for name in ("valkey-benchmark", "redis-benchmark"):
        found = shutil.which(name)
        if found:
            return Path(found)
    return None


def practical_limit(
    payload_bytes: int, *, seconds: float, folder: Path, clock: Clock, durability: Durability, binary: Path | None = None
) -> dict[str, Any]:
    """Values of `payload_bytes` set and got per second: the best of one connection and of several."""
    settings = {"appendonly": "no"} if durability == "none" else {}
    load = _Load(
        payload_bytes=payload_bytes,
        keys=max(64, min(KEYS_MAX, KEYS_BYTES // payload_bytes)),
        pipeline=max(1, min(PIPELINE_MAX, PIPELINE_BYTES // payload_bytes)),
        seconds=seconds,
    )
    program = find_benchmark()
    with EmbeddedServer(folder, clock=clock, settings=settings, binary=binary) as server:
        if program is None:
            loop = _RawLoop(server.address.path, load, clock=clock)
            rates = {1: {"set": loop.set(), "get": loop.get()}}
            loop.close()
        else:
            run = _Program(program, server.address.path, load)
            rates = {connections: {"set": run.set(connections), "get": run.get(connections)} for connections in CONNECTIONS}
    return {
        "program": program.name if program else "raw loop",
        "payload_bytes": payload_bytes,
        "pipeline": load.pipeline,
        "keys": load.keys,
        "set_per_s": round(max(rate["set"] for rate in rates.values())),
        "get_per_s": round(max(rate["get"] for rate in rates.values())),
        "by_connections": {str(connections): rate for connections, rate in rates.items()},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    payload_bytes: int
    keys: int
    pipeline: int
    seconds: float


class _Program:
    """Runs the benchmark program: a short trial tells how many requests fill the time."""

    def __init__(self, program: Path, path: str, load: _Load) -> None:
        self._program = program
        self._path = path
        self._load = load

    def set(self, connections: int) -> float:
        """Values set per second; all keys are there afterwards."""
        return self._rate("set", connections, trial=3 * self._load.keys)

    def get(self, connections: int) -> float:
        """Values got per second."""
        return self._rate("get", connections, trial=self._load.keys)

    def _rate(self, what: str, connections: int, *, trial: int) -> float:
        rate = self._once(what, connections, max(1_000, trial))
        return self._once(what, connections, max(1_000, int(rate * self._load.seconds)))

    def _once(self, what: str, connections: int, requests: int) -> float:
        load = self._load
        words = (
            f"-d {load.payload_bytes} -P {load.pipeline} -r {load.keys} -c {connections} -n {requests} -t {what} --csv".split()
        )
        done = subprocess.run(
            [str(self._program), "-s", self._path, *words],
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        rows = [row for row in csv.reader(done.stdout.splitlines()) if row and row[0].lower() == what]
        if done.returncode or not rows:
            said = f"{done.stdout[-300:]}{done.stderr[-300:]}"
            raise RollstreamError(f"bench: {self._program.name} gave no rate for {what.upper()}: {said}")
        return float(rows[-1][1])


class _RawLoop:
    """Pipelines of SET and of GET over one connection."""

    def __init__(self, path: str, load: _Load, *, clock: Clock) -> None:
        payload_bytes, keys, pipeline = load.payload_bytes, load.keys, load.pipeline
        self._clock = clock
        self._seconds = load.seconds
        self._pipeline = pipeline
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        value = np.random.default_rng(0).bytes(payload_bytes)
        names = [b"raw:%010d" % key for key in range(keys)]
        parts = [names[start : start + pipeline] for start in range(0, keys - pipeline + 1, pipeline)]
        self._sets = [b"".join(_command(b"SET", name, value) for name in part) for part in parts[:64]]
        self._gets = [b"".join(_command(b"GET", name) for name in part) for part in parts[:64]]
        self._set_reply = 5 * pipeline
        self._get_reply = pipeline * (len(b"$%d\r\n" % payload_bytes) + payload_bytes + 2)
        self._buffer = bytearray(max(self._set_reply, self._get_reply))

    def set(self) -> float:
        """Values set per second."""
        self._rate(self._sets, self._set_reply, TRIAL_S)
        for pipeline in self._sets:
            self._exchange(pipeline, self._set_reply)
        return self._rate(self._sets, self._set_reply, self._seconds)

    def get(self) -> float:
        """Values got per second."""
        return self._rate(self._gets, self._get_reply, self._seconds)

    def close(self) -> None:
        self._socket.close()

    def _rate(self, pipelines: list[bytes], reply_bytes: int, seconds: float) -> float:
        count = 0
        began_s = now_s = self._clock.monotonic_s()
        while now_s - began_s < seconds:
            self._exchange(pipelines[count % len(pipelines)], reply_bytes)
            count += 1
            now_s = self._clock.monotonic_s()
        return count * self._pipeline / (now_s - began_s)

    def _exchange(self, pipeline: bytes, reply_bytes: int) -> None:
        self._socket.sendall(pipeline)
        view, received = memoryview(self._buffer), 0
        while received < reply_bytes:
            received += self._socket.recv_into(view[received:reply_bytes])


def _command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)

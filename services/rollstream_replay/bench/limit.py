"""The practical limit: what the server's own benchmark program reaches with pipelined SET and GET of the same payload.

One connection, as a client of ours has, with the pipeline that suits it best; and several, between which the program need not wait.
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

PIPELINE_BYTES = (256 << 10, 1 << 20)
PIPELINE_MAX = 256
KEYS_BYTES = 400 << 20
KEYS_MAX = 200_000
CONNECTIONS = 4
WITHIN_S = 300.0
RAW_PIPELINES = 64


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
    """Values of `payload_bytes` set and got per second, by one connection and by several."""
    settings = {"appendonly": "no"} if durability == "none" else {}
    load = _Load(
        payload_bytes=payload_bytes, keys=max(64, min(KEYS_MAX, KEYS_BYTES // payload_bytes)), seconds=seconds, clock=clock
    )
    pipelines = sorted({max(1, min(PIPELINE_MAX, size // payload_bytes)) for size in PIPELINE_BYTES})
    program = find_benchmark()
    limit: dict[str, Any] = {
        "program": program.name if program else "raw loop",
        "payload_bytes": payload_bytes,
        "keys": load.keys,
        "pipelines": pipelines,
    }
    with EmbeddedServer(folder, clock=clock, settings=settings, binary=binary) as server:
        path = server.address.path
        for what in ("set", "get"):
            if program is None:
                one = [_raw_rate(what, path, load, pipeline=pipeline) for pipeline in pipelines]
            else:
                one = [_program_rate(program, what, path, load, pipeline=pipeline, connections=1) for pipeline in pipelines]
                several = _program_rate(program, what, path, load, pipeline=pipelines[0], connections=CONNECTIONS)
                limit[f"{what}_per_s_{CONNECTIONS}_connections"] = round(several)
            limit[f"{what}_per_s"] = round(max(one))
    return limit


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    payload_bytes: int
    keys: int
    seconds: float
    clock: Clock


def _program_rate(program: Path, what: str, path: str, load: _Load, *, pipeline: int, connections: int) -> float:
    """By the benchmark program: a short trial, after which all keys are there, tells how many requests fill the time."""
    rate, requests = 0.0, 3 * load.keys if what == "set" else load.keys
    for _ in range(2):
        words = f"-d {load.payload_bytes} -P {pipeline} -r {load.keys} -c {connections} -n {requests} -t {what} --csv".split()
        done = subprocess.run(
            [str(program), "-s", path, *words],
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        rows = [row for row in csv.reader(done.stdout.splitlines()) if row and row[0].lower() == what]
        if done.returncode or not rows:
            said = f"{done.stdout[-300:]}{done.stderr[-300:]}"
            raise RollstreamError(f"bench: {program.name} gave no rate for {what.upper()}: {said}")
        rate = float(rows[-1][1])
        requests = max(1_000, int(rate * load.seconds))
    return rate


def _raw_rate(what: str, path: str, load: _Load, *, pipeline: int) -> float:
    """By whole pipelines over one socket; all keys are set before the first is got."""
    value = np.random.default_rng(0).bytes(load.payload_bytes)
    names = [b"raw:%010d" % key for key in range(pipeline * min(RAW_PIPELINES, max(1, load.keys // pipeline)))]
    parts = [names[start : start + pipeline] for start in range(0, len(names), pipeline)]
    sets = [b"".join(_command(b"SET", name, value) for name in part) for part in parts]
    reply_bytes = {"set": 5 * pipeline, "get": pipeline * (len(b"$%d\r\n" % load.payload_bytes) + load.payload_bytes + 2)}
    buffer = memoryview(bytearray(max(reply_bytes.values())))
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)

        def exchange(command: bytes, expected: int) -> None:
            connection.sendall(command)
            received = 0
            while received < expected:
                received += connection.recv_into(buffer[received:expected])

        for command in sets:
            exchange(command, reply_bytes["set"])
        commands = sets if what == "set" else [b"".join(_command(b"GET", name) for name in part) for part in parts]
        count = 0
        began_s = now_s = load.clock.monotonic_s()
        while now_s - began_s < load.seconds:
            exchange(commands[count % len(commands)], reply_bytes[what])
            count += 1
            now_s = load.clock.monotonic_s()
    return count * pipeline / (now_s - began_s)


def _command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)

"""A replay service as a process of its own, and rollouts to write."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import structlog

from rollstream.clock import SystemClock
from rollstream.replay import MinSize, TableClient, TableSpec, TrajectoryWriter
from rollstream.replay.log import InsertEntry, decode_insert
from rollstream.spaces import Column, Episodes, Flag, Rollout, RowSpec
from rollstream.store import Address, Members, Store, keys
from rollstream_replay.settings import ReplaySettings
from rollstream_replay.wiring import main
from rollstream_service.health import Health
from rollstream_service.lifecycle import Life

ROWS = RowSpec(
    (
        Column(name="observation", dtype="<f4", shape=(3,)),
        Column(name="action", dtype="<i8"),
        Column(name="reward", dtype="<f4"),
    )
)
TABLE = "run-abc123.replay"


@dataclass
class ReplayProcess:
    """One `python -m rollstream_replay`."""

    address: Address
    member: str
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = {
            **os.environ,
            "ROLLSTREAM_REDIS_URL": str(self.address),
            "ROLLSTREAM_MEMBER_ID": self.member,
            "ROLLSTREAM_SHARD": "0",
            "ROLLSTREAM_LEASE_TTL_S": "1.0",
            **self.environment,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rollstream_replay"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(timeout=10)

    def terminate(self) -> int:
        """SIGTERM; returns the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)

    def log_lines(self) -> list[dict[str, object]]:
        """What it wrote; only after it ended."""
        assert self.process is not None
        assert self.process.stdout is not None
        lines = self.process.stdout.read().decode().splitlines()
        return [json.loads(line) if line.startswith("{") else {"event": line} for line in lines]


@pytest.fixture
def replay_process(store: Store, address: Address) -> Iterator[Callable[..., ReplayProcess]]:
    """Starts replay services and ends them after the test."""
    made: list[ReplayProcess] = []

    def start(member: str = "replay-0", **environment: str) -> ReplayProcess:
        process = ReplayProcess(address=address, member=member, environment=environment)
        process.start()
        made.append(process)
        return process

    yield start
    for process in made:
        if process.process is not None and process.process.poll() is None:
            process.kill()


class ReplayThread:
    """The whole service in a thread of the test: starts in milliseconds, but cannot be killed."""

    def __init__(self, address: Address, *, member: str = "replay-0", **settings_given: Any) -> None:
        clock = SystemClock()
        self.life = Life(role="replay", member=member, clock=clock, health=Health(clock), log=structlog.get_logger("rollstream"))
        settings = ReplaySettings(redis_url=str(address), member_id=member, grace_s=5.0, **settings_given)
        self._thread = threading.Thread(target=main, args=(settings, self.life), name=member)
        self._thread.start()

    def stop(self) -> None:
        self.life.stopping.set()
        self._thread.join(timeout=30)
        assert not self._thread.is_alive()


@pytest.fixture
def replay_service(store: Store, address: Address) -> Iterator[ReplayThread]:
    """A running replay service."""
    service = ReplayThread(address)
    yield service
    service.stop()


@pytest.fixture
def replay_shard(store: Store, address: Address) -> Iterator[Callable[..., ReplayThread]]:
    """Starts replay services with settings of their own."""
    made: list[ReplayThread] = []

    def start(shard: int = 0, **settings: Any) -> ReplayThread:
        made.append(ReplayThread(address, member=f"replay-{shard}", shard=shard, **settings))
        return made[-1]

    yield start
    for service in made:
        service.stop()


@dataclass(frozen=True)
class Answer:
    """What a shard answered over HTTP."""

    status: int
    body: bytes

    @property
    def content(self) -> Any:
        """The body, as JSON."""
        return json.loads(self.body)


class Asking:
    """Plain HTTP requests to shards, as any client would make them."""

    def __init__(self, members: Members) -> None:
        self._members = members

    def __call__(self, method: str, path: str, content: Any = None, *, body: bytes = b"", shard: int = 0) -> Answer:
        sent = body if content is None else json.dumps(content).encode()
        clock = SystemClock()
        end_s = clock.monotonic_s() + 20.0
        while True:
            try:
                answer = self._once(self.url(shard), method, path, sent)
            except ConnectionError:  # a killed shard's record outlives it by some seconds
                assert clock.monotonic_s() < end_s, f"shard {shard} cannot be reached"
            else:
                if answer.status != 503 or clock.monotonic_s() >= end_s:
                    return answer
            clock.sleep(0.05)

    def _once(self, url: str, method: str, path: str, sent: bytes) -> Answer:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
        try:
            connection.request(method, f"/v1/tables{path}", sent, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            return Answer(reply.status, reply.read())
        finally:
            connection.close()

    def url(self, shard: int = 0) -> str:
        """Where a shard answers, once it is ready."""
        clock = SystemClock()
        end_s = clock.monotonic_s() + 20.0
        while True:
            there = [record for record in self._members.list() if record.shard == shard and record.ready]
            if there:
                return there[0].url
            assert clock.monotonic_s() < end_s, f"shard {shard} is not ready"
            clock.sleep(0.02)


@pytest.fixture
def ask(members: Members) -> Asking:
    return Asking(members)


@pytest.fixture
def eventually() -> Callable[[Callable[[], Any]], Any]:
    """Waits until a question is answered with something true, and gives it."""

    def wait(question: Callable[[], Any]) -> Any:
        clock = SystemClock()
        end_s = clock.monotonic_s() + 20.0
        while not (answer := question()):
            assert clock.monotonic_s() < end_s, "the state did not come about"
            clock.sleep(0.02)
        return answer

    return wait


@pytest.fixture
def client(store: Store, address: Address) -> Iterator[TableClient]:
    made = TableClient(store, address, table_id=TABLE, clock=SystemClock())
    yield made
    made.close()


@pytest.fixture
def members(store: Store) -> Members:
    return Members(store)


def make_spec(**changes: object) -> TableSpec:
    return TableSpec.model_validate({"name": "replay", "max_items": 1000, "limiter": MinSize(), "rows": ROWS, **changes})


class Episodic:
    """Rollouts of environments whose episodes have a fixed length; the first observation feature counts an environment's rows."""

    def __init__(self, environments: int, *, episode_steps: int) -> None:
        self.environments = environments
        self.episode_rows = episode_steps + 1
        self.row = 0

    def rollout(self, rows: int, *, version: int = 1) -> Rollout:
        """The next `rows` rows of each environment."""
        numbers = np.arange(self.row, self.row + rows)
        self.row += rows
        packed = np.zeros((self.environments, rows), ROWS.dtype)
        within = numbers % self.episode_rows
        packed["flags"] = (within == 0) * Flag.FIRST + (within == self.episode_rows - 1) * (Flag.FINAL | Flag.TERMINATED)
        packed["version"] = version
        packed["observation"][..., 0] = numbers
        packed["observation"][..., 1] = np.arange(self.environments)[:, None]
        packed["action"] = numbers % 2
        packed["reward"] = numbers
        following = np.zeros((self.environments, 3), np.float32)
        following[:, 0] = self.row
        following[:, 1] = np.arange(self.environments)
        return Rollout(
            rows=packed.reshape(-1),
            offsets=np.arange(self.environments + 1, dtype=np.int64) * rows,
            next_observation={"observation": following},
            version=version,
            env_steps=int((within != self.episode_rows - 1).sum()) * self.environments,
            episodes=Episodes(),
        )


@pytest.fixture
def episodic() -> Callable[..., Episodic]:
    return Episodic


@pytest.fixture
def spec() -> Callable[..., TableSpec]:
    return make_spec


@pytest.fixture
def table_id() -> str:
    return TABLE


STEP_ROWS = RowSpec((Column(name="observation", dtype="<f4", shape=(2,)), Column(name="action", dtype="<i8")))
EXPERIMENT = TABLE.split(".", 1)[0]


class StepLog:
    """Makes tables that nobody reads and trajectory writers, and reads what they wrote."""

    def __init__(self, store: Store, address: Address, spec: Callable[..., Any]) -> None:
        self.store, self.address, self.spec = store, address, spec
        self.made: list[TrajectoryWriter] = []

    def create(self, name: str = "replay", **settings: Any) -> None:
        self.add(self.spec(name=name, **{"rows": STEP_ROWS, **settings}))

    def add(self, spec: Any) -> None:
        text = spec.model_dump_json()
        self.store.run("make the table", lambda client: client.hset(keys.tables(), f"{EXPERIMENT}.{spec.name}", text))

    def writer(self, tables: Any, **settings: Any) -> TrajectoryWriter:
        writer = TrajectoryWriter(
            self.store,
            self.address,
            experiment=EXPERIMENT,
            tables=tables,
            environments=settings.pop("environments", 2),
            clock=SystemClock(),
            **settings,
        )
        self.made.append(writer)
        return writer

    def entries(self) -> list[InsertEntry]:
        log = self.store.run("read the log", lambda client: client.xrange(keys.table_log(f"{EXPERIMENT}.replay", 0)))
        return [decode_insert(fields[b"i"]) for _, fields in log]

    def rows(self, writer: int, env: int, count: int, dtype: Any = STEP_ROWS.dtype) -> Any:
        """The first rows of an environment."""
        chunks = [keys.chunk_key(f"{EXPERIMENT}.replay", 0, writer=writer, env=env, chunk_no=number) for number in range(count)]
        found: Any = self.store.run("read rows", lambda client: client.mget(chunks))
        return np.frombuffer(b"".join(found), dtype)


@pytest.fixture
def log(store: Store, address: Address, spec: Callable[..., Any]) -> Iterator[StepLog]:
    """Makes tables that nobody reads and trajectory writers, which it closes after the test."""
    made = StepLog(store, address, spec)
    yield made
    for writer in made.made:
        writer.close()

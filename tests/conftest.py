"""Shared fixtures: one real server per test run (per worker of pytest-xdist), emptied before each test that uses it.

`ROLLSTREAM_TEST_REDIS_SERVER=/usr/bin/redis-server` runs everything on that binary instead of the embedded Valkey. Tests marked
`redis7` need such a binary in any case (the embedded one has no TLS).
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from rollstream.clock import FakeClock, SystemClock
from rollstream.store import Address, EmbeddedServer, Store

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # started in the background of a script: programs of tests would ignore Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="learning goals: all of them with all seeds, not the short ones alone")


@pytest.fixture(scope="session")
def server_binary() -> Path | None:
    """The server that tests run on; None: the embedded one."""
    named = os.environ.get("ROLLSTREAM_TEST_REDIS_SERVER")
    return Path(named) if named else None


@pytest.fixture(scope="session")
def redis7_binary(server_binary: Path | None) -> Path:
    """A redis-server with TLS, for tests marked `redis7`."""
    found = server_binary or shutil.which("redis-server")
    if not found:
        pytest.fail("needs redis-server 7 on the PATH, or ROLLSTREAM_TEST_REDIS_SERVER")
    return Path(found)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, server_binary: Path | None) -> Iterator[EmbeddedServer]:
    """A running server, shared by all tests of this process. A test that stops it must start it again."""
    embedded = EmbeddedServer(tmp_path_factory.mktemp("server"), clock=SystemClock(), binary=server_binary)
    embedded.start()
    yield embedded
    embedded.stop()


@pytest.fixture
def address(server: EmbeddedServer) -> Address:
    """Address of the shared server; `store` is what empties it."""
    return server.start()  # heals a server that an earlier test left dead


def wait_until_written(store: Store) -> None:
    """Until the append-only file has everything: on a slow disk it is written to up to two seconds late, and a killed server forgets."""
    end_s = time.monotonic() + 30.0
    while store.run("look at the file", lambda client: client.info("persistence")).get("aof_buffer_length"):  # type: ignore[union-attr]
        assert time.monotonic() < end_s, "the append-only file is not written"
        time.sleep(0.01)


@pytest.fixture
def store(address: Address) -> Iterator[Store]:
    """A store on the emptied server. Its clock is the real one, because the server's is."""
    opened = Store(address, clock=SystemClock(), deadline_s=10.0, name="test")
    opened.run("empty the database", lambda client: client.flushall())
    wait_until_written(opened)
    yield opened
    opened.close()


@pytest.fixture
def clock() -> FakeClock:
    """A clock that stands still until the test moves it."""
    return FakeClock()


@pytest.fixture
def free_port() -> int:
    """A TCP port on the loopback interface that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(slots=True)
class _Pair:
    client: socket.socket
    server: socket.socket
    dead: bool


@dataclass(slots=True)
class Link:
    """A proxy between a client and the server that can go bad: the network, in a test's hands."""

    target: str
    path: str
    _swallowing: bool = False
    _stopping: bool = False
    _pairs: list[_Pair] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    connections: int = 0

    @property
    def address(self) -> Address:
        return Address(transport="unix", path=self.path)

    def swallow(self) -> None:
        """From now on bytes vanish, in both directions, without an error: a lost conntrack entry, a dead node."""
        with self._lock:
            self._swallowing = True
            for pair in self._pairs:
                pair.dead = True

    def heal(self) -> None:
        """New connections work again; those that went dead stay dead."""
        with self._lock:
            self._swallowing = False

    def cut(self) -> None:
        """Close every connection, as a middlebox does with idle ones."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in (pair.client, pair.server):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it was closed already

    def serve(self) -> None:
        """Forward until stopped. Runs in the fixture's thread."""
        with selectors.DefaultSelector() as ready, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.path)
            listener.listen()
            ready.register(listener, selectors.EVENT_READ)
            while not self._stopping:
                for key, _ in ready.select(timeout=0.02):
                    if key.data is None:
                        self._accept(listener, ready)
                    else:
                        self._forward(key.data, key.fileobj, ready)  # type: ignore[arg-type]
            for key in list(ready.get_map().values()):
                key.fileobj.close()  # type: ignore[union-attr]

    def stop(self) -> None:
        self._stopping = True

    def _accept(self, listener: socket.socket, ready: selectors.BaseSelector) -> None:
        client, _ = listener.accept()
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self.target)
        except OSError:
            client.close()
            server.close()
            return
        with self._lock:
            pair = _Pair(client, server, dead=self._swallowing)
            self._pairs.append(pair)
            self.connections += 1
        ready.register(client, selectors.EVENT_READ, pair)
        ready.register(server, selectors.EVENT_READ, pair)

    def _forward(self, pair: _Pair, source: socket.socket, ready: selectors.BaseSelector) -> None:
        try:
            data = source.recv(1 << 16)
            if data and not pair.dead:
                (pair.server if source is pair.client else pair.client).sendall(data)
        except OSError:
            data = b""
        if not data and source.fileno() >= 0:
            for end in (pair.client, pair.server):
                ready.unregister(end)
                end.close()


@pytest.fixture
def link(address: Address) -> Iterator[Link]:
    """A link to the shared server that a test can make swallow bytes or cut its connections."""
    folder = tempfile.mkdtemp(prefix="link-")
    proxy = Link(target=address.path, path=f"{folder}/link.sock")
    thread = threading.Thread(target=proxy.serve, name="link")
    thread.start()
    while not Path(proxy.path).exists():
        threading.Event().wait(0.005)
    yield proxy
    proxy.stop()
    thread.join(timeout=10.0)
    shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """A private authority, a server's certificate for `localhost`, a client's, and an authority that signed neither."""

    ca: Path
    server: Path
    server_key: Path
    client: Path
    client_key: Path
    other_ca: Path


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates for TLS tests, made now by openssl, so that they never run out."""
    if shutil.which("openssl") is None:
        pytest.fail("needs openssl on the PATH")
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=30)

    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for name in ("ca", "other-ca"):
        openssl("req", "-x509", *curve, "-days", "2", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")
    for name in ("server", "client"):
        openssl("req", *curve, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        (folder / "names").write_text("subjectAltName=DNS:localhost\n")
        signed_by = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
        openssl("x509", "-req", "-in", f"{name}.csr", *signed_by, "-days", "2", "-extfile", "names", "-out", f"{name}.pem")
    return Certificates(
        ca=folder / "ca.pem",
        server=folder / "server.pem",
        server_key=folder / "server.key",
        client=folder / "client.pem",
        client_key=folder / "client.key",
        other_ca=folder / "other-ca.pem",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """Runs `rollstream` in `directory`."""

    directory: Path

    @property
    def runs(self) -> list[str]:
        """Names in the folder of runs."""
        folder = self.directory / "runs"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            command(arguments),
            cwd=self.directory,
            env=clean_environment() | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )

    def json(self, *arguments: str) -> Any:
        """Run a command that prints JSON."""
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command, to be interrupted later."""
        return subprocess.Popen(
            command(arguments),
            cwd=self.directory,
            env=clean_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def processes(self) -> list[psutil.Process]:
        """What runs in the directory, or below."""
        found = []
        for process in psutil.process_iter():
            try:
                if Path(process.cwd()).is_relative_to(self.directory) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def until(self, condition: Callable[[], object], *, timeout_s: float = 60.0) -> None:
        """Wait until the condition is true."""
        pause = threading.Event()
        for _ in range(int(timeout_s / 0.1)):
            if condition():
                return
            pause.wait(0.1)
        raise AssertionError("the condition did not become true in time")

    def until_said(self, process: subprocess.Popen[str], words: str) -> None:
        """Read the standard error of `process` up to a line with `words`."""
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if words in line:
                return
        raise AssertionError(f"the command ended without saying {words!r}; it said: {''.join(said)}")


def command(arguments: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-m", "rollstream_cli", *arguments]


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("ROLLSTREAM_")}


@contextmanager
def opened_shell(directory: Path) -> Iterator[Shell]:
    """A shell in an empty directory; whatever runs there in the end is killed, and fails the test."""
    made = Shell(directory=directory)
    yield made
    left = made.processes()
    for process in left:
        process.send_signal(signal.SIGKILL)
    assert not left, f"the command left processes behind: {left}"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """The command line as people use it: a process of its own in an empty directory."""
    with opened_shell(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def make_shell(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], AbstractContextManager[Shell]]:
    """Makes a shell for all tests of a module."""
    return lambda: opened_shell(tmp_path_factory.mktemp("shell"))

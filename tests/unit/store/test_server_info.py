"""What a server may be: new enough, and one that never evicts."""

from __future__ import annotations

import pytest

from rollstream.errors import ConfigError, StoreRefused
from rollstream.store.connection import MAX_BLOCK_S, SOCKET_TIMEOUT_S, judge_server
from rollstream.store.embedded import find_server_binary

GOOD = {"redis_version": "7.0.15", "maxmemory": 0, "used_memory": 1, "maxmemory_policy": "noeviction"}


def test_redis_and_valkey_are_told_apart() -> None:
    assert str(judge_server(GOOD, "here")) == "redis 7.0.15"
    valkey = judge_server(GOOD | {"redis_version": "7.2.4", "valkey_version": "9.1.2"}, "here")
    assert (valkey.product, valkey.version) == ("valkey", "9.1.2")


@pytest.mark.parametrize("version", ["6.2.14", "5.0", "0.0"])
def test_a_server_older_than_7_is_refused(version: str) -> None:
    with pytest.raises(StoreRefused, match=f"has version redis {version}; Rollstream needs Redis 7.0 or Valkey 8 or newer"):
        judge_server(GOOD | {"redis_version": version}, "here")


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
def test_a_server_that_evicts_is_refused(policy: str) -> None:
    with pytest.raises(StoreRefused, match=f"has maxmemory-policy {policy}, which deletes rows and weights"):
        judge_server(GOOD | {"maxmemory_policy": policy}, "here")


def test_the_socket_waits_longer_than_any_command_may_block() -> None:
    assert MAX_BLOCK_S < SOCKET_TIMEOUT_S


def test_without_any_server_the_user_is_told_what_to_install() -> None:
    with pytest.raises(ConfigError, match=r"no embedded server for .*: install valkey-server or redis-server 7.0"):
        find_server_binary(package="no_such_package", search_path="/nowhere")

"""Leases on a real server: one owner, growing tokens, and no write after the loss."""

from __future__ import annotations

import pytest

from rollstream.errors import LeaseLost, StoreUnavailable
from rollstream.store import Lease, Store


def take(store: Store, owner: str, *, ttl_s: float = 30.0) -> Lease | None:
    return Lease.acquire(store, key="rs:test:lease", token_key="rs:test:token", owner=owner, ttl_s=ttl_s)


def expire(store: Store) -> None:
    store.run("expire the lease", lambda client: client.delete("rs:test:lease"))


def test_only_one_owner_gets_a_free_lease(store: Store) -> None:
    first = take(store, "learner-a")
    assert first is not None
    assert take(store, "learner-b") is None
    assert Lease.owner_of(store, key="rs:test:lease") == "learner-a"


def test_a_released_lease_is_free_and_the_next_token_is_larger(store: Store) -> None:
    first = take(store, "learner-a")
    assert first is not None
    first.release()
    assert Lease.owner_of(store, key="rs:test:lease") is None
    second = take(store, "learner-b")
    assert second is not None
    assert second.token > first.token


def test_a_lease_runs_out_by_itself(store: Store) -> None:
    first = take(store, "learner-a", ttl_s=0.001)
    assert first is not None
    second = None
    while second is None:
        second = take(store, "learner-b")
    assert second.token == first.token + 1


def test_renewing_extends_the_life_of_the_key(store: Store) -> None:
    lease = take(store, "learner-a", ttl_s=30.0)
    assert lease is not None
    store.run("shorten", lambda client: client.pexpire("rs:test:lease", 5_000))
    lease.renew()
    assert store.run("read", lambda client: client.pttl("rs:test:lease")) > 25_000
    assert 0 < lease.remaining_s() <= 30.0


def test_an_owner_whose_lease_was_taken_cannot_renew(store: Store) -> None:
    lease = take(store, "learner-a")
    assert lease is not None
    expire(store)
    take(store, "learner-b")
    with pytest.raises(LeaseLost, match=r"was lost: it is now held by 2:learner-b; stop writing"):
        lease.renew()


def test_an_expired_lease_is_taken_back_only_if_nobody_had_it_in_between(store: Store) -> None:
    lease = take(store, "learner-a")
    assert lease is not None
    expire(store)
    lease.renew()
    assert Lease.owner_of(store, key="rs:test:lease") == "learner-a"
    expire(store)
    other = take(store, "learner-b")
    assert other is not None
    other.release()
    with pytest.raises(LeaseLost, match="was lost: it is now expired"):
        lease.renew()


def test_guarded_commands_run_while_the_lease_is_held_and_not_after(store: Store) -> None:
    lease = take(store, "learner-a")
    assert lease is not None
    assert lease.guarded("publish", lambda pipeline: pipeline.set("rs:test:value", "1")) == [True]
    expire(store)
    take(store, "learner-b")
    with pytest.raises(LeaseLost, match="stop writing for it"):
        lease.guarded("publish", lambda pipeline: pipeline.set("rs:test:value", "2"))
    assert store.run("read", lambda client: client.get("rs:test:value")) == b"1"


def test_releasing_a_lost_lease_leaves_the_new_owner_alone(store: Store) -> None:
    lease = take(store, "learner-a")
    assert lease is not None
    expire(store)
    take(store, "learner-b")
    lease.release()
    assert Lease.owner_of(store, key="rs:test:lease") == "learner-b"
    assert lease.remaining_s() == 0.0


def test_a_lease_is_renewed_while_the_servers_memory_is_full(store: Store) -> None:
    lease = take(store, "a")
    assert lease is not None
    store.client.config_set("maxmemory", "1")
    try:
        lease.renew(deadline_s=0.5)
        with pytest.raises(StoreUnavailable, match="raise maxmemory or shrink tables"):
            lease.guarded("write", lambda pipeline: pipeline.set("rs:x", "y"), deadline_s=0.1)
    finally:
        store.client.config_set("maxmemory", "0")
    lease.release()

"""Who is in the cell."""

from __future__ import annotations

import threading

from rollstream.store import Store, keys
from rollstream.store.changes import Changes
from rollstream.store.members import MemberRecord, Members


def test_an_announced_member_is_listed_with_all_that_it_said(store: Store) -> None:
    record = MemberRecord(
        id="actor-1", role="actor", url="http://h:1", version="0.1.0", pid=7, host="h", ready=True, doing="x-123456", rss_mb=90.5,
        detail={"env_steps_per_s": 10_000.0, "algorithm": "ppo"},
    )  # fmt: skip
    members = Members(store)
    members.announce(record)
    assert members.list() == [record]
    assert members.get("actor-1") == record


def test_members_are_listed_by_id(store: Store) -> None:
    members = Members(store)
    for member_id in ("learner-0", "actor-2", "actor-1"):
        members.announce(MemberRecord(id=member_id, role="learner" if member_id == "learner-0" else "actor"))
    assert [record.id for record in members.list()] == ["actor-1", "actor-2", "learner-0"]


def test_a_member_that_stops_renewing_is_gone_after_its_record_s_life(store: Store) -> None:
    members = Members(store)
    members.announce(MemberRecord(id="actor-1", role="actor"), ttl_s=0.05)
    members.announce(MemberRecord(id="actor-2", role="actor"), ttl_s=60.0)
    threading.Event().wait(0.08)
    assert [record.id for record in members.list()] == ["actor-2"]
    assert members.get("actor-1") is None
    assert store.client.smembers("rs:members") == {b"actor-2"}


def test_a_member_that_leaves_is_gone_at_once(store: Store) -> None:
    members = Members(store)
    members.announce(MemberRecord(id="replay-0", role="replay", shard=0))
    members.leave("replay-0")
    assert members.list() == []


def test_coming_and_leaving_wake_the_cell_but_a_heartbeat_does_not(store: Store) -> None:
    members, changes = Members(store), Changes(store)
    record = MemberRecord(id="actor-1", role="actor")
    members.announce(record)
    came = changes.latest()
    members.announce(record)
    assert changes.latest() == came
    members.leave("actor-1")
    assert changes.latest() != came


def test_a_record_is_kept_alive_while_the_servers_memory_is_full(store: Store) -> None:
    members = Members(store)
    members.announce(MemberRecord(id="replay-0", role="replay", shard=0), ttl_s=30.0)
    store.client.config_set("maxmemory", "1")
    try:
        members.announce(MemberRecord(id="replay-0", role="replay", shard=0), ttl_s=60.0)
        assert store.client.pttl(keys.member("replay-0")) > 30_000
    finally:
        store.client.config_set("maxmemory", "0")

"""Keys: one hash tag per table shard, chunk keys of fixed width."""

from __future__ import annotations

from rollstream.store import keys


def test_a_chunk_key_is_its_prefix_and_three_numbers() -> None:
    key = keys.chunk_key("cart-0a1b2c.replay", 3, writer=0xAB, env=7, chunk_no=1 << 40)
    assert key == b"rs:{%b}/" % keys.shard_tag("cart-0a1b2c.replay", 3).encode() + bytes.fromhex(
        "000000ab000000070000010000000000"
    )
    assert len(key) == len(keys.chunk_prefix("cart-0a1b2c.replay", 3)) + keys.CHUNK_KEY_SUFFIX_BYTES
    assert len(key) == 30  # one byte more costs 16 bytes of memory a row in Redis 7.0


def test_the_tag_of_a_shard_never_changes() -> None:
    assert keys.shard_tag("cart-0a1b2c.replay", 3) == "2nydwuiw"
    assert len({keys.shard_tag(f"table-{table}", shard) for table in range(500) for shard in range(4)}) == 2000


def test_two_tables_with_one_tag_are_found() -> None:
    ours, other = "table-304526", "table-357925"
    assert keys.shard_tag(ours, 0) == keys.shard_tag(other, 0)
    others = [("a", 4), (ours, 1), (other, 2), ("b", 1)]
    assert keys.table_with_same_tag(ours, shards=3, others=others) == other
    assert keys.table_with_same_tag(ours, shards=3, others=[("a", 4), (ours, 1), ("b", 1)]) is None


def test_all_keys_of_a_table_shard_share_one_hash_tag() -> None:
    names = [
        keys.table_log("t", 1),
        keys.table_position("t", 1),
        keys.table_credit("t", 1),
        keys.table_wake("t", 1, 9),
        keys.table_snapshot("t", 1),
        keys.table_snapshot("t", 1, "index"),
        keys.table_lease("t", 1),
        keys.table_token("t", 1),
        keys.chunk_prefix("t", 1).decode(),
    ]
    assert all(name.startswith(keys.shard_prefix("t", 1)) for name in names)
    assert len(set(names)) == len(names)


def test_every_key_starts_with_rs_so_that_an_acl_can_confine_it() -> None:
    made = [
        keys.members(),
        keys.member("actor-0"),
        keys.changes(),
        keys.assignments(),
        keys.wanted_actors(),
        keys.writers(),
        keys.idempotency("k"),
        keys.experiments(),
        keys.experiments_open(),
        keys.experiment_spec("e"),
        keys.experiment_status("e"),
        keys.experiment_wanted("e"),
        keys.experiment_lease("e"),
        keys.experiment_token("e"),
        keys.experiment_counters("e"),
        keys.experiment_reports("e"),
        keys.experiment_events("e"),
        keys.experiment_faults("e"),
        keys.experiment_weights("e"),
        keys.experiment_weights_version("e", 4),
        keys.edge("e", "rollouts"),
        keys.edge_credit("e", "rollouts"),
        keys.edge_wake("e", "rollouts", 2),
        keys.edge_dead_letters("e", "rollouts"),
        keys.tables(),
        keys.shard_prefix("t", 0),
    ]
    assert all(name.startswith("rs:") for name in made)
    assert len(set(made)) == len(made)

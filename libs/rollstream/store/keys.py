"""Every key that Rollstream keeps in Redis, as functions; no other file spells one.

All keys start with `rs:`, so a cell can share a server with others and an ACL user can be confined to `~rs:*`. The keys of one
shard of a table carry one hash tag: on a Redis Cluster they lie on one node, so that a flush (chunks, log entry, credit) is one
round trip, and the shards of a table spread over the nodes. The tag is a short digest of the table's id and the number of the
shard, not these themselves: every row has a key, and a key of at most 30 bytes saves Redis 5 to 8 % of the memory of a small row.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import struct
from collections.abc import Iterable

__all__ = [
    "CHUNK_KEY_SUFFIX_BYTES",
    "assignments",
    "changes",
    "chunk_key",
    "chunk_prefix",
    "control_lease",
    "control_token",
    "edge",
    "edge_credit",
    "edge_dead_letters",
    "edge_wake",
    "experiment_counters",
    "experiment_events",
    "experiment_faults",
    "experiment_flow",
    "experiment_lease",
    "experiment_reports",
    "experiment_spec",
    "experiment_status",
    "experiment_token",
    "experiment_wanted",
    "experiment_weights",
    "experiment_weights_version",
    "experiments",
    "experiments_open",
    "idempotency",
    "member",
    "members",
    "replay_lease",
    "replay_token",
    "shard_prefix",
    "shard_tag",
    "table_credit",
    "table_lease",
    "table_log",
    "table_position",
    "table_snapshot",
    "table_token",
    "table_wake",
    "table_with_same_tag",
    "tables",
    "wanted_actors",
    "writers",
]

CHUNK_KEY_SUFFIX_BYTES = 4 + 4 + 8
"""Bytes of a chunk key after its prefix: writer u4, environment u4 and chunk number u8, most significant byte first."""
_TAG_BYTES = 5  # eight letters and digits


# -- the cell


def members() -> str:
    """Set of the ids of all members that announced themselves."""
    return "rs:members"


def member(member_id: str) -> str:
    """JSON record of one member; it expires unless the member renews it."""
    return f"rs:member:{member_id}"


def changes() -> str:
    """Stream (about 1,000 entries) that wakes whoever waits for something to change: fields `kind` and `id`."""
    return "rs:changes"


def assignments() -> str:
    """Hash: member id -> JSON of the experiment that this actor serves."""
    return "rs:assignments"


def wanted_actors() -> str:
    """Integer: how many actors the cell should have."""
    return "rs:cell:wanted_actors"


def control_lease() -> str:
    """Which control assigns actors now: `<token>:<owner>`; expires unless renewed."""
    return "rs:control:lease"


def control_token() -> str:
    """Counter of that lease: the newest fencing token."""
    return "rs:control:token"


def writers() -> str:
    """Counter that hands out writer ids; one id per incarnation of a writer, never used twice."""
    return "rs:writers"


def idempotency(key: str) -> str:
    """Answer to a POST that carried this idempotency key; expires."""
    return f"rs:idempotency:{key}"


# -- experiments


def experiments() -> str:
    """Sorted set: experiment id -> number of its submission."""
    return "rs:experiments"


def experiments_open() -> str:
    """Sorted set like `experiments`, only those that have not reached a final phase."""
    return "rs:experiments:open"


def experiment_spec(experiment_id: str) -> str:
    """JSON of the experiment's spec, as submitted."""
    return f"rs:exp:{experiment_id}:spec"


def experiment_status(experiment_id: str) -> str:
    """Hash of JSON values: phase, reason, times, learner, summary."""
    return f"rs:exp:{experiment_id}:status"


def experiment_wanted(experiment_id: str) -> str:
    """What people want of it: `run`, `pause` or `stop`."""
    return f"rs:exp:{experiment_id}:wanted"


def experiment_lease(experiment_id: str) -> str:
    """Who runs it now: `<token>:<owner>`; expires unless renewed."""
    return f"rs:exp:{experiment_id}:lease"


def experiment_token(experiment_id: str) -> str:
    """Counter of its leases: the newest fencing token."""
    return f"rs:exp:{experiment_id}:token"


def experiment_counters(experiment_id: str) -> str:
    """Hash of integers that only grow."""
    return f"rs:exp:{experiment_id}:counters"


def experiment_reports(experiment_id: str) -> str:
    """Stream of reports."""
    return f"rs:exp:{experiment_id}:reports"


def experiment_events(experiment_id: str) -> str:
    """Stream of events: changes of phase, checkpoints, actors that came and went."""
    return f"rs:exp:{experiment_id}:events"


def experiment_faults(experiment_id: str) -> str:
    """Stream of faults in the user's code, each with its traceback."""
    return f"rs:exp:{experiment_id}:faults"


def experiment_weights(experiment_id: str) -> str:
    """Hash with the newest version of its weights."""
    return f"rs:exp:{experiment_id}:weights"


def experiment_weights_version(experiment_id: str, version: int) -> str:
    """One version of its weights, in safetensors format."""
    return f"rs:exp:{experiment_id}:weights:{version}"


def experiment_peers_waiting(experiment_id: str) -> str:
    """Hash: actor that waits for a group of peers -> its standing, and when it last said that it is there."""
    return f"rs:exp:{experiment_id}:peers:waiting"


def experiment_peers_group(experiment_id: str) -> str:
    """JSON of the newest group of actors that compute together."""
    return f"rs:exp:{experiment_id}:peers:group"


def experiment_peers_running(experiment_id: str) -> str:
    """An actor of a group that computes together; expires unless the group goes on."""
    return f"rs:exp:{experiment_id}:peers:running"


def experiment_flow(experiment_id: str) -> str:
    """JSON of its dataflow graph, as the learner last described it."""
    return f"rs:exp:{experiment_id}:flow"


# -- edges


def edge(experiment_id: str, name: str) -> str:
    """Stream of the messages of one edge."""
    return f"rs:exp:{experiment_id}:edge:{name}"


def edge_credit(experiment_id: str, name: str) -> str:
    """Hash: writer -> newest sequence number that the reader has acknowledged."""
    return f"rs:exp:{experiment_id}:edge:{name}:credit"


def edge_wake(experiment_id: str, name: str, writer: int) -> str:
    """List that wakes a writer which waits for credit."""
    return f"rs:exp:{experiment_id}:edge:{name}:wake:{writer}"


def edge_dead_letters(experiment_id: str, name: str) -> str:
    """Stream of messages that could not be decoded."""
    return f"rs:exp:{experiment_id}:edge:{name}:dead"


# -- tables


def replay_lease(shard: int) -> str:
    """Which process serves the shard of this number of all tables: `<token>:<owner>`; expires unless renewed."""
    return f"rs:replay:{shard}:lease"


def replay_token(shard: int) -> str:
    """Counter of that lease: the newest fencing token."""
    return f"rs:replay:{shard}:token"


def tables() -> str:
    """Hash: table id -> JSON of its spec."""
    return "rs:tables"


@functools.lru_cache(maxsize=4096)
def shard_tag(table_id: str, shard: int) -> str:
    """Hash tag of all keys of a shard: eight letters and digits, a digest of the table's id and the shard's number."""
    digest = hashlib.blake2s(f"{table_id}.{shard}".encode(), digest_size=_TAG_BYTES).digest()
    return base64.b32encode(digest).decode().lower()


def table_with_same_tag(table_id: str, *, shards: int, others: Iterable[tuple[str, int]]) -> str | None:
    """Which of the `others` (table id, number of shards) has a shard with a tag of this table: the two must not exist at once.

    With a thousand shards that happens once in two million cells.
    """
    tags = {shard_tag(table_id, shard) for shard in range(shards)}
    for other, other_shards in others:
        if other != table_id and any(shard_tag(other, shard) in tags for shard in range(other_shards)):
            return other
    return None


def shard_prefix(table_id: str, shard: int) -> str:
    """What all keys of a shard start with, and no other key."""
    return f"rs:{{{shard_tag(table_id, shard)}}}"


def _table(table_id: str, shard: int) -> str:
    return shard_prefix(table_id, shard) + ":"


def table_log(table_id: str, shard: int) -> str:
    """Stream of what happened to a shard: inserts, priority updates, deletes."""
    return _table(table_id, shard) + "log"


def table_position(table_id: str, shard: int) -> str:
    """Hash: how far the shard has read its log."""
    return _table(table_id, shard) + "position"


def table_credit(table_id: str, shard: int) -> str:
    """Hash: writer -> newest sequence number that the shard has applied."""
    return _table(table_id, shard) + "credit"


def table_wake(table_id: str, shard: int, writer: int) -> str:
    """List that wakes a writer which waits for the shard."""
    return _table(table_id, shard) + f"wake:{writer}"


def table_snapshot(table_id: str, shard: int, part: str = "") -> str:
    """Snapshot of the shard's index, or the named part of it."""
    return _table(table_id, shard) + (f"snapshot:{part}" if part else "snapshot")


def table_lease(table_id: str, shard: int) -> str:
    """Which process serves the shard."""
    return _table(table_id, shard) + "lease"


def table_token(table_id: str, shard: int) -> str:
    """Counter of the shard's leases: the newest fencing token."""
    return _table(table_id, shard) + "token"


def chunk_prefix(table_id: str, shard: int) -> bytes:
    """What the keys of all chunks of a shard start with, and no other key."""
    return shard_prefix(table_id, shard).encode() + b"/"


def chunk_key(table_id: str, shard: int, *, writer: int, env: int, chunk_no: int) -> bytes:
    """The key of one chunk. The row path fills thousands of these at once; this is the same key, spelled out."""
    return chunk_prefix(table_id, shard) + struct.pack(">IIQ", writer, env, chunk_no)

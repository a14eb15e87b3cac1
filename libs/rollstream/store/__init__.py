"""Redis: keys, connections that retry, leases with fencing tokens, credit, the embedded server, and the hand-written row path."""

from rollstream.store import keys
from rollstream.store.address import Address, parse_address
from rollstream.store.assignments import Assignment, Assignments
from rollstream.store.changes import Changes
from rollstream.store.chunk_reader import ChunkRead, ChunkReader
from rollstream.store.chunk_writer import ChunkWriter, PendingWrite
from rollstream.store.connection import MAX_BLOCK_S, AsyncStore, ServerInfo, Store
from rollstream.store.credit import Credit
from rollstream.store.embedded import EmbeddedServer
from rollstream.store.experiments import Experiments, ExperimentStatus, Order
from rollstream.store.faults import Fault, FaultPlace
from rollstream.store.keys import chunk_prefix
from rollstream.store.lease import Lease
from rollstream.store.members import MemberRecord, Members
from rollstream.store.retry import is_out_of_memory, reply_code

__all__ = [
    "MAX_BLOCK_S",
    "Address",
    "Assignment",
    "Assignments",
    "AsyncStore",
    "Changes",
    "ChunkRead",
    "ChunkReader",
    "ChunkWriter",
    "Credit",
    "EmbeddedServer",
    "ExperimentStatus",
    "Experiments",
    "Fault",
    "FaultPlace",
    "Lease",
    "MemberRecord",
    "Members",
    "Order",
    "PendingWrite",
    "ServerInfo",
    "Store",
    "chunk_prefix",
    "is_out_of_memory",
    "keys",
    "parse_address",
    "reply_code",
]

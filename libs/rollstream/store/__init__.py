"""Redis: keys, connections that retry, leases with fencing tokens, credit, the embedded server, and the hand-written row path."""

from rollstream.store import keys
from rollstream.store.address import Address, parse_address
from rollstream.store.connection import MAX_BLOCK_S, AsyncStore, ServerInfo, Store
from rollstream.store.credit import Credit
from rollstream.store.embedded import EmbeddedServer
from rollstream.store.keys import chunk_prefix
from rollstream.store.lease import Lease
from rollstream.store.retry import reply_code

__all__ = [
    "MAX_BLOCK_S",
    "Address",
    "AsyncStore",
    "Credit",
    "EmbeddedServer",
    "Lease",
    "ServerInfo",
    "Store",
    "chunk_prefix",
    "keys",
    "parse_address",
    "reply_code",
]

"""Edges: on-policy data from actors to the learner, as one buffer a message, bounded by credit."""

from rollstream.edges.message import (
    OLDEST_READABLE_SCHEMA,
    SCHEMA,
    EdgeMessage,
    Prologue,
    decode_batch,
    encode_batch,
    read_prologue,
)
from rollstream.edges.reader import READ_MESSAGES, EdgeReader
from rollstream.edges.remove import remove_edge
from rollstream.edges.writer import EdgeWriter

__all__ = [
    "OLDEST_READABLE_SCHEMA",
    "READ_MESSAGES",
    "SCHEMA",
    "EdgeMessage",
    "EdgeReader",
    "EdgeWriter",
    "Prologue",
    "decode_batch",
    "encode_batch",
    "read_prologue",
    "remove_edge",
]

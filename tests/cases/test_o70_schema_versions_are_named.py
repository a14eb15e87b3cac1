"""O70: workers of another release gave unreadable errors. Every message names its schema version, and a refusal names both."""

from __future__ import annotations

import re

import numpy as np
import pytest

from rollstream.edges import OLDEST_READABLE_SCHEMA, SCHEMA, decode_batch, encode_batch
from rollstream.errors import SchemaMismatch
from rollstream.spaces import Batch

MESSAGE = encode_batch(
    Batch(columns={"reward": np.ones(4, np.float32)}, env_steps=4, version=1, newest_version=1),
    spec_hash="0123456789abcdef",
    writer=1,
    sequence=1,
)


@pytest.mark.parametrize("schema", [0, SCHEMA + 1, 65_535])
def test_a_schema_version_that_cannot_be_read_is_refused_naming_both(schema: int) -> None:
    other = MESSAGE[:4] + schema.to_bytes(2, "little") + MESSAGE[6:]
    expected = f"edge message has schema version {schema}, this process reads {OLDEST_READABLE_SCHEMA} to {SCHEMA}"
    with pytest.raises(SchemaMismatch, match=re.escape(expected)):
        decode_batch(other)


def test_every_schema_version_from_the_oldest_readable_on_is_read() -> None:
    for schema in range(OLDEST_READABLE_SCHEMA, SCHEMA + 1):
        assert decode_batch(MESSAGE[:4] + schema.to_bytes(2, "little") + MESSAGE[6:]).batch.rows == 4

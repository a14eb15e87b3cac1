"""The row path on a real server: whatever was written is read back, byte for byte; what is missing is marked."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from rollstream.clock import SystemClock
from rollstream.errors import SchemaMismatch, StoreError, StoreUnavailable
from rollstream.store import Address, ChunkReader, ChunkWriter, EmbeddedServer, Store, chunk_prefix, keys

PREFIX = chunk_prefix("cart-0a1b2c.replay", 0)
LOG = keys.table_log("cart-0a1b2c.replay", 0)
WRITER = 0xAB


@pytest.fixture
def writer(address: Address) -> Iterator[ChunkWriter]:
    opened = ChunkWriter(address, clock=SystemClock(), deadline_s=10.0)
    yield opened
    opened.close()


@pytest.fixture
def reader(address: Address) -> Iterator[ChunkReader]:
    opened = ChunkReader(address, clock=SystemClock(), deadline_s=10.0)
    yield opened
    opened.close()


def payload(chunks: int, chunk_bytes: int, *, seed: int = 0) -> NDArray[np.uint8]:
    generator = np.random.Generator(np.random.PCG64(seed))
    return generator.integers(0, 256, (chunks, chunk_bytes), dtype=np.uint8)


def numbers(chunks: int) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    return (np.arange(chunks) % 8).astype(np.uint32), np.arange(chunks, dtype=np.uint64)


def read(reader: ChunkReader, chunk_bytes: int, env: NDArray[np.uint32], chunk_no: NDArray[np.uint64]):  # type: ignore[no-untyped-def]
    return reader.read(PREFIX, chunk_bytes, np.full(len(env), WRITER, np.uint32), env, chunk_no)


@pytest.mark.parametrize(
    ("chunks", "chunk_bytes"),
    [(1, 1), (1, 400), (256, 9), (256, 10), (256, 99), (256, 400), (5000, 64), (3000, 400), (40, 40_000), (3, 300_000)],
)
def test_rows_come_back_as_written(store: Store, writer: ChunkWriter, reader: ChunkReader, chunks: int, chunk_bytes: int) -> None:
    env, chunk_no = numbers(chunks)
    written = payload(chunks, chunk_bytes)
    assert writer.write(PREFIX, WRITER, env, chunk_no, written) == []
    order = np.random.Generator(np.random.PCG64(2)).permutation(chunks)
    found = read(reader, chunk_bytes, env[order], chunk_no[order])
    assert not found.missing.any()
    np.testing.assert_array_equal(found.payload, written[order])


def test_keys_are_those_of_the_key_file(store: Store, writer: ChunkWriter) -> None:
    env, chunk_no = numbers(3)
    written = payload(3, 16)
    writer.write(PREFIX, WRITER, env, chunk_no, written)
    names = [keys.chunk_key("cart-0a1b2c.replay", 0, writer=WRITER, env=n, chunk_no=n) for n in range(3)]
    assert store.run("read", lambda client: client.mget(names)) == [row.tobytes() for row in written]
    assert store.run("count", lambda client: client.dbsize()) == 3


def test_commands_after_the_rows_are_answered_in_order(store: Store, writer: ChunkWriter) -> None:
    env, chunk_no = numbers(2000)
    then = [(b"XADD", LOG, b"7-1", b"i", b"items"), (b"HGET", "rs:exp:e:weights", "latest"), (b"INCRBY", "rs:n", 3)]
    assert writer.write(PREFIX, WRITER, env, chunk_no, payload(2000, 400), then=then) == [b"7-1", None, 3]
    assert store.run("count", lambda client: client.xlen(LOG)) == 1


def test_commands_may_go_without_rows_and_nothing_may_go_at_all(store: Store, writer: ChunkWriter) -> None:
    env, chunk_no = numbers(0)
    assert writer.write(PREFIX, WRITER, env, chunk_no, payload(0, 400), then=[(b"PING",)]) == [b"PONG"]
    assert writer.write(PREFIX, WRITER, env, chunk_no, payload(0, 400)) == []


def test_writing_twice_changes_nothing(store: Store, writer: ChunkWriter, reader: ChunkReader) -> None:
    env, chunk_no = numbers(10)
    for _ in range(2):
        writer.write(PREFIX, WRITER, env, chunk_no, payload(10, 400))
    np.testing.assert_array_equal(read(reader, 400, env, chunk_no).payload, payload(10, 400))
    assert store.run("count", lambda client: client.dbsize()) == 10


@pytest.mark.parametrize("chunk_bytes", [5, 400, 40_000])
@pytest.mark.parametrize("gone", ["first", "middle", "last", "some", "all"])
def test_missing_rows_are_marked_and_the_others_are_right(
    store: Store, writer: ChunkWriter, reader: ChunkReader, chunk_bytes: int, gone: str
) -> None:
    chunks = 2000 if chunk_bytes < 1000 else 30
    env, chunk_no = numbers(chunks)
    written = payload(chunks, chunk_bytes)
    missing = np.zeros(chunks, np.bool_)
    missing[{"first": 0, "middle": chunks // 2, "last": -1, "some": slice(3, None, 7), "all": slice(None)}[gone]] = True
    writer.write(PREFIX, WRITER, env[~missing], chunk_no[~missing], written[~missing])
    found = read(reader, chunk_bytes, env, chunk_no)
    np.testing.assert_array_equal(found.missing, missing)
    np.testing.assert_array_equal(found.payload[~missing], written[~missing])
    assert not found.payload[missing].any()
    writer.write(PREFIX, WRITER, env, chunk_no, written)
    np.testing.assert_array_equal(read(reader, chunk_bytes, env, chunk_no).payload, written)


def test_rows_that_look_like_replies_do_not_confuse_the_reader(store: Store, writer: ChunkWriter, reader: ChunkReader) -> None:
    env, chunk_no = numbers(200)
    text = np.frombuffer(b"$-1\r\n$50\r\n*2\r\n-ERR no\r\n+OK\r\n" * 10, np.uint8)[:50]
    written = np.tile(text, (200, 1))
    writer.write(PREFIX, WRITER, env[1:], chunk_no[1:], written[1:])
    found = read(reader, 50, env, chunk_no)
    assert found.missing.tolist() == [True] + [False] * 199
    np.testing.assert_array_equal(found.payload[1:], written[1:])


def test_rows_may_be_read_into_memory_of_the_caller(store: Store, writer: ChunkWriter, reader: ChunkReader) -> None:
    env, chunk_no = numbers(10)
    writer.write(PREFIX, WRITER, env, chunk_no, payload(10, 400))
    out = np.empty((10, 400), np.uint8)
    found = reader.read(PREFIX, 400, np.full(10, WRITER, np.uint32), env, chunk_no, out=out)
    assert found.payload is out
    np.testing.assert_array_equal(out, payload(10, 400))


def test_reading_nothing_returns_nothing(store: Store, reader: ChunkReader) -> None:
    found = read(reader, 400, *numbers(0))
    assert found.payload.shape == (0, 400)
    assert found.missing.shape == (0,)


def values(count: int, *, largest: int, seed: int = 0) -> list[bytes]:
    generator = np.random.Generator(np.random.PCG64(seed))
    return [generator.bytes(int(size)) for size in generator.integers(0, largest, count)]


@pytest.mark.parametrize(("count", "largest"), [(1, 2), (300, 2000), (6000, 30), (50, 60_000), (5, 900_000)])
def test_values_of_varying_size_come_back_as_written(
    store: Store, writer: ChunkWriter, reader: ChunkReader, count: int, largest: int
) -> None:
    env, chunk_no = numbers(count)
    written = values(count, largest=largest)
    then = [(b"XADD", LOG, b"7-1", b"i", b"items")]
    assert writer.write_values(PREFIX, WRITER, env, chunk_no, written, then=then) == [b"7-1"]
    order = np.random.Generator(np.random.PCG64(2)).permutation(count)
    for _ in range(2):  # the second time the reader knows about how large they are
        found = reader.read_values(PREFIX, np.full(count, WRITER, np.uint32), env[order], chunk_no[order])
        assert found == [written[index] for index in order]


def test_values_may_be_views_of_one_buffer(store: Store, writer: ChunkWriter, reader: ChunkReader) -> None:
    env, chunk_no = numbers(3)
    whole = memoryview(payload(1, 50_000)[0])
    writer.write_values(PREFIX, WRITER, env, chunk_no, [whole[:10], whole[10:10], whole[10:]])
    found = reader.read_values(PREFIX, np.full(3, WRITER, np.uint32), env, chunk_no)
    assert found == [bytes(whole[:10]), b"", bytes(whole[10:])]


def test_missing_values_are_none(store: Store, writer: ChunkWriter, reader: ChunkReader) -> None:
    env, chunk_no = numbers(500)
    written = values(500, largest=500)
    writer.write_values(PREFIX, WRITER, env[::2], chunk_no[::2], written[::2])
    found = reader.read_values(PREFIX, np.full(500, WRITER, np.uint32), env, chunk_no)
    assert found == [value if index % 2 == 0 else None for index, value in enumerate(written)]


def test_no_values_are_no_trouble(store: Store, writer: ChunkWriter, reader: ChunkReader) -> None:
    env, chunk_no = numbers(0)
    assert writer.write_values(PREFIX, WRITER, env, chunk_no, [], then=[(b"PING",)]) == [b"PONG"]
    assert reader.read_values(PREFIX, env, env, chunk_no) == []


def test_as_many_values_as_keys_are_needed(writer: ChunkWriter) -> None:
    env, chunk_no = numbers(2)
    with pytest.raises(SchemaMismatch, match="values to write need env"):
        writer.write_values(PREFIX, WRITER, env, chunk_no, [b"one"])


SMALL = np.dtype([("flags", "u1"), ("version", "<u4"), ("observation", "<f4", (20, 4)), ("reward", "<f4")])
LARGE = np.dtype([("flags", "u1"), ("frame", "u1", (3, 100, 80)), ("reward", "<f4"), ("state", "<f8", (2500,)), ("done", "?")])


def columns(dtype: np.dtype[np.void], *shape: int) -> dict[str, NDArray[np.generic]]:
    return {name: np.full((*shape, *dtype[name].shape), 7, dtype[name].base) for name in dtype.names or ()}


def rows(dtype: np.dtype[np.void], *shape: int) -> NDArray[np.void]:
    made = np.zeros(shape, dtype)
    generator = np.random.Generator(np.random.PCG64(3))
    for name in dtype.names or ():
        made[name] = generator.integers(0, 2, made[name].shape) * generator.integers(0, 100)
    return made


@pytest.mark.parametrize("dtype", [SMALL, LARGE], ids=["small columns", "large columns"])
@pytest.mark.parametrize("chunk_rows", [1, 3])
@pytest.mark.parametrize("gone", ["none", "first", "middle", "last", "all"])
def test_columns_are_read_into_arrays_of_their_own(
    store: Store, writer: ChunkWriter, reader: ChunkReader, *, dtype: np.dtype[np.void], chunk_rows: int, gone: str
) -> None:
    chunks = 1000 if dtype is SMALL else 25
    env, chunk_no = numbers(chunks)
    written = rows(dtype, chunks, chunk_rows)
    missing = np.zeros(chunks, np.bool_)
    missing[{"none": slice(0), "first": 0, "middle": chunks // 2, "last": -1, "all": slice(None)}[gone]] = True
    stored = written.view(np.uint8).reshape(chunks, -1)
    writer.write(PREFIX, WRITER, env[~missing], chunk_no[~missing], stored[~missing])
    shape = (chunks,) if chunk_rows == 1 else (chunks, chunk_rows)
    out = columns(dtype, *shape)
    who = np.full(chunks, WRITER, np.uint32)
    found = reader.read_columns(PREFIX, dtype, who, env, chunk_no, out=out, chunk_rows=chunk_rows)
    np.testing.assert_array_equal(found, missing)
    for name, column in out.items():
        np.testing.assert_array_equal(column[~missing], written[name].reshape(column.shape)[~missing])
        assert not column[missing].any()


@pytest.mark.parametrize("names", [("reward",), ("state", "flags"), ()])
def test_only_the_columns_that_are_asked_for_are_read(
    store: Store, writer: ChunkWriter, reader: ChunkReader, names: tuple[str, ...]
) -> None:
    env, chunk_no = numbers(10)
    written = rows(LARGE, 10)
    writer.write(PREFIX, WRITER, env, chunk_no, written.view(np.uint8).reshape(10, -1))
    out = {name: array for name, array in columns(LARGE, 10).items() if name in names}
    who = np.full(10, WRITER, np.uint32)
    for _ in range(2):
        assert not reader.read_columns(PREFIX, LARGE, who, env, chunk_no, out=out).any()
    for name in names:
        np.testing.assert_array_equal(out[name], written[name])


def test_columns_that_do_not_fit_are_refused(reader: ChunkReader) -> None:
    env, chunk_no = numbers(4)
    with pytest.raises(SchemaMismatch, match=r"needs a contiguous float32\[4\], got float64\[4\]"):
        reader.read_columns(PREFIX, SMALL, env, env, chunk_no, out={"reward": np.zeros(4)})
    with pytest.raises(SchemaMismatch, match="'action' to read is none of the rows' columns flags, version"):
        reader.read_columns(PREFIX, SMALL, env, env, chunk_no, out={"action": np.zeros(4)})


def test_a_chunk_of_another_size_than_its_columns_is_refused(store: Store, writer: ChunkWriter, reader: ChunkReader) -> None:
    env, chunk_no = numbers(4)
    writer.write(PREFIX, WRITER, env, chunk_no, payload(4, 400))
    who = np.full(4, WRITER, np.uint32)
    with pytest.raises(SchemaMismatch, match=f"a chunk holds 400 bytes where {LARGE.itemsize} are expected"):
        reader.read_columns(PREFIX, LARGE, who, env, chunk_no, out=columns(LARGE, 4))


def test_unlinked_rows_are_gone_and_counted(store: Store, writer: ChunkWriter, reader: ChunkReader) -> None:
    env, chunk_no = numbers(6000)
    writer.write(PREFIX, WRITER, env, chunk_no, payload(6000, 8))
    who = np.full(6000, WRITER, np.uint32)
    assert reader.unlink(PREFIX, who[:5000], env[:5000], chunk_no[:5000]) == 5000
    assert reader.unlink(PREFIX, who, env, chunk_no) == 1000
    assert reader.unlink(PREFIX, who[:0], env[:0], chunk_no[:0]) == 0
    assert store.run("count", lambda client: client.dbsize()) == 0


def test_a_row_of_another_size_is_refused_and_the_reader_goes_on(store: Store, writer: ChunkWriter, reader: ChunkReader) -> None:
    env, chunk_no = numbers(4)
    writer.write(PREFIX, WRITER, env, chunk_no, payload(4, 400))
    with pytest.raises(SchemaMismatch, match="a chunk holds 400 bytes where 399 are expected"):
        read(reader, 399, env, chunk_no)
    np.testing.assert_array_equal(read(reader, 400, env, chunk_no).payload, payload(4, 400))


def test_arrays_that_do_not_fit_together_are_refused(writer: ChunkWriter, reader: ChunkReader) -> None:
    env, chunk_no = numbers(4)
    with pytest.raises(SchemaMismatch, match="chunks to write need env"):
        writer.write(PREFIX, WRITER, env, chunk_no, payload(3, 400))
    with pytest.raises(SchemaMismatch, match=r"chunks to read need out u1\[4, 400\], got uint8\[3, 400\]"):
        reader.read(PREFIX, 400, env, env, chunk_no, out=np.empty((3, 400), np.uint8))


def test_an_error_reply_to_a_command_is_raised_and_the_writer_goes_on(store: Store, writer: ChunkWriter) -> None:
    env, chunk_no = numbers(4)
    with pytest.raises(StoreError, match="could not store rows: WRONGTYPE"):
        writer.write(PREFIX, WRITER, env, chunk_no, payload(4, 8), then=[(b"SET", "rs:a", 1), (b"RPUSH", "rs:a", 1)])
    assert writer.write(PREFIX, WRITER, env, chunk_no, payload(4, 8), then=[(b"GET", "rs:a")]) == [b"1"]


def test_rows_flow_again_after_the_server_was_restarted(
    store: Store, server: EmbeddedServer, writer: ChunkWriter, reader: ChunkReader
) -> None:
    env, chunk_no = numbers(100)
    writer.write(PREFIX, WRITER, env[:50], chunk_no[:50], payload(100, 400)[:50])
    assert not read(reader, 400, env[:50], chunk_no[:50]).missing.any()
    server.restart()
    writer.write(PREFIX, WRITER, env[50:], chunk_no[50:], payload(100, 400)[50:])
    np.testing.assert_array_equal(read(reader, 400, env, chunk_no).payload, payload(100, 400))


def test_without_a_server_the_deadline_ends_the_tries(store: Store, server: EmbeddedServer, address: Address) -> None:
    server.stop()
    env, chunk_no = numbers(4)
    writer = ChunkWriter(address, clock=SystemClock(), deadline_s=0.1)
    reader = ChunkReader(address, clock=SystemClock(), deadline_s=0.1)
    with pytest.raises(StoreUnavailable, match="did not store rows within"):
        writer.write(PREFIX, WRITER, env, chunk_no, payload(4, 8))
    with pytest.raises(StoreUnavailable, match="did not fetch rows within"):
        read(reader, 8, env, chunk_no)
    with pytest.raises(StoreUnavailable, match="did not delete rows within"):
        reader.unlink(PREFIX, env, env, chunk_no)
    reader.deadline_s = 0.3
    assert reader.deadline_s == 0.3
    with pytest.raises(StoreUnavailable, match=r"did not fetch rows within 0\.[3-9]"):
        reader.read_values(PREFIX, env, env, chunk_no)


def test_two_tables_of_different_row_sizes_share_one_connection(store: Store, writer: ChunkWriter, reader: ChunkReader) -> None:
    env, chunk_no = numbers(300)
    other = chunk_prefix("another-000000.replay", 12)
    for _ in range(2):
        writer.write(PREFIX, WRITER, env, chunk_no, payload(300, 40))
        writer.write(other, WRITER, env, chunk_no, payload(300, 1000, seed=1))
    who = np.full(300, WRITER, np.uint32)
    np.testing.assert_array_equal(reader.read(PREFIX, 40, who, env, chunk_no).payload, payload(300, 40))
    np.testing.assert_array_equal(reader.read(other, 1000, who, env, chunk_no).payload, payload(300, 1000, seed=1))


@pytest.mark.parametrize(("chunks", "chunk_bytes"), [(5, 40), (300, 400), (900, 400)])
def test_rows_that_were_asked_for_come_with_the_read(
    store: Store, writer: ChunkWriter, reader: ChunkReader, chunks: int, chunk_bytes: int
) -> None:
    stored, (env, chunk_no) = payload(chunks, chunk_bytes), numbers(chunks)
    writer.write(PREFIX, WRITER, env, chunk_no, stored)
    read(reader, chunk_bytes, env, chunk_no)
    number = np.full(chunks, WRITER, np.uint32)
    for order in (slice(None), slice(None, None, -1)):
        reader.ask(PREFIX, number, env[order], chunk_no[order])
        assert (read(reader, chunk_bytes, env[order], chunk_no[order]).payload == stored[order]).all()


def test_what_was_asked_for_and_is_not_read_is_thrown_away(store: Store, writer: ChunkWriter, reader: ChunkReader) -> None:
    stored, (env, chunk_no) = payload(300, 400), numbers(300)
    writer.write(PREFIX, WRITER, env, chunk_no, stored)
    reader.ask(PREFIX, np.full(300, WRITER, np.uint32), env, chunk_no)  # nothing is known of the connection: not done
    read(reader, 400, env, chunk_no)
    ask = lambda: reader.ask(PREFIX, np.full(300, WRITER, np.uint32), env, chunk_no)  # noqa: E731
    ask()
    assert (read(reader, 400, env[:20], chunk_no[:20]).payload == stored[:20]).all()
    ask()
    assert reader.read_values(PREFIX, np.full(2, WRITER, np.uint32), env[:2], chunk_no[:2]) == [
        row.tobytes() for row in stored[:2]
    ]
    ask()
    assert reader.unlink(PREFIX, np.full(1, WRITER, np.uint32), env[:1], chunk_no[:1]) == 1
    ask()
    found = read(reader, 400, env, chunk_no)
    assert found.missing.tolist() == [True] + [False] * 299
    assert (found.payload[1:] == stored[1:]).all()


def test_a_server_that_restarts_after_rows_were_asked_for_is_read_again(
    store: Store, server: EmbeddedServer, writer: ChunkWriter, reader: ChunkReader
) -> None:
    stored, (env, chunk_no) = payload(300, 400), numbers(300)
    writer.write(PREFIX, WRITER, env, chunk_no, stored)
    read(reader, 400, env, chunk_no)
    reader.ask(PREFIX, np.full(300, WRITER, np.uint32), env, chunk_no)
    server.stop()
    server.start()
    found = read(reader, 400, env, chunk_no)
    assert len(found.missing) == 300
    assert (found.payload[~found.missing] == stored[~found.missing]).all()

"""What is not a rate: memory, recovery of a killed shard, checkpoints with inserts going on, and a server that restarts."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rollstream.clock import Clock, Deadline
from rollstream.errors import DeadlineExceeded
from rollstream_replay.bench.line_process import LineProcess
from rollstream_replay.bench.ours import Ours
from rollstream_replay.bench.payloads import Payload
from rollstream_replay.bench.reverb import Reverb
from rollstream_replay.bench.system import TableCase, rss_bytes

__all__ = ["Make", "measure_checkpoint", "measure_memory", "measure_reconnect", "measure_recovery", "wait_until_ended"]

Make = Callable[..., Ours]
"""Makes our side anew, with changes: `make(chunk_rows=3)`."""
WITHIN_S = 600.0
DOWN_S = 1.0
RECONNECT_WITHIN_S = 60.0
LEASE_TTL_S = 5.0
STALL_FLUSH_ITEMS = 40
AFTER_S = 0.5
SETTLED_WITHIN_S = 20.0
SETTLING_S = 1.5
SETTLED_BYTES = 64 << 10


def _case(payload: Payload, items: int, *, room: int = 0, selector: str = "prioritized") -> TableCase:
    return TableCase(payload=payload, selector=selector, max_items=items + room, fill_items=items)


# --- memory ----------------------------------------------------------------------------------------------------------------


def measure_memory(
    make: Make, reverb: Reverb | None, *, payload: Payload, items: int, chunk_rows: tuple[int, ...], clock: Clock
) -> dict[str, Any]:
    """Bytes that one stored item costs: of Redis and of the shard; of the peer, growth of its resident memory."""
    ours = []
    for rows in chunk_rows:
        system = make(chunk_rows=rows)
        try:
            system.open(_case(payload, items))
            redis_before, shard_before = _used_memory(system), rss_bytes(system.shard_pid)
            system.fill()
            in_redis, in_shard = _settled_memory(system, clock) - redis_before, rss_bytes(system.shard_pid) - shard_before
        finally:
            system.end()
        ours.append(
            {
                "chunk_rows": rows,
                "redis_bytes_per_item": round(in_redis / items, 1),
                "shard_bytes_per_item": round(in_shard / items, 1),
                "bytes_per_item": round((in_redis + in_shard) / items, 1),
                "share_of_payload": round((in_redis + in_shard) / items / payload.payload_bytes, 3),
            }
        )
    figures: dict[str, Any] = {
        "payload_bytes": payload.payload_bytes,
        "columns": payload.columns,
        "items": items,
        "rollstream": ours,
    }
    if reverb is not None:
        reverb.open(_case(payload, items))
        before = rss_bytes(reverb.server_pids[0])
        reverb.fill()
        per_item = (rss_bytes(reverb.server_pids[0]) - before) / items
        reverb.close()
        figures["reverb"] = {"bytes_per_item": round(per_item, 1), "share_of_payload": round(per_item / payload.payload_bytes, 3)}
    return figures


def _settled_memory(system: Ours, clock: Clock) -> int:
    """Redis' memory when snapshot and trimming of the log, which follow a fill, are over."""
    deadline = Deadline(clock, after_s=SETTLED_WITHIN_S)
    before, now = 0, _used_memory(system)
    while abs(now - before) > SETTLED_BYTES and not deadline.passed():
        clock.sleep(SETTLING_S)
        before, now = now, _used_memory(system)
    return now


def _used_memory(system: Ours) -> int:
    assert system.store is not None
    return system.store.check().used_memory_bytes


# --- recovery --------------------------------------------------------------------------------------------------------------


def measure_recovery(make: Make, *, payload: Payload, items: int, clock: Clock) -> dict[str, Any]:
    """Seconds from the end of the shard until a new process of it gives samples again."""
    system = make()
    try:
        system.open(_case(payload, items))
        system.fill()
        figures: dict[str, Any] = {"items": items, "payload_bytes": payload.payload_bytes, "lease_ttl_s": LEASE_TTL_S}
        for name, how in (("restart_s", signal.SIGTERM), ("kill_s", signal.SIGKILL)):
            figures[name] = round(_recover(system, how, clock=clock), 2)
        assert system.client is not None
        figures["items_after"] = int(system.client.info(deadline_s=WITHIN_S)["items"])
    finally:
        system.end()
    return figures


def _recover(system: Ours, how: signal.Signals, *, clock: Clock) -> float:
    assert system.client is not None
    system.client.close()
    system.end_shard(how)
    began_s = clock.monotonic_s()
    system.start_shard()
    system.client.sample(batch_items=256, deadline_s=WITHIN_S)
    return clock.monotonic_s() - began_s


# --- checkpoints -----------------------------------------------------------------------------------------------------------


def measure_checkpoint(
    make: Make, reverb: Reverb | None, *, payload: Payload, items: int, seconds: float, folder: Path, clock: Clock
) -> dict[str, Any]:
    """Bytes of payload saved and loaded per second, and the longest insert while a checkpoint was made."""
    figures: dict[str, Any] = {"items": items, "payload_bytes": payload.payload_bytes}
    figures["rollstream"] = _our_checkpoint(
        make(), payload, items=items, seconds=seconds, file=folder / "checkpoint.rollstream", clock=clock
    )
    if reverb is not None:
        figures["reverb"] = _their_checkpoint(
            reverb, payload, items=items, seconds=seconds, folder=folder / "checkpoints-reverb", clock=clock
        )
        ours, theirs = figures["rollstream"], figures["reverb"]
        figures["ratios"] = {
            name: round(ours[name] / theirs[name], 3) for name in ("save_mb_per_s", "load_mb_per_s") if theirs[name]
        }
    return figures


def _our_checkpoint(system: Ours, payload: Payload, *, items: int, seconds: float, file: Path, clock: Clock) -> dict[str, Any]:
    def save() -> float:
        assert system.client is not None
        began_s = clock.monotonic_s()
        system.client.export_to(file, deadline_s=WITHIN_S)
        return clock.monotonic_s() - began_s

    def load() -> tuple[int, float]:
        assert system.client is not None
        began_s = clock.monotonic_s()
        loaded = system.client.restore_from(file, deadline_s=WITHIN_S)
        system.client.sample(batch_items=256, deadline_s=WITHIN_S)
        return loaded, clock.monotonic_s() - began_s

    try:
        system.open(_case(payload, items, room=items))
        system.fill()
        saved_s = save()
        file_bytes = file.stat().st_size
        stalls = _stalls(system.workers(1)[0], {}, save, seconds=seconds, clock=clock)
        system.open(_case(payload, items, room=items))
        loaded, loaded_s = load()
    finally:
        system.end()
    return _checkpoint_figures(
        payload,
        items=items,
        saved_s=saved_s,
        items_loaded=loaded,
        loaded_s=loaded_s,
        file_bytes=file_bytes,
        stalls=stalls,
    )


def _their_checkpoint(
    reverb: Reverb, payload: Payload, *, items: int, seconds: float, folder: Path, clock: Clock
) -> dict[str, Any]:
    reverb.open(_case(payload, items, room=items))
    reverb.serve(checkpoints=folder, anew=True)
    reverb.fill()
    assert reverb.server is not None
    server = reverb.server
    saved = server.ask(do="checkpoint", deadline_s=WITHIN_S)
    stalls = _stalls(
        reverb.clients(1)[0],
        {"api": "structured"},
        lambda: float(server.ask(do="checkpoint", deadline_s=WITHIN_S)["elapsed_s"]),
        seconds=seconds,
        clock=clock,
    )
    reverb.open(_case(payload, items, room=items))
    loaded = reverb.serve(checkpoints=folder, anew=True)
    reverb.close()
    return _checkpoint_figures(
        payload,
        items=items,
        saved_s=saved["elapsed_s"],
        items_loaded=loaded["items"],
        loaded_s=loaded["elapsed_s"],
        file_bytes=saved["bytes"],
        stalls=stalls,
    )


def _checkpoint_figures(
    payload: Payload,
    *,
    items: int,
    saved_s: float,
    items_loaded: int,
    loaded_s: float,
    file_bytes: int,
    stalls: dict[str, Any],
) -> dict[str, Any]:
    """Rates of the first save, and of loading the second: inserts went on while that was made, so it has more items."""
    item_mb = payload.payload_bytes / 1e6
    return {
        "save_s": round(saved_s, 3),
        "load_s": round(loaded_s, 3),
        "save_mb_per_s": round(items * item_mb / saved_s, 1),
        "load_mb_per_s": round(items_loaded * item_mb / loaded_s, 1),
        "items_loaded": items_loaded,
        "file_bytes": file_bytes,
        **stalls,
    }


def _stalls(
    writer: LineProcess, message: dict[str, Any], save: Callable[[], float], *, seconds: float, clock: Clock
) -> dict[str, Any]:
    """The longest flush without and with a checkpoint going on."""
    insert = {"do": "insert", "flush_items": STALL_FLUSH_ITEMS, "warm_up_s": AFTER_S, **message}
    quiet = writer.ask(**insert, seconds=seconds, deadline_s=WITHIN_S)
    saved: list[float] = []
    inserting = threading.Thread(target=lambda: saved.append(_later(clock, save)))
    inserting.start()
    longest: list[float] = []
    flushes = 0
    while inserting.is_alive() or not flushes:
        answer = writer.ask(**insert, seconds=seconds, deadline_s=WITHIN_S)
        longest.append(max(answer["batch_ms"]))
        flushes += len(answer["batch_ms"])
    inserting.join()
    return {
        "quiet_insert_max_ms": max(quiet["batch_ms"]),
        "insert_max_ms": max(longest),
        "inserts_meanwhile": flushes * STALL_FLUSH_ITEMS,
        "save_with_inserts_s": round(saved[0], 3) if saved else None,
    }


def _later(clock: Clock, save: Callable[[], float]) -> float:
    """Save when the writer is past its warm-up."""
    clock.sleep(2 * AFTER_S)
    return save()


# --- a server that restarts ------------------------------------------------------------------------------------------------


def measure_reconnect(make: Make, reverb: Reverb | None, *, payload: Payload, clock: Clock) -> dict[str, Any]:
    """Seconds from the moment when the restarted server answers until the writer that was there before has an item in."""
    system = make(durability="aof")
    try:
        system.open(_case(payload, 1_000))
        system.fill()
        worker = system.workers(1)[0]
        worker.ask(do="hold_writer", deadline_s=WITHIN_S)
        assert system.server is not None
        os.kill(system.server.pid, signal.SIGTERM)
        wait_until_ended(lambda: system.server is not None and system.server.poll() is not None, clock)
        worker.send(do="reconnected", patience_s=RECONNECT_WITHIN_S)
        clock.sleep(DOWN_S)
        system.server.start()
        began_s = clock.monotonic_s()
        answer = worker.receive(deadline_s=WITHIN_S)
        both_s = clock.monotonic_s() - began_s
        ours = {
            "reconnect_s": round(both_s - (answer["sampled_after_s"] - answer["elapsed_s"]), 3),
            "sampled_after_s": round(both_s, 3),
        }
    finally:
        system.end()
    figures: dict[str, Any] = {"down_s": DOWN_S, "rollstream": ours}
    if reverb is not None:
        reverb.open(_case(payload, 1_000))
        reverb.fill()
        client, port = reverb.clients(1)[0], reverb.port
        client.ask(do="hold_writer", deadline_s=WITHIN_S)
        assert reverb.server is not None
        reverb.server.ask(do="stop", deadline_s=WITHIN_S)
        client.send(do="reconnected", patience_s=RECONNECT_WITHIN_S)
        clock.sleep(DOWN_S)
        reverb.serve(port=port)
        began_s = clock.monotonic_s()
        client.receive(deadline_s=WITHIN_S)
        figures["reverb"] = {"reconnect_s": round(clock.monotonic_s() - began_s, 3)}
        reverb.close()
    return figures


def wait_until_ended(done: Callable[[], bool], clock: Clock) -> None:
    """Wait for a server that was told to end."""
    deadline = Deadline(clock, after_s=WITHIN_S)
    while not done():
        if deadline.passed():
            raise DeadlineExceeded(f"bench: the server did not end within {WITHIN_S:.0f} s of SIGTERM")
        clock.sleep(0.01)

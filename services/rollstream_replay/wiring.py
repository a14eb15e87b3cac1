"""Composition root of the replay service: the shard, its API, probes, heartbeat."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable

from fastapi import FastAPI

from rollstream import __version__
from rollstream.allocator import give_back_freed_memory
from rollstream.metrics import Exposition, Waits, names, render, waits_source
from rollstream.metrics.exposition import Sample
from rollstream.store import Store
from rollstream.store.members import MemberRecord
from rollstream_replay.api import table_router
from rollstream_replay.problems import add_error_handlers
from rollstream_replay.sample_desk import SampleDesk
from rollstream_replay.sample_gate import SampleGate
from rollstream_replay.sample_protocol import SampleProtocol
from rollstream_replay.settings import ReplaySettings
from rollstream_replay.shard_server import ShardServer
from rollstream_replay.table_report import describe_table
from rollstream_service.heartbeat import Heartbeat, member_record
from rollstream_service.http import listen, probe_router, serve
from rollstream_service.lifecycle import Life

__all__ = ["main"]


def main(settings: ReplaySettings, life: Life) -> None:
    """Serve the shard until told to stop."""
    give_back_freed_memory()
    address = settings.address()
    store = Store(address, clock=life.clock, deadline_s=settings.redis_deadline_s, name=life.member)
    store.check()
    bound = listen(settings.host, settings.port)
    url = settings.url(bound.getsockname()[1])
    waits = Waits(clock=life.clock)
    failures: list[BaseException] = []

    def record() -> MemberRecord:
        detail: dict[str, float | str] = {"tables": float(len(server.tables))}
        if server.pressure.why:
            detail["redis_full"] = server.pressure.why
        return member_record(life, role="replay", url=url, shard=server.shard, detail=detail)

    def failed(error: BaseException) -> None:
        failures.append(error)
        life.stopping.set()

    heartbeat = Heartbeat(address, life=life, record=record, each_beat=waits.check)
    server = ShardServer(
        store,
        address,
        shards=settings.shards,
        owner=life.member,
        inherit=bool(settings.member_id),
        lease_ttl_s=settings.lease_ttl_s,
        sweep_every_s=settings.sweep_every_s,
        seed=settings.seed,
        clock=life.clock,
        health=life.health,
        waits=waits,
        changed=heartbeat.now,
        failed=failed,
    )
    registry = Exposition(waits_source(waits), lambda: table_samples(server), life.health.samples).registry()
    heartbeat.start()
    life.log.info("listening", url=url, shards=list(settings.shards))
    desk = SampleDesk(server)
    try:
        app = SampleGate(make_app(server, life, metrics=lambda: render(registry)), desk)
        serve(app, bound, life=life, grace_s=settings.grace_s, connection=lambda inner: SampleProtocol(inner, desk))
    finally:
        heartbeat.stop()
        store.close()
    if failures:
        raise failures[0]


def make_app(server: ShardServer, life: Life, *, metrics: object) -> FastAPI:
    """The web application; starting and stopping it starts and stops the shard."""

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        server.start()
        try:
            yield
        finally:
            await server.stop()

    app = FastAPI(title="Rollstream replay shard", version=__version__, lifespan=lifespan)
    app.include_router(table_router(server))
    app.include_router(probe_router(life.health, metrics))  # type: ignore[arg-type]
    add_error_handlers(app)
    return app


def table_samples(server: ShardServer) -> Iterable[Sample]:
    """What a scrape of `/metrics` learns about the tables."""
    totals = dict.fromkeys(("inserted", "sampled", "evicted", "priorities_refused"), 0.0)
    swept = 0.0
    for rows in list(server.rows.values()):
        swept += rows.orphans_swept
        for table_id, table in list(rows.tables.items()):
            told = describe_table(rows, table)
            labels = {"table": table_id, "shard": str(server.shard)}
            for metric, name in (
                (names.TABLE_ITEMS, "items"),
                (names.TABLE_BYTES, "bytes"),
                (names.TABLE_UNREAD_ENTRIES, "entries_waiting"),
                (names.TABLE_BLOCKED_S, "blocked_s"),
            ):
                yield Sample(metric=metric, value=float(told[name]), labels=labels)
            for name in totals:
                totals[name] += float(told[name])
    for metric, name in (
        (names.ITEMS_INSERTED, "inserted"),
        (names.ITEMS_SAMPLED, "sampled"),
        (names.ITEMS_EVICTED, "evicted"),
        (names.PRIORITIES_REFUSED, "priorities_refused"),
    ):
        yield Sample(metric=metric, value=totals[name])
    yield Sample(metric=names.ORPHANS_SWEPT, value=swept)
    yield Sample(metric=names.REDIS_FULL, value=1.0 if server.pressure.why else 0.0)

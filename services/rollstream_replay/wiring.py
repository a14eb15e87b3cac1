"""Composition root of the replay service: the shard, its API, probes, heartbeat."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable

from fastapi import FastAPI

from rollstream import __version__
from rollstream.metrics import Exposition, Waits, names, render, waits_source
from rollstream.metrics.exposition import Sample
from rollstream.store import Store
from rollstream.store.members import MemberRecord
from rollstream_replay.api import table_router
from rollstream_replay.problems import add_error_handlers
from rollstream_replay.sample_gate import SampleGate
from rollstream_replay.settings import ReplaySettings
from rollstream_replay.shard_server import ShardServer
from rollstream_service.heartbeat import Heartbeat, member_record
from rollstream_service.http import listen, probe_router, serve
from rollstream_service.lifecycle import Life

__all__ = ["main"]


def main(settings: ReplaySettings, life: Life) -> None:
    """Serve the shard until told to stop."""
    address = settings.address()
    store = Store(address, clock=life.clock, deadline_s=settings.redis_deadline_s, name=life.member)
    store.check()
    bound = listen(settings.host, settings.port)
    url = settings.url(bound.getsockname()[1])
    waits = Waits(clock=life.clock)
    failures: list[BaseException] = []

    def record() -> MemberRecord:
        detail: dict[str, float | str] = {"tables": float(len(server.tables))}
        return member_record(life, role="replay", url=url, shard=settings.shard, detail=detail)

    def failed(error: BaseException) -> None:
        failures.append(error)
        life.stopping.set()

    heartbeat = Heartbeat(address, life=life, record=record, each_beat=waits.check)
    server = ShardServer(
        store,
        address,
        shard=settings.shard,
        owner=life.member,
        lease_ttl_s=settings.lease_ttl_s,
        seed=settings.seed,
        clock=life.clock,
        health=life.health,
        waits=waits,
        changed=heartbeat.now,
        failed=failed,
    )
    registry = Exposition(waits_source(waits), lambda: table_samples(server), life.health.samples).registry()
    heartbeat.start()
    life.log.info("listening", url=url, shard=settings.shard)
    try:
        app = make_app(server, store, life, metrics=lambda: render(registry))
        serve(SampleGate(app, server), bound, life=life, grace_s=settings.grace_s)
    finally:
        heartbeat.stop()
        store.close()
    if failures:
        raise failures[0]


def make_app(server: ShardServer, store: Store, life: Life, *, metrics: object) -> FastAPI:
    """The web application; starting and stopping it starts and stops the shard."""

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        server.start()
        try:
            yield
        finally:
            await server.stop()

    app = FastAPI(title="Rollstream replay shard", version=__version__, lifespan=lifespan)
    app.include_router(table_router(server, store))
    app.include_router(probe_router(life.health, metrics))  # type: ignore[arg-type]
    add_error_handlers(app)
    return app


def table_samples(server: ShardServer) -> Iterable[Sample]:
    """What a scrape of `/metrics` learns about the tables."""
    totals = dict.fromkeys(("inserted", "sampled", "evicted", "priorities_refused"), 0.0)
    for table_id, table in list(server.tables.items()):
        told = table.describe()
        labels = {"table": table_id, "shard": str(server.shard)}
        for metric, name in (
            (names.TABLE_ITEMS, "items"),
            (names.TABLE_BYTES, "bytes"),
            (names.TABLE_UNREAD_ENTRIES, "entries_waiting"),
        ):
            yield Sample(metric=metric, value=float(told[name]), labels=labels)  # type: ignore[arg-type]
        for name in totals:
            totals[name] += float(told[name])  # type: ignore[arg-type]
    for metric, name in (
        (names.ITEMS_INSERTED, "inserted"),
        (names.ITEMS_SAMPLED, "sampled"),
        (names.ITEMS_EVICTED, "evicted"),
        (names.PRIORITIES_REFUSED, "priorities_refused"),
    ):
        yield Sample(metric=metric, value=totals[name])

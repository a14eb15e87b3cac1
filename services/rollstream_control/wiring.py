"""Composition root: builds everything that control is made of, runs it until it is told to stop, takes it down again.

main thread: asyncio loop with the API      threads: heartbeat, scheduler, workers of blocking endpoints
"""

from __future__ import annotations

from pathlib import Path

from rollstream import __version__
from rollstream.algorithms import needs_replay
from rollstream.config import EnvironmentSpec
from rollstream.store import Assignments, Experiments, MemberRecord, Members, Store, parse_address
from rollstream_control.api.app import create_app
from rollstream_control.api.parts import CellParts
from rollstream_control.api.tokens import Tokens
from rollstream_control.api.wakeups import Wakeups
from rollstream_control.cluster import LocalScaling, NoScaling, Scaling
from rollstream_control.observation import Observation
from rollstream_control.scheduling.scheduler import Scheduler
from rollstream_control.served_policies import ServedPolicies
from rollstream_control.settings import ControlSettings
from rollstream_control.submission.inspection import EnvironmentInspector
from rollstream_control.submission.registry import RegisteredAlgorithms
from rollstream_control.submission.submitter import Submitter
from rollstream_control.submission.validation import Inspected, Validator
from rollstream_service.heartbeat import Heartbeat, member_record
from rollstream_service.http import listen, probe_router, serve
from rollstream_service.lifecycle import Life

__all__ = ["main"]

REQUEST_DEADLINE_S = 5.0
"""How long a request waits for Redis before it gets a 503: people and probes lose patience earlier than services do."""


def main(settings: ControlSettings, life: Life) -> None:
    """Run control until `life.stopping`."""
    address = parse_address(
        settings.redis_url,
        password=settings.redis_password.get_secret_value() if settings.redis_password else None,
        ca_file=settings.redis_ca_file,
        cert_file=settings.redis_cert_file,
        key_file=settings.redis_key_file,
    )
    bound = listen(settings.host, settings.port)
    store = Store(address, clock=life.clock, deadline_s=REQUEST_DEADLINE_S, name=life.member)
    store.check(deadline_s=settings.redis_deadline_s)
    url = settings.url(bound.getsockname()[1])

    wakeups = Wakeups(life.stopping)
    observation = Observation(life.health)
    scheduler = Scheduler(address, life=life, on_change=wakeups.notify, on_look=observation.look)
    inspector = _inspector(settings, life)
    submitter = Submitter(store, validator=Validator(algorithms=RegisteredAlgorithms(), inspector=inspector))
    parts = CellParts(
        store=store,
        members=Members(store),
        assignments=Assignments(store),
        experiments=Experiments(store),
        submitter=submitter,
        policies=ServedPolicies(store, inspect=inspector.inspect),
        scaling=_scaling(settings, store),
        wakeups=wakeups,
        version=__version__,
        backend=settings.backend,
        needs_replay=needs_replay,
        scheduling=lambda: scheduler.scheduling,
        server=lambda: scheduler.server,
        heartbeat_every_s=settings.heartbeat_every_s,
    )
    app = create_app(
        parts,
        tokens=Tokens(operator=settings.operator_secret, viewer=settings.viewer_secret),
        probes=probe_router(life.health, observation.metrics),
        max_body_bytes=settings.max_body_bytes,
        count=observation.count,
    )

    def record() -> MemberRecord:
        return member_record(life, role="control", url=url, detail={"scheduling": "yes" if scheduler.scheduling else "no"})

    if settings.experiment_file is not None:
        submitted = submitter.submit_file(Path(settings.experiment_file))
        life.log.info("experiment from file", experiment=submitted.id, created=submitted.created)
    heartbeat = Heartbeat(address, life=life, record=record)
    heartbeat.start()
    scheduler.start()
    life.log.info("serving", url=url, redis=str(address), backend=settings.backend)
    try:
        serve(app, bound, life=life, grace_s=settings.grace_s)
    finally:
        life.stopping.set()
        scheduler.stop()
        heartbeat.stop()
        store.close()


def _inspector(settings: ControlSettings, life: Life) -> EnvironmentInspector:
    allow = settings.allowed_modules

    def inspect_here(spec: EnvironmentSpec) -> Inspected:
        from rollstream.envs import inspect_environment  # Gymnasium: only when somebody submits something

        return inspect_environment(spec, allow=allow)

    return EnvironmentInspector(
        inspect_here=inspect_here, allow=allow, deadline_s=settings.inspection_deadline_s, clock=life.clock
    )


def _scaling(settings: ControlSettings, store: Store) -> Scaling:
    if settings.backend == "local":
        return LocalScaling(store)
    if settings.backend == "none":
        return NoScaling()
    from rollstream_control.cluster.kubernetes import KubernetesScaling, connect

    return KubernetesScaling(connect(), namespace=settings.namespace, deployment=settings.actor_deployment)

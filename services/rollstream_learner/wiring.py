"""Composition root of the learner: probes, heartbeat, and the loop that claims experiments."""

from __future__ import annotations

from collections.abc import Iterable

from rollstream.metrics import Counters, Exposition, Gauges, Report, Sample, Waits, counters_source, names, render, waits_source
from rollstream.store import Lease, Store, keys
from rollstream.store.changes import Changes
from rollstream.store.experiments import Experiments
from rollstream.store.members import MemberRecord
from rollstream_learner.settings import LearnerSettings
from rollstream_service.folders import make_writable
from rollstream_service.heartbeat import Heartbeat, member_record
from rollstream_service.lifecycle import Life
from rollstream_service.probes import ProbeServer

__all__ = ["main"]

FLOW_WITHIN_S = 600.0
"""A flow must report within this time (it also does while it waits for actors); otherwise liveness says that it is stuck."""
LOOK_S = 1.0


def main(settings: LearnerSettings, life: Life) -> None:
    """Claim and run experiments until told to stop."""
    Learner(settings, life).run()


class Learner:
    """One learner process."""

    def __init__(self, settings: LearnerSettings, life: Life) -> None:
        self._settings = settings
        self._life = life
        self._address = settings.address()
        self._store = Store(self._address, clock=life.clock, deadline_s=settings.redis_deadline_s, name=life.member)
        self._experiments = Experiments(self._store)
        self._changes = Changes(self._store)
        self._gauges = Gauges()
        self._counters = Counters()
        self._waits = Waits(clock=life.clock)
        self._doing = ""

    def run(self) -> None:
        life, settings = self._life, self._settings
        remedy = "free space there, or set ROLLSTREAM_RUNS_DIR to a folder that can be written"
        make_writable(settings.runs_dir, what="the folder of runs", remedy=remedy)
        self._store.check()
        registry = Exposition(self._samples, self._gauges, life.health.samples).registry()
        probes = ProbeServer(host=settings.host, port=settings.port, health=life.health, metrics=lambda: render(registry))
        url = settings.url(probes.port)
        heartbeat = Heartbeat(self._address, life=life, record=lambda: self._record(url), each_beat=self._check_waits)
        probes.start()
        heartbeat.start()
        life.log.info("ready", url=url)
        try:
            self._loop(heartbeat)
        finally:
            heartbeat.stop()
            probes.stop()
            self._store.close()

    def _loop(self, heartbeat: Heartbeat) -> None:
        last = "0"
        while not self._life.stopping.is_set():
            claimed = self._claim()
            if claimed is None:
                last = self._changes.wait(last, timeout_s=LOOK_S)
                continue
            experiment, lease = claimed
            self._doing = experiment
            heartbeat.now()
            self._run(experiment, lease)
            self._doing = ""
            lease.release()
            self._changes.announce("experiment", experiment)
            heartbeat.now()

    def _claim(self) -> tuple[str, Lease] | None:
        """The oldest open experiment that nobody runs, with its lease; None when there is none. One to be paused needs no learner."""
        for experiment in self._experiments.open_ids():
            if self._experiments.wanted(experiment) == "pause":
                continue
            lease = Lease.acquire(
                self._store,
                key=keys.experiment_lease(experiment),
                token_key=keys.experiment_token(experiment),
                owner=self._life.member,
                ttl_s=self._settings.lease_ttl_s,
                inherit=bool(self._settings.member_id),
            )
            if lease is not None:
                return experiment, lease
        return None

    def _run(self, experiment: str, lease: Lease) -> None:
        from rollstream_learner.run import ExperimentRun

        self._counters = Counters()
        self._waits = Waits(clock=self._life.clock)
        self._life.health.expect("flow", within_s=FLOW_WITHIN_S)
        self._life.log.info("claimed", experiment=experiment)
        try:
            ExperimentRun(
                settings=self._settings,
                life=self._life,
                store=self._store,
                address=self._address,
                experiment=experiment,
                lease=lease,
                counters=self._counters,
                waits=self._waits,
                observe=self._observe,
            ).run()
        finally:
            self._life.health.forget("flow")

    def _observe(self, report: Report) -> None:
        experiment = report.experiment
        self._gauges.set(names.MEAN_RETURN, report.mean_return, experiment=experiment)
        self._gauges.set(names.LAG, report.lag, experiment=experiment)
        self._gauges.set(names.WEIGHTS_VERSION, float(report.version), experiment=experiment)
        self._gauges.set(names.ENV_STEPS_PER_S, report.env_steps_per_s, experiment=experiment)
        self._gauges.set(names.UPDATES_PER_S, report.updates_per_s, experiment=experiment)

    def _check_waits(self) -> None:
        """Log what the running experiment has been waiting for."""
        self._waits.check()

    def _samples(self) -> Iterable[Sample]:
        """Counters and waits of the experiment that is running."""
        yield from counters_source(self._counters)()
        yield from waits_source(self._waits)()

    def _record(self, url: str) -> MemberRecord:
        return member_record(self._life, role="learner", url=url, doing=self._doing)

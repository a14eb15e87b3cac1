"""One experiment, from claim to end.

claim ─▶ starting ─▶ running ⇄ paused ─▶ succeeded | failed | stopped
            │            │
      newest checkpoint  └─▶ left behind (SIGTERM, lost lease): another learner goes on from the last checkpoint
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rollstream import __version__
from rollstream.algorithms import make_agent, make_flow
from rollstream.algorithms.agent import Agent
from rollstream.algorithms.evaluation import Evaluator, LocalWeights, greedy_episodes
from rollstream.checkpoint import CheckpointRecord
from rollstream.edges import EdgeReader, remove_edge
from rollstream.envs import inspect_environment
from rollstream.errors import CheckpointError, DeadlineExceeded, LeaseLost, StoreError
from rollstream.flow import Description, FlowView, Runner, describe_error
from rollstream.learning import LearnerProcess, Results, reason_to_stop
from rollstream.metrics import Counters, Report, Waits
from rollstream.seeding import child_seed
from rollstream.spaces import Episodes, RowSpec, row_spec
from rollstream.store import Address, Lease, Store
from rollstream.store.assignments import Assignments
from rollstream.store.experiments import Experiments
from rollstream.store.members import Members
from rollstream.weights import WeightStore
from rollstream_learner.actors_work import ActorsWork
from rollstream_learner.beginnings import Beginnings
from rollstream_learner.cut import Cuts, find_cut
from rollstream_learner.edge import LearnerEdge
from rollstream_learner.guard import Guard, Verdict
from rollstream_learner.orders import Orders
from rollstream_learner.run_files import RunFiles
from rollstream_learner.settings import LearnerSettings
from rollstream_service.folders import make_writable
from rollstream_service.lifecycle import Life

if TYPE_CHECKING:
    from rollstream.replay import TableClient, TableSpec

__all__ = ["ExperimentRun"]

AHEAD_BATCHES = 4
"""Batches that are asked of a shard before they are needed, so that the learner does not wait for a round trip each time."""
LOOK_S = 2.0
"""How long a learner waits for a replay shard before it renews its lease and looks whether it still should."""
TABLE_INFO_WITHIN_S = 2.0
"""How long a report waits for what a shard says about its table; without an answer it repeats what was said last."""
SNAPSHOT_WITHIN_S = 60.0
"""How long a shard may take for its part of a checkpoint: a gigabyte from a slow disk."""


class ExperimentRun:
    """Runs one experiment under `lease`."""

    def __init__(
        self,
        *,
        settings: LearnerSettings,
        life: Life,
        store: Store,
        address: Address,
        experiment: str,
        lease: Lease,
        counters: Counters,
        waits: Waits,
        observe: Callable[[Report], None],
    ) -> None:
        self._settings = settings
        self._life = life
        self._store = store
        self._address = address
        self._experiment = experiment
        self._lease = lease
        self._counters = counters
        self._waits = waits
        self._observe = observe
        self._experiments = Experiments(store)
        self._actors = ActorsWork(store, experiment=experiment)
        self._spec = self._experiments.spec(experiment)
        self._directory = settings.runs_dir / experiment
        self._edges: list[LearnerEdge] = []
        self._edge_names: list[str] = []
        self._clients: dict[str, TableClient] = {}
        self._ran_s = 0.0
        self._report: Report | None = None
        self._first_update_told = False

    def run(self) -> None:
        """Run to an end, or until another learner must go on. What the user's code raised becomes the phase `failed`."""
        phases = self._experiments
        try:
            phases.set_phase(self._experiment, "starting", learner=self._life.member, lease=self._lease)
            self._run()
        except LeaseLost as error:
            self._life.log.warning("lost the experiment to another learner", experiment=self._experiment, reason=str(error))
        except StoreError:
            raise
        except DeadlineExceeded as error:  # somebody is away: nothing is wrong with the experiment
            self._life.log.warning("cannot go on", experiment=self._experiment, reason=str(error))
            stopped = phases.wanted(self._experiment) == "stop"
            self._phase("stopped" if stopped else "queued", reason=str(error))
        except Exception as error:  # whatever the user's code raises: told where the user sees it
            told = describe_error(error, where="the learner")
            self._life.log.error(
                "the experiment failed", experiment=self._experiment, reason=told.message, traceback=told.traceback
            )
            self._phase("failed", reason=told.message, detail=told.traceback)
        finally:
            self._let_go()

    def _let_go(self) -> None:
        """Close what is open; once the experiment has ended for good, its tables and edges go too (its checkpoints stay)."""
        try:
            ended = self._experiments.status(self._experiment).ended
            for table in self._clients.values():
                if ended:
                    table.drop(deadline_s=LOOK_S)
                table.close()
            for name in self._edge_names if ended else ():
                remove_edge(self._store, experiment=self._experiment, name=name)
        except (DeadlineExceeded, StoreError) as error:
            self._life.log.warning("could not remove what the experiment left in Redis", reason=str(error))

    def _run(self) -> None:
        stop = threading.Event()
        guard = Guard(
            self._address,
            life=self._life,
            experiment=self._experiment,
            lease=self._lease,
            lease_ttl_s=self._settings.lease_ttl_s,
            stop=stop,
        )
        guard.start()  # before anything that may take longer than the lease lives
        try:
            self._work(guard, stop)
        finally:
            guard.stop()

    def _work(self, guard: Guard, stop: threading.Event) -> None:
        spec, life = self._spec, self._life
        remedy = "free space there, or set ROLLSTREAM_RUNS_DIR to a folder that can be written"
        make_writable(self._directory, what="the folder of the run", remedy=remedy)
        environment = inspect_environment(spec.environment, allow=self._settings.allowed_modules)
        agent = make_agent(
            spec.algorithm, spec.settings, observation=environment.observation_leaves, actions=environment.action_leaves
        )
        rows = row_spec(environment.observation_leaves, environment.action_leaves, extra=agent.extra_columns)
        flow = Description(make_flow(spec.algorithm, agent, actors=spec.actors), tables=agent.table_names)
        cut = find_cut(self._directory / "checkpoints", spec)
        learning = agent.learning(seed=child_seed(spec.seed, "learner"))
        beginnings = Beginnings(agent, rows)
        tables = self._clients = self._tables(beginnings.specs)
        weights = WeightStore(self._store, experiment=self._experiment)
        self._counters.restore(self._experiments.counters(self._experiment))
        side = LearnerProcess(
            agent=learning,
            weights=_Leased(weights, self._lease),
            counters=self._counters,
            waits=self._waits,
            clock=life.clock,
            edge=lambda name, in_flight: self._edge(name, rows),
            tables=tables,
            version=max(weights.latest(), int(cut.state["version"]) if cut else 0),
            stop=stop,
            evaluator=Evaluator(spec=spec, agent=agent, allow=self._settings.allowed_modules),
        )
        orders = Orders(
            guard,
            life=life,
            waits=self._waits,
            every_s=spec.checkpoint.every_s,
            checkpoint=lambda: self._checkpoint(cuts),
            phase=self._phase,
        )
        runner = Runner(flow, side, owner=orders)
        cuts = Cuts(
            folder=self._directory / "checkpoints",
            experiment=self._experiment,
            spec=spec,
            agent=learning,
            runner=runner,
            side=side,
            counters=self._counters,
            tables=tables,
        )
        try:
            if cut is not None:
                cuts.restore(cut)
                self._ran_s = float(cut.state["ran_s"])
                self._event("resumed", f"resumed from checkpoint {cut.record.number} ({cut.record.path})")
            beginnings.write(self._store, self._address, tables, clock=life.clock)
            side.publish()
            self._flow(runner, side, guard, cuts, orders=orders, agent=agent)
        finally:
            runner.close()

    # -- what the flow needs

    def _tables(self, specs: Mapping[str, TableSpec]) -> dict[str, TableClient]:
        clients: dict[str, TableClient] = {}
        for name, table in specs.items():
            from rollstream.replay import TableClient  # PPO needs none of it

            client = TableClient(
                self._store,
                self._address,
                table_id=f"{self._experiment}.{name}",
                clock=self._life.clock,
                ahead_batches=AHEAD_BATCHES,
            )
            with self._waits.waiting(who=self._life.member, for_whom="a replay shard"):
                self._create(client, table)
            clients[name] = client
        return clients

    def _create(self, client: TableClient, table: TableSpec) -> None:
        """Wait for the shard for as long as the experiment is wanted here: its pod may need minutes for its image."""
        while True:
            try:
                client.create(table, deadline_s=LOOK_S)
                return
            except DeadlineExceeded:
                self._lease.renew()
                self._life.health.beat("flow")
                if self._life.stopping.is_set() or self._experiments.wanted(self._experiment) != "run":
                    raise

    def _edge(self, name: str, rows: RowSpec) -> LearnerEdge:
        reader = EdgeReader(
            self._store,
            experiment=self._experiment,
            name=name,
            consumer=self._life.member,
            spec_hash=rows.hash,
            counters=self._counters,
        )
        edge = LearnerEdge(
            reader,
            experiment=self._experiment,
            members=Members(self._store),
            assignments=Assignments(self._store),
            clock=self._life.clock,
        )
        self._edges.append(edge)
        self._edge_names.append(name)
        return edge

    # -- the loop

    def _flow(self, runner: Runner, side: LearnerProcess, guard: Guard, cuts: Cuts, *, orders: Orders, agent: Agent) -> None:
        clock, spec = self._life.clock, self._spec
        self._phase("running")
        files = RunFiles(self._directory, clock=clock, on_trouble=lambda message: self._event("files_failed", message))
        began_s = clock.monotonic_s()
        earlier_s = self._ran_s
        reached: str | None = None
        try:
            for told in runner:
                self._life.health.beat("flow")
                self._ran_s = earlier_s + clock.monotonic_s() - began_s - orders.paused_s
                view = runner.describe(actors=self._actors.told())
                report = replace(self._complete(told, cuts), bottleneck=view.bottleneck.sentence if view.bottleneck else "")
                self._told(report, view, side)
                files.write(report)  # behind what a next learner goes on from: no counter in them runs backwards
                reached = reason_to_stop(spec.stop, report, running_s=self._ran_s)
                if reached is not None:
                    break
                orders.act()
        finally:
            files.close()
        self._end(reached, guard.verdict, side, cuts, agent, files=files)

    def _complete(self, told: Report, cuts: Cuts) -> Report:
        """The flow's report with what only this process knows."""
        tables = dict(self._report.tables) if self._report is not None else {}
        for name, client in cuts.tables.items():
            try:
                tables[name] = client.info(deadline_s=TABLE_INFO_WITHIN_S)
            except DeadlineExceeded:  # the shard is away; control shows that
                continue
        return replace(
            told,
            experiment=self._experiment,
            spec_hash=self._spec.hash,
            release=__version__,
            wall_s=round(self._ran_s, 3),
            tables=tables,
        )

    def _told(self, report: Report, view: FlowView, side: LearnerProcess) -> None:
        """Tell the cell."""
        self._report = report
        self._observe(report)
        if not self._first_update_told and side.first_update_wall_s is not None:
            self._first_update_told = True
            self._event("first_update", "first update made", wall_s=side.first_update_wall_s)
        self._experiments.save_counters(self._experiment, self._counters.snapshot(), lease=self._lease)
        self._experiments.add_report(self._experiment, report.to_json(), lease=self._lease)
        self._experiments.set_flow(self._experiment, view.to_json(), lease=self._lease)

    def _checkpoint(self, cuts: Cuts) -> CheckpointRecord | CheckpointError:
        """Make a checkpoint; a full disk or a shard that is away is told, and does not end the run: the next one may succeed."""
        leaving = self._life.stopping.is_set()
        try:
            record = cuts.make(ran_s=self._ran_s, deadline_s=self._settings.grace_s / 4 if leaving else SNAPSHOT_WITHIN_S)
        except (CheckpointError, DeadlineExceeded, StoreError) as error:
            if isinstance(error, StoreError) and not leaving:
                raise
            self._event("checkpoint_failed", str(error))
            self._life.log.error("no checkpoint", reason=str(error))
            return error if isinstance(error, CheckpointError) else CheckpointError(str(error))
        self._life.log.info("checkpoint", path=str(record.path), bytes=record.bytes)
        self._event("checkpoint", f"checkpoint {record.number}", path=str(record.path), bytes=record.bytes)
        return record

    # -- the end

    def _end(
        self,
        reached: str | None,
        verdict: Verdict | None,
        side: LearnerProcess,
        cuts: Cuts,
        agent: Agent,
        *,
        files: RunFiles,
    ) -> None:
        if verdict is not None and verdict.kind == "lost":
            raise LeaseLost(verdict.reason)
        if verdict is not None and verdict.kind == "fault":
            self._phase("failed", reason=verdict.reason, detail=verdict.detail)
            return
        saved = self._checkpoint(cuts)
        if reached is None and verdict is not None and verdict.kind == "leave":
            self._phase("queued", reason="its learner was told to stop; another one goes on from its checkpoint")
            return
        record = saved if isinstance(saved, CheckpointRecord) else None
        self._summarize(side, agent, record, files, evaluated=reached is not None)
        if reached is not None and isinstance(saved, CheckpointError):
            self._phase("failed", reason=f"{reached}, but what was learned is not saved: {saved}")
        elif reached is not None:
            self._phase("succeeded", reason=reached)
        else:
            self._phase("stopped", reason=verdict.reason if verdict else "the flow has ended")

    def _summarize(
        self, side: LearnerProcess, agent: Agent, record: CheckpointRecord | None, files: RunFiles, *, evaluated: bool
    ) -> None:
        spec = self._spec
        weights = LocalWeights(version=side.version(), tensors=side.tensors())
        evaluation = Episodes()
        if evaluated and spec.evaluation_episodes:
            self._event("evaluating", f"evaluating the greedy policy for {spec.evaluation_episodes} episodes")
            evaluation = greedy_episodes(spec, agent, weights, allow=self._settings.allowed_modules)
        results = Results(
            experiment=self._experiment,
            spec=spec,
            counters=self._counters,
            report=self._report,
            ran_s=self._ran_s,
            version=side.version(),
            tensors=weights.tensors,
            evaluation=evaluation,
            actors=frozenset().union(*(edge.contributors for edge in self._edges)),
            checkpoint=str(record.path) if record else None,
            learning_curve=files.draw(
                title=f"{spec.algorithm} on {spec.environment.id}, seed {spec.seed}", goal=spec.stop.mean_return
            ),
        )
        self._experiments.set_summary(self._experiment, results.to_json(), lease=self._lease)

    def _phase(self, phase: Any, *, reason: str = "", detail: str = "") -> None:
        self._life.log.info("phase", experiment=self._experiment, phase=phase, reason=reason)
        self._experiments.set_phase(self._experiment, phase, reason=reason, detail=detail, lease=self._lease)

    def _event(self, kind: str, message: str, **fields: Any) -> None:
        self._experiments.add_event(self._experiment, kind, message, **fields)


class _Leased:
    """A weight store that only publishes while the lease is held."""

    def __init__(self, weights: WeightStore, lease: Lease) -> None:
        self._weights = weights
        self._lease = lease

    def publish(self, version: int, tensors: Any) -> Any:
        return self._weights.publish(version, tensors, lease=self._lease)

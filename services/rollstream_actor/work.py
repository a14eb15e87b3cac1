"""Work: one assignment served, from the environment's making to the last message.

environment ─▶ collector ─▶ fragment (the flow's steps before its gathers) ─▶ edge
     ▲              ▲
 restarts        newest weights, pulled before each rollout
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rollstream.acting import ActorPlace, ActorProcess
from rollstream.algorithms import make_agent, make_flow
from rollstream.algorithms.agent import Agent
from rollstream.algorithms.policies import make_policy
from rollstream.config import ExperimentSpec
from rollstream.edges import EdgeWriter
from rollstream.envs import Collector, VectorEnvironment, make_environment
from rollstream.errors import EnvironmentFault, FlowError, NonFiniteError
from rollstream.flow import ActorFragment, Description, starting_environments
from rollstream.flow.rates import Rates, actor_work
from rollstream.metrics import Counters, Waits
from rollstream.seeding import child_generator, child_seed
from rollstream.spaces import RowSpec, row_spec
from rollstream.store import Address, Store
from rollstream.store.assignments import Assignment
from rollstream.store.peers import Peers
from rollstream.weights import WeightStore
from rollstream_actor.settings import ActorSettings
from rollstream_actor.watch import Watch
from rollstream_service.lifecycle import Life

if TYPE_CHECKING:
    from rollstream_actor.sink import PatientSink

__all__ = ["Work", "is_environment_fault"]

ENVIRONMENT_ERRORS = (EnvironmentFault, NonFiniteError)
LOOK_S = 0.5
"""How often a wait looks whether the assignment has changed."""


class Work:
    """Serves `assignment` until it changes. Raises `EnvironmentFault` or `FlowError` when the user's code fails."""

    def __init__(
        self,
        *,
        settings: ActorSettings,
        life: Life,
        watch: Watch,
        store: Store,
        address: Address,
        assignment: Assignment,
        spec: ExperimentSpec,
        counters: Counters,
        waits: Waits,
    ) -> None:
        self._settings = settings
        self._life = life
        self._watch = watch
        self._store = store
        self._address = address
        self._assignment = assignment
        self._spec = spec
        self._counters = counters
        self._waits = waits
        self._sinks: list[PatientSink] = []
        self._rates: Rates | None = None
        self.rollouts = 0

    def run(self, *, restart: int) -> None:
        """Make everything and go. `restart` counts the restarts of this assignment; it changes the environments' seeds."""
        spec, ordinal = self._spec, self._assignment.ordinal
        seed = child_seed(spec.seed, "actor", ordinal, "restart", restart)
        environment = make_environment(
            spec.environment, envs=spec.envs_per_actor, seed=seed, allow=self._settings.allowed_modules
        )
        try:
            self._serve(environment, seed=seed)
        finally:
            try:
                environment.close()
            except EnvironmentFault as fault:  # it is gone in any case, and must not hide why it had to be closed
                self._life.log.warning("the environment did not close", reason=str(fault))

    def operators(self) -> dict[str, dict[str, float]]:
        """What each node of the flow did in this actor, for the heartbeat; empty before it begins."""
        rates = self._rates
        return actor_work(rates) if rates is not None else {}

    def _serve(self, environment: VectorEnvironment, *, seed: int) -> None:
        spec = self._spec
        agent = make_agent(
            spec.algorithm, spec.settings, observation=environment.observation_leaves, actions=environment.action_leaves
        )
        rows = row_spec(environment.observation_leaves, environment.action_leaves, extra=agent.extra_columns)
        flow = Description(make_flow(spec.algorithm, agent, actors=spec.actors), tables=agent.table_names)
        place = ActorPlace(ordinal=self._assignment.ordinal, actors=spec.actors)
        policy = make_policy(agent, envs=environment.envs, generator=child_generator(seed, "exploration"), place=place)
        with starting_environments(flow, actor=self._life.member):
            source = Collector(environment, row_spec=rows, policy=policy, clock=self._life.clock)
        side = ActorProcess(
            actor=self._life.member,
            clock=self._life.clock,
            source=source,
            policy=policy,
            weights=WeightStore(self._store, experiment=self._assignment.experiment),
            sink=lambda table, rule, environments: self._sink(agent, rows, table, rule, environments),
            agent=agent,
            seed=seed,
            peers=Peers(
                self._store,
                experiment=self._assignment.experiment,
                member=self._life.member,
                host=urlsplit(self._settings.url(0)).hostname or "127.0.0.1",
                clock=self._life.clock,
            ),
        )
        fragment = ActorFragment(flow, side)
        self._rates = Rates(self._life.clock, fragment.meters)
        try:
            self._loop(fragment, side, rows)
        finally:
            self._rates = None
            fragment.close()
            for sink in self._sinks:
                sink.close()

    def _sink(self, agent: Agent, rows: RowSpec, table: str, rule: Any, environments: int) -> PatientSink:
        from rollstream.replay import TableWriter
        from rollstream_actor.sink import PatientSink

        specs = agent.tables(rows)
        primary = specs[table].rows_of or table
        writer = TableWriter(
            self._store,
            self._address,
            table_id=f"{self._assignment.experiment}.{primary}",
            spec=specs[primary],
            tables={table: rule},
            environments=environments,
            clock=self._life.clock,
            waits=self._waits,
        )
        sink = PatientSink(writer, life=self._life, waits=self._waits, table=table, wanted=self._wanted)
        self._sinks.append(sink)
        return sink

    def _loop(self, fragment: ActorFragment, side: ActorProcess, rows: RowSpec) -> None:
        edges = {
            edge.name: EdgeWriter(
                self._store,
                experiment=self._assignment.experiment,
                name=edge.name,
                in_flight=edge.in_flight,
                actor=self._life.member,
                spec_hash=rows.hash,
                counters=self._counters,
                waits=self._waits,
            )
            for edge in fragment.edges
        }
        with self._waits.waiting(who=self._life.member, for_whom="the learner's first weights"):
            while self._wanted() and not side.pull():
                self._life.stopping.wait(0.05)
        while self._wanted():
            for name, edge in edges.items():
                with fragment.waiting(name):
                    has_room = self._credit(edge)
                if not has_room:
                    break
                batch = fragment.run_once(name)
                if batch is not None:
                    edge.send(batch, deadline_s=self._settings.redis_deadline_s)
                    self._counters.add("env_steps_sampled", batch.env_steps)
                self.rollouts += 1
                self._life.health.beat("work")

    def _credit(self, edge: EdgeWriter) -> bool:
        """Wait until the edge takes one more message; False when the actor is wanted elsewhere."""
        while self._wanted():
            self._life.health.beat("work")
            if edge.wait_for_room(timeout_s=LOOK_S):
                return True
        return False

    def _wanted(self) -> bool:
        return not self._life.stopping.is_set() and self._watch.assignment == self._assignment


def is_environment_fault(error: Exception) -> bool:
    """Whether the environment failed (worth a restart) and not a step of the flow."""
    return isinstance(error, ENVIRONMENT_ERRORS) or (
        isinstance(error, FlowError) and isinstance(error.__cause__, ENVIRONMENT_ERRORS)
    )

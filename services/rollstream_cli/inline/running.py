"""The wiring of inline mode: the same agents, flows and steps as in a cell, with edges, weights and tables in memory.

actors (round robin) ─▶ InlineEdges ─▶ flow ─▶ learner ─▶ WeightBoard ─▶ actors
          └────────────▶ MemoryTable ◀──────────┘
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollstream import __version__
from rollstream.acting import ActorPlace, ActorProcess
from rollstream.algorithms import make_agent, make_flow
from rollstream.algorithms.agent import Agent
from rollstream.algorithms.evaluation import Evaluator, LocalWeights, greedy_episodes
from rollstream.algorithms.policies import make_policy
from rollstream.algorithms.trial import try_out
from rollstream.clock import Clock, SystemClock
from rollstream.config import ExperimentSpec
from rollstream.envs import Collector, EnvironmentInfo, VectorEnvironment, inspect_environment, make_environment
from rollstream.errors import ConfigError, EnvironmentFault
from rollstream.flow import ActorFragment, Description, InlineEdges, Runner, starting_environments
from rollstream.learning import LearnerProcess, Results, reason_to_stop
from rollstream.metrics import Counters, JsonLines, Report, Waits, draw_learning_curve, read_json_lines
from rollstream.seeding import child_generator, child_seed
from rollstream.spaces import RowSpec, row_spec
from rollstream_cli.inline.weights import WeightBoard
from rollstream_service.folders import make_writable

if TYPE_CHECKING:
    from rollstream_cli.inline.tables import MemoryTable

__all__ = ["run"]

EVERY_ITEM_S = 1e-9
"""Interval of reports: one after every item, so that a run ends at the same item each time."""
TELL_EVERY_S = 1.0
LOADER = 1 << 20
"""Writer of what was recorded; actors are numbered from 1."""


def run(
    spec: ExperimentSpec, *, runs_dir: Path, report: Callable[[Mapping[str, Any]], None], allow: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Run `spec` to its stop rule in this process and return its summary.

    Every random number comes from `spec.seed`, and nothing depends on time but the moments of reports: two runs with a stop rule
    in steps or updates end with equal weights. A breakpoint in a step, a loss or an environment just works.

    Args:
        report: called with each report, as JSON-able data.
        allow: modules from which an environment's entry point may come.
    """
    if spec.from_checkpoint is not None:
        raise ConfigError(f"inline mode starts fresh, got from_checkpoint {spec.from_checkpoint!r}; train without --inline")
    experiment = f"{spec.name}-{secrets.token_hex(3)}"
    directory = runs_dir / experiment
    with ExitStack() as resources:
        environments = []
        for ordinal in range(spec.actors):
            seed = child_seed(spec.seed, "actor", ordinal, "restart", 0)
            environment = make_environment(spec.environment, envs=spec.envs_per_actor, seed=seed, allow=allow)
            resources.callback(_close, environment)
            environments.append(environment)
        first = environments[0] if environments else inspect_environment(spec.environment, allow=allow)
        try_out(
            spec.algorithm,
            spec.settings,
            observation=first.observation_leaves,
            actions=first.action_leaves,
            actors=spec.actors,
        )
        make_writable(directory, what="the folder of the run", remedy="choose another with --runs-dir")
        return _run(spec, experiment, directory, environments, first, report=report, allow=allow)


def _close(environment: VectorEnvironment) -> None:
    with suppress(EnvironmentFault):  # it is gone in any case, and must not hide why it had to be closed
        environment.close()


def _run(
    spec: ExperimentSpec,
    experiment: str,
    directory: Path,
    environments: list[VectorEnvironment],
    first: VectorEnvironment | EnvironmentInfo,
    *,
    report: Callable[[Mapping[str, Any]], None],
    allow: tuple[str, ...],
) -> dict[str, Any]:
    clock: Clock = SystemClock()
    settings = {**spec.settings, "report_every_s": EVERY_ITEM_S}  # the stop rule must not depend on the time of reports
    agent = make_agent(spec.algorithm, settings, observation=first.observation_leaves, actions=first.action_leaves)
    rows = row_spec(first.observation_leaves, first.action_leaves, extra=agent.extra_columns)
    flow = Description(make_flow(spec.algorithm, agent, actors=spec.actors), tables=agent.table_names)
    board, counters, waits = WeightBoard(), Counters(), Waits(clock)
    tables = _tables(spec, agent, rows, experiment=experiment, clock=clock)
    fragments = [
        _actor(spec, agent, environment, ordinal, flow=flow, board=board, tables=tables, clock=clock)
        for ordinal, environment in enumerate(environments)
    ]
    side = LearnerProcess(
        agent=agent.learning(seed=child_seed(spec.seed, "learner")),
        weights=board,
        counters=counters,
        waits=waits,
        clock=clock,
        edge=lambda name, in_flight: InlineEdges(fragments).source(name, in_flight=in_flight),
        tables=tables,
        version=0,
        evaluator=Evaluator(spec=spec, agent=agent, allow=allow),
    )
    side.publish()
    began_s = clock.monotonic_s()
    told_s = 0.0
    last: Report | None = None
    with Runner(flow, side, inline=True) as runner:
        lines = JsonLines(directory / "reports.jsonl")
        for told in runner:
            ran_s = clock.monotonic_s() - began_s
            last = replace(
                told,
                experiment=experiment,
                spec_hash=spec.hash,
                release=__version__,
                wall_s=round(ran_s, 3),
                tables={name: table.info() for name, table in tables.items()},
            )
            reached = reason_to_stop(spec.stop, last, running_s=ran_s)
            if ran_s - told_s >= TELL_EVERY_S or reached is not None:
                told_s = ran_s
                lines.write(last)
                report(last.to_json())
            if reached is not None:
                break
        lines.close()
    for fragment in fragments:
        fragment.close()
    weights = LocalWeights(version=side.version(), tensors=side.tensors())
    return Results(
        experiment=experiment,
        spec=spec,
        counters=counters,
        report=last,
        ran_s=clock.monotonic_s() - began_s,
        version=side.version(),
        tensors=weights.tensors,
        evaluation=greedy_episodes(spec, agent, weights, allow=allow),
        actors=frozenset(fragment.actor for fragment in fragments),
        checkpoint=None,
        learning_curve=_curve(directory, spec),
    ).to_json()


def _tables(spec: ExperimentSpec, agent: Agent, rows: RowSpec, *, experiment: str, clock: Clock) -> dict[str, MemoryTable]:
    """The tables, with what they begin with."""
    specs = dict(agent.tables(rows))
    if not specs:
        return {}
    from rollstream.algorithms.recordings import read_recordings
    from rollstream_cli.inline.tables import MemoryTable

    recorded = read_recordings(agent, specs)
    specs |= {name: found.spec for name, found in recorded.items()}
    tables = {
        name: MemoryTable(table, experiment=experiment, seed=child_seed(spec.seed, "table", name), clock=clock)
        for name, table in specs.items()
    }
    for name, found in recorded.items():
        writer = tables[name].writer(found.rule, environments=1, writer=LOADER)
        found.write([writer], clock=clock)
    return tables


def _actor(
    spec: ExperimentSpec,
    agent: Agent,
    environment: VectorEnvironment,
    ordinal: int,
    *,
    flow: Description,
    board: WeightBoard,
    tables: Mapping[str, MemoryTable],
    clock: Clock,
) -> ActorFragment:
    seed = child_seed(spec.seed, "actor", ordinal, "restart", 0)
    place = ActorPlace(ordinal=ordinal, actors=spec.actors)
    policy = make_policy(agent, envs=environment.envs, generator=child_generator(seed, "exploration"), place=place)
    rows = row_spec(environment.observation_leaves, environment.action_leaves, extra=agent.extra_columns)
    actor = f"actor-{ordinal}"
    with starting_environments(flow, actor=actor):
        source = Collector(environment, row_spec=rows, policy=policy, clock=clock)
    side = ActorProcess(
        actor=actor,
        clock=clock,
        source=source,
        policy=policy,
        weights=board,
        sink=lambda table, rule, environments: tables[table].writer(rule, environments=environments, writer=ordinal + 1),
        agent=agent,
        seed=seed,
    )
    return ActorFragment(flow, side)


def _curve(directory: Path, spec: ExperimentSpec) -> str | None:
    reports = read_json_lines(directory / "reports.jsonl")
    if not any(told.mean_return is not None for told in reports):
        return None
    path = directory / "learning_curve.png"
    draw_learning_curve(
        reports, path, title=f"{spec.algorithm} on {spec.environment.id}, seed {spec.seed}", goal=spec.stop.mean_return
    )
    return str(path)

"""The actor's part of a flow: for each edge, the steps from the source to the message."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rollstream.errors import ConfigError
from rollstream.flow.description import Description, Edge
from rollstream.flow.fault import broken, raise_at_operator, require_conserved
from rollstream.flow.meter import Meter
from rollstream.flow.node import Node
from rollstream.flow.sides import ActorSide
from rollstream.flow.step import Bound, Closable
from rollstream.flow.steps.store_into import STORE_WAITED_METRIC
from rollstream.spaces import Batch, Episodes, Flag, Rollout

__all__ = ["AGENT_STEPS_METRIC", "DROPPED_METRIC", "ActorFragment", "starting_environments"]

DROPPED_METRIC = "env_steps_dropped."
"""Prefix of the metrics by which a message tells of environment steps that its actor dropped since its last message."""
AGENT_STEPS_METRIC = "agent_steps."
"""Prefix of the metric by which a message tells of the steps that the agents of a policy took."""
SOURCES = ("rollouts", "generate")
"""Kinds of nodes from which the items of an actor come."""


class ActorFragment:
    """Runs the steps of a flow that stand before its gathers.

    It neither waits nor sends: the actor asks for credit, calls `run_once`, and sends what it returns.

    >>> fragment = ActorFragment(description, side)                                        # doctest: +SKIP
    >>> for edge in fragment.edges: batch = fragment.run_once(edge.name)                   # doctest: +SKIP
    """

    def __init__(self, description: Description, side: ActorSide) -> None:
        self._side = side
        self.edges: tuple[Edge, ...] = description.edges
        self.meters: dict[str, Meter] = {node.name: Meter() for edge in self.edges for node in edge.chain}
        sources = {edge.chain[0].name: _Source(edge.chain[0], side, self.meters) for edge in self.edges}
        self._chains = {edge.name: _Chain(edge, side, self.meters, sources[edge.chain[0].name]) for edge in self.edges}

    @property
    def actor(self) -> str:
        """Id of the actor that it runs in."""
        return self._side.actor

    def run_once(self, edge: str) -> Batch | None:
        """One item of the source through the steps of `edge`: its message, or None when a filter dropped it.

        What was dropped is told by the next message, so that the learner's counters add up.

        Raises:
            FlowError: a step failed; names the operator, its place and this actor.
        """
        return self._chain(edge).run_once()

    @contextmanager
    def waiting(self, edge: str) -> Iterator[None]:
        """The actor waits for credit of `edge` as long as the context lasts: seconds that its source waits."""
        meter, clock = self.meters[self._chain(edge).edge.chain[0].name], self._side.clock
        meter.waits_for, meter.waits_since_s = "credit: the learner has not used what was sent", clock.monotonic_s()
        try:
            yield
        finally:
            meter.waited_s += clock.monotonic_s() - meter.waits_since_s
            meter.waits_for = ""

    def ready(self, edge: str) -> bool:
        """Whether `run_once` would not have to wait for room in a table, or for an edge that selects from the same source. Asked in
        inline mode only."""
        chain = self._chain(edge)
        return chain.has_items() and all(self._side.can_store(node.table) for node in chain.edge.chain if node.table)

    def close(self) -> None:
        """Give back what steps hold."""
        for chain in self._chains.values():
            chain.close()

    def _chain(self, edge: str) -> _Chain:
        if edge not in self._chains:
            raise ConfigError(f"the flow has no edge {edge!r}; it has: {', '.join(self._chains) or 'none'}")
        return self._chains[edge]


@contextmanager
def starting_environments(flow: Description, *, actor: str) -> Iterator[None]:
    """Errors of the block are those of the flow's source in the actors: environments are started before it is first pulled."""
    try:
        yield
    except Exception as error:
        raise_at_operator(error, next(node for node in flow.nodes if node.kind in SOURCES), actor=actor)


@dataclass(slots=True)
class _Work:
    """One node with its bound step and its meter."""

    node: Node
    bound: Bound
    meter: Meter


class _Source:
    """Where items of this actor come from. Several edges that select from it get each item: the first accounts for its
    environment steps, for the others it counts none."""

    def __init__(self, node: Node, side: ActorSide, meters: Mapping[str, Meter]) -> None:
        self.node = node
        self._side = side
        self._meter = meters[node.name]
        self._make = self._maker(side)
        self._waiting: list[deque[Rollout | Batch]] = []

    def join(self) -> int:
        """One more edge; returns its place."""
        self._waiting.append(deque())
        return len(self._waiting) - 1

    def may_take(self, place: int) -> bool:
        """Whether the edge at `place` has an item, or all others have taken theirs."""
        return bool(self._waiting[place]) or not any(self._waiting)

    def take(self, place: int) -> Rollout | Batch:
        """The next item of the edge at `place`, made now unless another edge had it made."""
        if not self._waiting[place]:
            made = self._begin()
            for other, queue in enumerate(self._waiting):
                queue.append(made if other == 0 else replace(made, env_steps=0))
        return self._waiting[place].popleft()

    def close(self) -> None:
        if isinstance(self._make, Closable):
            self._make.close()

    def _maker(self, side: ActorSide) -> Bound:
        """What makes an item when it is called with None."""
        if self.node.step is not None:
            return self.node.step.bind(side)
        steps = int(self.node.settings["steps"] or 1)
        pull = self.node.settings.get("pull", True) is not False
        return lambda nothing: side.collect(steps=steps, pull=pull or not side.tensors())

    def _begin(self) -> Rollout | Batch:
        clock = self._side.clock
        began_s = clock.monotonic_s()
        try:
            made = self._make(None)
        except Exception as error:
            raise_at_operator(error, self.node, actor=self._side.actor)
        if not isinstance(made, (Rollout, Batch)):
            what = f"gave a {type(made).__name__}; a source in the actor makes a rollstream.spaces.Batch"
            raise broken(self.node, what, actor=self._side.actor)
        self._meter.busy_s += clock.monotonic_s() - began_s
        self._meter.items += 1
        self._meter.env_steps += made.env_steps
        return made


class _Chain:
    """The steps of one edge, bound to this actor."""

    def __init__(self, edge: Edge, side: ActorSide, meters: Mapping[str, Meter], source: _Source) -> None:
        self.edge = edge
        self._side = side
        self._sequence = 0
        self._dropped: dict[str, int] = {}
        self._dropped_episodes: list[Episodes] = []
        self._agent_steps: dict[str, int] = {}
        self._source = source
        self._place = source.join()
        self._work = [_Work(node, node.step.bind(side), meters[node.name]) for node in edge.chain[1:] if node.step is not None]

    def run_once(self) -> Batch | None:
        made = self._source.take(self._place)
        item: Any = made
        for work in self._work:
            result = self._apply(work, item)
            if work.node.kind == "filter":
                if not result:
                    self._drop(work.node, made)
                    return None
                continue
            require_conserved(work.node, item, result, actor=self._side.actor)
            item = result
            if isinstance(item, Rollout) and item.policy:
                self._count_agents(item)
        if not isinstance(item, Batch):
            last = self._work[-1].node if self._work else self._source.node
            raise broken(
                last,
                f"gave a {type(item).__name__}, but an edge sends batches; "
                "return a rollstream.spaces.Batch from the last step before the gather",
                actor=self._side.actor,
            )
        return self._message(item)

    def has_items(self) -> bool:
        return self._source.may_take(self._place)

    def close(self) -> None:
        self._source.close()
        for work in self._work:
            if isinstance(work.bound, Closable):
                work.bound.close()

    def _count_agents(self, rollout: Rollout) -> None:
        steps = int(np.count_nonzero(rollout.rows["flags"] & Flag.FINAL == 0))
        self._agent_steps[rollout.policy] = self._agent_steps.get(rollout.policy, 0) + steps

    def _apply(self, work: _Work, item: Any) -> Any:
        clock = self._side.clock
        began_s = clock.monotonic_s()
        try:
            result = work.bound(item)
        except Exception as error:
            raise_at_operator(error, work.node, actor=self._side.actor)
        waited_s = float(result.metrics.get(STORE_WAITED_METRIC, 0.0)) if isinstance(result, Batch) and work.node.table else 0.0
        work.meter.busy_s += max(0.0, clock.monotonic_s() - began_s - waited_s)
        work.meter.waited_s += waited_s
        work.meter.items += 1
        return result

    def _drop(self, node: Node, made: Rollout | Batch) -> None:
        reason = node.step.drops_as if node.step is not None and node.step.drops_as else node.name
        self._dropped[reason] = self._dropped.get(reason, 0) + made.env_steps
        self._dropped_episodes.append(made.episodes)

    def _message(self, batch: Batch) -> Batch:
        self._sequence += 1
        metrics, episodes = batch.metrics, batch.episodes
        if self._dropped:
            told = {f"{DROPPED_METRIC}{reason}": float(steps) for reason, steps in self._dropped.items()}
            metrics = {**metrics, **told}
            episodes = Episodes.concatenate([*self._dropped_episodes, episodes])
            self._dropped.clear()
            self._dropped_episodes.clear()
        if self._agent_steps:
            metrics = {
                **metrics,
                **{f"{AGENT_STEPS_METRIC}{policy}": float(count) for policy, count in self._agent_steps.items()},
            }
            self._agent_steps.clear()
        return replace(batch, actor=self._side.actor, sequence=self._sequence, metrics=metrics, episodes=episodes)

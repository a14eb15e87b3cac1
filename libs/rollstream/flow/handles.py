"""What a flow function is given: the actors, tables and the learner, as things to describe with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rollstream.errors import ConfigError
from rollstream.flow.node import make_node, require_at_least
from rollstream.flow.place import calling_place
from rollstream.flow.shards import Shards
from rollstream.flow.step import Step
from rollstream.flow.steps.evaluate import evaluate
from rollstream.flow.steps.publish import publish
from rollstream.flow.steps.sync_target import sync_target
from rollstream.flow.steps.update import update
from rollstream.flow.stream import Stream
from rollstream.spaces import Batch, Rollout

__all__ = ["Actors", "LearnerHandle", "TableHandle"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Actors:
    """The actors of an experiment; `count` is how many it asks for, it runs with those that are there."""

    count: int = 1

    def rollouts(self, *, steps: int, name: str | None = None, pull: bool = True) -> Shards[Rollout]:
        """What each actor's environments do in `steps` vector steps, again and again, by the newest weights each time.

        Args:
            pull: False: after the first weights, act with those that steps of this actor give (`act_with`).
        """
        require_at_least(1, steps, what="steps of rollouts")
        settings = {"steps": steps} if pull else {"steps": steps, "pull": False}
        node = make_node("rollouts", name=name, where="actor", settings=settings, gives="rollout")
        return Shards(node, actors=self.count)

    def generate(self, step: Step, *, name: str | None = None) -> Shards[Batch]:
        """Items that `step` makes inside each actor, in place of rollouts: it is called with None, again and again.

        The step is bound to the `ActorSide`, steps the environments itself (`collect`), with weights of its own choice
        (`act_with`), and gives batches that account for the environment steps which that took.
        """
        if not isinstance(step, Step) or step.takes or step.where == "learner":
            raise ConfigError(
                f"generate takes a step that makes items in the actor (where='actor', takes=''), got {step!r} ({calling_place()}); "
                "for rollouts use actors.rollouts(...)"
            )
        node = make_node(
            "generate",
            name=name,
            default_name=step.name,
            where="actor",
            settings=step.settings,
            step=step,
            gives=step.gives or "batch",
        )
        return Shards(node, actors=self.count)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHandle:
    """A replay table by its name; `spec` is what it shall be (a `TableSpec`), for whoever creates it."""

    name: str
    spec: Any = None

    def samples(self, *, batch_items: int, prefetch: int = 0, name: str | None = None) -> Stream[Batch]:
        """Batches of `batch_items` items as the table's limiter allows them; `prefetch` batches are sampled ahead in a thread.

        Their rows were counted when they were stored, so samples carry no environment steps.
        """
        require_at_least(1, batch_items, what="batch_items of samples")
        require_at_least(0, prefetch, what="prefetch of samples")
        node = make_node(
            "samples",
            name=name,
            default_name=f"samples_{self.name}",
            where="learner",
            settings={"batch_items": batch_items},
            table=self.name,
            gives="batch",
        )
        stream: Stream[Batch] = Stream(node)
        return stream.prefetch(prefetch) if prefetch else stream


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerHandle:
    """The learner of an experiment: its verbs as steps."""

    def update(self, *, policy: str = "") -> Step[Batch, Batch]:
        """Update the weights (of `policy`, where there are several) with every batch."""
        return update(policy)

    def publish(self, *, every_updates: int = 1) -> Step[Batch, Batch]:
        """Publish the weights once `every_updates` updates have passed since the last time."""
        return publish(every_updates=every_updates)

    def sync_target(self, *, every_updates: int, policy: str = "") -> Step[Batch, Batch]:
        """Copy the weights (of `policy`) to the target network once `every_updates` updates have passed since the last time."""
        return sync_target(every_updates=every_updates, policy=policy)

    def evaluate(self, *, every_updates: int, episodes: int) -> Step[Batch, Batch]:
        """Play `episodes` greedy episodes once `every_updates` updates have passed since the last time; for flows without actors."""
        return evaluate(every_updates=every_updates, episodes=episodes)

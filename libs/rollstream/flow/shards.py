"""`Shards`: one stream per actor. Its steps run inside the actor; a gather makes one learner-side `Stream` of it."""

from __future__ import annotations

from typing import Any, Generic, NoReturn, TypeVar

from rollstream.errors import ConfigError
from rollstream.flow.node import Node, make_node, require_at_least
from rollstream.flow.place import calling_place
from rollstream.flow.step import Step, StepLike, as_step
from rollstream.flow.stream import Stream

__all__ = ["Shards"]

T = TypeVar("T")
LEARNER_OPERATORS = ("batch", "duplicate", "flatten", "prefetch", "report", "take", "throttle", "window")


class Shards(Generic[T]):
    """A description of what every actor does with its own items."""

    def __init__(self, node: Node, *, actors: int, is_stored: bool = False) -> None:
        self.node = node
        self._actors = actors
        self._is_stored = is_stored

    def for_each(self, step: StepLike, *, name: str | None = None) -> Shards[Any]:
        """Apply `step` to every item, in the actor."""
        return self._stepped("for_each", step, name=name)

    def filter(self, step: StepLike, *, name: str | None = None) -> Shards[T]:
        """Keep the items for which `step` is true, in the actor; environment steps of the others count as dropped."""
        return self._stepped("filter", step, name=name)

    def gather_sync(self, *, name: str | None = None) -> Stream[Any]:
        """The barrier: one item per round, joined of one message of every live actor, all by the newest weights.

        An actor gets credit for its next rollout once the round has passed the end of its branch, so the weights that the round
        led to are published by then. Messages by older weights are dropped and counted (`stale`).
        """
        return self._gathered("gather_sync", in_flight=1, name=name)

    def gather_async(self, *, in_flight: int = 2, name: str | None = None) -> Stream[Any]:
        """Messages one by one in order of arrival; an actor is at most `in_flight` unused messages ahead."""
        require_at_least(1, in_flight, what="in_flight of gather_async")
        return self._gathered("gather_async", in_flight=in_flight, name=name)

    def __getattr__(self, name: str) -> NoReturn:
        if name in LEARNER_OPERATORS:
            raise ConfigError(
                f"{name} runs in the learner, but {self.node} is still in the actors ({calling_place()}); "
                "put gather_sync() or gather_async() before it"
            )
        raise AttributeError(f"{type(self).__name__} has no operator {name!r}")

    def _stepped(self, kind: Any, step: StepLike, *, name: str | None) -> Shards[Any]:
        described = as_step(step, user=kind)
        _check_item(described, self.node)
        if described.where == "learner":
            raise ConfigError(
                f"{described.name} runs in the learner, but {self.node} is still in the actors ({calling_place()}); "
                "put gather_sync() or gather_async() before it"
            )
        if kind == "filter" and self._is_stored:
            raise ConfigError(
                f"filter stands behind {self.node}, whose rows are in the table already ({calling_place()}); put it before that"
            )
        node = make_node(
            kind,
            name=name,
            default_name=described.name,
            where="actor",
            inputs=(self.node,),
            settings=described.settings,
            step=described,
            table=described.table,
            gives=self.node.gives if kind == "filter" else described.gives,
        )
        return Shards(node, actors=self._actors, is_stored=self._is_stored or described.settles == "stored")

    def _gathered(self, kind: Any, *, in_flight: int, name: str | None) -> Stream[Any]:
        if self._actors < 1:
            raise ConfigError(
                f"{kind} has no producers: Actors(count={self._actors}) ({calling_place()}); a flow with an edge needs >= 1 actor"
            )
        if self.node.gives == "rollout":
            raise ConfigError(
                f"{kind} sends batches, but {self.node} gives rollouts ({calling_place()}); put advantages(...), "
                "store_into(...) or a step of your own that returns a Batch before it"
            )
        node = make_node(
            kind,
            name=name,
            where="learner",
            inputs=(self.node,),
            settings={"in_flight": in_flight},
            gives="batch",
        )
        return Stream(node)


def _check_item(step: Step, before: Node) -> None:
    if step.takes and before.gives and step.takes != before.gives:
        raise ConfigError(f"{step.name} takes a {step.takes}, but {before} gives a {before.gives} ({calling_place()})")

"""`Shards`: one stream per actor. Its steps run inside the actor; a gather makes one learner-side `Stream` of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from rollstream.errors import ConfigError
from rollstream.flow.node import Node, make_node, require_at_least
from rollstream.flow.place import calling_place
from rollstream.flow.step import Setting, Step, StepLike, as_step, require_importable
from rollstream.flow.stream import Stream
from rollstream.spaces import Batch

__all__ = ["Shards"]

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")
LEARNER_OPERATORS = (
    "batch",
    "duplicate",
    "enqueue",
    "flatten",
    "mix_replay",
    "prefetch",
    "report",
    "take",
    "throttle",
    "window",
    "zip_with_source",
)


class Shards(Generic[T_co]):
    """A description of what every actor does with its own items of type `T_co`."""

    def __init__(self, node: Node, *, actors: int, is_stored: bool = False) -> None:
        self.node = node
        self._actors = actors
        self._is_stored = is_stored

    def for_each(self, step: StepLike[T_co, U], *, name: str | None = None) -> Shards[U]:
        """Apply `step` to every item, in the actor. A function must be importable there: no lambda, nothing local."""
        return self._stepped("for_each", step, name=name)

    def filter(self, step: StepLike[T_co, bool], *, name: str | None = None) -> Shards[T_co]:
        """Keep the items for which `step` is true, in the actor; environment steps of the others count as dropped."""
        return self._stepped("filter", step, name=name)

    def gather_sync(self: Shards[Batch], *, deadline_s: float | None = None, name: str | None = None) -> Stream[Batch]:
        """The barrier: one item per round, joined of one message of every live actor, all acted by the same weights, the newest.

        A round waits for the actors that are alive at its start; one that dies meanwhile is not waited for any longer, one that
        joins meanwhile is welcome, not waited for. An actor gets credit for its next rollout once the round has passed the end of
        its branch, so the weights that the round led to are published by then. Messages by older weights are dropped and counted
        (`stale`).

        Args:
            deadline_s: seconds that a round waits after its first message. Then it goes on without those that are missing (the
                wait names them; counter `rounds_cut_short`), whose messages come too late: stale, once weights were published. None: as
                long as they live.
        """
        settings: dict[str, Setting] = {}
        if deadline_s is not None:
            require_at_least(0, deadline_s, what="deadline_s of gather_sync")
            settings["deadline_s"] = deadline_s
        return self._gathered("gather_sync", in_flight=1, settings=settings, name=name)

    def gather_async(self: Shards[Batch], *, in_flight: int = 2, name: str | None = None) -> Stream[Batch]:
        """Messages one by one in order of arrival; an actor is at most `in_flight` unused messages ahead."""
        require_at_least(1, in_flight, what="in_flight of gather_async")
        return self._gathered("gather_async", in_flight=in_flight, settings={}, name=name)

    if not TYPE_CHECKING:  # a type checker knows without it that there is no such operator

        def __getattr__(self, name: str) -> NoReturn:
            if name in LEARNER_OPERATORS:
                raise ConfigError(
                    f"{name} runs in the learner, but {self.node} is still in the actors ({calling_place()}); "
                    "put gather_sync() or gather_async() before it"
                )
            raise AttributeError(f"{type(self).__name__} has no operator {name!r}")

    def _stepped(self, kind: Any, step: StepLike[Any, Any], *, name: str | None) -> Shards[Any]:
        require_importable(step, user=kind)
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

    def _gathered(self, kind: Any, *, in_flight: int, settings: Mapping[str, Setting], name: str | None) -> Stream[Any]:
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
            settings={"in_flight": in_flight, **settings},
            gives="batch",
        )
        return Stream(node)


def _check_item(step: Step, before: Node) -> None:
    if step.takes and before.gives and step.takes != before.gives:
        raise ConfigError(f"{step.name} takes a {step.takes}, but {before} gives a {before.gives} ({calling_place()})")

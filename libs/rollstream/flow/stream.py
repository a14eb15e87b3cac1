"""`Stream`: items in the learner, pulled one by one. Methods describe; nothing runs before a `Runner` is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rollstream.errors import ConfigError
from rollstream.flow.node import Kind, Node, make_node, require_at_least
from rollstream.flow.place import calling_place
from rollstream.flow.step import Setting, StepLike, as_step
from rollstream.spaces import Batch

if TYPE_CHECKING:
    from rollstream.flow.queue import Queue
    from rollstream.metrics import Report

__all__ = ["Stream"]

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


class Stream(Generic[T_co]):
    """A description of items of type `T_co` in the learner.

    Every operator takes `name=`, under which its state, rates and errors go; without one it has the name of its kind or step.
    """

    def __init__(self, node: Node) -> None:
        self.node = node

    def for_each(self, step: StepLike[T_co, U], *, name: str | None = None) -> Stream[U]:
        """Apply `step` to every item, in order. A batch keeps its `env_steps`: to drop data use `filter`.

        A step that gives several items for one is `for_each(step).flatten()`.
        """
        return self._stepped("for_each", step, name=name)

    def filter(self, step: StepLike[T_co, bool], *, name: str | None = None) -> Stream[T_co]:
        """Keep the items for which `step` is true; environment steps of the others are counted as dropped."""
        return self._stepped("filter", step, name=name)

    def batch(self: Stream[Batch], *, steps: int, name: str | None = None) -> Stream[Batch]:
        """Join batches until they have at least `steps` environment steps; a short rest comes out when the input ends."""
        require_at_least(1, steps, what="steps of batch")
        return self._next("batch", name=name, settings={"steps": steps}, gives="batch")

    def window(self, *, items: int, name: str | None = None) -> Stream[tuple[T_co, ...]]:
        """Tuples of `items` consecutive items that do not overlap; a short rest comes out when the input ends."""
        require_at_least(1, items, what="items of window")
        gives = "batches" if self.node.gives == "batch" else ""
        return self._next("window", name=name, settings={"items": items}, gives=gives)

    def flatten(self: Stream[Iterable[U]], *, name: str | None = None) -> Stream[U]:
        """The members of every item, one by one. Members that are batches share out the item's environment steps."""
        return self._next("flatten", name=name, gives="batch" if self.node.gives == "batches" else "")

    def take(self, items: int, *, name: str | None = None) -> Stream[T_co]:
        """The first `items` items, then the end."""
        require_at_least(0, items, what="items of take")
        return self._next("take", name=name, settings={"items": items}, gives=self.node.gives)

    def prefetch(self, items: int, *, name: str | None = None) -> Stream[T_co]:
        """Pull up to `items` items ahead in a thread of its own. In inline mode: nothing, items are pulled when asked for."""
        require_at_least(1, items, what="items of prefetch")
        return self._next("prefetch", name=name, settings={"items": items}, gives=self.node.gives)

    def throttle(self, *, every_s: float | None = None, every_steps: int | None = None, name: str | None = None) -> Stream[T_co]:
        """Let one item through every `every_s` seconds or `every_steps` sampled environment steps; the others go no further."""
        if (every_s is None) == (every_steps is None):
            raise ConfigError(f"throttle takes either every_s or every_steps ({calling_place()})")
        if every_s is not None:
            require_at_least(0, every_s, what="every_s of throttle")
        if every_steps is not None:
            require_at_least(1, every_steps, what="every_steps of throttle")
        settings: dict[str, Setting] = {"every_s": every_s} if every_s is not None else {"every_steps": every_steps}
        return self._next("throttle", name=name, settings=settings, gives=self.node.gives)

    def duplicate(self, copies: int, *, name: str | None = None) -> tuple[Stream[T_co], ...]:
        """`copies` streams of the same items, each to be used once. Environment steps are counted with the first copy."""
        require_at_least(2, copies, what="copies of duplicate")
        shared = self._next("duplicate", name=name, settings={"copies": copies}, gives=self.node.gives).node
        return tuple(Stream(_copy_of(shared, index)) for index in range(copies))

    def zip_with_source(self, *, name: str | None = None) -> Stream[tuple[str, T_co]]:
        """Pairs of the actor's id and the item. Right behind `gather_async` only: later an item may be joined of several actors'."""
        if self.node.kind != "gather_async":
            why = (
                "gather_sync joins one message of every actor into one item"
                if self.node.kind == "gather_sync"
                else "here an item may be joined of several actors', or come from a table"
            )
            raise ConfigError(
                f"zip_with_source needs items of one actor each, but it stands behind {self.node} ({calling_place()}): {why}. "
                "Put it right behind gather_async()"
            )
        return self._next("zip_with_source", name=name, gives="pair")

    def mix_replay(self: Stream[Batch], *, slots: int, share: float, seed: int = 0, name: str | None = None) -> Stream[Batch]:
        """Every batch, and behind it on average `share` earlier ones, drawn from the last `slots` (IMPALA's replay).

        Espeholt et al. 2018, section 5.2.2. How many follow is a running remainder (0.5: one behind every second batch), which
        ones is drawn by `seed`. The first batch has none behind it, since there is nothing earlier. A replayed batch carries
        `env_steps=0` and no episodes, so counters add up; it keeps its `version`, so its lag is measured. The ring is part of
        the checkpoint: `slots` bounds its memory and the checkpoint's size.
        """
        require_at_least(1, slots, what="slots of mix_replay")
        require_at_least(0, share, what="share of mix_replay")
        return self._next("mix_replay", name=name, settings={"slots": slots, "share": share, "seed": seed}, gives="batch")

    def enqueue(self, queue: Queue[Any], *, name: str | None = None) -> Stream[T_co]:
        """Put every item into `queue`, for its `dequeue()` in another branch; wait while it is full.

        The items come out here too, for what is to be done beside; environment steps and acknowledgements go through the queue.
        """
        from rollstream.flow.queue import Queue

        if not isinstance(queue, Queue):
            raise ConfigError(
                f"enqueue takes a Queue, got {queue!r} ({calling_place()}); make one by Queue(name=..., bound_items=...)"
            )
        return self._next(
            "enqueue", name=name, default_name=f"enqueue_{queue.name}", settings=queue.settings, gives=self.node.gives
        )

    def report(self, *, every_s: float, name: str | None = None) -> Stream[Report]:
        """The end of a flow: a report every `every_s` seconds (0: after every item) on all that happened since the last.

        The first update is told at once.
        """
        require_at_least(0, every_s, what="every_s of report")
        return self._next("report", name=name, settings={"every_s": every_s}, gives="report")

    def _stepped(self, kind: Kind, step: StepLike[Any, Any], *, name: str | None) -> Stream[Any]:
        described = as_step(step, user=kind)
        if described.where == "actor":
            raise ConfigError(
                f"{described.name} runs in the actors, but {self.node} is in the learner ({calling_place()}); "
                "put it before the gather"
            )
        if described.takes and self.node.gives and described.takes != self.node.gives:
            raise ConfigError(
                f"{described.name} takes {described.takes}, but {self.node} gives {self.node.gives} ({calling_place()})"
            )
        node = make_node(
            kind,
            name=name,
            default_name=described.name,
            where="learner",
            inputs=(self.node,),
            settings=described.settings,
            step=described,
            table=described.table,
            gives=self.node.gives if kind == "filter" else described.gives,
        )
        return Stream(node)

    def _next(
        self,
        kind: Kind,
        *,
        name: str | None,
        default_name: str = "",
        settings: Mapping[str, Setting] | None = None,
        gives: str = "",
    ) -> Stream[Any]:
        node = make_node(
            kind, name=name, default_name=default_name, where="learner", inputs=(self.node,), settings=settings, gives=gives
        )
        return Stream(node)


def _copy_of(shared: Node, index: int) -> Node:
    return make_node(
        "copy",
        name=None,
        default_name=f"{shared.name}.{index + 1}",
        where="learner",
        inputs=(shared,),
        settings={"index": index},
        gives=shared.gives,
    )

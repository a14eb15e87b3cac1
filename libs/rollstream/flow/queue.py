"""`Queue`: a bounded queue between two branches of a flow, by its name.

gather ── enqueue ──▶ [ bound_items ] ──▶ dequeue ── update ── publish
          waits while it is full          waits while it is empty
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from rollstream.errors import ConfigError
from rollstream.flow.node import make_node, require_at_least
from rollstream.flow.place import calling_place
from rollstream.flow.step import Setting
from rollstream.flow.stream import Stream

__all__ = ["Queue"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue(Generic[T]):
    """A queue of at most `bound_items` items, for `Stream.enqueue` in one branch and `dequeue` in another.

    Full, it holds the branch that fills it back; empty, the one that drains it. When everybody who fills it has ended, `dequeue`
    gives what is left and ends. When the branch that drains it ends first, those that fill it end too. An error in either branch
    ends the flow with its own cause.

    >>> queue: Queue[Batch] = Queue(name="train", bound_items=4)                          # doctest: +SKIP
    >>> union(batches.enqueue(queue), learn := queue.dequeue().for_each(update()), emit=learn)     # doctest: +SKIP

    Attributes:
        name: unique in the flow.
        bound_items: how many items it holds.
        deadline_s: seconds that a full queue waits for an item to be taken, then the flow ends with an error that names both
            sides. Longer than the slowest step behind it takes for one item.
    """

    name: str
    bound_items: int
    deadline_s: float = 600.0

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ConfigError(f"the name of a queue must not be empty ({calling_place()}); both ends find it by its name")
        require_at_least(1, self.bound_items, what=f"bound_items of queue {self.name!r}")
        require_at_least(0, self.deadline_s, what=f"deadline_s of queue {self.name!r}")

    @property
    def settings(self) -> Mapping[str, Setting]:
        """What nodes on either side are given."""
        return {"queue": self.name, "bound_items": self.bound_items, "deadline_s": self.deadline_s}

    def dequeue(self, *, gives: str = "", name: str | None = None) -> Stream[T]:
        """The items, in the order in which they were put in. `gives`: their kind for checks, see `Step.gives`."""
        node = make_node(
            "dequeue", name=name, default_name=f"dequeue_{self.name}", where="learner", settings=self.settings, gives=gives
        )
        return Stream(node)

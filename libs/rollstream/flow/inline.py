"""Inline mode: edges in memory whose `next` runs the actor's part, so a whole flow is one thread and a breakpoint just works."""

from __future__ import annotations

from collections.abc import Sequence

from rollstream.errors import ConfigError, DeadlineExceeded
from rollstream.flow.fragment import ActorFragment
from rollstream.spaces import Batch

__all__ = ["InlineEdge", "InlineEdges"]


class InlineEdge:
    """The learner's end of an edge, with the actors behind it; they take turns, so the order is always the same."""

    def __init__(self, name: str, fragments: Sequence[ActorFragment], *, in_flight: int) -> None:
        self._name = name
        self._fragments = tuple(fragments)
        self._in_flight = in_flight
        self._unused = {fragment.actor: 0 for fragment in fragments}
        self._barrier = any(edge.barrier for fragment in fragments for edge in fragment.edges if edge.name == name)
        self._turn = 0

    def next(self, timeout_s: float) -> Batch | None:
        """Run the next actor that has credit. None when its item was dropped by a filter."""
        for _ in range(len(self._fragments)):
            fragment = self._fragments[self._turn]
            self._turn = (self._turn + 1) % len(self._fragments)
            if not self._can_run(fragment):
                continue
            batch = fragment.run_once(self._name)
            if batch is not None:
                self._unused[fragment.actor] += 1
            return batch
        raise DeadlineExceeded(
            f"edge {self._name!r}: every actor waits for the learner (unused messages: {self._unused}, "
            f"{self._in_flight} allowed; or a full table), "
            "and in one thread the learner is the one that waits; raise in_flight, or buffer less behind the gather"
        )

    def at_hand(self) -> Batch | None:
        """None: every message is made when it is asked for."""
        return None

    def ack(self, *batches: Batch) -> None:
        """Give the actors credit again."""
        for batch in batches:
            self._unused[batch.actor] -= 1

    def live_actors(self) -> set[str]:
        """All of them."""
        return set(self._unused)

    def ready(self) -> bool:
        """Whether `next` has an actor to run; of a barrier, whether a whole round can run."""
        return (all if self._barrier else any)(self._can_run(fragment) for fragment in self._fragments)

    def _can_run(self, fragment: ActorFragment) -> bool:
        return self._unused[fragment.actor] < self._in_flight and fragment.ready(self._name)


class InlineEdges:
    """The edges of a flow whose actors' parts are `fragments`; for `LearnerSide.messages`."""

    def __init__(self, fragments: Sequence[ActorFragment]) -> None:
        if not fragments:
            raise ConfigError("inline mode needs at least one actor fragment, got none")
        self._fragments = tuple(fragments)

    def source(self, edge: str, *, in_flight: int) -> InlineEdge:
        """The learner's end of the edge called `edge`."""
        return InlineEdge(edge, self._fragments, in_flight=in_flight)

"""What flows need of the process they run in. `acting` and `learning` implement these; tests use toy ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from rollstream.clock import Clock
from rollstream.metrics import Counters
from rollstream.spaces import Batch, Columns, Episodes, Rollout

if TYPE_CHECKING:
    from rollstream.store.peers import Meeting

__all__ = ["ActorSide", "EdgeSource", "LearnerSide", "Owner", "Peers", "StoreResult"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreResult:
    """What a table writer did with one rollout: items and rows written, seconds that it waited for room."""

    items: int
    rows: int
    waited_s: float


class Peers(Protocol):
    """How actors find each other (`rollstream.store.peers.Peers`)."""

    @property
    def host(self) -> str:
        """Under which others reach this process."""
        ...

    def someone_waits(self) -> bool:
        """Whether another actor waits for a group now."""
        ...

    def meet(self, *, standing: int, expected: int, open_at: Callable[[int], str]) -> Meeting:
        """Wait for a group with this actor in it; see `rollstream.store.peers.Peers.meet`."""
        ...


class ActorSide(Protocol):
    """The actor's process, seen from a flow."""

    @property
    def actor(self) -> str:
        """Id of this actor; stands in every message and error."""
        ...

    @property
    def clock(self) -> Clock: ...

    @property
    def peers(self) -> Peers | None:
        """The way to the other actors of the experiment; None where there is none (inline mode)."""
        ...

    @property
    def agent(self) -> Any:
        """The algorithm as this actor built it (`rollstream.algorithms.agent.Agent`)."""
        ...

    def collect(self, *, steps: int, pull: bool = True) -> Rollout:
        """Pull the newest weights (unless told not to), then step all environments `steps` times."""
        ...

    def restart(self, options: Mapping[str, Any] | None = None) -> None:
        """Begin a new episode in every environment, with these reset options from now on; those under way end nowhere."""
        ...

    def pull(self) -> int:
        """Act with the newest weights from now on; returns their version, 0 when there are none yet."""
        ...

    def tensors(self) -> Mapping[str, npt.NDArray[Any]]:
        """The weights that act now, by name, as they were published or given."""
        ...

    def act_with(self, tensors: Mapping[str, npt.NDArray[Any]], *, version: int | None = None) -> None:
        """Act with these until the next pull. What is not finite is refused (`NonFiniteError`), and what acted goes on.

        Args:
            version: what rows and messages tell from now on; None leaves it.
        """
        ...

    def generator(self, name: str) -> np.random.Generator:
        """This actor's own random numbers for `name`: the same object each time. They follow from the experiment's seed, the
        actor's ordinal and the count of its restarts, so a restarted actor draws fresh ones."""
        ...

    def values(self, observation: Columns, *, policy: str = "") -> npt.NDArray[np.float32]:
        """Values [N] of N observations by the weights (of `policy`) that acted in the last rollout."""
        ...

    def store(self, table: str, rule: Any, rollout: Rollout) -> StoreResult:
        """Write the rollout's rows and items to `table`; waits while the table is full, with a deadline."""
        ...

    def can_store(self, table: str) -> bool:
        """Whether `store` would not have to wait now. Asked in inline mode only."""
        ...


class EdgeSource(Protocol):
    """The learner's end of an edge."""

    def next(self, timeout_s: float) -> Batch | None:
        """The next message, or None when none came within `timeout_s`. Called from one thread."""
        ...

    def at_hand(self) -> Batch | None:
        """The next message if it lies in this process already; never waits for one. From the thread that calls `next`."""
        ...

    def ack(self, *batches: Batch) -> None:
        """These messages, as `next` and `at_hand` gave them, have been used: their actors may send again. From any thread."""
        ...

    def live_actors(self) -> set[str]:
        """Actors that are alive and produce for this edge; a barrier waits for exactly these. Cheap: asked twice a second."""
        ...

    def ready(self) -> bool:
        """Whether `next` would return a message without waiting. Asked in inline mode only."""
        ...


class LearnerSide(Protocol):
    """The learner's process, seen from a flow."""

    @property
    def clock(self) -> Clock: ...

    @property
    def counters(self) -> Counters: ...

    @property
    def stop(self) -> threading.Event:
        """Set when the flow shall end: sources end, what is under way is finished, buffers are kept for the checkpoint."""
        ...

    def version(self) -> int:
        """Version of the newest published weights."""
        ...

    def updates(self, *, policy: str = "") -> int:
        """Optimizer steps so far (of `policy` alone, where one is named)."""
        ...

    def messages(self, edge: str, *, in_flight: int) -> EdgeSource:
        """The learner's end of the edge called `edge`."""
        ...

    def learn(self, batch: Batch, *, policy: str = "") -> Batch:
        """Update the weights (of `policy`) with `batch`; returns it with `metrics` and, for replay, a `td_error` column."""
        ...

    def publish(self) -> int:
        """Publish the weights; returns their version."""
        ...

    def sync_target(self, *, policy: str = "") -> None:
        """Copy the weights (of `policy`) to the target network."""
        ...

    def evaluate(self, *, episodes: int) -> Episodes:
        """Play so many greedy episodes by the weights as they are, in fresh environments, and wait for them."""
        ...

    def sample(self, table: str, *, batch_items: int, deadline_s: float) -> Batch:
        """Items of `table` as columns (`key` among them); `DeadlineExceeded` when the limiter does not allow it in time."""
        ...

    def can_sample(self, table: str, *, batch_items: int) -> bool:
        """Whether `sample` would not have to wait now. Asked in inline mode only."""
        ...

    def update_priorities(self, table: str, keys: npt.NDArray[Any], priorities: npt.NDArray[Any]) -> None:
        """Give sampled items new priorities."""
        ...

    def waits(self, who: str, what: str) -> AbstractContextManager[Any]:
        """Record that the operator `who` waits for `what` as long as the context lasts. There are few different texts.

        The context is entered again for each of these waits, by one thread at a time.
        """
        ...


class Owner(Protocol):
    """Who pulls a flow and may have something to do while the flow waits, e.g. save it. Called from the thread that pulls."""

    def wants(self) -> bool:
        """Whether there is something to do. Asked twice a second while the flow waits."""
        ...

    def act(self) -> None:
        """Do it; the flow stands between two items and waits on afterwards."""
        ...

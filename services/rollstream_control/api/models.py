"""What the API says: one model per reply, each field with its unit and meaning. The OpenAPI document is made from them."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from pydantic import Field, JsonValue

from rollstream.config import ExperimentSpec, Frozen, Phase
from rollstream_control.served_policies import MAX_OBSERVATIONS

__all__ = [
    "ActReply",
    "ActRequest",
    "ActorSeat",
    "ActorsView",
    "CellView",
    "ExperimentItem",
    "ExperimentList",
    "ExperimentView",
    "FaultList",
    "FlowView",
    "MemberView",
    "OrderReply",
    "ReplicasReply",
    "ReplicasRequest",
    "ReportList",
    "ServerView",
    "ShardTable",
    "TableList",
    "TableView",
]

Condition: TypeAlias = Literal["OK", "WAITING", "DEGRADED", "ENDED"]


class ActorSeat(Frozen):
    """One actor of an experiment."""

    member: str
    """Id of the member."""
    ordinal: int
    """Its number in the experiment, from 0."""
    live: bool
    """Whether it has announced itself within the last seconds."""


class ExperimentItem(Frozen):
    """An experiment in a list."""

    id: str
    """Name and six hex digits; used in every other path."""
    phase: Phase
    """Where it stands in its life."""
    condition: Condition
    """OK: it works; WAITING: nobody has begun or it is paused; DEGRADED: it should work but lacks something; ENDED."""
    why: tuple[str, ...]
    """What it lacks or waits for, in sentences."""
    reason: str
    """Why it is in this phase, when there is something to say; for `failed` always."""
    algorithm: str
    """As in its spec."""
    environment: str
    """Id of its environment, as in its spec."""
    submitted_s: float | None
    """When it was submitted, in seconds since 1970."""
    started_s: float | None
    """When a learner began, in seconds since 1970."""
    ended_s: float | None
    """When it ended, in seconds since 1970."""


class ExperimentView(ExperimentItem):
    """Everything about one experiment."""

    detail: str
    """Traceback or other text that belongs to `reason`."""
    wanted: Literal["run", "pause", "stop"]
    """What people ordered last."""
    learner: str
    """Member that runs it; empty when none does."""
    actors: tuple[ActorSeat, ...]
    """Actors that control has given it."""
    counters: dict[str, int]
    """Monotonic counters, e.g. `env_steps_sampled`."""
    report: dict[str, JsonValue] | None
    """The newest report (returns, lag, rates, waits); null before the first."""
    summary: dict[str, JsonValue]
    """Results, filled when it has ended."""
    spec: ExperimentSpec
    """The spec as submitted, with defaults filled in."""


class ExperimentList(Frozen):
    """Experiments, the newest first."""

    experiments: tuple[ExperimentItem, ...]
    """At most `limit` of them."""
    total: int
    """How many the cell knows in all."""


class OrderReply(Frozen):
    """Answer to an order; the experiment obeys within about a second."""

    id: str
    """The experiment."""
    ordered: Literal["run", "pause", "stop", "checkpoint"]
    """What was ordered."""
    phase: Phase
    """Phase when the order was taken."""


class ActRequest(Frozen):
    """What a policy shall act on: one observation or several."""

    observation: JsonValue = None
    """One observation, nested as the environment's space: objects, lists, numbers."""
    observations: tuple[JsonValue, ...] | None = Field(default=None, min_length=1, max_length=MAX_OBSERVATIONS)
    """Several observations, in place of `observation`."""
    deterministic: bool = True
    """True: the most probable (or most valuable) action, as in evaluation; False: a sampled one, as in training."""
    seed: int | None = Field(default=None, ge=0, lt=1 << 53)
    """Seed of sampled actions: the same request with the same seed and weights gives the same actions; null draws one."""
    state: JsonValue = None
    """What a recurrent policy remembers after the step before, as `states` of that reply; left out: an episode begins."""
    states: tuple[JsonValue, ...] | None = Field(default=None, min_length=1, max_length=MAX_OBSERVATIONS)
    """One state for each of `observations`."""


class ActReply(Frozen):
    """What a policy does."""

    id: str
    """The experiment."""
    actions: tuple[JsonValue, ...]
    """One for each observation, in the environment's own values, nested as its action space."""
    states: tuple[JsonValue, ...] | None
    """What a recurrent policy remembers, one for each observation: send them with the next; null for other policies."""
    weights_version: int
    """Version of the weights that acted."""
    seed: int
    """Seed of the sampled actions."""


class StreamEntry(Frozen):
    """One report or fault."""

    id: str
    """Position in the stream: give the last one as `after` to read on."""
    data: dict[str, JsonValue]
    """The report or fault."""


class ReportList(Frozen):
    """Reports in the order in which they were made."""

    reports: tuple[StreamEntry, ...]
    """At most `limit` of them."""
    next_after: str
    """Give this as `after` to read what comes next."""


class FaultList(Frozen):
    """Faults in the user's code (environment, flow, learner), each with its traceback."""

    faults: tuple[StreamEntry, ...]
    """In order of time."""
    next_after: str
    """Give this as `after` to read what comes next."""


class FlowView(Frozen):
    """The dataflow graph of an experiment."""

    id: str
    """The experiment."""
    flow: dict[str, JsonValue] | None
    """Nodes (in actors: summed) and edges with rates, depth, work and waits, and `bottleneck`; null before the learner built it."""


class ShardTable(Frozen):
    """One shard's part of a table."""

    shard: int
    """Number of the shard."""
    member: str
    """Member that serves it; empty when none is live."""
    info: dict[str, JsonValue] | None
    """What the shard says about its part; null when it could not be asked."""
    problem: str
    """Why it could not be asked; empty when it could."""


class TableView(Frozen):
    """A replay table over all its shards."""

    name: str
    """Name in the experiment's flow."""
    id: str
    """Name in the cell: `<experiment>.<name>`."""
    shards: tuple[ShardTable, ...]
    """In order of their numbers."""


class TableList(Frozen):
    """Replay tables of an experiment; empty for on-policy algorithms."""

    tables: tuple[TableView, ...]
    """In order of their names."""


class MemberView(Frozen):
    """One process of the cell."""

    id: str
    """Its name."""
    role: Literal["actor", "learner", "replay", "control"]
    """What it does."""
    url: str
    """Where its probes and metrics answer."""
    version: str
    """Release of Rollstream that it runs."""
    host: str
    """Machine or pod."""
    pid: int
    """Process id there."""
    shard: int | None
    """Number of a replay shard; null for other roles."""
    ready: bool
    """Whether it can do its job now."""
    doing: str
    """Experiment that it works on; empty when idle."""
    rss_mb: float | None
    """Resident memory in 2**20 bytes."""
    heartbeat_age_s: float | None
    """Seconds since it last announced itself; gone at 6."""
    detail: dict[str, JsonValue]
    """What else it says about itself."""


class ServerView(Frozen):
    """The Redis or Valkey server of the cell."""

    product: str
    """`redis` or `valkey`."""
    version: str
    """Its version."""
    used_memory_bytes: int
    """Memory that it uses now."""
    maxmemory_bytes: int
    """Limit on its memory; 0: none."""


class ActorsView(Frozen):
    """How many actors there are and should be."""

    wanted: int | None
    """What the backend was told; null when it does not know."""
    live: int
    """Announced within the last seconds."""
    assigned: int
    """Live and at work on an experiment."""


class CellView(Frozen):
    """The cell: who is there, and what it runs on."""

    version: str
    """Release of Rollstream that control runs."""
    backend: Literal["local", "kubernetes", "none"]
    """Who starts actors."""
    scheduling: bool
    """True when this control assigns actors; false when another one does."""
    actors: ActorsView
    """Numbers of actors."""
    experiments_open: int
    """Experiments that have not ended."""
    server: ServerView | None
    """Redis; null until it has been asked."""
    members: tuple[MemberView, ...]
    """Everybody who is live, by id."""


class ReplicasRequest(Frozen):
    """How many actors there should be."""

    replicas: int = Field(ge=0, le=10_000, strict=True)
    """Actors wanted; 0 lets the cell sleep."""


class ReplicasReply(Frozen):
    """The wish is recorded; the actors come and go by themselves."""

    replicas: int
    """Actors wanted from now on."""
    backend: Literal["local", "kubernetes", "none"]
    """Who obeys."""


def json_object(value: dict[str, Any]) -> dict[str, JsonValue]:
    """`value` as the type that models use for free-form JSON."""
    return value

"""Steps: what `for_each` and `filter` apply to an item. A step is a description; each process binds it to its own side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from rollstream.errors import ConfigError

__all__ = ["Bound", "Closable", "Setting", "Settles", "Stateful", "Step", "StepLike", "Where", "as_step"]

Where: TypeAlias = Literal["actor", "learner", "anywhere"]
Settles: TypeAlias = Literal["trained", "stored"]
Setting: TypeAlias = str | int | float | bool | None
Bound: TypeAlias = Callable[[Any], Any]


@runtime_checkable
class Stateful(Protocol):
    """A bound step with something to remember across a restart: JSON-able values and arrays."""

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: Mapping[str, Any]) -> None: ...


@runtime_checkable
class Closable(Protocol):
    """A bound step that holds something to give back."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A verb of a flow.

    Attributes:
        name: how it is called in errors, drawings and profiles.
        bind: called once per process with its `ActorSide` or `LearnerSide`; returns what is called with every item. A bound step
            may also have `state()`, `restore(state)` and `close()`.
        where: the process it can run in.
        settings: what it was given, for descriptions.
        table: name of the replay table that it needs; empty for none.
        takes, gives: kinds of items, for checks when the flow is built: `rollout`, `batch`, `batches`; empty when unknown.
        settles: what becomes of the environment steps of an item once the step is done with it; None leaves them in flight.
        drops_as: reason under which a filter counts what it drops; empty: the name of its node.
    """

    name: str
    bind: Callable[[Any], Bound]
    where: Where = "anywhere"
    settings: Mapping[str, Setting] = field(default_factory=dict)
    table: str = ""
    takes: str = ""
    gives: str = ""
    settles: Settles | None = None
    drops_as: str = ""


StepLike: TypeAlias = Step | Callable[[Any], Any]


def as_step(step: StepLike, *, user: str) -> Step:
    """`step` itself, or a plain function as a step that runs anywhere. `user` is the operator that was given it."""
    if isinstance(step, Step):
        return step
    if not callable(step):
        raise ConfigError(f"{user} takes a step or a function, got {step!r}; steps are in rollstream.flow.steps")
    return Step(name=_name_of(step), bind=_PlainFunction(step))


@dataclass(frozen=True, slots=True)
class _PlainFunction:
    """A function needs nothing of the process it runs in."""

    function: Bound

    def __call__(self, side: object) -> Bound:
        return self.function


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return name.rsplit("<locals>.", maxsplit=1)[-1].replace("<lambda>", "lambda")

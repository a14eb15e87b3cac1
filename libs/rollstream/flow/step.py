"""Steps: what `for_each` and `filter` apply to an item. A step is a description; each process binds it to its own side."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Literal, Protocol, TypeAlias, runtime_checkable

from typing_extensions import TypeVar

from rollstream.errors import ConfigError
from rollstream.flow.place import calling_place

__all__ = ["Bound", "Closable", "Setting", "Settles", "Stateful", "Step", "StepLike", "Where", "as_step", "require_importable"]

In_contra = TypeVar("In_contra", contravariant=True, default=Any)
Out_co = TypeVar("Out_co", covariant=True, default=Any)
A = TypeVar("A")
B = TypeVar("B")

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


@dataclass(frozen=True, kw_only=True)
class Step(Generic[In_contra, Out_co]):
    """A verb of a flow, from items of type `In_contra` to items of type `Out_co`; a plain `Step` is `Step[Any, Any]`.

    Attributes:
        name: how it is called in errors, drawings and profiles.
        bind: called once per process with its `ActorSide` or `LearnerSide`; returns what is called with every item. A bound step
            may also have `state()`, `restore(state)` and `close()`.
        where: the process it can run in.
        settings: what it was given, for descriptions.
        table: name of the replay table that it needs; empty for none.
        takes, gives: kinds of items, for checks when the flow is built: `rollout`, `batch`, `batches`; empty when unknown.
        settles: what becomes of the environment steps of an item once the step is done with it; None leaves them in flight.
        tells_episodes: what it gives tells of episodes that ended in the learner's process, so nobody has counted them yet.
        drops_as: reason under which a filter counts what it drops; empty: the name of its node.
    """

    name: str
    bind: Callable[[Any], Callable[[In_contra], Out_co]]
    where: Where = "anywhere"
    settings: Mapping[str, Setting] = field(default_factory=dict)
    table: str = ""
    takes: str = ""
    gives: str = ""
    settles: Settles | None = None
    tells_episodes: bool = False
    drops_as: str = ""


StepLike: TypeAlias = Step[A, B] | Callable[[A], B]
"""What `for_each` takes: a step, or a plain function or object that is called with every item."""


def as_step(step: StepLike[A, B], *, user: str) -> Step[A, B]:
    """`step` itself, or a plain function as a step that runs anywhere. `user` is the operator that was given it."""
    if isinstance(step, Step):
        return step
    if not callable(step):
        raise ConfigError(f"{user} takes a step or a function, got {step!r}; steps are in rollstream.flow.steps")
    return Step(name=_name_of(step), bind=_PlainFunction(step))


def require_importable(step: StepLike[Any, Any], *, user: str) -> None:
    """Refuse a plain function for the actors that another process could not name: a lambda, or what a function defined.

    An actor makes its part of the flow from the flow page, in a process of its own: what it runs must be there under the same name
    after an import, so that errors, rates and checkpoints of both sides mean the same step. Objects are judged by their class.
    """
    if isinstance(step, Step) or not callable(step):
        return
    named: Any = step.func if isinstance(step, partial) else step
    named = getattr(named, "__func__", named)
    if not hasattr(named, "__qualname__"):
        named = type(named)
    module, name = str(getattr(named, "__module__", None) or "builtins"), str(named.__qualname__)
    if _found(module, name) is None:
        raise ConfigError(
            f"{user} in the actors was given {module}:{name}, which an actor's process cannot import ({calling_place()}): "
            "both processes must name it. Define the function or the class at the top level of a module; "
            "a lambda may stand behind a gather, in the learner"
        )


def _found(module: str, name: str) -> Any:
    """What is called `name` in the imported `module`; None when nothing is."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


@dataclass(frozen=True, slots=True)
class _PlainFunction:
    """A function needs nothing of the process it runs in."""

    function: Bound

    def __call__(self, side: object) -> Bound:
        return self.function


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return str(name).rsplit("<locals>.", maxsplit=1)[-1].replace("<lambda>", "lambda")

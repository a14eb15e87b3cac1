"""What a component sees when one of its APIs runs: the op table, and its own part of the parameters under its own path.

The parent names the child (`scope.child("torso")`), so paths are explicit and sharing parameters is using one name
twice. In the shape pass the same code declares parameters; afterwards it looks them up.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from rollstream.clock import Clock
from rollstream.errors import ConfigError
from rollstream.graph.initializers import Constant, Initializer
from rollstream.graph.layout import Parameter
from rollstream.graph.ops import Array, Ops
from rollstream.graph.unsupported import UnsupportedOp

__all__ = ["Call", "Declaration", "Parameters", "Scope", "api"]

Self = TypeVar("Self")
P = ParamSpec("P")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Arrays by name: those that learn, the same without gradient, and those of the target network (when there is one).

    Attributes:
        state: what components remember from call to call.
        written: where `Scope.set_state` puts new state; None: this call may only read it.
    """

    live: Mapping[str, Array]
    frozen: Mapping[str, Array]
    target: Mapping[str, Array] | None = None
    state: Mapping[str, Array] = field(default_factory=dict)
    written: dict[str, Array] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One API call seen in the shape pass: for the build report.

    Attributes:
        path: of the component in the tree; empty for the root.
        component: name of its class.
        parameters: numbers in the flat vector that belong to it and to its parts.
        duration_s: of this call in the shape pass, its parts included.
        part: the component itself.
        inputs: what the call was given, by argument name: arrays, mappings of arrays, or plain values.
        output: what it returned.
    """

    path: str
    component: str
    api: str
    parameters: int
    duration_s: float
    part: Any
    inputs: Mapping[str, Any]
    output: Any


@dataclass(slots=True, kw_only=True)
class Declaration:
    """Collects what a shape pass declares."""

    clock: Clock
    parameters: dict[str, Parameter] = field(default_factory=dict)
    state: dict[str, Parameter] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    uses_target: bool = False

    def parameter(self, name: str, shape: tuple[int, ...], init: Initializer) -> Array:
        return _declared(self.parameters, name, shape, init)


def _declared(known: dict[str, Parameter], name: str, shape: tuple[int, ...], init: Initializer) -> Array:
    first = known.setdefault(name, Parameter(name=name, shape=shape, init=init))
    if first.shape != shape:
        raise ConfigError(
            f"parameter {name} is used with shapes {list(first.shape)} and {list(shape)}; give one of them another name"
        )
    return np.zeros(shape, np.float32)


class Scope:
    """A component's place in the tree, see the module. Children are made once: an executable keeps its root."""

    __slots__ = ("_all", "_children", "_current", "declaration", "ops", "path")

    def __init__(
        self,
        ops: Ops,
        parameters: Parameters | None = None,
        *,
        declaration: Declaration | None = None,
        path: str = "",
        current: Mapping[str, Array] | None = None,
    ) -> None:
        self.ops = ops
        self.path = path
        self.declaration = declaration
        self._all = parameters
        self._current = current if current is not None or parameters is None else parameters.live
        self._children: dict[str, Scope] = {}

    def child(self, name: str) -> Scope:
        """The place of a part called `name`."""
        found = self._children.get(name)
        if found is None:
            path = f"{self.path}.{name}" if self.path else name
            found = Scope(self.ops, self._all, declaration=self.declaration, path=path, current=self._current)
            self._children[name] = found
        return found

    def parameter(self, name: str, shape: tuple[int, ...], init: Initializer) -> Array:
        """This component's parameter `name`."""
        full = f"{self.path}.{name}" if self.path else name
        if self._current is not None:
            return self._current[full]
        assert self.declaration is not None, "a scope has parameters or declares them"
        return self.declaration.parameter(full, shape, init)

    def state(self, name: str, shape: tuple[int, ...], *, initial: float = 0.0) -> Array:
        """What this component remembers as `name`, float32; no gradient flows into it."""
        full = self._full(name)
        if self._all is None:
            assert self.declaration is not None, "a scope has parameters or declares them"
            return _declared(self.declaration.state, full, shape, Constant(value=initial))
        return self._all.state[full]

    def set_state(self, name: str, value: Array) -> None:
        """Remember `value` as `name` from the next call on.

        Raises:
            ConfigError: this API is run where state may only be read (acting, losses).
        """
        if self.declaration is not None:
            return
        full = self._full(name)
        if self._all is None or self._all.written is None:
            raise ConfigError(f"state {full} cannot be set here; only an API that is run for it, such as observe, may set state")
        self._all.written[full] = value

    def _full(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def without_gradient(self) -> Scope:
        """The same place; what is computed in it does not move the parameters."""
        return self._with(None if self._all is None else self._all.frozen)

    def target(self) -> Scope:
        """The same place in the target network, which moves only when it is synchronized."""
        if self.declaration is not None:
            self.declaration.uses_target = True
        assert self._all is None or self._all.target is not None, f"{self.path}: runs without target parameters"
        return self._with(None if self._all is None else self._all.target)

    def _with(self, current: Mapping[str, Array] | None) -> Scope:
        return Scope(self.ops, self._all, declaration=self.declaration, path=self.path, current=current)


def api(
    function: Callable[Concatenate[Self, Scope, P], Result],
) -> Callable[Concatenate[Self, Scope, P], Result]:
    """Marks a public method of a component: `method(self, scope, ...)`. The shape pass reports each; at run time it
    is a plain call."""

    @functools.wraps(function)
    def call(self: Self, scope: Scope, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        if scope.declaration is None:
            try:
                return function(self, scope, *args, **kwargs)
            except UnsupportedOp as error:
                error.locate(path=scope.path, component=type(self).__name__, api=function.__name__)
                raise
        names = list(inspect.signature(function).parameters)[2:]
        inputs = {**dict(zip(names, args, strict=False)), **kwargs}
        return _reported(scope, self, function.__name__, inputs, lambda: function(self, scope, *args, **kwargs))

    return call


def _reported(scope: Scope, component: Any, name: str, inputs: Mapping[str, Any], run: Callable[[], Result]) -> Result:
    declaration = scope.declaration
    assert declaration is not None, "only a shape pass reports"
    start_s = declaration.clock.monotonic_s()
    try:
        result = run()
    except (ValueError, TypeError, IndexError) as error:
        where = f"{type(component).__name__}.{name}"
        raise ConfigError(f"{scope.path or '(root)'}: {where} does not fit its inputs: {error}") from error
    inside = f"{scope.path}." if scope.path else ""
    size = sum(item.size for item in declaration.parameters.values() if item.name.startswith(inside))
    declaration.calls.append(
        Call(
            path=scope.path,
            component=type(component).__name__,
            api=name,
            parameters=size,
            duration_s=declaration.clock.monotonic_s() - start_s,
            part=component,
            inputs=inputs,
            output=result,
        )
    )
    return result

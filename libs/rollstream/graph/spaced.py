"""A part that does not know what it is fed (a dense layer), together with the spaces it is fed: so it can be built and tested alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollstream.errors import ConfigError
from rollstream.graph.declare import Component
from rollstream.graph.inputs import Arguments, Input, columns_of
from rollstream.spaces import leaves

__all__ = ["Spaced", "Spaces", "with_spaces"]

Spaces = Mapping[str, Mapping[str, Any]]
"""By API, what each argument is: an `Input`, a tuple of them (a mapping of columns), or a Gymnasium space (`Dict`: a mapping)."""


class Spaced:
    """A component whose APIs and arguments are given from outside."""

    def __init__(self, part: Any, spaces: Mapping[str, Arguments]) -> None:
        self.part = part
        self._spaces = spaces

    @property
    def apis(self) -> tuple[str, ...]:
        return tuple(self._spaces)

    def arguments(self, api: str) -> Arguments:
        return self._spaces[api]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.part, name)


def with_spaces(component: Any, spaces: Spaces | None) -> Component:
    """`component` fed from `spaces`; the component itself when there are none.

    Raises:
        ConfigError: an API that it lacks, or neither spaces nor APIs of its own.
    """
    kind = type(component).__name__
    if spaces is None:
        if not hasattr(component, "arguments"):
            raise ConfigError(f"{kind} does not know what it is fed; give spaces, e.g. {{'output': {{'x': Box(-1, 1, (8,))}}}}")
        made: Component = component
        return made
    for api in spaces:
        if not callable(getattr(component, api, None)):
            raise ConfigError(f"{kind} has no API {api!r}; the spaces name {', '.join(spaces)}")
    return Spaced(component, {api: {name: _argument(name, what) for name, what in of.items()} for api, of in spaces.items()})


def _argument(name: str, what: Any) -> Any:
    if isinstance(what, (Input, tuple)):
        return what
    inputs = columns_of(leaves(what, name))
    return inputs[0] if inputs[0].name == name else inputs

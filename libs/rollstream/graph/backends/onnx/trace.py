"""From an API of a component to its ONNX graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy.typing as npt

from rollstream.graph.backends.onnx.graph import Graph, Value
from rollstream.graph.backends.onnx.ops import OnnxOps
from rollstream.graph.declare import Component
from rollstream.graph.executable import output_columns
from rollstream.graph.inputs import bind, flat_inputs
from rollstream.graph.memory import Memory
from rollstream.graph.scope import Parameters, Scope

__all__ = ["Place", "Traced", "trace"]

Place: TypeAlias = Literal["input", "constant", "outside"]
"""Where numbers of parameters and state are: inputs of each run, in the model, or handed to the session, see `Graph.outside`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """What an API became.

    Attributes:
        outputs: by column name.
        written: new state, by the state's name.
        used: parameters and state that the API looks at, where they lie, by their names in the graph.
    """

    graph: Graph
    outputs: Mapping[str, Value]
    written: Mapping[str, Value]
    used: Mapping[str, npt.NDArray[Any]]


def trace(
    component: Component, *, api: str, rows: int, memory: Memory, place: Callable[[str], Place], any_rows: bool = False
) -> Traced:
    """Run `api` once on values of a new graph.

    Args:
        place: of `live` and `target` parameters, and of `state`.
        any_rows: the graph takes any number of rows; `rows` is then the number that stands for it, see `Graph`.

    Raises:
        UnsupportedOp: names the component's path, its API and the operation.
    """
    graph = Graph(rows=rows if any_rows else None)
    arguments = component.arguments(api)
    inputs = {item.name: graph.input(item.name, shape=item.full_shape(rows), dtype=item.dtype) for item in flat_inputs(arguments)}
    used: dict[str, npt.NDArray[Any]] = {}

    def part(kind: str, views: Mapping[str, npt.NDArray[Any]]) -> _OnUse:
        return _OnUse(graph, kind=kind, views=views, used=used, place=place(kind))

    live = part("live", memory.live_views)
    target = live if memory.target is None else part("target", memory.target_views)
    written: dict[str, Any] = {}
    parameters = Parameters(live=live, frozen=live, target=target, state=part("state", memory.state_views), written=written)
    outputs = output_columns(getattr(component, api)(Scope(OnnxOps(graph), parameters), **bind(arguments, inputs)))
    return Traced(
        graph=graph,
        outputs={name: _value(graph, column) for name, column in outputs.items()},
        written={name: _value(graph, value) for name, value in written.items()},
        used=used,
    )


def _value(graph: Graph, x: Any) -> Value:
    return x if isinstance(x, Value) else graph.constant(x)


class _OnUse(Mapping[str, Value]):
    """Arrays by name that come into the graph when they are first looked at."""

    def __init__(
        self, graph: Graph, *, kind: str, views: Mapping[str, npt.NDArray[Any]], used: dict[str, npt.NDArray[Any]], place: Place
    ) -> None:
        self._graph = graph
        self._kind = kind
        self._views = views
        self._used = used
        self._place = place
        self._made: dict[str, Value] = {}

    def __getitem__(self, name: str) -> Value:
        if name not in self._made:
            view, full = self._views[name], f"{self._kind}:{name}"
            self._used[full] = view
            if self._place == "constant":
                self._made[name] = self._graph.constant(view, name=full)
            else:
                make = self._graph.input if self._place == "input" else self._graph.outside
                self._made[name] = make(full, shape=view.shape, dtype=view.dtype)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)

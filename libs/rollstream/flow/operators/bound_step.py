"""A step at work in the learner: bound to its side, timed, and with errors that name its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollstream.flow.fault import raise_at_operator
from rollstream.flow.meter import Meter
from rollstream.flow.node import Node
from rollstream.flow.running import Running
from rollstream.flow.step import Closable, Stateful, Step

__all__ = ["BoundStep"]


class BoundStep:
    """The step of `node`, bound to the learner's side."""

    def __init__(self, node: Node, running: Running, meter: Meter) -> None:
        assert node.step is not None
        self.step: Step = node.step
        self._node = node
        self._now_s = running.side.clock.monotonic_s
        self._meter = meter
        self._bound = node.step.bind(running.side)

    def __call__(self, item: Any) -> Any:
        """The step's result for `item`; a `FlowError` with the user's exception as its cause when it raises."""
        now_s = self._now_s
        began_s = now_s()
        try:
            result = self._bound(item)
        except Exception as error:
            raise_at_operator(error, self._node)
        self._meter.busy_s += now_s() - began_s
        return result

    def state(self) -> dict[str, Any]:
        return self._bound.state() if isinstance(self._bound, Stateful) else {}

    def restore(self, state: Mapping[str, Any]) -> None:
        if isinstance(self._bound, Stateful):
            self._bound.restore(state)

    def close(self) -> None:
        if isinstance(self._bound, Closable):
            self._bound.close()

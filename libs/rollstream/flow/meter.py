"""What one node of a running flow does: items, environment steps, seconds of work, and for what it waits."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Meter"]


@dataclass(slots=True)
class Meter:
    """Written by the one thread that runs the node, read by anyone; a reader may see a count that is one item old.

    Attributes:
        items: items that came out. env_steps: environment steps that came out with them.
        busy_s: seconds in the node's own step. waited_s: seconds of waiting that ended.
        waits_for: what it waits for now; empty when it does not. waits_since_s: since when (monotonic).
        waited_for: what it last waited for.
        depth_items: items that it holds now. bound_items: how many it may hold; 0 when it holds none.
    """

    items: int = 0
    env_steps: int = 0
    busy_s: float = 0.0
    waited_s: float = 0.0
    waits_for: str = ""
    waits_since_s: float = 0.0
    waited_for: str = ""
    depth_items: int = 0
    bound_items: int = 0

"""What every algorithm's `agent.py` provides: how to act, what to store, how to learn. Built from spaces and settings alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from rollstream.errors import SpaceError
from rollstream.learning import LearningAgent
from rollstream.spaces import Column, Leaf

__all__ = ["Agent", "require_one_action"]


class Agent(Protocol):
    """One algorithm for one environment. The same object is made in actors (which only act) and in the learner."""

    @property
    def policy(self) -> Any:
        """The policy component (`rollstream.graph`)."""
        ...

    @property
    def action(self) -> Leaf:
        """The action leaf."""
        ...

    @property
    def extra_columns(self) -> tuple[Column, ...]:
        """Columns that the policy adds to every row."""
        ...

    @property
    def config(self) -> Any:
        """The algorithm's settings."""
        ...

    @property
    def table_names(self) -> tuple[str, ...]:
        """Names of the replay tables that its flow takes."""
        ...

    def tables(self, rows: Any) -> Mapping[str, Any]:
        """The replay tables (`TableSpec` by name) for rows of this `RowSpec`."""
        ...

    def learning(self, *, seed: int) -> LearningAgent:
        """The learning half, with fresh parameters. Imports the gradient framework."""
        ...


def require_one_action(actions: tuple[Leaf, ...], *, algorithm: str) -> Leaf:
    """The single action leaf, or a `SpaceError` that names what there is."""
    if len(actions) != 1:
        names = ", ".join(leaf.name for leaf in actions)
        raise SpaceError(
            f"action: {algorithm} chooses one discrete action, but the environment asks for {len(actions)} ({names}); "
            "wrap the environment so that it takes one Discrete action"
        )
    return actions[0]

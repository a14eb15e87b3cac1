"""What every algorithm's `agent.py` provides: how to act, what to store, how to learn. Built from spaces and settings alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from rollstream.learning import LearningAgent
from rollstream.spaces import Column, Leaf

__all__ = ["Agent"]


class Agent(Protocol):
    """One algorithm for one environment. The same object is made in actors (which only act) and in the learner."""

    @property
    def policy(self) -> Any:
        """The policy component (`rollstream.graph`)."""
        ...

    @property
    def loss(self) -> Any:
        """The loss component over the policy: what is minimized."""
        ...

    @property
    def actions(self) -> tuple[Leaf, ...]:
        """Leaves of the action space."""
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
